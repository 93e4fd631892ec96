"""Apache Kafka's own transaction tools, and its reader of committed records, on a cluster of ours.

A hanging transaction is made by hand: with verification turned off, a leader takes a batch of a
transaction that the coordinator knows nothing of (Produce 11: it only verifies).
"""

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import create_topic, needs_kafka, tool, tools
from tests.started import started
from wire.api_table import api_of
from wire.apis import decode_response, encode_request
from wire.batch import Record, build_batch
from wire.errors import ErrorCode
from wire.framing import with_length
from wire.messages.producing import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = needs_kafka

SECONDS = 20
HANGING = 4711  # a producer's id
BEFORE_MS = 20 * 60_000  # find-hanging looks for what is older than 15 minutes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("transactions") / "cluster"
    settings = {"transaction.partition.verification.enable": "false"}
    with started(
        LocalCluster.create(directory, settings=settings, controllers=1, brokers=2, combined=True)
    ) as running:
        yield running


@pytest.fixture
def servers(cluster: LocalCluster) -> str:
    return cluster.layout.bootstrap_servers


def rows(text: str) -> list[dict[str, str]]:
    """What a tool prints in columns."""
    header, *lines = [line.split("\t") for line in text.splitlines() if "\t" in line]
    names = [name.strip() for name in header]
    return [dict(zip(names, (cell.strip() for cell in line), strict=False)) for line in lines]


def ask(cluster: LocalCluster, node_id: int, body: Any, version: int) -> Any:
    node = cluster.layout.node(node_id)
    with socket.create_connection((node.host, node.port), SECONDS) as connection:
        connection.sendall(b"".join(with_length(encode_request(body, version, 7, "test"))))
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        return decode_response(stream.read(size), api_of(type(body)).key, version)[1]


def hang(cluster: LocalCluster, topic: str) -> None:
    """A record of a transaction that nobody will ever end, in partition 0, which node 1 leads."""
    records = build_batch(
        [Record(value=b"hanging")],
        timestamp_ms=time.time_ns() // 1_000_000 - BEFORE_MS,
        producer_id=HANGING,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    data = PartitionProduceData(index=0, records=records)
    body = ProduceRequest(
        transactional_id="gone",
        acks=-1,
        timeout_ms=SECONDS * 1000,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )
    (told,) = ask(cluster, 1, body, 11).responses[0].partition_responses
    assert told.error_code is ErrorCode.NONE


def transactional(servers: str, transactional_id: str) -> Producer:
    settings = {"bootstrap.servers": servers, "transactional.id": transactional_id, "log_level": 2}
    producer = Producer(settings)
    producer.init_transactions(SECONDS)
    return producer


def test_transactions_are_listed_and_described_and_a_java_reader_reads_what_is_committed(
    cluster: LocalCluster, servers: str
) -> None:
    create_topic(servers, "told", [[1, 2]])
    producer = transactional(servers, "teller")
    for end, value in (("commit", "kept"), ("abort", "lost"), ("commit", "too"), ("", "open")):
        producer.begin_transaction()
        producer.produce("told", value, partition=0)
        assert producer.flush(SECONDS) == 0
        if end:
            getattr(producer, f"{end}_transaction")(SECONDS)
    read = ("consumer", "--bootstrap-server", servers, "--topic", "told", "--from-beginning")
    ask_tool = ("transactions", "--bootstrap-server", servers)
    committed, every, listed, described, producers = tools(
        (*read, "--max-messages", "2", "--isolation-level", "read_committed"),
        (*read, "--max-messages", "4"),
        (*ask_tool, "list"),
        (*ask_tool, "describe", "--transactional-id", "teller"),
        (*ask_tool, "describe-producers", "--topic", "told", "--partition", "0"),
    )
    assert committed.split() == ["kept", "too"]
    assert every.split() == ["kept", "lost", "too", "open"]
    (of_list,) = [row for row in rows(listed) if row["TransactionalId"] == "teller"]
    assert of_list["TransactionState"] == "Ongoing"
    (description,) = rows(described)
    assert description["TransactionState"] == "Ongoing"
    assert description["TopicPartitions"] == "told-0"
    (known,) = rows(producers)
    assert known["ProducerId"] == of_list["ProducerId"] == description["ProducerId"]
    assert known["ProducerEpoch"] == description["ProducerEpoch"]
    assert known["CurrentTransactionStartOffset"] == "6"
    producer.commit_transaction(SECONDS)


def test_each_end_of_a_java_producers_transaction_raises_its_epoch(servers: str) -> None:
    """KIP-890: the producer is a client of transaction.version 2, as librdkafka is not yet."""
    create_topic(servers, "raised", [[1, 2]])
    tool(
        "producer-performance", "--bootstrap-server", servers, "--topic", "raised",
        "--num-records", "20", "--record-size", "10", "--throughput", "20",
        "--transactional-id", "raiser", "--transaction-duration-ms", "200",
    )  # fmt: skip
    ask_tool = ("transactions", "--bootstrap-server", servers)
    described, producers = tools(
        (*ask_tool, "describe", "--transactional-id", "raiser"),
        (*ask_tool, "describe-producers", "--topic", "raised", "--partition", "0"),
    )
    (description,), (known,) = rows(described), rows(producers)
    assert description["TransactionState"] == "CompleteCommit"
    assert int(description["ProducerEpoch"]) >= 2
    assert known["ProducerEpoch"] == description["ProducerEpoch"]


def test_a_hanging_transaction_is_found_and_aborted(cluster: LocalCluster, servers: str) -> None:
    create_topic(servers, "held", [[1, 2]])
    hang(cluster, "held")
    producer = transactional(servers, "waiter")
    producer.begin_transaction()
    producer.produce("held", "behind", partition=0)
    producer.commit_transaction(SECONDS)
    ask_tool = ("transactions", "--bootstrap-server", servers)
    for found in tools(
        (*ask_tool, "find-hanging", "--broker-id", "1"),
        (*ask_tool, "find-hanging", "--broker-id", "2"),  # it follows
        (*ask_tool, "find-hanging", "--topic", "held"),
    ):
        (row,) = rows(found)
        assert (row["Topic"], row["ProducerId"], row["StartOffset"]) == ("held", str(HANGING), "0")
    place = ("--topic", "held", "--partition", "0", "--start-offset", "0")
    tool(*ask_tool, "abort", *place)
    left, read = tools(
        (*ask_tool, "find-hanging", "--topic", "held"),
        (
            "consumer", "--bootstrap-server", servers, "--topic", "held", "--from-beginning",
            "--isolation-level", "read_committed", "--max-messages", "1",
        ),
    )  # fmt: skip
    assert rows(left) == []
    assert read.split() == ["behind"]
