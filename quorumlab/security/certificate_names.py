"""Whose certificate a listener shows, and whether another may take its place while it runs.

Whoever may change a store must not thereby make the node somebody else: the distinguished name
stays, and the new certificate has all the names of the old one, unless `ssl.allow.dn.changes` and
`ssl.allow.san.changes` say that they may change.

Source: KIP-978; Kafka's SslFactory.CertificateEntries.ensureCompatible.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quorumlab.config import NodeConfig
from quorumlab.listener_protocols import of_listener
from quorumlab.mode_config import ConfigError
from quorumlab.security.tls_settings import stores_of

__all__ = ["CertificateNames", "certificate_names", "check_names"]


class CertificateNames(NamedTuple):
    subject: str
    alternatives: frozenset[str]


def certificate_names(config: NodeConfig) -> dict[str, CertificateNames]:
    """By listener that speaks TLS. Raises ConfigError."""
    return {
        listener.name: _shown(config, listener.name)
        for listener in config.listeners
        if config.protocols[listener.name].uses_tls
    }


def _shown(config: NodeConfig, listener: str) -> CertificateNames:
    from cryptography import x509

    from wire.security.stores import identity_in

    store = stores_of(config, listener).key_store
    try:
        certificate = identity_in(
            store, lambda path: Path(path).read_bytes(), datetime.now(UTC)
        ).chain[0]
    except (OSError, ValueError) as error:
        raise ConfigError(f"listener {listener}: {error}") from error
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = frozenset(f"{type(each).__name__}:{each.value}" for each in found.value)
    except x509.ExtensionNotFound:
        names = frozenset()
    return CertificateNames(certificate.subject.rfc4514_string(), names)


def check_names(config: NodeConfig, listener: str, old: CertificateNames) -> CertificateNames:
    """The names of now. Raises ConfigError if they may not follow the `old` ones."""
    new = _shown(config, listener)
    if new.subject != old.subject and not _may(config, listener, "ssl.allow.dn.changes"):
        raise ConfigError(
            f"listener {listener}: Keystore DistinguishedName does not match: "
            f"existing={old.subject}, new={new.subject}; ssl.allow.dn.changes is false"
        )
    gone = old.alternatives - new.alternatives
    if gone and not _may(config, listener, "ssl.allow.san.changes"):
        raise ConfigError(
            f"listener {listener}: Keystore SubjectAltNames do not match: the new certificate "
            f"lacks {', '.join(sorted(gone))}; ssl.allow.san.changes is false"
        )
    return new


def _may(config: NodeConfig, listener: str, key: str) -> bool:
    return (of_listener(config.given, listener, key) or "false").lower() == "true"
