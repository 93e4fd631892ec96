"""One group, whose coordinator is Apache Kafka's broker, then ours, then Kafka's again (KIP-848).

Two members speak the consumer protocol, and one the classic one. Each coordinator loads what the
one before has written: members go on in their epochs, and every committed offset is there.
"""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import KafkaBesideUs, create_topic, needs_kafka, produce, wait

pytestmark = [*needs_kafka, pytest.mark.long]

TOPIC, OFFSETS_TOPIC, GROUP = "orders", "__consumer_offsets", "g"
PARTITIONS = 6
SETTINGS = {
    "broker.session.timeout.ms": "4000",
    "offsets.topic.num.partitions": "1",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.min.session.timeout.ms": "30000",
}


class Member:
    def __init__(self, servers: str, **settings: Any) -> None:
        self.read = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 2,
            }
            | {key.replace("_", "."): value for key, value in settings.items()}
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> set[int]:
        """What it has."""
        messages = self._consumer.consume(100, 0.1)
        self.read += sum(each.error() is None for each in messages)
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> bool:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:  # it has read nothing; or the coordinator is elsewhere
            return bool(error.args[0].code() == KafkaError._NO_OFFSET)
        return True

    def committed(self) -> int:
        places = [Place(TOPIC, index) for index in range(PARTITIONS)]
        return sum(max(each.offset, 0) for each in self._consumer.committed(places, 20))

    def close(self) -> None:
        self._consumer.close()


def test_group_goes_from_kafka_to_ours_and_back(tmp_path: Path) -> None:
    cluster = LocalCluster.create(
        tmp_path / "cluster", controllers=1, brokers=3, combined=True, settings=SETTINGS
    )
    mixed = KafkaBesideUs(cluster, [3])
    mixed.format()
    with mixed.running(1, 2, 3):
        servers = mixed.servers
        admin = AdminClient({"bootstrap.servers": servers})
        settings = {"cleanup.policy": "compact", "min.insync.replicas": "1"}
        new = NewTopic(OFFSETS_TOPIC, 1, replica_assignment=[[3, 2, 1]], config=settings)
        admin.create_topics([new])[OFFSETS_TOPIC].result(15)
        create_topic(servers, TOPIC, [[1, 2]] * PARTITIONS)
        members = [Member(servers), Member(servers)]
        produced = 0

        def go_on(what: str) -> None:
            nonlocal produced
            wait(lambda: is_shared(members), f"sharing {what}", 90.0)
            produce(servers, TOPIC, [b"%d" % number for number in range(60)])
            produced += 60
            wait(lambda: is_shared(members) and read(members) >= produced, f"reading {what}", 90.0)
            wait(lambda: [member.commit() for member in members].count(False) == 0, "commits", 60.0)
            assert members[0].committed() == produced

        go_on("with Kafka's coordinator")
        classic = Member(servers, group_protocol="classic", session_timeout_ms=30_000)
        members.append(classic)
        go_on("with members of both protocols")
        mixed.kafka[3].kill()
        wait(lambda: 3 not in mixed.leaders(OFFSETS_TOPIC), "another coordinator")
        go_on("with our coordinator")
        members.pop().close()
        go_on("without the classic member")
        mixed.start(3)
        mixed.wait_in_sync(OFFSETS_TOPIC)
        cluster.kill(2)
        wait(lambda: 3 in mixed.leaders(OFFSETS_TOPIC), "Kafka's coordinates again")
        go_on("with Kafka's coordinator again")
        for member in members:
            member.close()


def is_shared(members: list[Member]) -> bool:
    parts = [member.poll() for member in members]
    is_all = set[int]().union(*parts) == set(range(PARTITIONS))
    return is_all and sum(map(len, parts)) == PARTITIONS and all(parts)


def read(members: list[Member]) -> int:
    return sum(member.read for member in members)
