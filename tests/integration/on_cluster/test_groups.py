"""Consumer groups of ordinary clients on real processes: subscribe, share, take over, survive."""

import asyncio
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from broker.coordination.coordinators import partition_of
from broker.groups.offsets_topic import OFFSETS_TOPIC
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.workload import SteadyProducer
from tests.integration.waiting import wait
from tests.started import started

PARTITIONS = 3
COUNT = 100
Read = Callable[[str, str, str, int], list[bytes]]  # (servers, topic, group, count)


@pytest.fixture
def group() -> str:
    return f"group-{secrets.token_hex(4)}"


def produce(servers: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def subscriber(servers: str, topic: str, group: str, **settings: Any) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "log_level": 2,
        }
        | {key.replace("_", "."): value for key, value in settings.items()}
    )
    consumer.subscribe([topic])
    return consumer


# --- each client: read as a member, commit, and go on where it stopped


def read_with_confluent_kafka(servers: str, topic: str, group: str, count: int) -> list[bytes]:
    consumer = subscriber(servers, topic, group)
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    try:
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(count, 0.2):
                assert message.error() is None, message.error()
                found.append(message.value() or b"")
        consumer.commit(asynchronous=False)
        return found
    finally:
        consumer.close()


def read_with_aiokafka(servers: str, topic: str, group: str, count: int) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer

    async def read() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            found: list[bytes] = []
            while len(found) < count:
                batches = await consumer.getmany(timeout_ms=500)
                found += [record.value for records in batches.values() for record in records]
            await consumer.commit()
            return found
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(read(), 30))


def read_with_kafka_python(servers: str, topic: str, group: str, count: int) -> list[bytes]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    try:
        found: list[bytes] = []
        for record in consumer:
            found.append(record.value)
            if len(found) == count:
                break
        consumer.commit()
        return found
    finally:
        consumer.close()


def read_with_kcat(servers: str, topic: str, group: str, count: int) -> list[bytes]:
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed (Debian: apt-get install kcat)")
    member = ["-G", group, "-X", "auto.offset.reset=earliest", topic]
    read = subprocess.run(
        [kcat, "-b", servers, "-q", "-c", str(count), *member],
        capture_output=True,
        check=True,
        timeout=30,
    )
    return read.stdout.split()


@pytest.mark.parametrize(
    "read",
    [
        read_with_confluent_kafka,
        read_with_aiokafka,
        read_with_kafka_python,
        pytest.param(read_with_kcat, marks=pytest.mark.extra),
    ],
)
def test_a_subscriber_goes_on_where_its_group_stopped(
    servers: str, topic: str, group: str, read: Read
) -> None:
    first = [b"first-%d" % number for number in range(COUNT)]
    second = [b"second-%d" % number for number in range(COUNT)]
    produce(servers, topic, *first)
    assert sorted(read(servers, topic, group, COUNT)) == sorted(first)
    produce(servers, topic, *second)
    assert sorted(read(servers, topic, group, COUNT)) == sorted(second)


# --- several members


def owned(consumer: Consumer) -> list[int]:
    consumer.poll(0.05)
    return sorted(place.partition for place in consumer.assignment())


def test_members_share_the_partitions_and_take_over_from_each_other(
    servers: str, topic: str, group: str
) -> None:
    first = subscriber(servers, topic, group)
    second = subscriber(servers, topic, group)
    try:

        def are_shared() -> bool:
            parts = (owned(first), owned(second))
            return all(parts) and sorted(parts[0] + parts[1]) == [0, 1, 2]

        wait(are_shared, "both have a share")
        second.close()
        wait(lambda: owned(first) == [0, 1, 2], "the one that is left has all")
    finally:
        first.close()


def test_clients_of_different_kinds_share_a_group(servers: str, topic: str, group: str) -> None:
    """They agree on a protocol that both know, and read what the other's leader assigns."""
    from aiokafka import AIOKafkaConsumer

    async def share() -> None:
        theirs = AIOKafkaConsumer(topic, bootstrap_servers=servers, group_id=group)
        await theirs.start()
        ours = subscriber(servers, topic, group)
        try:
            while True:
                await theirs.getmany(timeout_ms=50)
                parts = owned(ours), sorted(place.partition for place in theirs.assignment())
                if all(parts) and sorted(parts[0] + parts[1]) == [0, 1, 2]:
                    return
        finally:
            ours.close()
            await theirs.stop()

    asyncio.run(asyncio.wait_for(share(), 30))


