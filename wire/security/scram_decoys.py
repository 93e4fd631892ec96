"""A user that does not exist gets a challenge like one that does.

The challenge of SCRAM shows a user's salt and number of iterations to every client that names the
user. For an unknown name both are derived from the name and the cluster's key, so that they are the
same each time and on every node. The iterations and the kind of salt are copied from a user that
exists, so that decoys have each kind as often as users do.

Kafka's ScramSaslServer refuses such a name at once. Its tools make salts that are numbers in base
36 (ScramFormatter.secureRandomString); those of others are bytes.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wire.security.scram import ITERATIONS_MIN, Hash, ScramCredential

__all__ = ["Likeness", "decoy", "likeness_of", "likenesses"]

_KAFKA_SALT = re.compile(rb"[0-9a-z]{20,26}")
_KAFKA_SALT_BITS = 130
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"


class Likeness(NamedTuple):
    """The part of a credential that a challenge shows, apart from the salt itself."""

    iterations: int
    salt_bytes: int  # 0: a number in base 36, as Kafka's tools make it


_USUAL = Likeness(ITERATIONS_MIN, 0)  # where nobody has a credential: as kafka-configs makes it


def likeness_of(iterations: int, salt: bytes) -> Likeness:
    return Likeness(iterations, 0 if _KAFKA_SALT.fullmatch(salt) else len(salt))


def likenesses(credentials: Iterable[tuple[int, bytes]]) -> tuple[Likeness, ...]:
    """How the credentials (iterations, salt) of users look, in an order that one more user
    changes little."""
    return tuple(
        sorted(
            likeness_of(iterations, salt)
            for iterations, salt in credentials
            if iterations >= ITERATIONS_MIN
        )
    )


def decoy(family: Hash, user: str, key: bytes, among: Sequence[Likeness]) -> ScramCredential:
    """No password fits it."""
    seed = family.hmac(key, user.encode())
    share = int.from_bytes(seed[:8])  # of 2**64: the rank among the users
    shown = among[share * len(among) >> 64] if among else _USUAL
    secret = family.hmac(key, seed)
    salt = _bytes_of(family, seed, shown.salt_bytes) if shown.salt_bytes else _number_of(secret)
    return ScramCredential(salt, shown.iterations, secret, secret)


def _bytes_of(family: Hash, seed: bytes, count: int) -> bytes:
    blocks = (family.hmac(seed, bytes((number,))) for number in range(count // 32 + 1))
    return b"".join(blocks)[:count]


def _number_of(secret: bytes) -> bytes:
    number, digits = int.from_bytes(secret) >> (8 * len(secret) - _KAFKA_SALT_BITS), bytearray()
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))
