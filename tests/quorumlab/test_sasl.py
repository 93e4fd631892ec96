"""SASL in server.properties: what is composed of it, and what is refused, with which words."""

import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import METADATA_VERSION
from quorumlab.config import ConfigError, node_config
from quorumlab.security.connection_security import client_security, server_security
from quorumlab.security.scram_users import ScramUsers
from wire.security.exchanges import Identified
from wire.security.oauthbearer import OauthbearerClient
from wire.security.plain import PlainClient
from wire.security.scram import ScramClient

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PLAIN = f'{JAAS} username="node" password="n0de" user_node="n0de";'
SCRAM = PLAIN.replace("plain.Plain", "scram.Scram")
GIVEN = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "OUTSIDE://:9092,INSIDE://:9094,CONTROLLER://:9093",
    "listener.security.protocol.map": (
        "OUTSIDE:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    ),
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.outside.sasl.enabled.mechanisms": "SCRAM-SHA-512, PLAIN",
    "listener.name.outside.plain.sasl.jaas.config": PLAIN,
    "listener.name.inside.plain.sasl.jaas.config": PLAIN,
    "listener.name.controller.plain.sasl.jaas.config": PLAIN,
    "listener.name.controller.scram-sha-256.sasl.jaas.config": SCRAM,
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    "connections.max.reauth.ms": "1000",
    "listener.name.outside.connections.max.reauth.ms": "2000",
    "listener.name.outside.scram-sha-512.connections.max.reauth.ms": "3000",
}


nobody = ScramUsers(lambda: None, lambda: b"")


def sasl_of(listener: str, **changed: str) -> Any:
    return server_security(node_config(GIVEN | changed), listener, nobody).sasl


def test_every_exchange_of_scram_has_a_nonce_of_its_own() -> None:
    """Else a recorded login would be good for ever."""
    image = MetadataImage(features={METADATA_VERSION: 25})
    users = ScramUsers(lambda: image, lambda: b"")
    sasl = server_security(node_config(GIVEN), "OUTSIDE", users).sasl
    assert sasl is not None
    begin: Any = sasl.mechanisms["SCRAM-SHA-512"].begin
    first = b"n,,n=user,r=CLIENT"
    assert len({begin().receive(first, 0).token for _ in range(10)}) == 10


def test_the_nearest_setting_holds() -> None:
    outside, inside = sasl_of("OUTSIDE"), sasl_of("INSIDE")
    assert {name: each.session_ms for name, each in outside.mechanisms.items()} == {
        "SCRAM-SHA-512": 3000,
        "PLAIN": 2000,
    }
    assert {name: each.session_ms for name, each in inside.mechanisms.items()} == {"PLAIN": 1000}
    assert (outside.failure_delay_seconds, outside.received_bytes_max) == (0.1, 512 << 10)
    assert node_config(GIVEN).warnings == ()


def test_a_node_shows_its_peers_what_their_listener_asks() -> None:
    security_of = client_security(node_config(GIVEN))
    to_broker, to_controller = security_of("replica-1").sasl, security_of("raft").sasl
    assert to_broker is not None
    assert to_controller is not None
    assert isinstance(to_broker.begin(), PlainClient)
    assert isinstance(to_controller.begin(), ScramClient)
    own = server_security(node_config(GIVEN), "INSIDE", nobody).sasl
    assert own is not None
    step = own.mechanisms["PLAIN"].begin().receive(to_broker.begin().first(), 0)
    assert step == Identified("node")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not served; choose of PLAIN"),
        ({"sasl.enabled.mechanisms": " "}, "is empty, but listener INSIDE uses SASL"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "jwks.endpoint.url=: OAUTHBEARER needs"),
        ({"listener.name.inside.plain.sasl.jaas.config": SCRAM}, "needs the login module Plain"),
        ({"listener.name.inside.plain.sasl.jaas.config": "x"}, "plain.sasl.jaas.config: expected"),
        ({"listener.name.inside.connections.max.reauth.ms": "1s"}, "expected a whole number"),
    ],
)
def test_what_a_listener_cannot_use_is_refused(changed: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        sasl_of("INSIDE", **changed)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "GSSAPI is not served"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}, "sasl.jaas.config is missing"),
        ({"listener.name.inside.plain.sasl.jaas.config": f"{JAAS};"}, "needs username and passw"),
        ({"controller.quorum.voters": "1@localhost:9093,2@b:1"}, "cannot authenticate to each"),
    ],
)
def test_what_a_node_cannot_show_is_refused(changed: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        client_security(node_config(GIVEN | changed))


def test_no_password_is_in_what_a_configuration_prints() -> None:
    assert "n0de" not in repr(node_config(GIVEN))


def test_keys_of_a_file_are_read_again_when_they_change(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]

    def publish(key: Any) -> None:
        public: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        later = tmp_path / "later.json"
        later.write_text(json.dumps({"keys": [public | {"alg": "ES256"}]}))
        later.replace(path)

    publish(keys[0])
    sasl = sasl_of(
        "INSIDE",
        **{
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
        },
    )

    def gets_in(key: Any) -> bool:
        token = jwt.encode({"sub": "a", "iat": 1, "exp": 10}, key, "ES256")
        step = sasl.mechanisms["OAUTHBEARER"].begin().receive(OauthbearerClient(token).first(), 0)
        return isinstance(step, Identified)

    assert [gets_in(key) for key in keys] == [True, False]
    publish(keys[1])
    assert [gets_in(key) for key in keys] == [False, True]
    path.write_text("{")
    assert [gets_in(key) for key in keys] == [False, True], "a bad file changes nothing"
