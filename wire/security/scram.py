"""SCRAM-SHA-256 and SCRAM-SHA-512: a password is proven, and never sent (RFC 5802, RFC 7677).

    client                                         server
    n,,n=user,r=NONCE                   -->
                                        <--        r=NONCE+MORE,s=SALT,i=ITERATIONS
    c=biws,r=NONCE+MORE,p=PROOF         -->
                                        <--        v=SIGNATURE

Names and passwords are UTF-8 and not prepared further, as in Kafka's ScramFormatter. There is no
channel binding: a client that asks for it ('p') is refused, one that only could do it ('y') is
taken. Mandatory extensions ('m') are refused, and delegation tokens (`tokenauth`, KIP-48) are not
served; other extensions are ignored.

A user that does not exist is challenged like any other, with a decoy (`wire.security.scram_decoys`)
and fails at the proof. Kafka refuses it at once, so that a stranger learns who exists.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from typing import NamedTuple

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
    "ITERATIONS_MIN",
    "SCRAM_SHA_256",
    "SCRAM_SHA_512",
    "CredentialOf",
    "Hash",
    "NotKnownYet",
    "ScramClient",
    "ScramCredential",
    "ScramServer",
]

ITERATIONS_MIN = 4096  # RFC 7677; less is refused by either side
ITERATIONS_MAX = 1 << 20  # half a second of work that a server may ask of a client


class Hash(NamedTuple):
    """A member of the SCRAM family."""

    mechanism: str
    digest: str
    number: int  # in the metadata log

    def of(self, content: bytes) -> bytes:
        return hashlib.new(self.digest, content).digest()

    def hmac(self, key: bytes, content: bytes) -> bytes:
        return hmac.digest(key, content, self.digest)

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        return hashlib.pbkdf2_hmac(self.digest, password.encode(), salt, iterations)


SCRAM_SHA_256 = Hash("SCRAM-SHA-256", "sha256", 1)
SCRAM_SHA_512 = Hash("SCRAM-SHA-512", "sha512", 2)


class ScramCredential(NamedTuple):
    """What a server knows of a user: enough to check a proof, not to make one."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


class NotKnownYet(Exception):
    """This node has not read yet who its users are."""


# By user; None: no such user. Raises NotKnownYet.
CredentialOf = Callable[[str], ScramCredential | None]

_NAME = r"(?:[^\x00=,]|=2C|=3D)+"
_NONCE = r"[\x21-\x2B\x2D-\x7E]+"
_BASE64 = r"[A-Za-z0-9/+]+={0,2}"
_EXTENSIONS = r"(?:,[A-Za-z]+=[^\x00,]+)*"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>(?P<binding>n|y|p=[A-Za-z0-9.\-]+),(?:a=(?P<acts_as>{_NAME}))?,)"
    rf"(?P<bare>(?P<mandatory>m=[^\x00,]+,)?n=(?P<user>{_NAME}),r=(?P<nonce>{_NONCE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(
    rf"(?P<mandatory>m=[^\x00,]+,)?r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64})"
    rf",i=(?P<iterations>[1-9][0-9]{{0,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>[^\x00,]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


class ScramServer:
    """`nonce` is printable, without commas, and used once. `decoy_of` makes a credential for a user
    who has none.
    """

    def __init__(
        self,
        family: Hash,
        credential_of: CredentialOf,
        *,
        nonce: str,
        decoy_of: Callable[[str], ScramCredential],
    ) -> None:
        self._hash = family
        self._credential_of = credential_of
        self._own_nonce = nonce
        self._decoy_of = decoy_of
        self._challenged: _Challenged | None = None

    def receive(self, token: bytes, now_ms: int) -> ServerStep:
        text = text_of(token)
        if text is None:
            return Refused("a SCRAM message is no text")
        if self._challenged is None:
            return self._challenge(text)
        return self._judge(text, self._challenged)

    def _challenge(self, text: str) -> ServerStep:
        message = _CLIENT_FIRST.fullmatch(text)
        if message is None:
            return Refused("a SCRAM client-first message is malformed")
        user = _name_of(message["user"])
        wrong = _not_served(message, user)
        if wrong is not None:
            return Refused(wrong)
        try:
            known = self._credential_of(user)
            if known is not None and known.iterations < ITERATIONS_MIN:
                known = None  # too weak to be asked for
            credential = known or self._decoy_of(user)
        except NotKnownYet:
            return Unavailable("the users of the cluster are not known yet")
        nonce = message["nonce"] + self._own_nonce
        first = f"r={nonce},s={_base64(credential.salt)},i={credential.iterations}"
        self._challenged = _Challenged(
            user=user,
            credential=credential,
            exists=known is not None,
            binding=_base64(message["gs2"].encode()),
            nonce=nonce,
            messages=f"{message['bare']},{first}",
        )
        return Challenge(first.encode())

    def _judge(self, text: str, challenged: "_Challenged") -> ServerStep:
        message = _CLIENT_FINAL.fullmatch(text)
        if message is None:
            return Refused("a SCRAM client-final message is malformed")
        proof = _unbase64(message["proof"])
        if message["binding"] != challenged.binding:
            return Refused("the SCRAM channel binding is not that of the first message")
        if not hmac.compare_digest(message["nonce"], challenged.nonce):
            return Refused(_other_nonce(message["nonce"], challenged.nonce))
        signed = f"{challenged.messages},{message['without_proof']}".encode()
        credential = challenged.credential
        signature = self._hash.hmac(credential.stored_key, signed)
        if proof is None or len(proof) != len(signature):
            return Refused("a SCRAM proof has the wrong length")
        is_proven = hmac.compare_digest(
            self._hash.of(_xor(proof, signature)), credential.stored_key
        )
        if not (is_proven and challenged.exists):
            return Refused("no such user, or the wrong password")
        answer = f"v={_base64(self._hash.hmac(credential.server_key, signed))}"
        return Identified(challenged.user, answer.encode())


