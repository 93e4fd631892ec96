"""Envelopes: what goes in comes out, and which error says what."""

from io import BytesIO

import pytest
from kio.schema.default_principal_data.v0.data import DefaultPrincipalData
from kio.serial import entity_writer

from wire.apis import decode_response, encode_request
from wire.errors import ErrorCode
from wire.forwarding import has_error, unwrap, unwrap_response, wrap_request, wrap_response
from wire.messages.registration import EnvelopeRequest, EnvelopeResponse
from wire.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.messages.voters import DescribeQuorumRequest, DescribeQuorumResponse
from wire.security.principals import ANONYMOUS, USER, Principal, decode_principal, encode_principal
from wire.varint import Malformed

REQUEST = CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=3),))
FRAME = b"".join(encode_request(REQUEST, 5, 17, "admin"))


def refused(code: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=(CreatableTopicResult(name="t", error_code=code),))


@pytest.mark.parametrize("name", ["ANONYMOUS", "", "CN=" + "x" * 300])
def test_principal_is_written_as_kafka_does(name: str) -> None:
    content = BytesIO()
    principal = DefaultPrincipalData(type_="User", name=name, token_authenticated=False)
    entity_writer(DefaultPrincipalData)(content, principal)
    encoded = encode_principal(Principal(USER, name))
    assert encoded == b"\0\0" + content.getvalue()
    assert decode_principal(encoded) == Principal(USER, name)


def test_principal_that_is_cut_off_anywhere_is_refused() -> None:
    encoded = encode_principal(ANONYMOUS)
    for size in range(len(encoded) - 2):  # behind it are a flag, and tagged fields
        with pytest.raises(Malformed):
            decode_principal(encoded[:size])


@pytest.mark.parametrize("host", ["10.1.2.3", "::1"])
def test_inner_request_and_client_come_out_as_they_went_in(host: str) -> None:
    alice = Principal(USER, "alice")
    opened = unwrap(wrap_request(FRAME, client_host=host, principal=alice))
    assert not isinstance(opened, ErrorCode)
    request, client_host, principal = opened
    assert (client_host, principal) == (host, alice)
    assert request.frame == FRAME
    assert request.body == REQUEST
    assert (request.api_version, request.correlation_id) == (5, 17)


def test_answer_is_for_the_client_in_its_version() -> None:
    opened = unwrap(wrap_request(FRAME, client_host="10.1.2.3"))
    assert not isinstance(opened, ErrorCode)
    body = refused(ErrorCode.TOPIC_ALREADY_EXISTS)
    envelope = wrap_response(opened[0], body)
    assert envelope.error_code is ErrorCode.NONE
    assert decode_response(envelope.response_data or b"", 19, 5) == (17, body)


def test_not_controller_anywhere_inside_is_the_error_of_the_envelope() -> None:
    opened = unwrap(wrap_request(FRAME, client_host="10.1.2.3"))
    assert not isinstance(opened, ErrorCode)
    envelope = wrap_response(opened[0], refused(ErrorCode.NOT_CONTROLLER))
    assert envelope == EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)


def test_quorum_described_by_no_leader_is_the_same_error() -> None:
    """A broker of Kafka would ask the former leader for ever."""
    asked = DescribeQuorumRequest(topics=())
    frame = b"".join(encode_request(asked, 2, 1, "c"))
    opened = unwrap(wrap_request(frame, client_host="10.1.2.3"))
    assert not isinstance(opened, ErrorCode)
    body = DescribeQuorumResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert wrap_response(opened[0], body) == EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)


@pytest.mark.parametrize(
    ("envelope", "error"),
    [
        (
            EnvelopeRequest(
                request_data=FRAME,
                request_principal=encode_principal(ANONYMOUS),
                client_host_address=b"abc",
            ),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            EnvelopeRequest(
                request_data=FRAME, request_principal=b"\0\x01", client_host_address=bytes(4)
            ),
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
        ),
        (wrap_request(FRAME[:-1], client_host="::1"), ErrorCode.UNSUPPORTED_VERSION),
        (
            wrap_request(b"\0\x13\0\x63" + FRAME[4:], client_host="::1"),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_envelope_that_cannot_be_opened(envelope: EnvelopeRequest, error: ErrorCode) -> None:
    assert unwrap(envelope) is error


def test_has_error_looks_everywhere() -> None:
    assert has_error(refused(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER)
    assert not has_error(refused(ErrorCode.NONE), ErrorCode.NOT_CONTROLLER)
    assert not has_error(None, ErrorCode.NOT_CONTROLLER)


def test_answer_that_is_no_answer_is_passed_on_as_it_is() -> None:
    for data in (None, b"\0\0"):
        answer = EnvelopeResponse(response_data=data)
        assert unwrap_response(answer, FRAME) is answer
