"""SCRAM against the vectors of its RFCs, a second implementation, and liars on either side."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.net.sasl.scram import ScramClient as KafkaPythonClient

from wire.security.exchanges import Challenge, Finished, Identified, Refused, Unavailable
from wire.security.scram import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    Hash,
    NotKnownYet,
    ScramClient,
    ScramCredential,
    ScramServer,
)
from wire.security.scram_decoys import decoy

SHA_1 = Hash("SCRAM-SHA-1", "sha1", 0)
RFC_5802 = (  # section 5
    SHA_1,
    "fyko+d2lbbFgONRv9qkxdawL",
    "3rfcNHYJY1ZVvWVs7j",
    "QSXCR+Q6sek8bf92",
    "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
RFC_7677 = (  # section 3
    SCRAM_SHA_256,
    "rOprNGfwEbeRWgbNEkqO",
    "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    "W22ZaJ0SNY7soEsUEjb6gQ==",
    "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
SALT = b"salt" * 6


def credential(family: Hash, password: str, salt: bytes = SALT, rounds: int = 4096) -> Any:
    salted = hashlib.pbkdf2_hmac(family.digest, password.encode(), salt, rounds)
    return ScramCredential(
        salt=salt,
        iterations=rounds,
        stored_key=family.of(family.hmac(salted, b"Client Key")),
        server_key=family.hmac(salted, b"Server Key"),
    )


PENCIL = credential(SCRAM_SHA_256, "pencil")


def server(users: dict[str, ScramCredential] | None = None, **changed: Any) -> ScramServer:
    known = {"user": PENCIL} if users is None else users
    given = {"family": SCRAM_SHA_256, "credential_of": known.get, "nonce": "SERVER"}
    family = changed.get("family", SCRAM_SHA_256)
    decoys = {"decoy_of": lambda user: decoy(family, user, b"decoy", ())}
    return ScramServer(**{**given, **decoys, **changed})


def client(user: str = "user", password: str = "pencil") -> ScramClient:
    return ScramClient(SCRAM_SHA_256, user, password, nonce="CLIENT")


def run(scram_client: ScramClient, scram_server: ScramServer) -> Iterator[Any]:
    """Each side's steps in turn, to the end."""
    token = scram_client.first()
    while True:
        step = scram_server.receive(token, 0)
        yield step
        if not isinstance(step, Challenge | Identified):
            return
        answer = scram_client.receive(step.token)
        yield answer
        if not isinstance(answer, Challenge):
            return
        token = answer.token


@pytest.mark.parametrize("vector", [RFC_5802, RFC_7677], ids=["RFC 5802", "RFC 7677"])
def test_both_sides_say_what_the_rfc_says(vector: tuple[Hash, str, str, str, str, str]) -> None:
    family, nonce, more, salt, proof, signature = vector
    own = ScramClient(family, "user", "pencil", nonce=nonce)
    known = credential(family, "pencil", b64decode(salt))
    other = server({"user": known}, family=family, nonce=more)
    assert own.first() == f"n,,n=user,r={nonce}".encode()
    assert list(run(own, other)) == [
        Challenge(f"r={nonce}{more},s={salt},i=4096".encode()),
        Challenge(f"c=biws,r={nonce}{more},p={proof}".encode()),
        Identified("user", f"v={signature}".encode()),
        Finished(),
    ]


