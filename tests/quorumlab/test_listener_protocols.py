"""Which listener speaks what: Kafka's map, its defaults, and what is refused."""

import pytest

from quorumlab.config import node_config
from quorumlab.listener_protocols import of_listener, protocols_of
from quorumlab.mode_config import ConfigError
from wire.security.security_protocol import SecurityProtocol

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "INSIDE://:9094,OUTSIDE://:9092,CONTROLLER://:9093",
    "log.dirs": "/data",
}
MAP = "INSIDE:SSL, OUTSIDE:SASL_SSL, CONTROLLER:SSL"


def test_name_is_the_protocol_without_a_map_and_controllers_are_plain() -> None:
    found = protocols_of({}, ["SASL_SSL", "SSL"], ["CONTROLLER"])
    assert found == {
        "SASL_SSL": SecurityProtocol.SASL_SSL,
        "SSL": SecurityProtocol.SSL,
        "CONTROLLER": SecurityProtocol.PLAINTEXT,
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("INSIDE:SSL,CONTROLLER:SSL", "no protocol for listener OUTSIDE"),
        ("INSIDE:TLS", "'INSIDE:TLS' is not NAME:PROTOCOL"),
        ("INSIDE", "'INSIDE' is not NAME:PROTOCOL"),
    ],
)
def test_map_that_leaves_something_open_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        node_config({**NODE, "listener.security.protocol.map": text})


def test_listener_without_a_name_is_refused() -> None:
    """Requests without one come from inside the process, and are asked nothing."""
    with pytest.raises(ConfigError, match="is not NAME://host:port"):
        node_config({**NODE, "listeners": " ://:9092"})


def test_brokers_talk_on_the_listener_that_has_their_protocol() -> None:
    given = {**NODE, "listener.security.protocol.map": MAP}
    assert node_config(given).inter_broker_listener == "INSIDE"  # the first
    given |= {"security.inter.broker.protocol": "SASL_SSL"}
    assert node_config(given).inter_broker_listener == "OUTSIDE"
    with pytest.raises(ConfigError, match="leave one of them out"):
        node_config({**given, "inter.broker.listener.name": "INSIDE"})
    with pytest.raises(ConfigError, match="no listener speaks PLAINTEXT"):
        node_config({**given, "security.inter.broker.protocol": "PLAINTEXT"})


def test_setting_of_one_listener_wins() -> None:
    given = {"ssl.client.auth": "none", "listener.name.inside.ssl.client.auth": "required"}
    assert of_listener(given, "INSIDE", "ssl.client.auth") == "required"
    assert of_listener(given, "OUTSIDE", "ssl.client.auth") == "none"
    assert of_listener(given, "OUTSIDE", "ssl.protocol") is None
