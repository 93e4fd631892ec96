"""A cluster half of Apache Kafka, whose voters live in the log and whose log is compacted all the
time: who is far behind catches up from the other's snapshot, each leads in turn, and at last they
swap their directories.
"""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from tests.kafka.interop import KafkaBesideUs, create_topic, needs_kafka, produce, tool, wait
from wire import batch

pytestmark = needs_kafka

FIRST, KAFKAS, THIRD = 101, 102, 103  # controllers; brokers 1 and 3 are ours, 2 is Kafka's
SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "5000",
    "metadata.max.retention.bytes": "20000",
    "metadata.log.segment.ms": "1000",  # Kafka refuses small segment sizes
    "broker.session.timeout.ms": "4000",  # two cores may serve three Java machines here
}
VALUES = [b"%d" % number for number in range(100)]
PARTITIONS = 50  # a topic's; about 5 kB of records
TOPIC = "orders"


class Mixed(KafkaBesideUs):
    """Kafka's nodes among ours, with what lies in their metadata directories."""

    def server(self, broker_id: int) -> str:
        node = self.cluster.layout.node(broker_id)
        return f"{node.host}:{node.port}"

    def quorum(self, *arguments: str) -> bool:
        """`quorumlab quorum ...`; did it succeed?"""
        return main(["quorum", *arguments, "--dir", str(self.cluster.layout.directory)]) == 0

    def add_voter(self, node_id: int) -> None:
        config = str(self.cluster.layout.node(node_id).config)
        wait(lambda: self.quorum("add-controller", "--config", config), f"adding {node_id}")

    def remove_voter(self, node_id: int) -> None:
        removal = ("remove-controller", "--controller-id", str(node_id))
        wait(lambda: self.quorum(*removal), f"removing {node_id}")

    def leader(self) -> int:
        """As Kafka's tool describes it, which asks any broker."""
        status = tool(
            "metadata-quorum", "--bootstrap-server", self.server(1), "describe", "--status"
        )
        (line,) = [line for line in status.splitlines() if line.startswith("LeaderId:")]
        return int(line.partition(":")[2])

    def create_many(self, prefix: str, broker_id: int) -> None:
        """Topics on that broker alone, so many that the log is compacted."""
        admin = AdminClient({"bootstrap.servers": self.server(broker_id)})
        for name in topics(prefix):
            new = NewTopic(name, PARTITIONS, replica_assignment=[[broker_id]] * PARTITIONS)
            admin.create_topics([new])[name].result(15)

    def wait_known(self, prefix: str, broker_id: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.server(broker_id)})

        def knows_all() -> bool:
            return set(topics(prefix)) <= set(admin.list_topics(timeout=10).topics)

        wait(knows_all, f"{prefix} on broker {broker_id}")

    def metadata(self, node_id: int) -> Path:
        return self.cluster.layout.node(node_id).data / "__cluster_metadata-0"

    def batches(self, node_id: int) -> dict[int, bytes]:
        """The metadata log as it lies on the disk, by offset."""
        found = {}
        for segment in sorted(self.metadata(node_id).glob("*.log")):
            content = segment.read_bytes()
            for position, header in batch.headers(content):
                found[header.base_offset] = content[position : position + header.size_bytes]
        return found

    def end_offset(self, node_id: int) -> int:
        return max(self.batches(node_id))

    def has_snapshot_after(self, node_id: int, offset: int) -> bool:
        names = self.metadata(node_id).glob("*.checkpoint")
        return any(int(path.name.partition("-")[0]) > offset for path in names)

    def wait_caught_up_by_snapshot(self, node_id: int, was_at: int) -> None:
        """Its log begins after all that it had before."""
        segments = self.metadata(node_id)
        wait(
            lambda: min(int(path.stem) for path in segments.glob("*.log")) > was_at,
            f"a snapshot on node {node_id}, which had {was_at} records",
        )


def topics(prefix: str) -> list[str]:
    return [f"{prefix}-{number}" for number in range(8)]