@pytest.mark.parametrize("family", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_another_implementation_of_the_client_gets_in(family: Hash) -> None:
    other = KafkaPythonClient("user", "pencil", family.mechanism)
    own = server({"user": credential(family, "pencil")}, family=family)
    first = own.receive(other.first_message(), 0)
    assert isinstance(first, Challenge)
    other.process_server_first_message(first.token)
    last = own.receive(other.final_message(), 0)
    assert isinstance(last, Identified)
    other.process_server_final_message(last.token)  # raises unless it is the right signature


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
@settings(max_examples=20, deadline=None)
def test_any_name_and_password_get_through(text: str) -> None:
    users = {text: credential(SCRAM_SHA_256, text)}
    *_, identified, end = run(client(text, text), server(users))
    assert (identified.name, end) == (text, Finished())


@pytest.mark.parametrize(("user", "password"), [("user", "wrong"), ("nobody", "pencil")])
def test_nobody_learns_whether_a_user_exists(user: str, password: str) -> None:
    challenge, _, refused = run(client(user, password), server())
    again = next(run(client(user, password), server()))
    assert challenge == again, "the salt of who does not exist must stay the same"
    assert len(challenge.token) >= len("r=CLIENTSERVER,s=,i=4096") + 32
    assert refused == Refused("no such user, or the wrong password")


def test_a_user_that_cannot_be_looked_up_is_not_refused() -> None:
    def unknown(_user: str) -> ScramCredential | None:
        raise NotKnownYet

    (step,) = run(client(), server(credential_of=unknown))
    assert isinstance(step, Unavailable)


def test_a_credential_with_few_iterations_lets_nobody_in() -> None:
    *_, last = run(client(), server({"user": credential(SCRAM_SHA_256, "pencil", SALT, 4095)}))
    assert isinstance(last, Refused)


@pytest.mark.parametrize(
    "first",
    [
        b"p=tls-unique,,n=user,r=CLIENT",  # channel binding
        b"n,,m=new,n=user,r=CLIENT",  # a mandatory extension
        b"n,,n=user,r=CLIENT,tokenauth=true",  # a delegation token
        b"n,a=admin,n=user,r=CLIENT",  # to act as somebody else
        b"n,,n=us=er,r=CLIENT",  # an escape that is none
        b"n,,n=user,r=",
        b"n,,n=,r=CLIENT",
        b"n,,n=\xff,r=CLIENT",
        b"",
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    assert isinstance(server().receive(first, 0), Refused)


@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=user,"])
def test_the_header_must_be_repeated(header: str) -> None:
    """A client that could bind channels, and thinks that we cannot ('y'), is right."""
    for repeated, good in ((header, True), ("p=tls-unique,,", False)):
        steps = _with_header(header, repeated)
        assert isinstance(steps, Identified if good else Refused)


def _with_header(header: str, repeated: str) -> Any:
    own = server()
    first = own.receive(f"{header}n=user,r=CLIENT".encode(), 0)
    assert isinstance(first, Challenge)
    salted = SCRAM_SHA_256.salted("pencil", SALT, 4096)
    key = SCRAM_SHA_256.hmac(salted, b"Client Key")
    without = f"c={b64encode(repeated.encode()).decode()},r=CLIENTSERVER"
    signed = f"n=user,r=CLIENT,{first.token.decode()},{without}".encode()
    signature = SCRAM_SHA_256.hmac(SCRAM_SHA_256.of(key), signed)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return own.receive(f"{without},p={b64encode(proof).decode()}".encode(), 0)


def test_a_proof_of_another_exchange_is_refused() -> None:
    old_client, old_server = client(), server()
    first = old_server.receive(old_client.first(), 0)
    assert isinstance(first, Challenge)
    proof = old_client.receive(first.token)
    assert isinstance(proof, Challenge)
    assert isinstance(old_server.receive(proof.token, 0), Identified)
    later = server(nonce="OTHER")
    assert isinstance(later.receive(client().first(), 0), Challenge)
    assert later.receive(proof.token, 0) == Refused(
        "the SCRAM nonce is not the one of this exchange"
    )


def test_a_client_that_repeats_its_nonce_is_known_by_it() -> None:
    """So did librdkafka before 2.6.1, which Apache Kafka 4.3.1 refuses, too."""
    own = server()
    assert isinstance(own.receive(client().first(), 0), Challenge)
    refused = own.receive(FINAL.replace(b"r=", b"r=CLIENT"), 0)
    assert refused == Refused(
        "the SCRAM nonce is repeated: the client has a librdkafka older than 2.6.1"
    )


GOOD = b"r=CLIENTSERVER,s=c2FsdA==,i=4096"


@pytest.mark.parametrize(
    "challenge",
    [
        GOOD.replace(b"4096", b"4095"),  # a downgrade
        GOOD.replace(b"4096", b"9999999999"),  # to keep the client busy
        GOOD.replace(b"CLIENT", b"OTHER"),
        GOOD.replace(b"SERVER", b""),
        GOOD.replace(b"c2FsdA==", b"c2FsdA"),
        b"m=new," + GOOD,
        b"",
    ],
)
def test_challenges_that_a_client_refuses(challenge: bytes) -> None:
    assert isinstance(client().receive(GOOD), Challenge)
    assert isinstance(client().receive(challenge), Refused)


@pytest.mark.parametrize("final", [b"v=AAAA", b"e=other-error", b"", b"\xff"])
def test_a_server_that_does_not_know_the_password_is_found_out(final: bytes) -> None:
    own = client()
    assert isinstance(own.receive(GOOD), Challenge)
    assert isinstance(own.receive(final), Refused)


def _challenged() -> Any:
    own = server()
    own.receive(b"n,,n=user,r=CLIENT", 0)
    return own


def _proven() -> Any:
    own = client()
    own.receive(GOOD)
    return own


FINAL = b"c=biws,r=CLIENTSERVER,p=" + b"A" * 43 + b"="
SIDES: list[tuple[Callable[[], Any], bytes]] = [
    (server, b"n,,n=user,r=CLIENT,ext=x"),
    (_challenged, FINAL),
    (client, GOOD),
    (_proven, b"v=AAAA"),
]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_bytes_have_a_clean_end(data: st.DataObject) -> None:
    make, good = data.draw(st.sampled_from(SIDES))
    cut = data.draw(st.integers(0, len(good)))
    token = good[:cut] + data.draw(st.binary(max_size=8)) + good[data.draw(st.integers(0, 99)) :]
    side = make()
    step = side.receive(token, 0) if isinstance(side, ScramServer) else side.receive(token)
    assert isinstance(step, Challenge | Refused | Finished)


def test_a_giant_token_is_judged_at_once() -> None:
    giant = b"n,,n=" + b"=2C" * 100_000 + b",r=" + b"x" * 100_000
    assert isinstance(server().receive(giant, 0), Challenge)
    assert isinstance(server().receive(giant + b",", 0), Refused)
