"""The content of a store as text in PEM, for clients that take no store, as librdkafka does not."""

from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from wire.security.stores import StoreSettings, identity_in, trusted_in

__all__ = ["identity_pem", "trusted_pem"]


def trusted_pem(store: StoreSettings) -> str:
    """Raises StoreError."""
    trusted = trusted_in(store, _read)
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in trusted)


def identity_pem(store: StoreSettings) -> tuple[str, str]:
    """The key, which is not encrypted, and the chain. Raises StoreError."""
    identity = identity_in(store, _read, datetime.now(UTC))
    key = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = b"".join(each.public_bytes(Encoding.PEM) for each in identity.chain)
    return key.decode(), chain.decode()


def _read(path: str) -> bytes:
    return Path(path).read_bytes()
