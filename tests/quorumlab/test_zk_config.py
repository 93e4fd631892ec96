"""A broker of ZooKeeper mode in server.properties: what makes one, and what is refused."""

import pytest

from quorumlab.config import ConfigError, node_config
from quorumlab.security.driver_listeners import driver_listeners
from quorumlab.security.scram_users import ScramUsers
from wire.api_table import ListenerKind
from wire.zk.designs import DESIGNS, ZK_V3, Design, IsrWriter

BROKER = {"broker.id": "7", "zookeeper.connect": "localhost:2181", "listeners": "PLAINTEXT://:0"}


def test_kafkas_own_file_of_zookeeper_mode_is_a_broker_of_it() -> None:
    config = node_config(BROKER)
    assert (config.node_id, config.design, config.is_broker) == (7, ZK_V3, True)
    assert not config.is_controller
    assert config.voters == ()
    assert [
        each.kind for each in driver_listeners(config, ScramUsers(lambda: None, lambda: b""))
    ] == [ListenerKind.ZOOKEEPER]


def test_node_id_counts_before_broker_id() -> None:
    assert node_config(BROKER | {"node.id": "3"}).node_id == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (BROKER | {"process.roles": "broker"}, "leave one of them out"),
        (BROKER | {"quorumlab.design": "zk-v9"}, "must be one of zk-v1"),
        (BROKER | {"inter.broker.protocol.version": "new"}, "must be a version as 2.6"),
        ({"quorumlab.design": "zk-v3", "node.id": "1"}, "needs a ZooKeeper"),
        ({"node.id": "1"}, "or zookeeper.connect for a broker in ZooKeeper mode"),
        ({"quorumlab.zk.without": "guarded-writes", "node.id": "1"}, "the quorum design has no"),
        (BROKER | {"quorumlab.zk.without": "guarded-write"}, "did you mean 'guarded-writes'?"),
        (BROKER | {"quorumlab.zk.without": "generation-check"}, "zk-v3 has no generation-check"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node_config(given)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("version", "writer"),
    [("2.6", IsrWriter.LEADER_NOTIFYING), ("2.7", IsrWriter.CONTROLLER)],
)
def test_inter_broker_protocol_version_gates_alter_isr(version: str, writer: IsrWriter) -> None:
    given = BROKER | {"quorumlab.design": "zk-kip497", "inter.broker.protocol.version": version}
    design = node_config(given).design
    assert design is not None
    assert design.isr_writer is writer


@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda each: each.name)
def test_lag_limits_are_those_of_the_design_unless_the_file_says_otherwise(design: Design) -> None:
    """Seed 004: 10,000 ms and 4000 messages; 30,000 ms came later."""
    given = BROKER | {"quorumlab.design": design.name}
    key = "replica.lag.time.max.ms"
    is_early = design.name in ("zk-v1", "zk-v2", "zk-v3")
    assert node_config(given).number(key) == (10_000 if is_early else 30_000)
    assert node_config(given | {key: "500"}).number(key) == 500
    assert node_config(given).number("replica.lag.max.messages") == 4000
