"""As much of HTTP/2 and gRPC as unary calls on one connection need, on a blocking socket.

Written so that etcd is asked at the same cost as a Kafka server: bytes made ahead, one write a
request. A gRPC library in Python would add its own threads to every latency. It is no client for
anything else: headers of answers are not decoded, since a unary call of grpc-go that fails sends
no message at all, and that is seen.

Source: RFC 9113 (frames, flow control), RFC 7541 (header fields without a table), gRPC over HTTP/2.
"""

import socket
import struct
from collections.abc import Sequence

__all__ = ["CallFailed", "UnaryCalls"]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 0x1, 0x1, 0x4
_FRAME_HEADER = struct.Struct(">BHBBI")  # length as 1 + 2 bytes, type, flags, stream
_SETTING = struct.Struct(">HI")
_UINT32 = struct.Struct(">I")
_MESSAGE_HEADER = struct.Struct(">BI")  # not compressed, length
_ENABLE_PUSH, _INITIAL_WINDOW_SIZE = 2, 4
_WINDOW_FIRST, _WINDOW_MAX = 65_535, (1 << 31) - 1


class CallFailed(Exception):
    """A call was refused, or the connection ended."""


class UnaryCalls:
    """Calls of one method. Numbered from 0 in the order of `send`; stream 1 is call 0."""

    def __init__(
        self,
        host: str,
        port: int,
        path: str,
        messages: Sequence[bytes],
        timeout_seconds: float = 15.0,
    ) -> None:
        self._socket = socket.create_connection((host, port), timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = _header_block(path, f"{host}:{port}")
        self._messages = [_MESSAGE_HEADER.pack(0, len(text)) + text for text in messages]
        self._buffer = bytearray()
        self._credit = _WINDOW_FIRST  # bytes of messages that the server still takes
        self._answered: set[int] = set()  # calls whose message has come, but not their end
        self._done: list[int] = []
        settings = _SETTING.pack(_ENABLE_PUSH, 0) + _SETTING.pack(_INITIAL_WINDOW_SIZE, _WINDOW_MAX)
        self._socket.sendall(
            _PREFACE
            + _frame(_SETTINGS, 0, 0, settings)
            + _frame(_WINDOW_UPDATE, 0, 0, _UINT32.pack(_WINDOW_MAX - _WINDOW_FIRST))
        )

    def send(self, number: int) -> None:
        message = self._messages[number % len(self._messages)]
        assert len(message) <= 16_384, len(message)  # SETTINGS_MAX_FRAME_SIZE's default
        while self._credit < len(message):
            self._read()
        self._credit -= len(message)
        stream = 2 * number + 1
        self._socket.sendall(
            _frame(_HEADERS, _END_HEADERS, stream, self._headers)
            + _frame(_DATA, _END_STREAM, stream, message)
        )

    def receive(self) -> Sequence[int]:
        while not self._done:
            self._read()
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        self._socket.close()

    def _read(self) -> None:
        part = self._socket.recv(1 << 16)
        if not part:
            raise CallFailed("the server closed the connection")
        buffer = self._buffer
        buffer += part
        position = 0
        while position + 9 <= len(buffer):
            high, low, kind, flags, stream = _FRAME_HEADER.unpack_from(buffer, position)
            end = position + 9 + (high << 16 | low)
            if end > len(buffer):
                break
            self._take(kind, flags, stream, bytes(buffer[position + 9 : end]))
            position = end
        del buffer[:position]

    def _take(self, kind: int, flags: int, stream: int, content: bytes) -> None:
        if kind == _DATA:
            self._answered.add(stream)
        elif kind == _HEADERS and flags & _END_STREAM:
            if stream not in self._answered:
                raise CallFailed(f"refused: {content!r}")
            self._answered.remove(stream)
            self._done.append((stream - 1) // 2)
        elif kind == _WINDOW_UPDATE and stream == 0:
            self._credit += _UINT32.unpack(content)[0]
        elif kind in (_SETTINGS, _PING) and not flags & _ACK:
            answer = content if kind == _PING else b""
            self._socket.sendall(_frame(kind, _ACK, 0, answer))
        elif kind in (_GOAWAY, _RST_STREAM):
            raise CallFailed(f"frame {kind}: {content!r}")


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    high, low = len(content) >> 16, len(content) & 0xFFFF
    return _FRAME_HEADER.pack(high, low, kind, flags, stream) + content


def _header_block(path: str, authority: str) -> bytes:
    """Every field by its static name or by a literal one, and none added to a table."""
    return (
        b"\x83\x86"  # :method POST, :scheme http
        + (b"\x04" + _text(path))
        + (b"\x01" + _text(authority))
        + (b"\x0f\x10" + _text("application/grpc"))
        + (b"\x00" + _text("te") + _text("trailers"))
    )


def _text(text: str) -> bytes:
    assert len(text) < 127, text
    return bytes([len(text)]) + text.encode()
