"""Principals: who a connection belongs to, or a request that a broker has forwarded.

Source: KIP-590 (DefaultPrincipalData); Kafka's KafkaPrincipal.
"""

from typing import NamedTuple

from wire.varint import Malformed, read_uvarint, uvarint

__all__ = ["ANONYMOUS", "USER", "Forwarder", "Principal", "decode_principal", "encode_principal"]

USER = "User"
_VERSION = b"\0\0"


class Principal(NamedTuple):
    """Shown as `User:alice`, as ACLs and `super.users` name it."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Principal":
        """Raises ValueError unless it is TYPE:NAME; the name may hold colons."""
        kind, colon, name = text.partition(":")
        if not (kind and colon):
            raise ValueError(f"expected a principal as TYPE:NAME, for example User:alice: {text!r}")
        return cls(kind, name)


ANONYMOUS = Principal(USER, "ANONYMOUS")  # of a connection that shows nothing


class Forwarder(NamedTuple):
    """The broker that passes a client's request on: who it is itself, and where."""

    principal: Principal
    host: str


def encode_principal(principal: Principal) -> bytes:
    """A principal that did not come with a delegation token."""
    strings = [text.encode() for text in principal]
    sized = b"".join(uvarint(len(text) + 1) + text for text in strings)
    return _VERSION + sized + b"\0" + b"\0"  # no token; no tagged fields


def decode_principal(data: bytes) -> Principal:
    """Raises Malformed. What tagged fields a newer version may add are not looked at."""
    if not data.startswith(_VERSION):
        raise Malformed("a principal of another version")
    kind, at = _string(data, len(_VERSION))
    name, _ = _string(data, at)
    return Principal(kind, name)


def _string(data: bytes, at: int) -> tuple[str, int]:
    """A compact string, and where it ends."""
    size, at = read_uvarint(data, at)
    end = at + size - 1
    if size == 0 or end > len(data):
        raise Malformed("a principal that is cut off")
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError as error:
        raise Malformed("a principal that is no text") from error
