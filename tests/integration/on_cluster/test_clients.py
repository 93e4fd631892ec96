"""Ordinary Kafka clients against real processes: produce with acks=all, consume by assignment.

Consumer groups are in test_groups.py.
"""

import asyncio
import json
import shutil
import subprocess

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

COUNT = 300
# librdkafka asks for a group's name even if there is no group.
BY_ASSIGNMENT = {"group.id": "unused", "enable.auto.commit": False}


def values(prefix: str) -> list[bytes]:
    return [b"%s %d" % (prefix.encode(), number) for number in range(COUNT)]


def consume_all(servers: str, topic: str, partitions: int = 3, count: int = COUNT) -> list[bytes]:
    consumer = Consumer(BY_ASSIGNMENT | {"bootstrap.servers": servers})
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        found: list[bytes] = []
        for _ in range(100):
            messages = consumer.consume(1000, 0.2)
            found += [m.value() or b"" for m in messages if m.error() is None]
            if len(found) >= count:
                return found
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_confluent_kafka_reads_what_it_wrote(
    servers: str, topic: str, compression: str, idempotent: bool
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "acks": "all",
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "linger.ms": 5,
        }
    )
    errors: list[KafkaError | None] = []
    for value in values(compression):
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert [error for error in errors if error is not None] == []
    assert sorted(consume_all(servers, topic)) == sorted(values(compression))


def test_confluent_kafka_compresses_what_it_sends(servers: str, topic: str) -> None:
    """A broker that does not offer old Produce versions makes librdkafka send plain batches."""
    statistics: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": "gzip",
            "enable.idempotence": True,
            "linger.ms": 200,
            "statistics.interval.ms": 100,
            "stats_cb": statistics.append,
        }
    )
    for _ in range(1000):
        producer.produce(topic, b"x" * 1000, partition=0)
    assert producer.flush(20) == 0
    producer.poll(2)  # until statistics came, a tenth of a second later
    consumer = Consumer(
        BY_ASSIGNMENT
        | {
            "bootstrap.servers": servers,
            "stats_cb": statistics.append,
            "statistics.interval.ms": 100,
        }
    )
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    finally:
        consumer.close()
    assert (low, high) == (0, 1000)
    sent = max(json.loads(text)["tx_bytes"] for text in statistics)
    assert sent < 200_000, "a megabyte of x compresses to a few kilobytes"


@pytest.mark.parametrize("compression", [None, "gzip", "lz4"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_aiokafka_reads_what_it_wrote(
    servers: str, topic: str, compression: str | None, idempotent: bool
) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka import TopicPartition as Place

    async def round_trip() -> list[bytes]:
        producer = AIOKafkaProducer(
            bootstrap_servers=servers,
            acks="all",
            compression_type=compression,
            enable_idempotence=idempotent,
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, value) for value in values("aio")]
            await asyncio.gather(*sent)
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([Place(topic, index) for index in range(3)])
            found: list[bytes] = []
            while len(found) < COUNT:
                batches = await consumer.getmany(timeout_ms=1000)
                found += [record.value for records in batches.values() for record in records]
            return found
        finally:
            await consumer.stop()

    found = asyncio.run(asyncio.wait_for(round_trip(), 30))
    assert sorted(found) == sorted(values("aio"))


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_kafka_python_reads_what_it_wrote(
    servers: str, topic: str, compression: str | None, idempotent: bool
) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as Place

    producer = KafkaProducer(
        bootstrap_servers=servers,
        acks="all",
        compression_type=compression,
        enable_idempotence=idempotent,
    )
    try:
        futures = [producer.send(topic, value) for value in values("python")]
        producer.flush(20)
        assert all(future.succeeded() for future in futures)
    finally:
        producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", consumer_timeout_ms=5000
    )
    try:
        consumer.assign([Place(topic, index) for index in range(3)])
        found: list[bytes] = []
        for record in consumer:
            found.append(record.value)
            if len(found) == COUNT:
                break
    finally:
        consumer.close()
    assert sorted(found) == sorted(values("python"))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_stores_the_record(servers: str, topic: str, acks: str) -> None:
    first = Producer({"bootstrap.servers": servers, "acks": "1"})
    first.produce(topic, b"leads", partition=0)  # nobody hears whether acks=0 met a leader
    assert first.flush(10) == 0
    producer = Producer({"bootstrap.servers": servers, "acks": acks})
    producer.produce(topic, b"one", partition=0)
    assert producer.flush(10) == 0
    assert consume_all(servers, topic, count=2) == [b"leads", b"one"]


def test_offsets_for_times_finds_the_first_record_after_a_timestamp(
    servers: str, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for second in range(1, 6):
        producer.produce(topic, b"x", partition=0, timestamp=1_700_000_000_000 + second * 1000)
        producer.flush(10)
    consumer = Consumer(BY_ASSIGNMENT | {"bootstrap.servers": servers})
    try:
        wanted = TopicPartition(topic, 0, 1_700_000_002_500)
        (found,) = consumer.offsets_for_times([wanted], timeout=10)
    finally:
        consumer.close()
    assert found.offset == 2


@pytest.mark.extra
def test_kcat_reads_what_it_wrote(servers: str, topic: str) -> None:
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed (Debian: apt-get install kcat)")
    text = "\n".join(f"line {number}" for number in range(COUNT)) + "\n"
    subprocess.run(
        [kcat, "-P", "-b", servers, "-t", topic, "-p", "0", "-X", "acks=all", "-z", "lz4"],
        input=text,
        text=True,
        check=True,
        timeout=30,
    )
    read = subprocess.run(
        [kcat, "-C", "-b", servers, "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert read.stdout == text
