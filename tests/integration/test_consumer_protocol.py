"""Groups in which the coordinator assigns (KIP-848), with confluent-kafka on real processes."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.coordination.coordinators import partition_of
from broker.groups.offsets_topic import OFFSETS_TOPIC
from jepsen_like.real.local_cluster import LocalCluster
from tests.integration.waiting import wait
from tests.started import started

PARTITIONS = 6
SECONDS = 40.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("consumer-protocol") / "cluster"
    settings = {
        "group.consumer.assignment.interval.ms": "0",  # both have read something by then
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.min.heartbeat.interval.ms": "300",
        "group.consumer.session.timeout.ms": "4000",
        "group.consumer.min.session.timeout.ms": "4000",
    }
    made = LocalCluster.create(directory, controllers=1, brokers=3, settings=settings)
    with started(made) as running:
        yield running


@pytest.fixture
def servers(cluster: LocalCluster) -> str:
    return cluster.layout.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = f"t-{secrets.token_hex(4)}"
    create(servers, name)
    return name


@pytest.fixture
def group() -> str:
    return f"g-{secrets.token_hex(4)}"


def create(servers: str, name: str) -> None:
    new = NewTopic(name, PARTITIONS, 3)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([new])[name].result(15)


def produce(servers: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


class Member:
    def __init__(self, servers: str, group: str, wanted: str, **settings: Any) -> None:
        self.values: list[bytes] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
            | {key.replace("_", "."): value for key, value in settings.items()}
        )
        self._consumer.subscribe([wanted])

    @property
    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def read(self) -> None:
        messages = self._consumer.consume(100, 0.1)
        self.values += [each.value() or b"" for each in messages if each.error() is None]

    def reads(self) -> set[str]:
        """Which topics."""
        self.read()
        return {each.topic for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def committed(self, topic: str) -> int:
        places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        found = self._consumer.committed(places, timeout=10)
        return sum(max(each.offset, 0) for each in found)

    def close(self) -> None:
        self._consumer.close()


def share(*members: Member) -> bool:
    """All have read, and each partition has one owner, each member as many as the others."""
    for member in members:
        member.read()
    parts = [member.partitions for member in members]
    is_even = all(len(part) == PARTITIONS // len(members) for part in parts)
    return is_even and set().union(*parts) == set(range(PARTITIONS))


def read(*members: Member) -> int:
    return sum(len(member.values) for member in members)


def test_members_come_and_go_and_offsets_stay(servers: str, topic: str, group: str) -> None:
    produce(servers, topic, 60)
    one = Member(servers, group, topic)
    wait(lambda: share(one) and len(one.values) == 60, "reading", SECONDS)
    one.commit()
    two, three = Member(servers, group, topic), Member(servers, group, topic)
    wait(lambda: share(one, two, three), "sharing", SECONDS)
    admin = AdminClient({"bootstrap.servers": servers})
    described = admin.describe_consumer_groups([group])[group].result(15)
    assert (described.state.name, described.partition_assignor) == ("STABLE", "uniform")
    assert [len(each.assignment.topic_partitions) for each in described.members] == [2, 2, 2]
    asked = [ConsumerGroupTopicPartitions(group)]
    listed = admin.list_consumer_group_offsets(asked)[group].result(15).topic_partitions
    assert {each.offset for each in listed} == {10}
    produce(servers, topic, 30)

    def is_read() -> bool:
        return share(one, two, three) and read(one, two, three) == 90

    wait(is_read, "reading on", SECONDS)
    assert {len(member.values) for member in (two, three)} == {10}  # nothing was read twice
    one.close()
    wait(lambda: share(two, three), "sharing", SECONDS)
    for member in (two, three):
        member.close()


def test_static_member_comes_back_to_what_it_had(servers: str, topic: str, group: str) -> None:
    one = Member(servers, group, topic, group_instance_id="one")
    two = Member(servers, group, topic, group_instance_id="two")
    wait(lambda: share(one, two), "sharing", SECONDS)
    before = one.partitions, two.partitions
    one.close()  # it leaves for a while
    one = Member(servers, group, topic, group_instance_id="one")
    wait(lambda: share(one, two), "sharing", SECONDS)
    assert (one.partitions, two.partitions) == before
    for member in (one, two):
        member.close()


def test_pattern_finds_topics_that_are_created_later(servers: str, group: str) -> None:
    prefix = f"p{secrets.token_hex(4)}"
    create(servers, f"{prefix}-one")
    member = Member(servers, group, f"^{prefix}-.*")
    wait(lambda: member.reads() == {f"{prefix}-one"}, "matching", SECONDS)
    create(servers, f"{prefix}-two")
    wait(
        lambda: member.reads() == {f"{prefix}-one", f"{prefix}-two"},
        "matching",
        SECONDS,
    )
    member.close()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_group_has_members_of_both_protocols(
    servers: str, topic: str, group: str, strategy: str
) -> None:
    def classic() -> Member:
        return Member(
            servers,
            group,
            topic,
            group_protocol="classic",
            partition_assignment_strategy=strategy,
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
        )

    one, two = classic(), classic()
    wait(lambda: share(one, two), "sharing", SECONDS)
    produce(servers, topic, 60)
    wait(lambda: share(one, two) and read(one, two) == 60, "reading", SECONDS)
    one.commit()
    two.commit()
    assert type_of(servers, group) == "CLASSIC"
    three = Member(servers, group, topic)
    wait(lambda: share(one, two, three), "sharing", SECONDS)
    assert type_of(servers, group) == "CONSUMER"
    produce(servers, topic, 60)
    wait(lambda: share(one, two, three) and read(one, two, three) == 120, "reading on", SECONDS)
    for member in (one, two, three):
        member.commit()
    assert one.committed(topic) == three.committed(topic) == 120
    three.close()
    wait(lambda: share(one, two), "sharing again", SECONDS)
    assert type_of(servers, group) == "CLASSIC"
    one.close()
    two.close()


def type_of(servers: str, group: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    listed = admin.list_consumer_groups().result(15).valid
    return str(next(each.type.name for each in listed if each.group_id == group))


def test_offsets_survive_the_coordinator(
    cluster: LocalCluster, servers: str, topic: str, group: str
) -> None:
    produce(servers, topic, 60)
    one, two = Member(servers, group, topic), Member(servers, group, topic)
    wait(lambda: share(one, two) and read(one, two) == 60, "reading", SECONDS)
    one.commit()
    two.commit()
    rows = cluster.page(cluster.layout.brokers[0], f"/v1/topics/{OFFSETS_TOPIC}")["partitions"]
    leader = rows[partition_of(group, len(rows))]["leader"]
    cluster.kill(leader)
    produce(servers, topic, 60)
    wait(lambda: share(one, two) and read(one, two) == 120, "reading on", 2 * SECONDS)
    assert one.committed(topic) == 60
    one.commit()
    two.commit()
    assert one.committed(topic) == 120
    for member in (one, two):
        member.close()
