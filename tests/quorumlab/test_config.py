"""server.properties: what is understood, what is refused, and with which words."""

import json
from pathlib import Path
from random import Random

import pytest

from controller.metadata.config_keys import BROKER_KEYS
from jepsen_like.real.layout import CONTROLLED_SHUTDOWN_DEFAULT_MS, CONTROLLED_SHUTDOWN_SETTING
from quorum.core.types import Endpoint
from quorumlab.config import (
    PROPERTIES,
    ConfigError,
    Listener,
    from_environment,
    node_config,
    parse_properties,
)
from quorumlab.settings import controller_config, group_config, storage_settings

CONTROLLER = {
    "process.roles": "controller",
    "node.id": "101",
    "controller.quorum.voters": "101@localhost:9093,102@other:9094",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9093",
    "log.dirs": "/data/a,/data/b",
}
BROKER = CONTROLLER | {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,INTERNAL://host:9099",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
}

# Kafka's config/server.properties of 4.x, without its comments.
STOCK = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_a_stock_file_works_and_names_what_it_ignores_once() -> None:
    config = node_config(parse_properties(STOCK))
    assert config.roles == {"broker", "controller"}
    assert config.bootstrap_servers == (Endpoint(-2, "localhost", 9093),)
    assert config.advertised[0] == Listener("PLAINTEXT", "localhost", 9092)
    (warning,) = config.warnings
    assert "share.coordinator.state.topic.replication.factor" in warning
    assert "transaction.state.log" not in warning
    assert "num.io.threads" not in warning


def test_defaults_of_topics_are_obeyed_or_named_as_ignored() -> None:
    obeyed = {"log.message.timestamp.type": "LogAppendTime", "compression.type": "zstd"}
    assert node_config(CONTROLLER | obeyed).warnings == ()
    ignored = {"log.flush.interval.messages": "1", "log.preallocate": "true"}
    (warning,) = node_config(CONTROLLER | obeyed | ignored).warnings
    assert warning.endswith(": log.flush.interval.messages, log.preallocate")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compression.type", "rar"),
        ("compression.gzip.level", "42"),
        ("log.cleanup.policy", "burn"),
        ("log.message.timestamp.after.max.ms", "soon"),
    ],
)
def test_defaults_that_no_topic_could_have_are_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {value} for configuration {key}"):
        node_config(CONTROLLER | {key: value})


def test_voters_have_ids_and_addresses() -> None:
    config = node_config(CONTROLLER)
    assert config.voters == (Endpoint(101, "localhost", 9093), Endpoint(102, "other", 9094))
    assert [str(path) for path in config.log_dirs] == ["/data/a", "/data/b"]
    assert config.metadata_dir == config.log_dirs[0]


