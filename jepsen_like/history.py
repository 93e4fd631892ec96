"""What clients saw and what was done to the cluster: operations, and the file that keeps them.

An operation is written twice: when a client invokes it, and when it completes. `ok` says that it
happened, `fail` that it did not and never will, `info` that nobody knows (a time-out, a broken
connection): then it may still happen at any later time, or never. The vocabulary is Jepsen's.

The file is a sequence of msgpack values, appended and flushed one by one while the run goes on, so
that a crash of the run loses at most the frame it was writing:

    {"format": "quorumlab-history", "version": 1, ...}          what was run: see `Header`
    [index, time_ns, kind, process, f, value, error, extra]     one operation, over and over

Pure: bytes in, bytes out. Source: jepsen.history; design decision 9.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from sys import intern
from typing import Any, BinaryIO

import msgpack

__all__ = [
    "FORMAT",
    "NEMESIS",
    "VERSION",
    "Header",
    "History",
    "Kind",
    "MalformedHistory",
    "Op",
    "Value",
    "encode_header",
    "encode_op",
    "header_as_value",
    "header_of",
    "read_history",
    "stream_history",
]

FORMAT = "quorumlab-history"
VERSION = 1
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
    """One line of a history.

    `time_ns` counts from the start of the run on one monotonic clock. A process has at most one
    operation open; after `info` its number is never used again.
    """

    index: int
    time_ns: int
    kind: Kind
    process: int | str
    f: str
    value: Value = None
    error: str | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What was run: all that is needed to run it again, and to judge it."""

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
    packed: bytes = msgpack.packb(header_as_value(header))
    return packed


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
    """What `header_as_value` made of a header. Raises `MalformedHistory`."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise MalformedHistory(f"not a history: it does not begin with {FORMAT!r}")
    if value.get("version") != VERSION:
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
    packed: bytes = msgpack.packb(
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
    return packed


def read_history(content: bytes) -> History:
    """All whole frames. Raises `MalformedHistory` where it is no history, or makes no sense."""
    # msgpack takes what is longer than its buffer for nonsense, and not for torn.
    size = len(content) + _TORN_BYTES
    unpacker = msgpack.Unpacker(max_buffer_size=size, strict_map_key=False)
    unpacker.feed(content)
    frames = _Frames(unpacker)
    header = header_of(next(frames, None))
    ops = [_op(frame, number) for number, frame in enumerate(frames, 1)]
    return History(header=header, ops=ops, is_cut=frames.end < len(content))


def stream_history(source: BinaryIO) -> tuple[Header, Iterator[Op]]:
    """The same in bounded memory: operations come as they are asked for. A torn end is left out."""
    frames = _Frames(msgpack.Unpacker(source, strict_map_key=False))
    header = header_of(next(frames, None))
    return header, (_op(frame, number) for number, frame in enumerate(frames, 1))


class _Frames:
    """Whole frames, one after the other."""

    def __init__(self, unpacker: msgpack.Unpacker) -> None:
        self._unpacker = unpacker
        self.end = 0  # of the last whole one, in bytes

    def __iter__(self) -> Iterator[Value]:
        return self

    def __next__(self) -> Value:
        try:
            frame = self._unpacker.unpack()
        except msgpack.OutOfData:
            raise StopIteration from None
        except (TypeError, ValueError, RecursionError, msgpack.UnpackException) as error:
            raise MalformedHistory(f"byte {self.end}: not msgpack: {error}") from error
        self.end = self._unpacker.tell()
        return frame


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
