"""Frames out of a stream of bytes: four bytes of length, then that many bytes.

No I/O: whoever has a socket fills `get_buffer()` and takes frames. A length is judged before a byte
of memory is spent on it, and memory grows with what has arrived, not with what was announced.
"""

from collections import defaultdict
from collections.abc import Sequence
from struct import Struct

import numpy as np

__all__ = ["FRAME_BYTES_MAX", "LENGTH_BYTES", "FrameError", "FrameReader", "Traffic", "with_length"]

FRAME_BYTES_MAX = 100 << 20  # Kafka's default of socket.request.max.bytes

_LENGTH = Struct(">i")
LENGTH_BYTES = _LENGTH.size
_BUFFER_BYTES_MIN = 1 << 16
_BUFFER_BYTES_KEPT = 1 << 20  # an empty buffer above this is given back
_GROWTH = 16  # pages that nothing was written to are no memory yet
_STRANGERS = (
    (b"\x16\x03", "a TLS handshake on a listener that speaks PLAINTEXT"),
    (b"GET ", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"DELE", "an HTTP request"),
    (b"OPTI", "an HTTP request"),
    (b"PRI ", "an HTTP/2 preface"),
    (b"HTTP", "an HTTP response"),
    (b"SSH-", "an SSH greeting"),
    (b"ruok", "a ZooKeeper command"),
    (b"stat", "a ZooKeeper command"),
    (b"srvr", "a ZooKeeper command"),
    (b"mntr", "a ZooKeeper command"),
)


class FrameError(ValueError):
    """The bytes are no frame; nothing after them can be understood."""


class FrameReader:
    """Collects bytes and gives whole frames; half a frame is kept until the rest has come."""

    def __init__(self, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.frame_bytes_max = frame_bytes_max  # may be raised once the peer is known
        self._buffer = _unwritten(_BUFFER_BYTES_MIN)
        self._start = 0  # of what has not been taken
        self._end = 0  # of what has arrived; _start <= _end <= len(_buffer)
        self.untaken_bytes = 0  # of frames that were not taken: from _start to _end

    def get_buffer(self) -> memoryview:
        """Returns where the next bytes go: never empty, valid until the next call of any method."""
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) > _BUFFER_BYTES_KEPT:
                self._buffer = _unwritten(_BUFFER_BYTES_MIN)
        if self._end == len(self._buffer):
            self._make_room()
        return self._buffer[self._end :]

    def buffer_updated(self, count: int) -> None:
        """`count` bytes were written to the start of what `get_buffer` gave."""
        assert 0 <= count <= len(self._buffer) - self._end, (count, self._end)
        self._end += count
        self.untaken_bytes += count

    def feed(self, content: bytes) -> None:
        """Add bytes that are somewhere else already."""
        position = 0
        while position < len(content):
            room = self.get_buffer()
            part = content[position : position + len(room)]
            room[: len(part)] = part
            self.buffer_updated(len(part))
            position += len(part)

    def next_frame(self) -> bytes | None:
        """The next frame without its length; None until it is whole. Raises FrameError."""
        start = self._start + _LENGTH.size
        if start > self._end:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._start)
        if not 0 <= length <= self.frame_bytes_max:
            raise FrameError(self._describe(length))
        end = start + length
        if end > self._end:
            return None
        self._start = end
        self.untaken_bytes = self._end - end
        return bytes(self._buffer[start:end])

    def _make_room(self) -> None:
        """Move what is left to the front; of a buffer that is half full already, a larger one."""
        rest = self._buffer[self._start : self._end]
        size = len(self._buffer)
        if 2 * len(rest) >= size:
            size *= _GROWTH
        self._buffer = _unwritten(size)
        self._buffer[: len(rest)] = rest
        self._start, self._end = 0, len(rest)

    def _describe(self, length: int) -> str:
        first = bytes(self._buffer[self._start : self._start + _LENGTH.size])
        for beginning, what in _STRANGERS:
            if first.startswith(beginning):
                return f"this looks like {what}, not like Kafka's protocol"
        if length < 0:
            return f"a frame has the length {length} (bytes {first.hex(' ')})"
        return f"a frame of {length} bytes, above the limit of {self.frame_bytes_max}"


def _unwritten(size: int) -> memoryview:
    """A bytearray would be filled with zeros, page by page."""
    return np.empty(size, np.uint8).data


def with_length(buffers: Sequence[bytes]) -> list[bytes]:
    """A frame, given as buffers, behind its length: ready to be written."""
    return [_LENGTH.pack(sum(map(len, buffers))), *buffers]


class Traffic:
    """The bytes of frames that a process has sent and received: plain numbers, never sampled.

    Shared by its listeners and connections, on one event loop. An exchange counts under the API of
    its request. What came in an envelope counts under its own, while its sender has sent an
    envelope. What belongs to no request, as a frame that is refused, is not counted. A frame counts
    with the `LENGTH_BYTES` of its length.
    """

    __slots__ = ("received_bytes", "sent_bytes")

    def __init__(self) -> None:
        self.sent_bytes: dict[int, int] = defaultdict(int)  # by API key
        self.received_bytes: dict[int, int] = defaultdict(int)
