"""Transactions that span Apache Kafka and ours: coordinators, groups and records on both.

A Kafka broker leads some partitions of each topic, and two brokers of ours the others. Either side
is killed and comes back while clients go on.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import KafkaBesideUs, create_topic, log_bytes, needs_kafka, wait

pytestmark = [*needs_kafka, pytest.mark.long]

TOPIC = "orders"
PARTITIONS = 3
COORDINATORS = 4  # partitions of each topic of coordinators
SETTINGS = {
    "broker.session.timeout.ms": "4000",
    "offsets.topic.num.partitions": str(COORDINATORS),
    "transaction.state.log.num.partitions": str(COORDINATORS),
}
COMPACT = {"cleanup.policy": "compact", "min.insync.replicas": "2"}


class Worker:
    """One transaction after the other, each with a record for every partition and an offset.

    The ids of workers 0 to 3 are spread over all coordinators, and so are their groups.
    """

    def __init__(self, servers: str, number: int) -> None:
        self.committed: set[bytes] = set()
        self.unknown: set[bytes] = set()
        self.last = 0  # the offset of the last transaction that is committed
        self.group = f"g{number}"
        self._servers = servers
        self._id = f"t{number}"
        self._count = 0
        self._begin()

    def _begin(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._stopped,), daemon=True)
        self._thread.start()

    def begin_anew(self) -> None:
        """librdkafka may wait for ever for a group's coordinator that the metadata name no more,
        whatever time it was given: its successor fences it."""
        self._stopped.set()
        self._begin()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        """In vain if it hangs."""
        self._thread.join(5)

    def _run(self, stopped: threading.Event) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._servers, "group.id": self.group, "log_level": 2}
        )
        while not stopped.is_set():
            producer = Producer(
                {
                    "bootstrap.servers": self._servers,
                    "transactional.id": self._id,
                    "transaction.timeout.ms": 10_000,
                    "log_level": 2,
                    "error_cb": lambda _: None,
                }
            )
            with suppress(KafkaException):
                producer.init_transactions(10)
                while not stopped.wait(0.05):
                    self._transact(producer, consumer)
        consumer.close()

    def _transact(self, producer: Producer, consumer: Consumer) -> None:
        """Every third is aborted. Raises KafkaException if a new producer has to begin."""
        self._count += 1
        value = f"{self._id}.{self._count}".encode()
        producer.begin_transaction()
        try:
            for partition in range(PARTITIONS):
                producer.produce(TOPIC, value, partition=partition)
            offset = Place(TOPIC, 0, self._count)
            metadata = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction([offset], metadata, 10)
            producer.flush(10)
        except KafkaException:
            producer.abort_transaction(10)
            return
        if self._count % 3 == 0:
            producer.abort_transaction(10)
            return
        self.unknown.add(value)
        self._commit(producer)
        self.unknown.discard(value)
        self.committed.add(value)
        self.last = self._count

    def _commit(self, producer: Producer) -> None:
        while True:
            try:
                return producer.commit_transaction(10)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise


@contextmanager
def working(servers: str) -> Iterator[list[Worker]]:
    workers = [Worker(servers, number) for number in range(COORDINATORS)]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


def wait_for_more(workers: list[Worker], what: str) -> None:
    """All commit what they have begun since. Who hangs is begun anew."""
    wanted = {worker: len(worker.committed) + 3 for worker in workers}

    def waiting() -> list[Worker]:
        return [worker for worker in workers if len(worker.committed) < wanted[worker]]

    with suppress(AssertionError):
        wait(lambda: not waiting(), "progress of all", 6.0)
    for worker in waiting():
        worker.begin_anew()
    wait(lambda: not waiting(), f"transactions {what}")


def read_committed(servers: str) -> list[Counter[bytes]]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([Place(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: list[Counter[bytes]] = [Counter() for _ in range(PARTITIONS)]
    ended: set[int] = set()

    def is_read() -> bool:
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                found[message.partition() or 0][message.value() or b""] += 1
            else:
                ended.add(message.partition() or 0)
        return len(ended) == PARTITIONS

    wait(is_read, "the ends of the partitions")
    consumer.close()
    return found


def committed_offset(admin: AdminClient, group: str) -> int:
    asked = ConsumerGroupTopicPartitions(group, [Place(TOPIC, 0)])
    (told,) = admin.list_consumer_group_offsets([asked])[group].result(10).topic_partitions
    return int(told.offset)


def create_coordinators(servers: str) -> None:
    """Kafka's broker, 3, leads half of the partitions, and one of ours the others."""
    assignment = [[3, 2, 1], [2, 3, 1]] * (COORDINATORS // 2)
    admin = AdminClient({"bootstrap.servers": servers})
    new = [
        NewTopic(name, COORDINATORS, replica_assignment=assignment, config=COMPACT)
        for name in ("__transaction_state", "__consumer_offsets")
    ]
    for future in admin.create_topics(new).values():
        future.result(15)


def test_transactions_span_kafka_and_ours_while_either_dies(tmp_path: Path) -> None:
    cluster = LocalCluster.create(
        tmp_path / "cluster", controllers=1, brokers=3, combined=True, settings=SETTINGS
    )
    mixed = KafkaBesideUs(cluster, [3])
    mixed.format()
    with mixed.running(1, 2, 3):
        servers = mixed.servers
        create_coordinators(servers)
        create_topic(servers, TOPIC, [[3, 2, 1], [2, 3, 1], [1, 3, 2]])
        with working(servers) as workers:
            wait_for_more(workers, "while all are there")
            mixed.kafka[3].kill()
            wait_for_more(workers, "without Kafka's broker")
            mixed.start(3)
            for topic in (TOPIC, "__transaction_state", "__consumer_offsets"):
                mixed.wait_in_sync(topic)
            cluster.kill(2)
            wait(lambda: 3 in mixed.leaders("__transaction_state"), "Kafka's coordinates again")
            wait_for_more(workers, "without one of ours")
            mixed.start(2)
            mixed.wait_in_sync(TOPIC)
            wait_for_more(workers, "when all are back")
        found = read_committed(servers)
        assert found[0] == found[1] == found[2], "all of a transaction, or nothing"
        assert set(found[0].values()) == {1}
        committed = set[bytes]().union(*(worker.committed for worker in workers))
        unknown = set[bytes]().union(*(worker.unknown for worker in workers))
        assert committed <= found[0].keys() <= committed | unknown
        admin = AdminClient({"bootstrap.servers": servers})
        for worker in workers:
            if not worker.unknown:
                assert committed_offset(admin, worker.group) == worker.last
        mixed.wait_in_sync(TOPIC)
        ours, theirs = (cluster.layout.node(node_id).data for node_id in (1, 3))
        logs = [f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
        wait(
            lambda: all(log_bytes(ours / log) == log_bytes(theirs / log) for log in logs),
            "the same bytes on both sides",
        )
