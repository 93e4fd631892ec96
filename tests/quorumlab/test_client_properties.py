"""A client's properties, as Kafka's tools read them: what is taken of them, and what is refused."""

from pathlib import Path

import pytest

from jepsen_like.real.client_settings import PLAIN
from jepsen_like.real.layout import ClusterError
from quorumlab.client_properties import (
    client_settings_of,
    librdkafka_settings,
    load_client_settings,
)
from quorumlab.config import parse_properties
from quorumlab.security.certificates import Authority
from wire.security.security_protocol import SecurityProtocol

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = rf"""security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={SCRAM} required \
    username="alice" password="a \"b\" = c";
ssl.truststore.type=PEM
ssl.truststore.location=%s
client.id=other tools know this
"""


def test_a_user_over_tls_is_translated_for_librdkafka(tmp_path: Path) -> None:
    authority, trusted = Authority.new("test"), tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
    path = tmp_path / "client.properties"
    path.write_text(LOGIN % trusted)
    settings = load_client_settings(path)
    assert settings.protocol is SecurityProtocol.SASL_SSL
    assert (settings.username, settings.password) == ("alice", 'a "b" = c')
    assert "= c" not in repr(settings)
    assert librdkafka_settings(settings) == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.pem": authority.pem.decode(),
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": 'a "b" = c',
    }


def test_a_certificate_of_the_client_is_translated(tmp_path: Path) -> None:
    authority, own = Authority.new("test"), tmp_path / "own.pem"
    own.write_bytes(authority.signed_pem("alice"))
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.pem.decode(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own),
        "ssl.endpoint.identification.algorithm": "",
    }
    told = librdkafka_settings(client_settings_of(given))
    assert told.pop("ssl.key.pem") + told.pop("ssl.certificate.pem") == own.read_text()
    assert told == {
        "security.protocol": "SSL",
        "ssl.ca.pem": authority.pem.decode(),
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_a_plain_cluster_needs_nothing() -> None:
    assert client_settings_of({"bootstrap.servers": "x:1"}) == PLAIN
    assert librdkafka_settings(PLAIN) == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("security.protocol=TLS", "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI: one of PLAIN"),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN",
            "sasl.jaas.config: expected MODULE FLAG OPTIONS",
        ),
        ("security.protocol=SSL\nssl.truststore.location=/etc/passwd", "expected -----BEGIN"),
        (
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/missing",
            "ssl.truststore.location=/missing: ",
        ),
    ],
)
def test_what_we_cannot_follow_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(ClusterError) as raised:
        load_client_settings(path)
    assert str(raised.value).startswith(f"--command-config {path}: ")
    assert told in str(raised.value)
    assert parse_properties(text)
