"""What clients saw and what was done to the cluster: operations, and the file that keeps them.

An operation is written twice: when a client invokes it, and when it completes. `ok` says that it
happened, `fail` that it did not and never will, `info` that nobody knows (a time-out, a broken
connection): then it may still happen at any later time, or never. The vocabulary is Jepsen's. A key
names a partition: "orders-east-3" is partition 3 of orders-east.

The file is a sequence of frames, appended and flushed one by one while the run goes on, so that a
crash of the run loses at most the frame it was writing. They hold msgpack values:

    {"format": "quorumlab-history", "version": 2, ...}          what was run: see `Header`
    [index, time_ns, kind, process, f, value, error, extra]     one operation, over and over

Each frame knows whether it is whole, and as it was written:

    mark      nine bytes, one msgpack value (uint64): CRC-32 of the content, then its length
    content   one msgpack value

A frame that is torn at the end was never written as a whole, and is left out. Anything else that is
not as it was written is damage, and raises: a flipped bit of a recorded answer would accuse a
system that was right. A damaged length passes for a torn end, but for the content behind it, which
is complete: no true prefix of a msgpack value is one.

Version 1 had the values without their frames, and does not notice damage; it is still read.

Pure: bytes in, bytes out. Source: jepsen.history; design decision 9.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from io import BytesIO
from sys import intern
from typing import Any, BinaryIO
from zlib import crc32

import msgpack

__all__ = [
    "FORMAT",
    "INITIAL",
    "MARKED",
    "NEMESIS",
    "TRUST_FAILURES",
    "VERSION",
    "Frames",
    "Header",
    "History",
    "Kind",
    "MalformedHistory",
    "Op",
    "Value",
    "encode_header",
    "encode_op",
    "framed",
    "header_as_value",
    "header_of",
    "key_of",
    "place_of",
    "read_history",
    "stream_history",
]

MARKED = 0xCF  # the byte with which a mark begins
_BLOCK_BYTES = 1 << 20
_MARK_BYTES = 9
_CRC_BITS = 32


def framed(content: bytes) -> bytes:
    told = crc32(content) << _CRC_BITS | len(content)
    return bytes([MARKED]) + told.to_bytes(_MARK_BYTES - 1) + content


class Frames:
    """The contents of whole frames, with a block or a frame at once in memory.

    Damage raises `damaged`, with the byte where the frame begins.
    """

    def __init__(self, source: BinaryIO, damaged: Callable[[str], Exception]) -> None:
        self._read: Callable[[int], bytes] = source.read
        self._damaged = damaged
        self._buffer = b""
        self._at = 0  # in the buffer
        self._begin = 0  # of the buffer, in the file
        self.is_cut = False  # known at the end

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._has(1):
            raise StopIteration
        if not self._has(_MARK_BYTES):
            return self._torn_or_damaged(self._buffer[self._at] == MARKED)
        begin = self._at + _MARK_BYTES
        told = int.from_bytes(self._buffer[self._at + 1 : begin])
        crc, length = told >> _CRC_BITS, told & ((1 << _CRC_BITS) - 1)
        if self._buffer[self._at] != MARKED:
            raise self._damage()
        if begin + length > len(self._buffer):
            if _is_value(self._buffer[begin:]):
                raise self._damage()
            if not self._has(_MARK_BYTES + length):
                return self._torn_or_damaged(not _is_value(self._buffer[self._at + _MARK_BYTES :]))
            begin = self._at + _MARK_BYTES
        content = self._buffer[begin : begin + length]
        if crc32(content) != crc:
            raise self._damage()
        self._at = begin + length
        return msgpack.unpackb(content, strict_map_key=False)

    def _has(self, count: int) -> bool:
        """Whether there are so many bytes from here on; they are in the buffer then."""
        while len(self._buffer) - self._at < count:
            more = self._read(max(_BLOCK_BYTES, count))
            if not more:
                return False
            self._begin += self._at
            self._buffer = self._buffer[self._at :] + more
            self._at = 0
        return True

    def _torn_or_damaged(self, is_torn: bool) -> Any:
        if not is_torn:
            raise self._damage()
        self.is_cut = True
        raise StopIteration

    def _damage(self) -> Exception:
        where = self._begin + self._at
        return self._damaged(f"byte {where}: damaged: what stands there is not what was written")


def _is_value(content: bytes) -> bool:
    """Whether it begins with a whole msgpack value."""
    unpacker = msgpack.Unpacker(max_buffer_size=max(1, len(content)), strict_map_key=False)
    unpacker.feed(content)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        return False
    except (ValueError, RecursionError, msgpack.UnpackException):
        return True  # more than torn
    return True


FORMAT = "quorumlab-history"
VERSION = 2
INITIAL = "initial"  # an option of a run: what registers hold: [the value], or [] if unknown
TRUST_FAILURES = "trust_failures"  # an option of a reader: what failed did not happen, in any case
_UNFRAMED = 1  # the version before
NEMESIS = "nemesis"  # the process that injects faults; all that it does is `info`

# None, bool, int, float, str, bytes, and sequences and string-keyed mappings of them.
Value = Any


class MalformedHistory(ValueError):
    """The message names the frame and the byte where it begins."""


class Kind(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


_TORN_BYTES = 1 << 20  # of a frame that was cut, at most
_NOTHING: Mapping[str, Value] = {}  # one for all the many that have no more to say
_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One line of a history, or one that has not been entered yet.

    `time_ns` counts from the start of the run on one monotonic clock. A process has at most one
    operation open; after `info` its number is never used again.
    """

    index: int = -1
    time_ns: int = -1
    kind: Kind
    process: int | str
    f: str
    value: Value = None
    error: str | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The run: all that is needed to run it again, and to judge it."""

    workload: str
    seed: int
    design: str = "quorum"
    options: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    header: Header
    ops: Sequence[Op]
    is_cut: bool = False  # the last frame is torn: the run ended while it was written


def encode_header(header: Header) -> bytes:
    return framed(msgpack.packb(header_as_value(header)))


def header_as_value(header: Header) -> dict[str, Value]:
    """As the first frame of a file has it, and the first line of a text."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "workload": header.workload,
        "seed": header.seed,
        "design": header.design,
        "options": dict(header.options),
    }


