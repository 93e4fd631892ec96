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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from io import BytesIO
from typing import Any, BinaryIO, Literal, NamedTuple

import msgpack
import msgspec

from jepsen_like.histories.frames import MARKED, Frames, framed

__all__ = [
    "FORMAT",
    "INITIAL",
    "NEMESIS",
    "TRUST_FAILURES",
    "VERSION",
    "Header",
    "History",
    "Kind",
    "Lines",
    "MalformedHistory",
    "Op",
    "Value",
    "encode_header",
    "encode_op",
    "header_as_value",
    "header_of",
    "key_of",
    "op_of_frame",
    "place_of",
    "read_history",
    "stream_history",
    "stream_lines",
]

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
_END = object()
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


class Lines(NamedTuple):
    """Some lines that follow one another, in columns."""

    indexes: Sequence[int]
    time_ns: Sequence[int]
    kind: Sequence[str]
    process: Sequence[int | str]
    f: Sequence[str]
    value: Sequence[Value]
    error: Sequence[str | None]
    extra: Sequence[Mapping[str, Value] | None]

    @classmethod
    def of(cls, ops: Iterable[Op]) -> "Lines":
        rows = [
            (op.index, op.time_ns, op.kind.value, op.process, op.f, op.value, op.error, op.extra)
            for op in ops
        ]
        return cls(*map(list, zip(*rows, strict=True))) if rows else cls(*([] for _ in cls._fields))

    def op(self, at: int) -> Op:
        return Op(
            index=self.indexes[at],
            time_ns=self.time_ns[at],
            kind=_KINDS[self.kind[at]],
            process=self.process[at],
            f=self.f[at],
            value=self.value[at],
            error=self.error[at],
            extra=self.extra[at] or _NOTHING,
        )

    def ops(self) -> Iterator[Op]:
        return map(self.op, range(len(self.indexes)))


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


def op_of_frame(content: bytes) -> Op:
    """The inverse of `encode_op`, without the frame. Raises `MalformedHistory`."""
    try:
        index, time_ns, kind, process, f, value, error, extra = _FRAME.decode(content)
    except (ValueError, RecursionError) as why:
        raise MalformedHistory(f"not an operation: {why}") from why
    return Op(
        index=index,
        time_ns=time_ns,
        kind=_KINDS[kind],
        process=process,
        f=f,
        value=value,
        error=error,
        extra=extra or _NOTHING,
    )


def read_history(content: bytes) -> History:
    """All whole frames. Raises `MalformedHistory` where it is damaged, or no history."""
    header, values = _values_in(BytesIO(content), torn_bytes=len(content) + _TORN_BYTES)
    ops = [op for lines in _lines(values) for op in lines.ops()]
    return History(header=header, ops=ops, is_cut=values.is_cut)


def stream_lines(source: BinaryIO) -> tuple[Header, Iterator[Lines]]:
    """The same in bounded memory: lines come as they are asked for. A torn end is left out."""
    header, values = _values_in(source)
    return header, _lines(values)


def stream_history(source: BinaryIO) -> tuple[Header, Iterator[Op]]:
    header, blocks = stream_lines(source)
    return header, (op for lines in blocks for op in lines.ops())


def _lines(values: "Frames | _Unframed") -> Iterator[Lines]:
    number = 1
    while True:
        count, block = values.block() if isinstance(values, Frames) else (0, b"")
        if count:
            yield _decoded(count, block, number)
        else:
            count = 1
            value = next(values, _END)
            if value is _END:
                return
            yield Lines(*zip(_frame(value, number)))
        number += count


_Frame = tuple[
    int,
    int,
    Literal["invoke", "ok", "fail", "info"],
    int | str,
    str,
    Any,
    str | None,
    dict[Any, Any] | None,
]
_FRAMES = msgspec.msgpack.Decoder(list[int | _Frame])  # a mark is a value too
_FRAME = msgspec.msgpack.Decoder(_Frame)
_ARRAY = b"\xdd"  # msgpack's, with four bytes of length


def _decoded(count: int, block: bytes, number: int) -> Lines:
    """All of a block at once; one by one if any of it is unusual, or wrong."""
    try:
        found = _FRAMES.decode(_ARRAY + (2 * count).to_bytes(4) + block)
        return Lines(*zip(*found[1::2], strict=True))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        frames = Frames(BytesIO(block), MalformedHistory)
        found = [_frame(value, each) for each, value in enumerate(frames, number)]
        return Lines(*zip(*found, strict=True))


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


def _frame(value: Value, number: int) -> _Frame:
    try:
        frame: _Frame = msgspec.convert(value, _Frame)
        return frame
    except msgspec.ValidationError as error:
        raise MalformedHistory(f"frame {number}: not an operation: {value!r:.100}") from error


def place_of(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def key_of(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"
