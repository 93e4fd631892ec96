"""Transactions of ordinary clients on real processes: all of one is read, or nothing of it."""

import json
import secrets
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 30


@pytest.fixture
def topic(servers: str) -> str:
    name = f"transactions-{secrets.token_hex(4)}"
    admin = AdminClient({"bootstrap.servers": servers})
    created = admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=3)])
    created[name].result(TIMEOUT_S)
    return name


def transactional(servers: str, transactional_id: str, **settings: Any) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": transactional_id,
            "log_level": 2,
        }
        | {key.replace("_", "."): value for key, value in settings.items()}
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def send(producer: Producer, topic: str, *values: str) -> None:
    """Each to both partitions."""
    for value in values:
        for partition in (0, 1):
            producer.produce(topic, value, partition=partition)
    producer.flush(TIMEOUT_S)


def reader(servers: str, topic: str, isolation: str, group: str = "nobody") -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
    return consumer


def read(
    servers: str, topic: str, count: int, isolation: str = "read_committed"
) -> list[list[str]]:
    """By partition, once there are so many; and nothing more comes."""
    consumer = reader(servers, topic, isolation)
    found: list[list[str]] = [[], []]
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while sum(map(len, found)) < count and time.monotonic() < deadline:
            for message in consumer.consume(100, 0.2):
                assert message.error() is None, message.error()
                found[message.partition() or 0].append((message.value() or b"").decode())
        assert not consumer.consume(1, 0.5)
        return found
    finally:
        consumer.close()


def test_a_reader_sees_exactly_what_was_committed(servers: str, topic: str) -> None:
    producer = transactional(servers, f"id-{topic}")
    expected = []
    for number in range(10):
        producer.begin_transaction()
        send(producer, topic, f"{number}a", f"{number}b")
        if number % 3:
            producer.commit_transaction(TIMEOUT_S)
            expected += [f"{number}a", f"{number}b"]
        else:
            producer.abort_transaction(TIMEOUT_S)
    assert read(servers, topic, 2 * len(expected)) == [expected, expected]
    every = [f"{number}{letter}" for number in range(10) for letter in "ab"]
    assert read(servers, topic, 40, "read_uncommitted") == [every, every]


def test_an_open_transaction_holds_readers_back(servers: str, topic: str) -> None:
    first, second = (transactional(servers, f"id-{n}-{topic}") for n in range(2))
    for producer in (first, second):
        producer.begin_transaction()
    send(first, topic, "open")
    send(second, topic, "committed")
    second.commit_transaction(TIMEOUT_S)
    assert read(servers, topic, 0) == [[], []]
    first.commit_transaction(TIMEOUT_S)
    assert read(servers, topic, 4) == [["open", "committed"]] * 2


def test_a_second_producer_fences_the_first(servers: str, topic: str) -> None:
    first = transactional(servers, f"id-{topic}")
    first.begin_transaction()
    send(first, topic, "lost")
    second = transactional(servers, f"id-{topic}")
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(TIMEOUT_S)
    assert refused.value.args[0].fatal()
    second.begin_transaction()
    send(second, topic, "kept")
    second.commit_transaction(TIMEOUT_S)
    assert read(servers, topic, 2) == [["kept"], ["kept"]]


def test_offsets_are_committed_with_what_was_made_of_them(servers: str, topic: str) -> None:
    """Consume, transform, produce: what is aborted is read again, and nothing twice."""
    source, group = topic, f"group-{topic}"
    target = f"{topic}-made"
    admin = AdminClient({"bootstrap.servers": servers})
    created = admin.create_topics([NewTopic(target, num_partitions=2, replication_factor=3)])
    created[target].result(TIMEOUT_S)
    plain = Producer({"bootstrap.servers": servers})
    for number in range(20):
        plain.produce(source, str(number), partition=number % 2)
    assert plain.flush(TIMEOUT_S) == 0
    producer = transactional(servers, f"id-{topic}")
    aborts = iter([True, False, True, False, False, False, False, False, False])
    done = 0
    while done < 20:
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([source])
        messages: list[Any] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(messages) < 5 and time.monotonic() < deadline:
            messages += consumer.consume(5 - len(messages), 0.5)
        assert len(messages) == 5
        producer.begin_transaction()
        for message in messages:
            made = json.dumps([message.partition(), message.offset()])
            producer.produce(target, made, partition=message.partition())
        offsets = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(
            [each for each in offsets if each.offset >= 0],
            consumer.consumer_group_metadata(),
            TIMEOUT_S,
        )
        if next(aborts):
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
            done += len(messages)
        consumer.close()
    places = [[json.dumps([partition, offset]) for offset in range(10)] for partition in (0, 1)]
    assert read(servers, target, 20) == places
