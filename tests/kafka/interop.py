"""What the tests with a real Apache Kafka have in common: its tools, and its nodes among ours."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.kafka_jars import KafkaNode, format_storage, missing_reason, run_tool
from wire import batch

# By line of jars: the release as which our clusters begin, so that its nodes know the features.
RELEASES = {"4": "4.3", "4.4": "4.4"}
RELEASE = RELEASES["4"]

TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "offsets": "org.apache.kafka.tools.GetOffsetShell",
    "producer": "org.apache.kafka.tools.ConsoleProducer",
    "producer-performance": "org.apache.kafka.tools.ProducerPerformance",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}

needs_kafka = [
    pytest.mark.extra,
    pytest.mark.slow,
    pytest.mark.skipif(missing_reason() is not None, reason=missing_reason() or ""),
]


needs_kafka_4_4 = pytest.mark.skipif(
    missing_reason("4.4") is not None, reason=missing_reason("4.4") or ""
)
LINES = [pytest.param("4", marks=pytest.mark.long), pytest.param("4.4", marks=needs_kafka_4_4)]


def tool(name: str, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
    """What a tool of Kafka's prints; it must succeed."""
    done = run_tool(TOOLS[name], arguments, stdin=stdin, timeout=timeout)
    assert done.returncode == 0, f"{name} {arguments}:\n{done.stdout}{done.stderr}"
    return done.stdout


def tools(*calls: Sequence[str]) -> list[str]:
    """Several tools at once: most of what each does is to start a Java machine."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda call: tool(*call), calls))


def image_in_the_shell(path: Path) -> str:
    """What MetadataShell shows of a log. It may show an image that is not loaded yet, or wait for
    ever (seen once, on a busy machine): ask again."""
    for _ in range(5):
        with suppress(TimeoutExpired):
            tree = tool("metadata-shell", "--snapshot", str(path), "tree", "/image", timeout=30.0)
            if "offset -1, epoch -1" not in tree:
                return tree
    raise AssertionError(f"the shell loads nothing of {path}")


def wait(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)


def create_topic(
    servers: str, name: str, replicas: Sequence[Sequence[int]], *, is_asked_again: bool = False
) -> None:
    """One partition for each list of brokers, the first of which is to lead.

    `is_asked_again`: a broker may ask a second controller when the first has died without an
    answer; then the topic may exist already.
    """
    assignment = [list(brokers) for brokers in replicas]
    new = NewTopic(name, len(assignment), replica_assignment=assignment)
    admin = AdminClient({"bootstrap.servers": servers})  # it must outlive its futures
    try:
        admin.create_topics([new])[name].result(15)
    except KafkaException as error:
        exists = error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        if not (exists and is_asked_again):
            raise


def produce(servers: str, topic: str, values: Sequence[bytes]) -> None:
    """To partition 0 in this order, each in a batch of its own, all acknowledged."""
    errors: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,  # in order, also behind a batch that is tried again
            "batch.num.messages": 1,
        }
    )
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(20) == 0
    assert errors == [None] * len(values)


class KafkaBesideUs:
    """A cluster of ours in which Apache Kafka takes the places of some nodes.

    A Kafka node runs from the very server.properties that ours would have had, in its directory.
    """

    def __init__(self, cluster: LocalCluster, kafka: Sequence[int], *, line: str = "4") -> None:
        if kafka:
            cluster.layout = replace(cluster.layout, release_version=RELEASES[line])
        self.cluster = cluster
        self.line = line
        self.kafka: dict[int, KafkaNode] = {}
        for node_id in kafka:
            node = cluster.layout.node(node_id)
            node.path.mkdir(parents=True, exist_ok=True)
            if not node.config.exists():
                node.config.write_text(cluster.layout.properties(node, cluster.settings))
            self.kafka[node_id] = KafkaNode(node.config, node.path / "kafka.log", line=line)

    @property
    def servers(self) -> str:
        """The addresses of our brokers only: ours are asked, Kafka's follow."""
        ours = (node for node in self.cluster.layout.brokers if node.id not in self.kafka)
        return ",".join(f"{node.host}:{node.port}" for node in ours)

    def format(self, *options: str) -> None:
        """Kafka's directories, by Kafka's tool: with its own defaults, but for what is given."""
        configs = [self.cluster.layout.node(node_id).config for node_id in self.kafka]
        with ThreadPoolExecutor(max_workers=2) as pool:
            cluster_id = self.cluster.layout.cluster_id
            list(
                pool.map(
                    lambda config: format_storage(config, cluster_id, *options, line=self.line),
                    configs,
                )
            )

    def start(self, *node_ids: int) -> None:
        """Start these nodes, whosever they are, and wait until all are ready."""
        ours = tuple(node_id for node_id in node_ids if node_id not in self.kafka)
        for node_id in node_ids:
            if node_id in self.kafka:
                self.kafka[node_id].start()
            else:
                self.cluster.start(node_id)
        for node_id in set(node_ids) - set(ours):
            self.kafka[node_id].wait_ready()
        if ours:
            self.cluster.wait_ready(nodes=ours)

    def page(self, node_id: int, path: str) -> Any:
        """A page of one of our nodes, or None."""
        status, value = self.cluster.ask(self.cluster.layout.node(node_id), path)
        return value if status == 200 else None

    def partitions(self, topic: str) -> list[dict[str, Any]]:
        """As the first of our living brokers has them."""
        for node in self.cluster.layout.brokers:
            if node.id not in self.kafka and self.cluster.process(node) is not None:
                page = self.page(node.id, f"/v1/topics/{topic}")
                if page is not None:
                    return list(page["partitions"])
        return []

    def leaders(self, topic: str) -> list[int]:
        return [row["leader"] for row in self.partitions(topic)]

    def wait_in_sync(self, topic: str) -> None:
        def is_in_sync() -> bool:
            rows = self.partitions(topic)
            return bool(rows) and all(set(row["isr"]) == set(row["replicas"]) for row in rows)

        wait(is_in_sync, f"all replicas of {topic} in sync")

    @contextmanager
    def running(self, *node_ids: int) -> Iterator[None]:
        """With these nodes started; at the end every process is gone, also after a failure."""
        try:
            self.start(*node_ids)
            yield
        finally:
            for kafka in self.kafka.values():
                kafka.kill()
            self.cluster.stop_all()


def log_bytes(directory: Path) -> bytes:
    """The batches of a log's only segment, without the zeros of a preallocated tail."""
    (segment,) = directory.glob("*.log")
    content = segment.read_bytes()
    return content[: sum(header.size_bytes for _, header in batch.headers(content))]
