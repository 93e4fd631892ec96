"""Key stores and trust stores: certificates and a private key, from files or as text.

Decides what they hold and whether it can be used: PEM, or PKCS#12. Every refusal is one sentence
that names the key of server.properties and what to do. Passwords are told to nobody.

Source: KIP-651 (PEM); Kafka's DefaultSslEngineFactory.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12

__all__ = ["Identity", "StoreError", "StoreSettings", "identity_in", "trusted_in"]

_JKS = bytes.fromhex("feedfeed")
_JCEKS = bytes.fromhex("cececece")
_PEM, _PKCS12, _DEFAULT_TYPE = "PEM", "PKCS12", "JKS"
_TYPES = (_PEM, _PKCS12, _DEFAULT_TYPE)
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-:]*)-----END \1-----")
Read = Callable[[str], bytes]


class StoreError(ValueError):
    """A store that cannot be used; the message names the key and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """`name` is ssl.keystore or ssl.truststore. Nothing is secret in what is shown of it."""

    name: str
    type: str = _DEFAULT_TYPE
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)  # as PEM
    key: str | None = field(default=None, repr=False)  # as PEM
    key_password: str | None = field(default=None, repr=False)

    @property
    def is_given(self) -> bool:
        return bool(self.location or self.certificates or self.key)

    @property
    def certificates_key(self) -> str:
        return f"{self.name}.{'certificates' if 'trust' in self.name else 'certificate.chain'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A private key, and the chain of certificates that begins with its own."""

    key: PrivateKeyTypes = field(repr=False)
    chain: tuple[x509.Certificate, ...]


def identity_in(settings: StoreSettings, read: Read, now: datetime) -> Identity:
    """Raises StoreError. `read` gives the content of a file, or an OSError."""
    content = _content(settings, read)
    if content is None:
        if not (settings.certificates and settings.key):
            raise StoreError(
                f"{settings.certificates_key} and {settings.name}.key: a key needs its "
                "certificate and a certificate its key: set both"
            )
        chain = _certificates(_pem(settings.certificates), settings.certificates_key)
        key = _private_key(_pem(settings.key), settings, f"{settings.name}.key")
    elif _is_pkcs12(content):
        key, chain = _from_pkcs12(content, settings)
    else:
        chain = _certificates(content, _place(settings))
        key = _private_key(content, settings, _place(settings))
    if key.public_key() != chain[0].public_key():
        raise StoreError(
            f"{_where(settings)}: the private key does not fit the first certificate, "
            f"{chain[0].subject.rfc4514_string()}: put the certificate of the key first"
        )
    _check_dates(chain[0], settings, now)
    return Identity(key=key, chain=tuple(chain))


def trusted_in(settings: StoreSettings, read: Read) -> tuple[x509.Certificate, ...]:
    """The certificates that are trusted. Raises StoreError."""
    content = _content(settings, read)
    if content is None:
        assert settings.certificates is not None, "nothing is given"
        return _certificates(_pem(settings.certificates), settings.certificates_key)
    if not _is_pkcs12(content):
        return _certificates(content, _place(settings))
    store = _opened(content, settings)
    found = [each.certificate for each in store.additional_certs]
    if store.cert is not None:
        found.append(store.cert.certificate)
    if not found:
        raise StoreError(f"{_place(settings)}: there is no certificate in it")
    return tuple(found)


# --- where it comes from ----------------------------------------------------------------------


def _place(settings: StoreSettings) -> str:
    return f"{settings.name}.location={settings.location}"


def _where(settings: StoreSettings) -> str:
    return _place(settings) if settings.location else settings.certificates_key


def _content(settings: StoreSettings, read: Read) -> bytes | None:
    """What is in the file; None if the settings hold all that there is, as text."""
    if settings.type.upper() not in _TYPES:
        raise StoreError(f"{settings.name}.type={settings.type}: write PEM or PKCS12")
    inline = settings.certificates or settings.key
    if settings.location is None:
        return None
    if inline:
        raise StoreError(
            f"{settings.name}.location and {settings.certificates_key}: leave one of them out"
        )
    try:
        content = read(settings.location)
    except OSError as error:
        raise StoreError(
            f"{_place(settings)}: cannot be read: {error.strerror or error}; name a file that "
            "the node may read"
        ) from error
    if content.startswith((_JKS, _JCEKS)):
        raise StoreError(
            f"{_place(settings)}: Java's JKS is not read here; convert it by keytool "
            f"-importkeystore -srckeystore {settings.location} -destkeystore store.p12 "
            f"-deststoretype PKCS12, and set {settings.name}.type=PKCS12"
        )
    _check_type(content, settings)
    return content


