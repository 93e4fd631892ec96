"""A client's properties file, as Kafka's own tools take it by `--command-config`.

Decides which of its keys we obey, and what librdkafka calls them. A key that is not here belongs to
Java, or tunes a client.

Source: Kafka's security configuration, KIP-651 (PEM); librdkafka's CONFIGURATION.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jepsen_like.real.client_handshakes import tls_context
from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.layout import ClusterError, ClusterLayout
from quorumlab.config import parse_properties
from quorumlab.security.jaas import parse_jaas
from wire.security.security_protocol import SecurityProtocol

if TYPE_CHECKING:
    from wire.security.tls import TlsSettings

__all__ = [
    "MECHANISMS",
    "broker_settings",
    "client_settings_of",
    "controller_settings",
    "given_settings",
    "librdkafka_of",
    "librdkafka_settings",
    "load_client_settings",
    "node_settings",
]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"


def given_settings(path: Path | None) -> ClientSettings:
    """Those of --command-config, if it is given."""
    return PLAIN if path is None else load_client_settings(path)


def broker_settings(layout: ClusterLayout) -> ClientSettings:
    """How clients speak to the brokers of a local cluster."""
    return load_client_settings(layout.security_files.client) if layout.security else PLAIN


def controller_settings(layout: ClusterLayout) -> ClientSettings:
    if not layout.security:
        return PLAIN
    return load_client_settings(layout.security_files.controller_client)


def node_settings(layout: ClusterLayout, node_id: int) -> ClientSettings:
    """How a node itself asks controllers: with its own certificate."""
    if not layout.security:
        return PLAIN
    files = layout.security_files
    given = parse_properties(files.controller_client.read_text())
    return client_settings_of({**given, "ssl.keystore.location": str(files.node(node_id))})


def load_client_settings(path: Path) -> ClientSettings:
    """Raises ClusterError with a sentence for people."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ClusterError(f"--command-config {path}: {reason}") from error
    try:
        return client_settings_of(parse_properties(text))
    except ValueError as error:
        raise ClusterError(f"--command-config {path}: {error}") from error


def client_settings_of(given: Mapping[str, str]) -> ClientSettings:
    """Raises ValueError with what is wrong."""
    name = given.get("security.protocol", "PLAINTEXT")
    if name not in SecurityProtocol.__members__:
        known = ", ".join(SecurityProtocol.__members__)
        raise ValueError(f"security.protocol={name}: one of {known}")
    protocol = SecurityProtocol[name]
    tls = _tls(given) if protocol.uses_tls else None
    if not protocol.uses_sasl:
        return ClientSettings(protocol=protocol, tls=tls)
    mechanism = given.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        raise ValueError(f"sasl.mechanism={mechanism}: one of {', '.join(MECHANISMS)}")
    try:
        options = parse_jaas(given.get("sasl.jaas.config", "")).options
    except ValueError as error:
        raise ValueError(f"sasl.jaas.config: {error}") from error
    if not ("username" in options and "password" in options):
        raise ValueError("sasl.jaas.config: it has no username, or no password")
    return ClientSettings(
        protocol=protocol,
        tls=tls,
        mechanism=mechanism,
        username=options["username"],
        password=options["password"],
    )


def librdkafka_settings(settings: ClientSettings) -> dict[str, str]:
    """The same, as clients of librdkafka are told it; nothing for a plain cluster."""
    told: dict[str, str] = {}
    if settings.protocol is not SecurityProtocol.PLAINTEXT:
        told["security.protocol"] = settings.protocol.name
    if settings.tls is not None:
        told |= _tls_for_librdkafka(settings.tls)
    if settings.protocol.uses_sasl:
        told["sasl.mechanism"] = settings.mechanism
        told["sasl.username"] = settings.username
        told["sasl.password"] = settings.password
    return told


def librdkafka_of(layout: ClusterLayout) -> dict[str, str]:
    """Those of a local cluster."""
    return librdkafka_settings(broker_settings(layout))


def _tls(given: Mapping[str, str]) -> "TlsSettings":
    """Stores that can be opened. Raises ValueError."""
    from wire.security.stores import StoreSettings
    from wire.security.tls import TlsSettings

    def store(name: str, certificates: str, *, of_key: bool) -> StoreSettings:
        return StoreSettings(
            name=name,
            type=given.get(f"{name}.type", "JKS"),
            location=given.get(f"{name}.location"),
            password=given.get(f"{name}.password"),
            certificates=given.get(f"{name}.{certificates}"),
            key=given.get(f"{name}.key") if of_key else None,
            key_password=given.get("ssl.key.password") if of_key else None,
        )

    settings = TlsSettings(
        key_store=store("ssl.keystore", "certificate.chain", of_key=True),
        trust_store=store("ssl.truststore", "certificates", of_key=False),
        identification=given.get(_IDENTIFICATION, "https"),
    )
    tls_context(settings)
    return settings


def _tls_for_librdkafka(tls: "TlsSettings") -> dict[str, str]:
    """It takes the text of what is in the stores, of whatever kind they are."""
    from quorumlab.security.store_texts import identity_pem, trusted_pem

    told = {"ssl.endpoint.identification.algorithm": tls.identification or "none"}
    if tls.trust_store.is_given:
        told["ssl.ca.pem"] = trusted_pem(tls.trust_store)
    if tls.key_store.is_given:
        told["ssl.key.pem"], told["ssl.certificate.pem"] = identity_pem(tls.key_store)
    return told
