"""What a connection may ask before, during and after its authentication."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire.errors import ErrorCode
from wire.messages.features import ApiVersionsRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from wire.security.authentication import (
    PASSED,
    Answered,
    Authentication,
    Ended,
    SaslListener,
    SaslMechanism,
)
from wire.security.client_authentication import (
    AuthenticationFailed,
    SaslDialogue,
    authenticate,
)
from wire.security.exchanges import Identified, ServerStep, Unavailable
from wire.security.plain import PlainClient, PlainServer
from wire.security.principals import ANONYMOUS, Principal
from wire.security.scram import SCRAM_SHA_256, ScramServer
from wire.security.scram_decoys import decoy

USERS = {"alice": "secret", "bob": "hidden"}
ALICE, BOB, WRONG = b"\0alice\0secret", b"\0bob\0hidden", b"\0alice\0other"
VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")
METADATA = MetadataRequest()


class Token:
    """A mechanism whose credential ends."""

    def receive(self, token: bytes, now_ms: int) -> ServerStep:
        return Identified(token.decode(), expires_at_ms=5000)


class Nobody:
    def receive(self, token: bytes, now_ms: int) -> ServerStep:
        return Unavailable("no users yet")


def scram() -> ScramServer:
    return ScramServer(
        SCRAM_SHA_256,
        lambda _user: None,
        nonce="N",
        decoy_of=lambda user: decoy(SCRAM_SHA_256, user, b"", ()),
    )


def listener(session_ms: int = 0) -> Authentication:
    asked = SaslListener(
        mechanisms={
            "PLAIN": SaslMechanism(begin=lambda: PlainServer(USERS), session_ms=session_ms),
            "SCRAM-SHA-256": SaslMechanism(begin=scram),
            "TOKEN": SaslMechanism(begin=Token, session_ms=session_ms),
            "NOBODY": SaslMechanism(begin=Nobody),
        }
    )
    return Authentication(lambda: asked)


def handshake(own: Authentication, mechanism: str = "PLAIN", now_ms: int = 0) -> Any:
    return own.receive(SaslHandshakeRequest(mechanism=mechanism), 1, now_ms)


def show(own: Authentication, token: bytes, now_ms: int = 0, version: int = 2) -> Any:
    return own.receive(SaslAuthenticateRequest(auth_bytes=token), version, now_ms)


def authenticated(session_ms: int = 0) -> Authentication:
    own = listener(session_ms)
    handshake(own)
    assert isinstance(show(own, ALICE), Answered)
    return own


def test_nothing_but_versions_is_served_before() -> None:
    own = listener()
    assert own.receive(VERSIONS, 4, 0) is PASSED
    assert own.receive(METADATA, 12, 0) == Ended("Metadata before authentication")
    assert show(own, ALICE) == Ended("SaslAuthenticate before authentication")
    handshake(own)
    assert own.receive(METADATA, 12, 0) == Ended("Metadata within a SASL exchange")
    assert own.receive(VERSIONS, 4, 0) == Ended("ApiVersions within a SASL exchange")
    assert (own.principal, own.is_done) == (ANONYMOUS, False)


def test_whoever_is_identified_is_served() -> None:
    own = listener()
    assert handshake(own) == Answered(
        SaslHandshakeResponse(mechanisms=("PLAIN", "SCRAM-SHA-256", "TOKEN", "NOBODY"))
    )
    assert show(own, ALICE) == Answered(SaslAuthenticateResponse(), Principal("User", "alice"))
    assert own.principal == Principal("User", "alice")
    assert own.receive(METADATA, 12, 0) is PASSED
    assert not own.looks_at_all


@pytest.mark.parametrize(
    "token", [WRONG, b"\0nobody\0secret", b"", b"\0\0", b"\xff", b"bob" + ALICE]
)
def test_failures_are_told_alike(token: bytes) -> None:
    own = listener()
    handshake(own)
    ended = show(own, token)
    assert isinstance(ended, Ended)
    assert ended.answer.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "alice" not in ended.answer.error_message
    assert not own.is_done


def test_a_mechanism_that_is_not_enabled_is_told_which_are() -> None:
    ended = handshake(listener(), "GSSAPI")
    assert isinstance(ended, Ended)
    assert ended.answer.error_code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert "PLAIN" in ended.answer.mechanisms


def test_a_node_that_knows_no_users_yet_refuses_nobody() -> None:
    own = listener()
    handshake(own, "NOBODY")
    assert show(own, b"") == Ended("no users yet", None)


def test_tokens_come_bare_after_the_first_handshake() -> None:
    own = listener()
    own.receive(SaslHandshakeRequest(mechanism="PLAIN"), 0, 0)
    assert own.awaits_token
    assert own.receive_token(ALICE, 0) == Answered(b"", Principal("User", "alice"))
    assert (own.principal.name, own.awaits_token) == ("alice", False)
    own = listener()
    own.receive(SaslHandshakeRequest(mechanism="PLAIN"), 0, 0)
    assert own.receive_token(WRONG, 0) == Ended("PLAIN: invalid username or password", None)


@pytest.mark.parametrize(
    "own", [Authentication(lambda: None), authenticated()], ids=["without", "after"]
)
def test_where_no_authentication_is_due_sasl_is_out_of_place(own: Authentication) -> None:
    illegal = ErrorCode.ILLEGAL_SASL_STATE
    assert handshake(own) == Answered(SaslHandshakeResponse(error_code=illegal))
    answer = show(own, ALICE)
    assert isinstance(answer, Answered)
    assert answer.answer.error_code is illegal
    assert answer.principal is None, "a client with a certificate keeps the name that it shows"
    assert own.receive(METADATA, 12, 0) is PASSED


# --- sessions that end ---------------------------------------------------------------------------


def test_a_session_is_served_until_its_end() -> None:
    own = listener(2000)
    handshake(own)
    assert show(own, ALICE).answer.session_lifetime_ms == 2000
    assert own.receive(METADATA, 12, 2000) is PASSED
    assert own.receive(METADATA, 12, 2001) == Ended("the session has expired, and was not renewed")


def test_a_session_is_renewed_even_after_its_end() -> None:
    own = authenticated(2000)
    assert isinstance(handshake(own, now_ms=3000), Answered)
    assert own.receive(METADATA, 12, 3000) == Ended("Metadata within a SASL exchange")
    assert show(own, ALICE, 3000).answer.session_lifetime_ms == 2000
    assert own.receive(METADATA, 12, 5000) is PASSED


def test_a_session_is_renewed_by_what_the_listener_asks_then() -> None:
    """A user that is gone from its settings meanwhile has no other session."""
    users = dict(USERS)

    def asked() -> SaslListener:
        known = dict(users)
        mechanism = SaslMechanism(begin=lambda: PlainServer(known), session_ms=2000)
        return SaslListener(mechanisms={"PLAIN": mechanism})

    own = Authentication(asked)
    for now_ms in (0, 3000):
        handshake(own, now_ms=now_ms)
        assert isinstance(show(own, ALICE, now_ms), Answered)
    users.clear()
    handshake(own, now_ms=6000)
    assert isinstance(show(own, ALICE, 6000), Ended)


def test_a_session_is_renewed_once_a_second_at_most() -> None:
    own = authenticated(2000)
    illegal = Answered(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
    assert handshake(own, now_ms=999) == illegal
    assert isinstance(handshake(own, now_ms=1000), Answered)
    assert own.receive(METADATA, 12, 1000) is not PASSED


@pytest.mark.parametrize(("mechanism", "token"), [("PLAIN", BOB), ("TOKEN", b"alice")])
def test_a_session_keeps_its_user_and_its_mechanism(mechanism: str, token: bytes) -> None:
    own = authenticated(2000)
    handshake(own, mechanism, 1500)
    ended = show(own, token, 1500)
    assert isinstance(ended, Ended)
    assert ended.answer.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert own.principal.name == "alice"


@pytest.mark.parametrize(
    ("session_ms", "now_ms", "lifetime_ms"),
    [(0, 1000, 4000), (3000, 1000, 3000), (3000, 4000, 1000), (0, 9000, 0)],
)
def test_a_session_ends_with_its_credential(session_ms: int, now_ms: int, lifetime_ms: int) -> None:
    own = listener(session_ms)
    handshake(own, "TOKEN", now_ms)
    assert show(own, b"alice", now_ms).answer.session_lifetime_ms == lifetime_ms
    assert isinstance(own.receive(METADATA, 12, now_ms + lifetime_ms + 1), Ended)


# --- either side against the other ---------------------------------------------------------------


def run(dialogue: SaslDialogue, own: Authentication) -> int:
    """Have a listener answer a client, and return the lifetime of the session."""
    request = next(dialogue)
    try:
        while True:
            outcome = own.receive(request, 1, 0)
            assert isinstance(outcome, Answered | Ended)
            request = dialogue.send(outcome.answer)
    except StopIteration as ended:
        return int(ended.value)


def test_a_client_goes_by_its_dialogue() -> None:
    own = listener(2000)
    assert run(authenticate("PLAIN", PlainClient("alice", "secret")), own) == 2000
    assert own.principal.name == "alice"


@pytest.mark.parametrize(
    ("mechanism", "words"), [("GSSAPI", "it has: PLAIN, SCRAM"), ("PLAIN", "Invalid username")]
)
def test_a_client_says_why_it_did_not_get_in(mechanism: str, words: str) -> None:
    with pytest.raises(AuthenticationFailed, match=words):
        run(authenticate(mechanism, PlainClient("alice", "wrong")), listener())


@given(st.lists(st.binary(max_size=30), max_size=4), st.sampled_from(["PLAIN", "SCRAM-SHA-256"]))
@settings(max_examples=50, deadline=None)
def test_any_tokens_have_a_clean_end(tokens: list[bytes], mechanism: str) -> None:
    own = listener()
    own.receive(SaslHandshakeRequest(mechanism=mechanism), 0, 0)
    for token in tokens:
        if not isinstance(own.receive_token(token, 0), Answered):
            break
    assert not own.is_done
