"""Tokens that are taken, and those that must not be."""

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from wire.security.exchanges import Challenge, Finished, Identified, Refused, Unavailable
from wire.security.oauthbearer import OauthbearerClient, OauthbearerServer, TokenRules, key_set

KEY, OTHER_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
PUBLIC: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
KEYS = key_set({"keys": [PUBLIC | {"kid": "a", "alg": "ES256"}]})
RULES = TokenRules(audiences=("kafka",), issuer="https://idp", clock_skew_seconds=30)
NOW = 1_000_000
CLAIMS = {"sub": "alice", "aud": "kafka", "iss": "https://idp", "iat": NOW - 5, "exp": NOW + 60}
REFUSED = Challenge(b'{"status":"invalid_token"}')


def token(key: Any = KEY, key_id: str | None = "a", **changed: Any) -> str:
    claims = {name: value for name, value in (CLAIMS | changed).items() if value is not None}
    return jwt.encode(claims, key, "ES256", headers={"kid": key_id} if key_id else None)


def server(rules: TokenRules = RULES) -> OauthbearerServer:
    return OauthbearerServer(lambda _: KEYS, rules)


def show(text: str, now: int = NOW) -> Any:
    return server().receive(OauthbearerClient(text).first(), now * 1000)


@pytest.mark.parametrize("key_id", ["a", None])
def test_a_good_token_names_a_user_until_it_expires(key_id: str | None) -> None:
    good = Identified("alice", expires_at_ms=(NOW + 60) * 1000)
    assert show(token(key_id=key_id)) == good
    assert show(token(aud=["others", "kafka"]), NOW + 89) == good, "clocks differ a little"


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": NOW - 30},
        {"exp": None},
        {"exp": "soon"},
        {"iat": None},
        {"nbf": NOW + 31},
        {"aud": "others"},
        {"aud": None},
        {"iss": "https://other"},
        {"sub": None},
        {"sub": " "},
        {"scope": 7},
        {"key": OTHER_KEY},
        {"key_id": "b"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_tokens_that_are_refused(changed: dict[str, Any]) -> None:
    assert show(token(**changed)) == REFUSED


def test_a_token_that_is_not_signed_by_the_keys_own_algorithm_is_refused() -> None:
    unsigned = jwt.encode(CLAIMS, "", "none", headers={"kid": "a"})
    assert show(unsigned) == REFUSED
    shared = key_set({"keys": [{"kty": "oct", "k": "c2VjcmV0" * 6, "kid": "a", "alg": "HS256"}]})
    forged = jwt.encode(CLAIMS, jwt.utils.base64url_decode("c2VjcmV0" * 6), "HS256", {"kid": "a"})
    own = OauthbearerServer(lambda _: shared, RULES)
    assert own.receive(OauthbearerClient(forged).first(), NOW * 1000) == REFUSED


def test_a_refusal_is_confirmed_before_the_end() -> None:
    own, client = server(), OauthbearerClient(token(exp=1))
    assert own.receive(client.first(), NOW * 1000) == REFUSED
    assert client.receive(REFUSED.token) == Challenge(b"\x01")
    ended = own.receive(b"\x01", NOW * 1000)
    assert isinstance(ended, Refused)
    assert ended.told == '{"status":"invalid_token"}'
    assert client.receive(b"") == Finished()


def test_nobody_is_refused_before_the_keys_have_come() -> None:
    own = OauthbearerServer(lambda _: None, RULES)
    assert isinstance(own.receive(OauthbearerClient(token()).first(), 0), Unavailable)


def test_only_the_tokens_own_user_is_acted_as() -> None:
    first = OauthbearerClient(token()).first()
    for user, kind in (("alice", Identified), ("admin", Refused)):
        acting = first.replace(b"n,,", f"n,a={user},".encode())
        assert isinstance(server().receive(acting, NOW * 1000), kind)


@given(
    st.one_of(
        st.binary(max_size=40),
        st.text(max_size=40).map(lambda text: b"n,,\x01auth=Bearer " + text.encode() + b"\x01\x01"),
    )
)
def test_any_bytes_have_a_clean_end(first: bytes) -> None:
    assert isinstance(server().receive(first, NOW * 1000), Refused | Challenge)
