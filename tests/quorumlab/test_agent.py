"""What the HTTP side takes for a request to the register."""

import pytest

from quorum.node.register import RegisterRequest
from quorumlab.pages import parse_register


@pytest.mark.parametrize(
    ("body", "request_"),
    [
        (b'{"f": "read", "key": "x"}', RegisterRequest(f="read", key="x")),
        (b'{"f": "write", "key": "x", "value": 3}', RegisterRequest(f="write", key="x", value=3)),
        (
            b'{"f": "cas", "key": "x", "value": [null, 4]}',
            RegisterRequest(f="cas", key="x", old=None, value=4),
        ),
    ],
)
def test_request_is_understood(body: bytes, request_: RegisterRequest) -> None:
    assert parse_register(body) == request_


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "not JSON"),
        (b"[1]", "not an object like"),
        (b'{"f": "add", "key": "x"}', "f is 'add'"),
        (b'{"f": "read", "key": 3}', "key is 3"),
        (b'{"f": "write", "key": "x", "value": "a"}', "value is 'a'"),
        (b'{"f": "write", "key": "x", "value": true}', "value is True"),
        (b'{"f": "cas", "key": "x", "value": 4}', "the value of a cas is 4"),
    ],
)
def test_what_is_wrong_is_said(body: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_register(body)
