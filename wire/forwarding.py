"""Forwarding: a broker hands a client's request to the active controller in an Envelope.

The inner frame travels as it came, with the client's version and correlation id, so that the answer
can go back to the client untouched. Pure; who is asked, and what is tried again, is the broker's.

Source: KIP-590; Kafka's RequestChannel.shouldReturnNotController.
"""

from ipaddress import ip_address
from typing import NamedTuple

from wire.api_table import ListenerKind, api_by_key
from wire.apis import (
    DecodedRequest,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_header,
)
from wire.errors import ErrorCode
from wire.message import Message, fields_of
from wire.messages.registration import EnvelopeRequest, EnvelopeResponse
from wire.messages.voters import DescribeQuorumResponse
from wire.security.principals import ANONYMOUS, Principal, decode_principal, encode_principal
from wire.varint import Malformed

__all__ = [
    "Opened",
    "has_error",
    "reframed",
    "unwrap",
    "unwrap_response",
    "wrap_request",
    "wrap_response",
]


class Opened(NamedTuple):
    request: DecodedRequest  # that of the client
    client_host: str
    principal: Principal


def wrap_request(
    frame: bytes, *, client_host: str, principal: Principal = ANONYMOUS
) -> EnvelopeRequest:
    """The envelope for a request of a client at the IP address `client_host`."""
    return EnvelopeRequest(
        request_data=frame,
        request_principal=encode_principal(principal),
        client_host_address=ip_address(client_host).packed,
    )


def reframed(frame: bytes, body: object) -> bytes:
    """The same request with another body."""
    request = decode_request(frame)
    head = request.api_version, request.correlation_id, request.client_id
    return b"".join(encode_request(body, *head))


def unwrap_response(answer: object, frame: bytes) -> object:
    """The answer to the request in `frame` that is in an envelope, if it can be read."""
    if not isinstance(answer, EnvelopeResponse) or answer.response_data is None:
        return answer
    header = read_header(frame)
    try:
        return decode_response(answer.response_data, header.api_key, header.api_version)[1]
    except Malformed:
        return answer


def unwrap(envelope: EnvelopeRequest) -> Opened | ErrorCode:
    """The inner request and whose it is, or the error that the envelope is answered with."""
    try:
        client_host = str(ip_address(envelope.client_host_address))
    except ValueError:
        return ErrorCode.INVALID_REQUEST
    try:
        principal = decode_principal(envelope.request_principal or b"")
    except Malformed:
        return ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    try:
        request = decode_request(envelope.request_data, ListenerKind.CONTROLLER)
    except (UnsupportedVersion, Malformed):
        return ErrorCode.UNSUPPORTED_VERSION
    api = api_by_key(request.api_key)
    if api is None or not api.forwardable:
        return ErrorCode.INVALID_REQUEST
    return Opened(request, client_host, principal)


def wrap_response(request: DecodedRequest, body: object) -> EnvelopeResponse:
    """The envelope for the answer to an inner request.

    That this is not the active controller, said anywhere in it, becomes the error of the envelope:
    only then does a broker of Kafka look for the active one, and its client never hears of it.
    """
    is_of_quorum = isinstance(body, DescribeQuorumResponse)
    elsewhere = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_of_quorum else ErrorCode.NOT_CONTROLLER
    if has_error(body, elsewhere):
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    buffers = encode_response(body, request.api_key, request.api_version, request.correlation_id)
    return EnvelopeResponse(response_data=b"".join(buffers))


def has_error(value: object, code: ErrorCode) -> bool:
    """Does a canonical message hold this error code anywhere?"""
    if isinstance(value, ErrorCode):
        return value is code
    if isinstance(value, tuple):
        return any(has_error(element, code) for element in value)
    if isinstance(value, Message):
        return any(has_error(getattr(value, name), code) for name in fields_of(type(value)))
    return False