def test_a_broker_prefers_plaintext_between_brokers() -> None:
    config = node_config(BROKER)
    assert config.inter_broker_listener == "PLAINTEXT"
    assert config.advertised == (
        Listener("PLAINTEXT", "localhost", 9092),
        Listener("INTERNAL", "host", 9099),
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (CONTROLLER | {"process.roles": ""}, "ZooKeeper mode"),
        (CONTROLLER | {"process.roles": "leader"}, "'leader' is neither"),
        (CONTROLLER | {"node.id": "x"}, "node.id=x: expected a whole number"),
        (CONTROLLER | {"node.id": "-1"}, "node.id=-1: must be at least 0"),
        (CONTROLLER | {"controller.listener.names": ""}, "controller.listener.names is missing"),
        (CONTROLLER | {"listeners": "PLAINTEXT://:1"}, "a controller needs a listener CONTROLLER"),
        (CONTROLLER | {"listeners": "CONTROLLER://nowhere"}, "is not host:port"),
        (CONTROLLER | {"listeners": "9093"}, "is not NAME://host:port"),
        (CONTROLLER | {"controller.quorum.voters": "localhost:9093"}, "is not id@host:port"),
        (CONTROLLER | {"controller.quorum.voters": "1@a:1,1@b:2"}, "stands there twice"),
        (CONTROLLER | {"controller.quorum.voters": ""}, "controller.quorum.voters is missing"),
        (CONTROLLER | {"node.id": "7"}, "node.id=7 is a controller but not one of"),
        (BROKER | {"node.id": "101"}, "is one of controller.quorum.voters but no controller"),
        (BROKER | {"listeners": "CONTROLLER://:1"}, "a broker needs a listener of its own"),
        (BROKER | {"advertised.listeners": "SSL://a:1"}, "SSL is not one of listeners"),
        (BROKER | {"inter.broker.listener.name": "SSL"}, "SSL is not one of listeners"),
        (BROKER | {"auto.create.topics.enable": "yes"}, "expected true or false"),
        (BROKER | {"quorumlab.http.nodes": "a:1"}, "quorumlab.http.nodes: 'a:1' is not id@host"),
        (BROKER | {"quorumlab.http.nodes": "²@a:1"}, "quorumlab.http.nodes: '²@a:1' is not id@"),
        (BROKER | {"quorumlab.http.nodes": "1@a"}, "quorumlab.http.nodes: 'a' is not host:port"),
        (BROKER | {"quorumlab.http.nodes": "1@a:1, 1@b:2"}, "quorumlab.http.nodes: a node id"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node_config(given)
    assert words in str(caught.value)


def test_properties_know_comments_joined_lines_and_both_separators() -> None:
    text = "# no\n! no\n a = 1 \nb:2\nc=x\\\n   y\nd=e=f\n"
    assert parse_properties(text) == {"a": "1", "b": "2", "c": "xy", "d": "e=f"}


def test_the_environment_names_keys_as_kafkas_images_do() -> None:
    environment = {"KAFKA_NODE_ID": "7", "KAFKA_HEAP_OPTS": "-Xmx1G", "HOME": "/"}
    assert from_environment(environment) == {"node.id": "7"}


def test_every_key_of_kafkas_that_a_node_reads_is_described() -> None:
    golden = Path(__file__).parent.parent / "golden" / "configs.json"
    described = json.loads(golden.read_text())["resources"]["broker"]
    kafkas = {item["name"] for item in described if item["type"]}  # 0: Kafka does not know it
    assert (PROPERTIES.keys() & kafkas) - BROKER_KEYS.keys() == set()


def test_balancing_keys_reach_the_controller() -> None:
    given = {
        "auto.leader.rebalance.enable": "false",
        "leader.imbalance.check.interval.seconds": "20",
        "leader.imbalance.per.broker.percentage": "5",
    }
    config = node_config(CONTROLLER | given)
    assert config.warnings == ()
    told = controller_config(config, cluster_id="c", random=Random(1))
    assert told.auto_leader_rebalance_enable is False
    assert told.leader_imbalance_check_interval_ms == 20_000


def test_how_long_a_broker_waits_to_be_let_go_is_what_who_stops_it_expects() -> None:
    told_ms = node_config(CONTROLLER).number(CONTROLLED_SHUTDOWN_SETTING)
    assert told_ms == CONTROLLED_SHUTDOWN_DEFAULT_MS


def test_addresses_to_dial_instead_are_read() -> None:
    given = BROKER | {"quorumlab.dial.overrides": "localhost:9093=127.0.0.1:7001,other:1=[::1]:2"}
    assert node_config(given).dial_overrides == {
        ("localhost", 9093): ("127.0.0.1", 7001),
        ("other", 1): ("::1", 2),
    }
    assert node_config(BROKER).dial_overrides == {}


@pytest.mark.parametrize("text", ["localhost:9093", "localhost=127.0.0.1:1", "a:1=b"])
def test_addresses_to_dial_instead_must_come_in_pairs(text: str) -> None:
    with pytest.raises(ConfigError, match=r"quorumlab\.dial\.overrides"):
        node_config(BROKER | {"quorumlab.dial.overrides": text})


def test_where_all_nodes_serve_http_is_read() -> None:
    given = BROKER | {"quorumlab.http.nodes": "2@127.0.0.1:8002, 101@[::1]:8001"}
    config = node_config(given)
    assert config.http_nodes == {2: ("127.0.0.1", 8002), 101: ("::1", 8001)}
    assert config.warnings == ()
    assert node_config(BROKER).http_nodes == {}


@pytest.mark.parametrize("roles", ["controller", "broker", "broker,controller"])
def test_no_sync_is_inline_on_a_node_with_partitions(roles: str) -> None:
    """Clients are served by the thread that would wait for the disk."""
    given = {"controller": CONTROLLER, "broker": BROKER}.get(roles) or parse_properties(STOCK)
    config = node_config(given)
    assert config.is_broker == ("broker" in roles)
    seconds = storage_settings(config).inline_sync_seconds
    assert seconds == (0.002 if roles == "controller" else 0)


def test_how_long_a_sync_may_stop_a_controller_can_be_said() -> None:
    config = node_config(CONTROLLER | {"quorumlab.inline.sync.max.ms": "50"})
    assert storage_settings(config).inline_sync_seconds == 0.05


def test_groups_of_the_consumer_protocol_have_settings_of_their_own() -> None:
    prefix = "group.consumer"
    given = {f"{prefix}.assignors": "range, uniform", f"{prefix}.migration.policy": "UPGRADE"}
    told = group_config(node_config(BROKER | given | {f"{prefix}.session.timeout.ms": "50000"}))
    assert told.consumer_assignors == ("range", "uniform")
    assert told.consumer_migration_policy == "upgrade"
    assert told.consumer_session_timeout_ms == 50_000
    assert told.consumer_session_timeout_range_ms == (45_000, 60_000)
    for key, value in (("session.timeout.ms", "44999"), ("heartbeat.interval.ms", "15001")):
        with pytest.raises(ConfigError, match=rf"{key} must be (greater|less) than or equal"):
            group_config(node_config(BROKER | {f"{prefix}.{key}": value}))
    at_once = {f"{prefix}.min.session.timeout.ms": "5000", f"{prefix}.session.timeout.ms": "5000"}
    with pytest.raises(ConfigError, match=r"heartbeat\.interval\.ms must be less than"):
        group_config(node_config(BROKER | at_once))
    for key, value in (("assignors", "of.mine"), ("assignors", ","), ("migration.policy", "no")):
        with pytest.raises(ConfigError, match=rf"group\.consumer\.{key}"):
            group_config(node_config(BROKER | {f"{prefix}.{key}": value}))