def header_of(value: Value) -> Header:
    """The inverse of `header_as_value`. Raises `MalformedHistory`."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise MalformedHistory(f"not a history: it does not begin with {FORMAT!r}")
    if value.get("version") not in (_UNFRAMED, VERSION):
        raise MalformedHistory(f"version {value.get('version')!r}: this program reads {VERSION}")
    match value:
        case {
            "workload": str(workload),
            "seed": int(seed),
            "design": str(design),
            "options": dict(options),
        }:
            return Header(workload=workload, seed=seed, design=design, options=options)
    raise MalformedHistory(f"the header lacks something: {value!r:.200}")


def encode_op(op: Op) -> bytes:
    packed = msgpack.packb(
        [
            op.index,
            op.time_ns,
            op.kind.value,
            op.process,
            op.f,
            op.value,
            op.error,
            dict(op.extra),
        ]
    )
    return framed(packed)


def read_history(content: bytes) -> History:
    """All whole frames. Raises `MalformedHistory` where it is damaged, or no history."""
    header, values = _values_in(BytesIO(content), torn_bytes=len(content) + _TORN_BYTES)
    ops = [_op(value, number) for number, value in enumerate(values, 1)]
    return History(header=header, ops=ops, is_cut=values.is_cut)


def stream_history(source: BinaryIO) -> tuple[Header, Iterator[Op]]:
    """The same in bounded memory: operations come as they are asked for. A torn end is left out."""
    header, values = _values_in(source)
    return header, (_op(value, number) for number, value in enumerate(values, 1))


def _values_in(source: BinaryIO, *, torn_bytes: int = 0) -> tuple[Header, "Frames | _Unframed"]:
    """`torn_bytes`: msgpack takes what is longer than its buffer for nonsense, and not for torn."""
    first = source.read(1)
    source.seek(0)
    if first == bytes([MARKED]):
        frames = Frames(source, MalformedHistory)
        return _header(frames, VERSION), frames
    size = {"max_buffer_size": torn_bytes} if torn_bytes else {}
    values = _Unframed(msgpack.Unpacker(source, strict_map_key=False, **size), source)
    return _header(values, _UNFRAMED), values


def _header(values: "Frames | _Unframed", version: int) -> Header:
    told: Value = next(values, {})
    header = header_of(told)
    if told["version"] != version:
        raise MalformedHistory(f"it is written as version {version}, and says {told['version']}")
    return header


class _Unframed:
    """Whole msgpack values, one after the other: version 1."""

    def __init__(self, unpacker: msgpack.Unpacker, source: BinaryIO) -> None:
        self._unpacker = unpacker
        self._source = source
        self._end = 0  # of the last whole one, in bytes

    def __iter__(self) -> Iterator[Value]:
        return self

    def __next__(self) -> Value:
        try:
            value = self._unpacker.unpack()
        except msgpack.OutOfData:
            raise StopIteration from None
        except (TypeError, ValueError, RecursionError, msgpack.UnpackException) as error:
            raise MalformedHistory(f"byte {self._end}: not msgpack: {error}") from error
        self._end = self._unpacker.tell()
        return value

    @property
    def is_cut(self) -> bool:
        return self._end < self._source.tell()


def _op(frame: Value, number: int) -> Op:
    match frame:
        case [
            int(index),
            int(time_ns),
            str(kind),
            (int() | str()) as process,
            str(f),
            value,
            (str() | None) as error,
            (dict() | None) as extra,
        ] if kind in _KINDS:
            return Op(
                index=index,
                time_ns=time_ns,
                kind=_KINDS[kind],
                process=process,
                f=intern(f),
                value=value,
                error=error,
                extra=extra or _NOTHING,
            )
    raise MalformedHistory(f"frame {number}: not an operation: {frame!r:.100}")


def place_of(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def key_of(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"
