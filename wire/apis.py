"""Requests and responses with their headers, as they stand in a frame behind its length.

Says which API and version a frame is in, and leaves the body to `wire.canonical`. What is served is
decided by `wire.api_table`. Bytes behind a message are ignored, as Kafka does: librdkafka's
Metadata 13 has three of them.

Source: KIP-482 (headers), KIP-511 (ApiVersions).
"""

from functools import lru_cache
from struct import Struct
from typing import Any

from wire.api_table import ListenerKind, api_by_key, api_of
from wire.canonical import is_flexible, reader_for, writer_for
from wire.message import Message
from wire.varint import Malformed, read_uvarint
from wire.writing import CannotExpress, Sink

__all__ = [
    "DecodedRequest",
    "RequestHeader",
    "UnsupportedVersion",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "read_header",
]

_REQUEST_HEADER = Struct(">hhi")
_CORRELATION_ID = Struct(">i")
_INT16 = Struct(">h")


class RequestHeader(Message):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


class DecodedRequest(Message):
    """A request as it came. `frame` is all of it, header and body, without the length."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Any
    frame: bytes = b""

    def __repr__(self) -> str:
        return f"DecodedRequest({self.api_key=}, {self.api_version=}, {self.body!r})"


class UnsupportedVersion(ValueError):
    """The header names an API or a version that is not served; `header` has no client id."""

    def __init__(self, header: RequestHeader) -> None:
        api = api_by_key(header.api_key)
        name = api.name if api is not None else "an unknown API"
        super().__init__(f"{name} (key {header.api_key}) version {header.api_version}")
        self.header = header


def read_header(frame: bytes) -> RequestHeader:
    """The part of the header that every version has. Raises Malformed."""
    if len(frame) < _REQUEST_HEADER.size:
        raise Malformed(f"a request header needs 8 bytes, not {len(frame)}")
    api_key, api_version, correlation_id = _REQUEST_HEADER.unpack_from(frame)
    return RequestHeader(api_key=api_key, api_version=api_version, correlation_id=correlation_id)


def decode_request(frame: bytes, listener: ListenerKind | None = None) -> DecodedRequest:
    """Read a request that is served on `listener`, or anywhere if that is None.

    Raises UnsupportedVersion, and Malformed if the bytes are not what the header says.
    """
    header = read_header(frame)
    name = _served_name(header.api_key, header.api_version, listener)
    if name is None:
        raise UnsupportedVersion(header)
    try:
        flexible = is_flexible(name, header.api_version, "request")
        client_id, position = _read_client_id(frame, flexible)
        body, _ = reader_for(name, header.api_version, "request")(frame, position)
    except Malformed as error:
        raise Malformed(f"{name} version {header.api_version}: {error}") from error
    return DecodedRequest(
        api_key=header.api_key,
        api_version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=client_id,
        body=body,
        frame=frame,
    )


@lru_cache(maxsize=1024)
def _served_name(api_key: int, version: int, listener: ListenerKind | None) -> str | None:
    """The name of an API; None if it is not served, or not in this version."""
    api = api_by_key(api_key)
    if api is None:
        return None
    served = api.versions if listener is None else api.served(listener)
    return api.name if served is not None and version in served else None


def _read_client_id(frame: bytes, flexible: bool) -> tuple[str | None, int]:
    """The client id keeps the old form in flexible headers, too, which end with tagged fields."""
    start = _REQUEST_HEADER.size + _INT16.size
    if len(frame) < start:
        raise Malformed("the request header ends early")
    (length,) = _INT16.unpack_from(frame, _REQUEST_HEADER.size)
    end = start + max(length, 0)
    try:
        client_id = None if length < 0 else frame[start:end].decode()
        return client_id, _skip_tagged_fields(frame, end) if flexible else end
    except UnicodeDecodeError as error:
        raise Malformed("the client id is not UTF-8") from error


def _skip_tagged_fields(frame: bytes, position: int) -> int:
    if frame[position : position + 1] == b"\0":
        return position + 1
    count, position = read_uvarint(frame, position)
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    if position > len(frame):
        raise Malformed("the header ends early")
    return position


def encode_request(
    body: Any, version: int, correlation_id: int, client_id: str | None = None
) -> list[bytes]:
    """A frame without its length, as buffers to be sent one after the other.

    Raises CannotExpress if this version lacks a field that changes the meaning of the request, or
    has no room for a value.
    """
    api = api_of(type(body))
    out = Sink(_REQUEST_HEADER.pack(api.key, version, correlation_id))
    text = (client_id or "").encode()
    out += _INT16.pack(-1 if client_id is None else len(text)) + text
    if is_flexible(api.name, version, "request"):
        out.append(0)
    writer_for(api.name, version, "request")(out, body)
    return out.buffers()


def encode_response(body: Any, api_key: int, version: int, correlation_id: int) -> list[bytes]:
    """A frame without its length, as buffers; large records are not copied into one.

    Raises CannotExpress, also for a value that its field has no room for: a string has 32767 bytes
    at most, and may have to repeat what the peer sent.
    """
    name, has_tags = _response_form(api_key, version)
    out = Sink(_CORRELATION_ID.pack(correlation_id))
    if has_tags:
        out.append(0)
    try:
        writer_for(name, version, "response")(out, body)
    except CannotExpress as error:
        raise CannotExpress(f"{name} version {version}: {error}") from error
    return out.buffers()


def decode_response(frame: bytes, api_key: int, version: int) -> tuple[int, Any]:
    """The correlation id and the body of an answer to a request of that version.

    Raises Malformed.
    """
    name, has_tags = _response_form(api_key, version)
    if len(frame) < _CORRELATION_ID.size:
        raise Malformed(f"a response header needs 4 bytes, not {len(frame)}")
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
    position = _CORRELATION_ID.size
    if has_tags:
        position = _skip_tagged_fields(frame, position)
    body, _ = reader_for(name, version, "response")(frame, position)
    return correlation_id, body


@lru_cache(maxsize=1024)
def _response_form(api_key: int, version: int) -> tuple[str, bool]:
    """The name of an API, and whether its response header has tagged fields.

    That of ApiVersions never has: its reader does not know yet what the peer can do (KIP-511).
    """
    api = api_by_key(api_key)
    assert api is not None, api_key
    return api.name, api.name != "api_versions" and is_flexible(api.name, version, "response")