class _Challenged(NamedTuple):
    user: str
    credential: ScramCredential
    exists: bool
    binding: str  # the client's first header, which it has to repeat
    nonce: str
    messages: str  # the first of each, as they are signed


def _not_served(message: re.Match[str], user: str) -> str | None:
    if message["binding"].startswith("p"):
        return "SCRAM with channel binding is not served"
    if message["mandatory"] is not None:
        return "a mandatory SCRAM extension is not served"
    if ",tokenauth=true" in message["extensions"].lower():
        return "delegation tokens are not served"
    if message["acts_as"] is not None and _name_of(message["acts_as"]) != user:
        return "the client wants to act as somebody else"
    return None


def _other_nonce(told: str, expected: str) -> str:
    """Kafka 3.9 takes one that only ends as it should; 4.3 does not (ScramSaslServer)."""
    if told.endswith(expected):
        return "the SCRAM nonce is repeated: the client has a librdkafka older than 2.6.1"
    return "the SCRAM nonce is not the one of this exchange"


class ScramClient:
    """`nonce` is printable, without commas, and used once."""

    def __init__(self, family: Hash, user: str, password: str, *, nonce: str) -> None:
        self._hash = family
        self._password = password
        self._nonce = nonce
        self._bare = f"n={_saslname(user)},r={nonce}"
        self._expected: bytes | None = None  # the server's signature, once a proof was given

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def receive(self, token: bytes) -> Challenge | Finished | Refused:
        text = text_of(token)
        if text is None:
            return Refused("a SCRAM message is no text")
        if self._expected is None:
            return self._prove(text)
        message = _SERVER_FINAL.fullmatch(text)
        if message is None:
            return Refused("a SCRAM server-final message is malformed")
        if message["error"] is not None:
            return Refused(f"the server says {message['error'][:100]}")
        signature = _unbase64(message["signature"])
        if signature is None or not hmac.compare_digest(signature, self._expected):
            return Refused("the server does not know the password's key: it is not who it claims")
        return Finished()

    def _prove(self, text: str) -> Challenge | Refused:
        message = _SERVER_FIRST.fullmatch(text)
        salt = None if message is None else _unbase64(message["salt"])
        if message is None or salt is None:
            return Refused("a SCRAM server-first message is malformed")
        if message["mandatory"] is not None:
            return Refused("the server wants a mandatory SCRAM extension")
        nonce, iterations = message["nonce"], int(message["iterations"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            return Refused("the server's SCRAM nonce does not continue the client's")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            return Refused(
                f"the server asks for {iterations} iterations, "
                f"not for {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            )
        salted = self._hash.salted(self._password, salt, iterations)
        client_key = self._hash.hmac(salted, b"Client Key")
        without_proof = f"c={_base64(b'n,,')},r={nonce}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        proof = _xor(client_key, self._hash.hmac(self._hash.of(client_key), signed))
        self._expected = self._hash.hmac(self._hash.hmac(salted, b"Server Key"), signed)
        return Challenge(f"{without_proof},p={_base64(proof)}".encode())


def _saslname(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _name_of(saslname: str) -> str:
    return saslname.replace("=2C", ",").replace("=3D", "=")


def _base64(content: bytes) -> str:
    return b64encode(content).decode()


def _unbase64(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except NotBase64:
        return None


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
