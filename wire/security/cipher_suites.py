"""`ssl.cipher.suites`: Java's names of cipher suites, the standard ones, in OpenSSL's words."""

import re
from collections.abc import Sequence

__all__ = ["NEWEST", "ciphers_of"]

# Of TLS 1.3: Python's ssl has all three of them or none.
NEWEST = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_STANDARD = re.compile(r"TLS_([A-Z]+(?:_[A-Z]+)?)_WITH_([A-Z0-9_]+)")


def ciphers_of(names: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """OpenSSL's names of the suites of TLS 1.2, and whether TLS 1.3 is wanted. Raises ValueError.

    A name of another form may be OpenSSL's own: it is left as it is.
    """
    newest = set(names) & set(NEWEST)
    if newest and len(newest) < len(NEWEST):
        missing = ", ".join(name for name in NEWEST if name not in newest)
        raise ValueError(f"the suites of TLS 1.3 can only be had together: add {missing}")
    return tuple(_translated(name) for name in names if name not in NEWEST), bool(newest)


def _translated(name: str) -> str:
    match = _STANDARD.fullmatch(name)
    if match is None:
        return name
    exchange, cipher = match.groups()
    cipher = re.sub(r"^AES_(\d+)_", r"AES\1_", cipher)
    cipher = cipher.replace("_CBC_", "_").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    words = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return words.replace("_", "-")
