"""A tiny raw Kafka client for the captures: bytes out, bytes in.

It shares nothing with the product's own codec, so that a mistake there cannot
hide in a golden file.  Only flexible request versions are written.
"""

from __future__ import annotations

import base64
import gzip
import socket
import struct
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

ZERO_UUID = bytes(16)
METADATA_TOPIC_ID = bytes(15) + b"\x01"


class Out:
    """Writes the primitive types of a flexible message; methods chain."""

    def __init__(self) -> None:
        self.data = bytearray()

    def raw(self, data: bytes) -> Self:
        self.data += data
        return self

    def i8(self, value: int) -> Self:
        return self.raw(struct.pack(">b", value))

    def i16(self, value: int) -> Self:
        return self.raw(struct.pack(">h", value))

    def i32(self, value: int) -> Self:
        return self.raw(struct.pack(">i", value))

    def i64(self, value: int) -> Self:
        return self.raw(struct.pack(">q", value))

    def flag(self, value: bool) -> Self:
        return self.i8(1 if value else 0)

    def uvarint(self, value: int) -> Self:
        while value >= 0x80:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)
        return self

    def varint(self, value: int) -> Self:
        return self.uvarint((value << 1) ^ (value >> 63))

    def blob(self, value: bytes | None) -> Self:
        if value is None:
            return self.uvarint(0)
        return self.uvarint(len(value) + 1).raw(value)

    def string(self, value: str | None) -> Self:
        return self.blob(None if value is None else value.encode())

    def array(self, items: Sequence[T] | None, each: Callable[[Out, T], object]) -> Self:
        if items is None:
            return self.uvarint(0)
        self.uvarint(len(items) + 1)
        for item in items:
            each(self, item)
        return self

    def tags(self, *fields: tuple[int, bytes]) -> Self:
        self.uvarint(len(fields))
        for tag, data in fields:
            self.uvarint(tag).uvarint(len(data)).raw(data)
        return self


class In:
    """Reads the primitive types of a flexible message."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def raw(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise ValueError("short message")
        self.at += size
        return self.data[self.at - size : self.at]

    def i8(self) -> int:
        return int(struct.unpack(">b", self.raw(1))[0])

    def i16(self) -> int:
        return int(struct.unpack(">h", self.raw(2))[0])

    def i32(self) -> int:
        return int(struct.unpack(">i", self.raw(4))[0])

    def i64(self) -> int:
        return int(struct.unpack(">q", self.raw(8))[0])

    def flag(self) -> bool:
        return self.i8() != 0

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def blob(self) -> bytes | None:
        size = self.uvarint()
        return None if size == 0 else self.raw(size - 1)

    def string(self) -> str | None:
        data = self.blob()
        return None if data is None else data.decode()

    def uuid(self) -> str:
        return base64.urlsafe_b64encode(self.raw(16)).decode().rstrip("=")

    def array(self, each: Callable[[In], T]) -> list[T]:
        return [each(self) for _ in range(self.uvarint() - 1)]

    def tags(self) -> dict[int, bytes]:
        found = {}
        for _ in range(self.uvarint()):
            tag = self.uvarint()
            found[tag] = self.raw(self.uvarint())
        return found

    def end(self) -> None:
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes left over")


class Connection:
    """One connection; every exchange is kept as the frames that went by."""

    def __init__(self, port: int, host: str = "127.0.0.1", client_id: str = "golden") -> None:
        self.client_id = client_id
        self.correlation = 0
        self.request = b""
        self.response = b""
        self._socket = socket.create_connection((host, port), timeout=30.0)

    def call(self, key: int, version: int, body: Out) -> In:
        """Send one flexible request; the response after its header."""
        self.correlation += 1
        name = self.client_id.encode()
        head = Out().i16(key).i16(version).i32(self.correlation).i16(len(name)).raw(name).tags()
        self._exchange(bytes(head.data + body.data))
        answer = In(self.response)
        if answer.i32() != self.correlation:
            raise ValueError("answer to another request")
        if key != 18:  # ApiVersions answers always have the oldest header
            answer.tags()
        return answer

    def call_legacy(self, key: int, version: int, body: bytes = b"") -> None:
        """A request with the header that has no tags; only its frames are kept."""
        self.correlation += 1
        name = self.client_id.encode()
        head = Out().i16(key).i16(version).i32(self.correlation).i16(len(name)).raw(name)
        self._exchange(bytes(head.data) + body)

    def _exchange(self, request: bytes) -> None:
        self.request = request
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._receive(4))
        self.response = self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("closed by the other side")
            data += more
        return bytes(data)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a UUID in Kafka's base64 text form."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "==")).bytes


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), bit by bit: these are small inputs."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def batch(
    values: Sequence[bytes],
    timestamp: int,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    compress: bool = False,
) -> bytes:
    """A magic 2 record batch of key-less records, base offset 0."""
    records = Out()
    for index, value in enumerate(values):
        record = Out().i8(0).varint(0).varint(index).varint(-1)
        record.varint(len(value)).raw(value).varint(0)
        records.varint(len(record.data)).raw(bytes(record.data))
    payload = bytes(records.data)
    if compress:
        payload = gzip.compress(payload, mtime=0)
    attributes = (1 if compress else 0) | (0x10 if transactional else 0)
    tail = Out().i16(attributes).i32(len(values) - 1).i64(timestamp).i64(timestamp)
    tail.i64(producer_id).i16(producer_epoch).i32(sequence).i32(len(values)).raw(payload)
    body = bytes(tail.data)
    head = Out().i32(-1).i8(2).raw(struct.pack(">I", crc32c(body)))
    rest = bytes(head.data) + body
    return bytes(Out().i64(0).i32(len(rest)).raw(rest).data)
