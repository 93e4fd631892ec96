"""OAUTHBEARER: a signed token instead of a password (RFC 7628, KIP-255, KIP-768).

The token is a JWT. Its signature is checked against a set of public keys (JWKS) that comes from
outside, its claims against what the listener expects. A token that is refused is answered with a
challenge in JSON, and the exchange fails when the client has confirmed that, as RFC 7628 has it.

Source: Kafka's OAuthBearerSaslServer, BrokerJwtValidator.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import jwt
from jwt.types import Options

from wire.security.exchanges import (
    Challenge,
    Finished,
    Identified,
    Refused,
    ServerStep,
    Unavailable,
    text_of,
)

__all__ = [
    "OAUTHBEARER",
    "KeysOf",
    "OauthbearerClient",
    "OauthbearerServer",
    "TokenRules",
    "key_set",
]

OAUTHBEARER = "OAUTHBEARER"
# Of public keys only: a shared secret in a set of public keys would let anybody sign.
_ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
_UNCHECKED: Options = {  # times are checked here, by the time that is given
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
}
_FAILED = '{"status":"invalid_token"}'
_CONFIRMED = b"\x01"
_FIRST = re.compile(
    r"n,(?:a=(?P<acts_as>(?:[^\x00=,]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7E \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[\-_~+/.a-zA-Z0-9]+=*)")

# The keys as they are known. It is asked with the id that a token names, so that whoever fetches
# them can look for newer ones. None: they have not come yet.
KeysOf = Callable[[str | None], jwt.PyJWKSet | None]


def key_set(content: Mapping[str, Any]) -> jwt.PyJWKSet:
    """Raises ValueError for what is no JWKS, or one without a key that can be used."""
    try:
        return jwt.PyJWKSet.from_dict(dict(content))
    except (jwt.PyJWTError, AttributeError, TypeError) as error:
        raise ValueError(f"no set of keys (JWKS): {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What a listener expects of a token; empty: of anybody, for anybody."""

    audiences: tuple[str, ...] = ()
    issuer: str = ""
    clock_skew_seconds: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"


class OauthbearerServer:
    def __init__(self, keys: KeysOf, rules: TokenRules) -> None:
        self._keys = keys
        self._rules = rules
        self._failure = ""

    def receive(self, token: bytes, now_ms: int) -> ServerStep:
        if self._failure:
            return Refused(self._failure, _FAILED)
        text = text_of(token)
        message = None if text is None else _FIRST.fullmatch(text)
        if message is None:
            return Refused("an OAUTHBEARER client-first message is malformed")
        pairs = dict(pair.split("=", 1) for pair in message["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None:
            return Refused("an OAUTHBEARER client-first message has no bearer's token")
        step = _judge(auth["token"], self._keys, self._rules, now_ms)
        if isinstance(step, Refused):
            self._failure = step.reason
            return Challenge(_FAILED.encode())
        if isinstance(step, Identified) and message["acts_as"] not in (None, step.name):
            return Refused("the client wants to act as somebody else")
        return step


def _judge(
    token: str, keys_of: KeysOf, rules: TokenRules, now_ms: int
) -> Identified | Refused | Unavailable:
    try:
        key_id = jwt.get_unverified_header(token).get("kid")
        keys = keys_of(key_id)
        if keys is None:
            return Unavailable("the keys of OAUTHBEARER have not come yet")
        key = _key_of(key_id, keys)
        if key is None or key.algorithm_name not in _ALGORITHMS:
            return Refused("no key of the set has signed the token")
        claims = jwt.decode(token, key, [key.algorithm_name], options=_UNCHECKED)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        return Refused(f"the token is not valid: {error}")
    wrong = _problem(claims, rules, now_ms // 1000)
    if wrong is not None:
        return Refused(wrong)
    return Identified(claims[rules.subject_claim], expires_at_ms=int(claims["exp"]) * 1000)


def _key_of(key_id: str | None, keys: jwt.PyJWKSet) -> jwt.PyJWK | None:
    """The key that a token names; if it names none, the only one."""
    if key_id is None:
        return keys.keys[0] if len(keys.keys) == 1 else None
    return next((key for key in keys.keys if key.key_id == key_id), None)


def _problem(claims: Mapping[str, Any], rules: TokenRules, now: int) -> str | None:
    skew = rules.clock_skew_seconds
    expires, begins, issued = (claims.get(name) for name in ("exp", "nbf", "iat"))
    if not _is_time(expires) or expires + skew <= now:
        return "the token has expired, or does not say when"
    if begins is not None and not (_is_time(begins) and begins - skew <= now):
        return "the token is not valid yet"
    if not _is_time(issued):
        return "the token does not say when it was issued"
    audience = claims.get("aud", ())
    audiences = [audience] if isinstance(audience, str) else audience
    if rules.audiences and not (
        isinstance(audiences, list) and any(each in rules.audiences for each in audiences)
    ):
        return "the token is for somebody else (aud)"
    if rules.issuer and claims.get("iss") != rules.issuer:
        return "the token is of somebody else (iss)"
    subject = claims.get(rules.subject_claim)
    if not (isinstance(subject, str) and subject.strip()):
        return f"the token names nobody ({rules.subject_claim})"
    scope = claims.get(rules.scope_claim, "")
    if not isinstance(scope, str | list):
        return f"the token's scope is no text ({rules.scope_claim})"
    return None


def _is_time(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 40


class OauthbearerClient:
    def __init__(self, token: str) -> None:
        self._token = token

    def first(self) -> bytes:
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def receive(self, token: bytes) -> Challenge | Finished:
        """A challenge tells why the token is refused; the server ends it when that is confirmed."""
        return Challenge(_CONFIRMED) if token else Finished()
