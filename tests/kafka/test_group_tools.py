"""Apache Kafka's own consumer and group tools against a running cluster of ours."""

import re
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from broker.coordination.coordinators import partition_of
from broker.groups.offsets_topic import OFFSETS_TOPIC
from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import create_topic, needs_kafka, produce, tool, tools, wait
from tests.started import started

pytestmark = needs_kafka

COUNT = 40


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("groups") / "cluster"
    with started(
        LocalCluster.create(directory, controllers=1, brokers=3, combined=True)
    ) as running:
        yield running


@pytest.fixture
def broker(cluster: LocalCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.layout.bootstrap_servers.split(",")[0]


def described(text: str) -> list[dict[str, str]]:
    """The rows of `--describe`, by Kafka's column names."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    header = next(index for index, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[header], line, strict=False)) for line in lines[header + 1 :]]


def test_a_java_consumer_goes_on_where_its_group_stopped(
    cluster: LocalCluster, broker: tuple[str, str]
) -> None:
    servers = cluster.layout.bootstrap_servers
    create_topic(servers, "java", [[1, 2, 3]])
    lines = [b"line %d" % number for number in range(COUNT)]
    produce(servers, "java", lines)
    ask = ("consumer", *broker, "--topic", "java", "--group", "readers", "--from-beginning")
    half = tool(*ask, "--max-messages", str(COUNT // 2))
    rest = tool(*ask, "--max-messages", str(COUNT // 2))
    assert (half + rest).encode().splitlines() == lines


def test_consumer_groups_lists_describes_resets_and_deletes(
    cluster: LocalCluster, broker: tuple[str, str]
) -> None:
    servers = cluster.layout.bootstrap_servers
    create_topic(servers, "reset", [[1, 2, 3], [2, 3, 1]])
    produce(servers, "reset", [b"%d" % number for number in range(COUNT)])
    tool(
        "consumer", *broker, "--topic", "reset", "--group", "movers", "--from-beginning",
        "--max-messages", str(COUNT),
    )  # fmt: skip
    groups = ("consumer-groups", *broker)
    listed, states, offsets, members = tools(
        (*groups, "--list"),
        (*groups, "--list", "--state"),
        (*groups, "--describe", "--group", "movers"),
        (*groups, "--describe", "--group", "movers", "--members"),
    )
    assert "movers" in listed.split()
    assert re.search(r"movers\s+(Consumer\s+)?Empty", states)
    (moved,) = [row for row in described(offsets) if row["PARTITION"] == "0"]
    assert (moved["TOPIC"], moved["CURRENT-OFFSET"], moved["LAG"]) == ("reset", str(COUNT), "0")
    assert "movers" not in members or "has no active members" in members

    reset = ("--reset-offsets", "--group", "movers", "--topic", "reset")
    planned = tool(*groups, *reset, "--to-offset", "7", "--dry-run")
    assert "7" in described(planned)[0]["NEW-OFFSET"]
    tool(*groups, *reset, "--to-offset", "7", "--execute")
    again = tool(
        "consumer", *broker, "--topic", "reset", "--group", "movers",
        "--max-messages", str(COUNT - 7),
    )  # fmt: skip
    assert again.split() == [str(number) for number in range(7, COUNT)]

    tool(*groups, "--delete-offsets", "--group", "movers", "--topic", "reset")
    deleted = tool(*groups, "--delete", "--group", "movers")
    assert "was successful" in deleted
    assert "movers" not in tool(*groups, "--list").split()


def test_consumer_groups_shows_static_members(
    cluster: LocalCluster, broker: tuple[str, str]
) -> None:
    servers = cluster.layout.bootstrap_servers
    create_topic(servers, "static", [[1, 2, 3]])
    settings = {"bootstrap.servers": servers, "group.id": "statics", "group.instance.id": "one"}

    def member_row() -> dict[str, str]:
        consumer = Consumer(settings)
        consumer.subscribe(["static"])
        wait(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
        show = ("--describe", "--group", "statics", "--members", "--verbose")
        (row,) = described(tool("consumer-groups", *broker, *show))
        consumer.close()
        return row

    rows = [member_row(), member_row()]
    assert [row["GROUP-INSTANCE-ID"] for row in rows] == ["one", "one"]
    assert rows[0]["CONSUMER-ID"] != rows[1]["CONSUMER-ID"]
    assert [row["CURRENT-ASSIGNMENT"] for row in rows] == ["static:0", "static:0"]


def test_kafka_reads_the_records_that_coordinators_write(
    cluster: LocalCluster, broker: tuple[str, str]
) -> None:
    servers = cluster.layout.bootstrap_servers
    create_topic(servers, "dumped", [[1, 2, 3]])
    produce(servers, "dumped", [b"x"])
    tool(
        "consumer", *broker, "--topic", "dumped", "--group", "traces", "--from-beginning",
        "--max-messages", "1",
    )  # fmt: skip
    place = f"{OFFSETS_TOPIC}-{partition_of('traces', 50)}"
    segment = cluster.layout.brokers[0].data / place / "00000000000000000000.log"
    text = tool("dump-log", "--offsets-decoder", "--files", str(segment))
    assert '"data":{"group":"traces"}' in text
    assert '"data":{"group":"traces","topic":"dumped","partition":0}' in text
    assert re.search(r'"version":"4","data":{"offset":1,"leaderEpoch":0', text)
    assert '"subscription":{"topics":["dumped"]' in text
    assert '"assignedPartitions":[{"topic":"dumped","partitions":[0]}]' in text


def test_java_consumer_of_the_consumer_protocol_is_seen_by_kafkas_tools(
    cluster: LocalCluster, broker: tuple[str, str]
) -> None:
    """KIP-848. Its group has been left by then; its offsets and its records are there."""
    servers = cluster.layout.bootstrap_servers
    create_topic(servers, "newer", [[1, 2, 3], [2, 3, 1]])
    lines = [b"line %d" % number for number in range(COUNT)]
    produce(servers, "newer", lines)
    read = tool(
        "consumer", *broker, "--topic", "newer", "--group", "moderns", "--from-beginning",
        "--command-property", "group.protocol=consumer", "--max-messages", str(COUNT),
    )  # fmt: skip
    assert sorted(read.encode().splitlines()) == sorted(lines)
    member = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "moderns",
            "group.protocol": "consumer",
            "log_level": 0,
        }
    )
    member.subscribe(["newer"])
    wait(lambda: member.poll(0.2) is None and len(member.assignment()) == 2, "assigning")
    groups = ("consumer-groups", *broker, "--describe", "--group", "moderns")
    listed, offsets, members, state = tools(
        ("consumer-groups", *broker, "--list", "--type", "consumer"),
        groups,
        (*groups, "--members", "--verbose"),
        (*groups, "--state", "--verbose"),
    )
    member.close()
    assert "moderns" in listed.split()
    assert {row["LAG"] for row in described(offsets)} == {"0"}
    (only,) = described(members)
    assert (only["#PARTITIONS"], only["CURRENT-EPOCH"]) == ("2", only["TARGET-EPOCH"])
    (shown,) = described(state)
    assert (shown["STATE"], shown["ASSIGNMENT-STRATEGY"]) == ("Stable", "uniform")
    rows = cluster.page(cluster.layout.brokers[0], f"/v1/topics/{OFFSETS_TOPIC}")["partitions"]
    directory = f"{OFFSETS_TOPIC}-{partition_of('moderns', len(rows))}"
    (log, *_) = sorted(cluster.layout.directory.rglob(f"{directory}/*.log"))
    dumped = tool("dump-log", "--offsets-decoder", "--files", str(log))
    kinds = set(re.findall(r'key: \{"type":"(\d+)"', dumped))
    assert kinds >= {"1", "3", "5", "6", "7", "8"}, dumped