def _pem(text: str) -> bytes:
    r"""Out of server.properties, where it may stand in one line, or with `\n` for a new one."""

    def block(found: re.Match[str]) -> str:
        label, body = found.groups()
        lines = "\n".join(body.split())
        return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"

    return _BLOCK.sub(block, text.replace("\\n", "\n")).encode()


def _check_type(content: bytes, settings: StoreSettings) -> None:
    """JKS is Kafka's default and says nothing: Java reads PKCS#12 under that name, too."""
    found = _PKCS12 if _is_pkcs12(content) else _PEM
    if settings.type.upper() not in (found, _DEFAULT_TYPE):
        raise StoreError(
            f"{settings.name}.type={settings.type}: the file {settings.location} is {found}: "
            f"set {settings.name}.type={found}"
        )


def _is_pkcs12(content: bytes) -> bool:
    return content[:1] == b"\x30"  # a sequence in DER; PEM is text


# --- what is in it ----------------------------------------------------------------------------


def _certificates(content: bytes, where: str) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(content))
    except ValueError as error:
        raise StoreError(
            f"{where}: no certificate can be read there: expected -----BEGIN CERTIFICATE-----"
        ) from error


def _private_key(content: bytes, settings: StoreSettings, where: str) -> PrivateKeyTypes:
    """The first one; what is around it in a file is of no concern."""
    begin = content.find(b"-----BEGIN ")
    while begin >= 0 and b"PRIVATE KEY-----" not in content[begin : content.find(b"\n", begin)]:
        begin = content.find(b"-----BEGIN ", begin + 1)
    if begin < 0:
        raise StoreError(f"{where}: no private key is there: expected -----BEGIN PRIVATE KEY-----")
    end = content.find(b"-----END ", begin)
    end = content.find(b"PRIVATE KEY-----", end) + len(b"PRIVATE KEY-----")
    password = settings.key_password
    try:
        return serialization.load_pem_private_key(
            content[begin:end], None if password is None else password.encode()
        )
    except TypeError as error:
        if password is None:
            raise StoreError(
                f"{where}: the private key is encrypted: set ssl.key.password"
            ) from error
        raise StoreError(
            f"{where}: the private key is not encrypted: leave ssl.key.password out"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        hint = "ssl.key.password is wrong, or it is damaged" if password else "it is damaged"
        raise StoreError(f"{where}: the private key cannot be read: {hint}") from error


def _opened(content: bytes, settings: StoreSettings) -> pkcs12.PKCS12KeyAndCertificates:
    password = settings.password
    try:
        return pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise StoreError(
            f"{_place(settings)}: the store cannot be opened: {settings.name}.password is "
            f"{'missing' if password is None else 'wrong'}, or the file is damaged"
        ) from error


def _from_pkcs12(
    content: bytes, settings: StoreSettings
) -> tuple[PrivateKeyTypes, tuple[x509.Certificate, ...]]:
    store = _opened(content, settings)
    if store.key is None or store.cert is None:
        raise StoreError(
            f"{_place(settings)}: there is no private key with its certificate in it: it looks "
            "like a trust store"
        )
    return store.key, (
        store.cert.certificate,
        *(each.certificate for each in store.additional_certs),
    )


def _check_dates(certificate: x509.Certificate, settings: StoreSettings, now: datetime) -> None:
    subject = certificate.subject.rfc4514_string()
    if certificate.not_valid_after_utc < now:
        raise StoreError(
            f"{_where(settings)}: the certificate of {subject} expired on "
            f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC: have a new one made"
        )
    if certificate.not_valid_before_utc > now:
        raise StoreError(
            f"{_where(settings)}: the certificate of {subject} is not valid before "
            f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC: wait, or set the clock"
        )