def test_offsets_are_kept_for_who_is_no_member(servers: str, topic: str, group: str) -> None:
    """With assign() a group only keeps offsets, with metadata if one likes."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    try:
        place = TopicPartition(topic, 1, 42, metadata="here")
        consumer.commit(offsets=[place], asynchronous=False)
        (kept,) = consumer.committed([TopicPartition(topic, 1)], timeout=10)
        (never,) = consumer.committed([TopicPartition(topic, 2)], timeout=10)
    finally:
        consumer.close()
    assert (kept.offset, kept.metadata) == (42, "here")
    assert never.offset < 0


def test_the_topic_of_offsets_is_listed_on_request_only(
    servers: str, topic: str, group: str
) -> None:
    consumer = subscriber(servers, topic, group)
    try:
        wait(lambda: owned(consumer), "the group has a coordinator")
    finally:
        consumer.close()

    def listed(*options: str) -> list[str]:
        command = [sys.executable, "-m", "quorumlab", "topics", "list", *options]
        where = ["--bootstrap-server", servers]
        return subprocess.run(
            [*command, *where], capture_output=True, text=True, check=True
        ).stdout.split()

    assert OFFSETS_TOPIC not in listed()
    assert OFFSETS_TOPIC in listed("--include-internal")


# --- static members

Bounce = Callable[[str, str, str], list[int]]  # (servers, topic, group): the partitions it had


def bounce_confluent_kafka(servers: str, topic: str, group: str) -> list[int]:
    consumer = subscriber(servers, topic, group, group_instance_id="bounced")
    try:
        wait(lambda: 0 < len(owned(consumer)) < PARTITIONS, "it has a share")
        return owned(consumer)
    finally:
        consumer.close()


def bounce_aiokafka(servers: str, topic: str, group: str) -> list[int]:
    from aiokafka import AIOKafkaConsumer

    async def own() -> list[int]:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, group_instance_id="bounced"
        )
        await consumer.start()
        try:
            while not 0 < len(consumer.assignment()) < PARTITIONS:
                await consumer.getmany(timeout_ms=50)
            return sorted(place.partition for place in consumer.assignment())
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(own(), 30))


def bounce_kafka_python(servers: str, topic: str, group: str) -> list[int]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=group, group_instance_id="bounced")
    # It joins again once it has learned how many partitions there are: so it knows before.
    wait(lambda: consumer.partitions_for_topic(topic), "the partitions of the topic")
    consumer.subscribe([topic])

    def own() -> list[int]:
        consumer.poll(50)
        return sorted(place.partition for place in consumer.assignment())

    try:
        wait(lambda: 0 < len(own()) < PARTITIONS, "it has a share")
        return own()
    finally:
        consumer.close()


class Witness(threading.Thread):
    """A static member that stays, and counts the rebalances that it sees."""

    def __init__(self, servers: str, topic: str, group: str) -> None:
        super().__init__(daemon=True)
        self.rebalances = 0
        self.share: list[int] = []
        self.stopping = threading.Event()
        self._consumer = subscriber(servers, topic, group, group_instance_id="witness")
        self._consumer.unsubscribe()
        self._consumer.subscribe([topic], on_assign=self._count, on_revoke=self._count)

    def run(self) -> None:
        while not self.stopping.is_set():
            self.share = owned(self._consumer)
        self._consumer.close()

    def _count(self, _consumer: object, _places: object) -> None:
        self.rebalances += 1


@pytest.mark.parametrize("bounce", [bounce_confluent_kafka, bounce_aiokafka, bounce_kafka_python])
def test_a_static_member_that_comes_back_is_noticed_by_nobody(
    servers: str, topic: str, group: str, bounce: Bounce
) -> None:
    """And an administrator can remove it."""
    from kafka import KafkaAdminClient
    from kafka.admin import MemberToRemove

    witness = Witness(servers, topic, group)
    witness.start()
    try:
        share = bounce(servers, topic, group)
        wait(lambda: sorted(witness.share + share) == [0, 1, 2], "each has its share")
        before = witness.rebalances
        assert bounce(servers, topic, group) == share
        assert witness.rebalances == before
        admin = KafkaAdminClient(bootstrap_servers=servers)
        admin.remove_group_members(group, [MemberToRemove(group_instance_id="bounced")])
        admin.close()
        # To its end: librdkafka that is closed within a rebalance may wait for itself for ever.
        wait(lambda: witness.share == [0, 1, 2], "the witness has the share of the one removed")
        assert witness.rebalances > before
    finally:
        witness.stopping.set()
        witness.join(30)


def test_of_two_processes_with_one_instance_id_the_earlier_is_fenced(
    servers: str, topic: str, group: str
) -> None:
    earlier = subscriber(servers, topic, group, group_instance_id="one")
    later = None
    try:
        wait(lambda: owned(earlier) == [0, 1, 2], "the first one has all partitions")
        later = subscriber(servers, topic, group, group_instance_id="one")
        wait(lambda: owned(later) == [0, 1, 2], "the second one has all partitions")

        def is_fenced() -> bool:
            message = earlier.poll(0.1)
            error = None if message is None else message.error()
            return error is not None and error.code() in (
                KafkaError.FENCED_INSTANCE_ID,
                KafkaError._FATAL,
            )

        wait(is_fenced, "the first one is fenced")
    finally:
        earlier.close()
        if later is not None:
            later.close()


# --- a coordinator that dies


class Member(threading.Thread):
    """Reads as a member of the group, and commits what it has read, again and again."""

    def __init__(self, servers: str, topic: str, group: str) -> None:
        super().__init__(daemon=True)
        self.found: set[tuple[int, int]] = set()
        self.committed: dict[int, int] = {}
        self.stopping = threading.Event()
        self._consumer = subscriber(
            servers,
            topic,
            group,
            enable_auto_commit=False,
            reconnect_backoff_max_ms=200,
            topic_metadata_refresh_interval_ms=1000,
        )

    def run(self) -> None:
        while not self.stopping.is_set():
            for message in self._consumer.consume(100, 0.1):
                partition, offset = message.partition(), message.offset()
                if message.error() is None and partition is not None and offset is not None:
                    self.found.add((partition, offset))
            self._commit()
        self._consumer.close()

    def _commit(self) -> None:
        try:
            for place in self._consumer.commit(asynchronous=False) or ():
                if place.error is None:
                    known = self.committed.get(place.partition, -1)
                    self.committed[place.partition] = max(known, place.offset)
        except KafkaException:
            return  # nothing to commit, or a rebalance, or nobody there: it was not acknowledged


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[LocalCluster]:
    with started(LocalCluster.create(tmp_path / "cluster", controllers=1, brokers=3)) as running:
        yield running


def coordinator(cluster: LocalCluster, group: str) -> int:
    for node in cluster.layout.brokers:
        code, page = cluster.ask(node, f"/v1/topics/{OFFSETS_TOPIC}")
        if code == 200:
            partitions = page["partitions"]
            return int(partitions[partition_of(group, len(partitions))]["leader"])
    return -1


def test_a_group_outlives_the_kill_of_its_coordinator(
    fragile: LocalCluster, make_topic: Callable[..., str], group: str
) -> None:
    servers = fragile.layout.bootstrap_servers
    topic = make_topic(servers, "orders", PARTITIONS, min_insync_replicas="2")
    producer = SteadyProducer(servers, topic, PARTITIONS, rate=200)
    members = [Member(servers, topic, group) for _ in range(2)]
    producer.start()
    for member in members:
        member.start()
    try:
        wait(lambda: all(member.committed for member in members), "both members commit")
        before = {
            index: max(member.committed.get(index, 0) for member in members)
            for index in range(PARTITIONS)
        }
        victim = coordinator(fragile, group)
        fragile.kill(victim)
        wait(lambda: coordinator(fragile, group) not in (victim, -1), "another coordinator")

        def all_go_on() -> bool:
            ends = [max(member.committed.get(index, 0) for member in members) for index in before]
            return all(end > before[index] + 50 for index, end in enumerate(ends))

        wait(all_go_on, "commits of every partition after the kill")
        assert producer.finish() == 0
        acknowledged = set(producer.account.acknowledged)

        def have_read_all() -> bool:
            return acknowledged <= members[0].found | members[1].found

        wait(have_read_all, "the members have read whatever was acknowledged")
    finally:
        for member in members:
            member.stopping.set()
        for member in members:
            member.join(30)

    late = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 2})
    try:
        places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        kept = {place.partition: place.offset for place in late.committed(places, timeout=20)}
    finally:
        late.close()
    for member in members:
        for index, offset in member.committed.items():
            assert kept[index] >= offset, "a commit that was acknowledged"
    for index, offset in kept.items():
        skipped = {(place, at) for place, at in acknowledged if place == index and at < offset}
        assert skipped <= members[0].found | members[1].found, "what is committed has been read"
