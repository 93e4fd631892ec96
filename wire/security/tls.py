"""TLS of listeners and of connections to peers: settings in, contexts of Python's `ssl` out.

`ssl` takes a private key from a file only: it gets one in a directory that nobody else may enter,
encrypted for as long as it lies there, and gone when it is loaded.

Source: Kafka's SslConfigs and DefaultSslEngineFactory.
"""

import os
import secrets
import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from wire.security.cipher_suites import ciphers_of
from wire.security.distinguished_names import distinguished_name
from wire.security.principal_mapping import PrincipalMapping
from wire.security.principals import ANONYMOUS, USER, Principal
from wire.security.stores import Identity, StoreError, StoreSettings, identity_in, trusted_in

__all__ = ["TlsSettings", "client_context", "principal_of", "server_context"]

_VERIFY = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The defaults are Kafka's."""

    key_store: StoreSettings = field(default_factory=lambda: StoreSettings(name="ssl.keystore"))
    trust_store: StoreSettings = field(default_factory=lambda: StoreSettings(name="ssl.truststore"))
    client_auth: str = "none"
    protocol: str = "TLSv1.3"
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    identification: str = "https"  # ssl.endpoint.identification.algorithm


def server_context(settings: TlsSettings, now: datetime) -> ssl.SSLContext:
    """Raises StoreError."""
    if not settings.key_store.is_given:
        raise StoreError(
            "ssl.keystore.location: a listener that speaks TLS needs a certificate: set it, or "
            "ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    if settings.client_auth not in _VERIFY:
        raise StoreError(f"ssl.client.auth={settings.client_auth}: write {', '.join(_VERIFY)}")
    verify = _VERIFY[settings.client_auth]
    if verify is not ssl.CERT_NONE and not settings.trust_store.is_given:
        raise StoreError(
            f"ssl.client.auth={settings.client_auth}: set ssl.truststore.location or "
            "ssl.truststore.certificates, by which certificates of clients are judged"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = verify
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _equip(context, settings, now)
    return context


def client_context(settings: TlsSettings, now: datetime) -> ssl.SSLContext:
    """Without a trust store, those are trusted whom the machine trusts. Raises StoreError."""
    if settings.identification.lower() not in ("https", ""):
        raise StoreError(
            f"ssl.endpoint.identification.algorithm={settings.identification}: write https, or "
            "nothing for no check of host names"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.identification != ""
    _equip(context, settings, now)
    if not settings.trust_store.is_given:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def principal_of(certificate: bytes | None, mapping: PrincipalMapping) -> Principal:
    """Who showed a certificate, which is given in DER. Raises NoMatchingRule."""
    if certificate is None:
        return ANONYMOUS
    subject = x509.load_der_x509_certificate(certificate).subject
    return Principal(USER, mapping.name_of(distinguished_name(subject)))


def _equip(context: ssl.SSLContext, settings: TlsSettings, now: datetime) -> None:
    _set_versions(context, settings)
    if settings.cipher_suites:
        _set_ciphers(context, settings.cipher_suites)
    if settings.key_store.is_given:
        _load_identity(context, identity_in(settings.key_store, _read, now))
    if settings.trust_store.is_given:
        trusted = trusted_in(settings.trust_store, _read)
        encoded = (each.public_bytes(serialization.Encoding.PEM).decode() for each in trusted)
        context.load_verify_locations(cadata="".join(encoded))
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Java: what is there is trusted


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    password = secrets.token_bytes(32).hex().encode()
    content = identity.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    ) + b"".join(each.public_bytes(serialization.Encoding.PEM) for each in identity.chain)
    with tempfile.TemporaryDirectory(prefix="quorumlab-") as directory:  # mode 0700
        path = Path(directory) / "identity.pem"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        try:
            context.load_cert_chain(path, password=password)
        except ssl.SSLError as error:
            raise StoreError(
                f"ssl.keystore: OpenSSL takes neither key nor certificate: {error.reason}"
            ) from error


# --- versions and ciphers ---------------------------------------------------------------------


def _set_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """From the lowest of `ssl.enabled.protocols` to the highest, or to `ssl.protocol`."""
    unknown = [name for name in settings.enabled_protocols if name not in _VERSIONS]
    if unknown or not settings.enabled_protocols:
        raise StoreError(
            f"ssl.enabled.protocols: {', '.join(unknown) or 'none'}: write "
            f"{' or '.join(_VERSIONS)}, or both; what came before is broken (RFC 8996)"
        )
    if settings.protocol not in (*_VERSIONS, "TLS"):
        raise StoreError(f"ssl.protocol={settings.protocol}: write {', '.join(_VERSIONS)} or TLS")
    highest = _VERSIONS.get(settings.protocol, ssl.TLSVersion.TLSv1_3)
    enabled = [_VERSIONS[name] for name in settings.enabled_protocols]
    if min(enabled) > highest:
        raise StoreError(
            f"ssl.protocol={settings.protocol}: it has none of ssl.enabled.protocols, which are "
            f"{', '.join(settings.enabled_protocols)}"
        )
    context.minimum_version = min(enabled)
    context.maximum_version = min(max(enabled), highest)


def _set_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    try:
        older, is_newest = ciphers_of(names)
        if older:
            context.set_ciphers(":".join(older))
            known = {cipher["name"] for cipher in context.get_ciphers()}
            if not known.issuperset(older):
                raise ValueError(f"not known to OpenSSL: {', '.join(sorted({*older} - known))}")
    except (ValueError, ssl.SSLError) as error:
        raise StoreError(f"ssl.cipher.suites={','.join(names)}: {error}") from error
    if not is_newest:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise StoreError(
            f"ssl.cipher.suites={','.join(names)}: none of them is of ssl.enabled.protocols"
        )