@pytest.mark.long
def test_each_catches_up_from_the_snapshots_of_the_other(tmp_path: Path) -> None:
    cluster = LocalCluster.create(
        tmp_path / "cluster", controllers=3, brokers=3, first_voters=1, settings=SETTINGS
    )
    mixed = Mixed(cluster, [KAFKAS, 2])
    mixed.format("--no-initial-controllers")
    with mixed.running(FIRST, THIRD, 1, 2, 3):
        create_topic(mixed.servers, TOPIC, [[1, 2]])
        produce(mixed.servers, TOPIC, VALUES)
        mixed.wait_in_sync(TOPIC)
        mixed.kafka[2].stop()
        cluster.stop(3)
        cluster.stop(THIRD)
        was_at = {node_id: mixed.end_offset(node_id) for node_id in (2, 3, THIRD)}
        kafka_catches_up_with_us(mixed, was_at)
        we_catch_up_with_kafka(mixed, was_at)
        mixed.kafka[2].stop()
        cluster.stop(1)
        cluster.stop(3)
        mixed.kafka[KAFKAS].stop()  # from here on there is no majority
        cluster.stop(THIRD)
    assert_one_log(mixed)
    they_swap_their_directories(cluster)


def kafka_catches_up_with_us(mixed: Mixed, was_at: dict[int, int]) -> None:
    """Its broker has a log, its controller nothing at all."""
    mixed.create_many("ours", 1)
    wait(lambda: min(mixed.batches(FIRST)) > was_at[2], "our log trimmed")
    mixed.start(2, KAFKAS)
    for node_id in (2, KAFKAS):
        mixed.wait_caught_up_by_snapshot(node_id, was_at[2])
    mixed.wait_known("ours", 2)
    mixed.wait_in_sync(TOPIC)


def we_catch_up_with_kafka(mixed: Mixed, was_at: dict[int, int]) -> None:
    mixed.add_voter(KAFKAS)
    mixed.remove_voter(FIRST)
    assert mixed.leader() == KAFKAS
    assert not mixed.quorum("remove-controller", "--controller-id", str(KAFKAS)), "the last one"
    mixed.cluster.stop(FIRST)
    before = mixed.end_offset(KAFKAS)
    mixed.create_many("theirs", 2)
    wait(lambda: mixed.has_snapshot_after(KAFKAS, before), "a snapshot that Kafka wrote")
    mixed.start(THIRD, 3)
    for node_id in (THIRD, 3):
        mixed.wait_caught_up_by_snapshot(node_id, was_at[node_id])
    mixed.wait_known("theirs", 3)
    mixed.add_voter(THIRD)
    mixed.remove_voter(KAFKAS)
    assert mixed.leader() == THIRD
    mixed.add_voter(KAFKAS)
    produce(mixed.servers, TOPIC, VALUES)


def assert_one_log(mixed: Mixed) -> None:
    """Whoever wrote a batch and whoever kept it, it is the same everywhere."""
    ours: dict[int, bytes] = {}
    kafkas: dict[int, bytes] = {}
    for node in mixed.cluster.layout.nodes:
        known = kafkas if node.id in mixed.kafka else ours
        for offset, content in mixed.batches(node.id).items():
            assert known.setdefault(offset, content) == content, (node.id, offset)
    shared = ours.keys() & kafkas.keys()
    assert len(shared) > 4  # the rest was cut behind snapshots, here or there
    assert [offset for offset in sorted(shared) if ours[offset] != kafkas[offset]] == []


def they_swap_their_directories(cluster: LocalCluster) -> None:
    """Where Kafka ran, we do, and the other way round; both votes are needed to elect a leader."""
    swapped = Mixed(cluster, [THIRD, 1])
    with swapped.running(KAFKAS, THIRD, 1, 2):
        for broker_id in (1, 2):
            swapped.wait_known("ours", broker_id)
            swapped.wait_known("theirs", broker_id)
        swapped.wait_in_sync(TOPIC)
        create_topic(swapped.servers, "swapped", [[2, 1]])
        produce(swapped.servers, TOPIC, VALUES)
        produce(swapped.servers, "swapped", VALUES)
        swapped.wait_in_sync("swapped")
