"""Users that a cluster begins with, as `format --add-scram` names them (KIP-900).

    SCRAM-SHA-256=[name=alice,password=secret,iterations=8192]

A `saltedpassword` and its `salt`, both in base64, may stand for the password.

Source: Kafka's ScramParser.
"""

import secrets
from base64 import b64decode

from controller.metadata.security import Mechanism, server_key, stored_key
from wire.metadata_records import UserScramCredentialRecord
from wire.security.scram import ITERATIONS_MIN, SCRAM_SHA_256, SCRAM_SHA_512, Hash

__all__ = ["first_credential"]

_FAMILIES = {family.mechanism: family for family in (SCRAM_SHA_256, SCRAM_SHA_512)}
_NAMES = frozenset(("name", "password", "saltedpassword", "salt", "iterations"))
_ITERATIONS_MAX = 16_384
_SALT_BYTES = 26
_FORM = "say MECHANISM=[name=NAME,password=PASSWORD]"


def first_credential(text: str) -> UserScramCredentialRecord:
    """Raises ValueError, which repeats no password."""
    mechanism, _, options = text.strip().partition("=")
    family = _FAMILIES.get(mechanism)
    if family is None:
        raise ValueError(f"{_FORM}, with {' or '.join(_FAMILIES)}")
    if not (options.startswith("[") and options.endswith("]")):
        raise ValueError(_FORM)
    given = dict(_option(part) for part in options[1:-1].split(","))
    if "name" not in given or not given.keys() <= _NAMES:
        raise ValueError(f"{_FORM}; there may also be salt, iterations and saltedpassword")
    iterations = int(given.get("iterations", ITERATIONS_MIN))
    if not ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
        raise ValueError(f"iterations: from {ITERATIONS_MIN} to {_ITERATIONS_MAX}")
    salt = (
        b64decode(given["salt"], validate=True)
        if "salt" in given
        else secrets.token_bytes(_SALT_BYTES)
    )
    salted, number = _salted(given, family, salt, iterations), Mechanism(family.number)
    return UserScramCredentialRecord(
        name=given["name"],
        mechanism=number,
        salt=salt,
        stored_key=stored_key(number, salted),
        server_key=server_key(number, salted),
        iterations=iterations,
    )


def _salted(given: dict[str, str], family: Hash, salt: bytes, iterations: int) -> bytes:
    if "password" in given:
        return family.salted(given["password"], salt, iterations)
    if not ("saltedpassword" in given and "salt" in given):
        raise ValueError("name a password, or a saltedpassword with its salt")
    return b64decode(given["saltedpassword"], validate=True)


def _option(part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not equals:
        raise ValueError(_FORM)
    is_quoted = len(value) >= 2 and value[0] == value[-1] == '"'
    return name, value[1:-1] if is_quoted else value
