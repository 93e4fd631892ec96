"""Where raftos' datagrams go, and which quorums it cannot count."""

import pytest

from quorumlab.config import ConfigError, node_config

VOTERS = "101@127.0.0.1:9101,102@127.0.0.1:9102,103@10.0.0.3:9103"
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "101",
    "controller.quorum.voters": VOTERS,
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9101",
    "log.dirs": "/data",
    "quorumlab.engine": "raftos",
}
ADDRESSES = {101: ("127.0.0.1", 9101), 102: ("127.0.0.1", 9102), 103: ("10.0.0.3", 9103)}
BROKER = CONTROLLER | {"process.roles": "broker", "node.id": "1", "listeners": "PLAINTEXT://:9092"}


def test_datagrams_go_where_the_voters_are() -> None:
    assert node_config(CONTROLLER).raftos_addresses == ADDRESSES


def test_datagrams_go_elsewhere_if_that_is_said() -> None:
    elsewhere = "101@10.1.0.1:1,102@10.1.0.2:1,103@10.1.0.3:1"
    config = node_config(CONTROLLER | {"quorumlab.raftos.voters": elsewhere})
    assert config.raftos_addresses[103] == ("10.1.0.3", 1)


def test_own_engine_and_brokers_have_no_raftos() -> None:
    native = {key: value for key, value in CONTROLLER.items() if key != "quorumlab.engine"}
    assert node_config(native).raftos_addresses == {}
    assert node_config(BROKER).raftos_addresses == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quorumlab.engine": "paxos"}, "must be one of native, raftos"),
        ({"controller.quorum.voters": "101@127.0.0.1:1,102@127.0.0.1:2"}, "for 3, 5, ..."),
        ({"controller.quorum.voters": VOTERS.replace("127.0.0.1", "localhost")}, "IPv4 address"),
        ({"quorumlab.raftos.voters": "101@127.0.0.1:1"}, r"names nodes \[101\], but"),
        ({"quorumlab.raftos.voters": VOTERS.replace("9102", "9101")}, "an address of its own"),
        ({"quorumlab.raftos.voters": VOTERS.replace("9102", "99999")}, "is not id@address:port"),
    ],
)
def test_what_raftos_cannot_do_is_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        node_config(CONTROLLER | changes)


def test_voters_in_the_log_are_refused() -> None:
    dynamic = {key: value for key, value in CONTROLLER.items() if key != "controller.quorum.voters"}
    dynamic["controller.quorum.bootstrap.servers"] = "127.0.0.1:9101"
    with pytest.raises(ConfigError, match=r"name the controllers in controller\.quorum\.voters"):
        node_config(dynamic)
