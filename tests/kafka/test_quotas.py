"""Quotas on a node of ours and on one of Apache Kafka's: the same requests, the same waits."""

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.differential.sides import Side, both_sides
from tests.kafka.interop import needs_kafka
from wire.api_table import api_of
from wire.apis import decode_response, encode_request
from wire.batch import data_batch
from wire.errors import ErrorCode
from wire.framing import with_length
from wire.message import replace
from wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterEntryData,
    EntityData,
    OpData,
)
from wire.messages.fetching import FetchPartition, FetchRequest, FetchTopic
from wire.messages.producing import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.topics import CreatableTopic, CreateTopicsRequest

pytestmark = needs_kafka

NONE, EXCEEDED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
ANSWER_SECONDS = 20.0
PUBLISHED_SECONDS = 1.0  # until a quota that is committed holds: nothing shows it


class Connection:
    def __init__(self, side: Side, client_id: str) -> None:
        self._socket = socket.create_connection((side.node.host, side.port("broker")))
        self._client_id = client_id

    def send(self, body: Any, version: int) -> None:
        self._socket.sendall(
            b"".join(with_length(encode_request(body, version, 7, self._client_id)))
        )

    def receive(self, body: Any, version: int, seconds: float = ANSWER_SECONDS) -> Any:
        """Raises TimeoutError."""
        self._socket.settimeout(seconds)
        (size,) = struct.unpack(">i", self._exactly(4))
        return decode_response(self._exactly(size), api_of(type(body)).key, version)[1]

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "closed"
            data += more
        return data

    def ask(self, body: Any, version: int) -> Any:
        self.send(body, version)
        return self.receive(body, version)

    def close(self) -> None:
        self._socket.close()


def ask(side: Side, client_id: str, body: Any, version: int) -> Any:
    connection = Connection(side, client_id)
    try:
        return connection.ask(body, version)
    finally:
        connection.close()


def limit(
    sides: tuple[Side, Side], entity: Mapping[str, str | None], **values: float | None
) -> None:
    """Set quotas, or remove those that are None."""
    entry = AlterEntryData(
        entity=tuple(EntityData(entity_type=k, entity_name=name) for k, name in entity.items()),
        ops=tuple(
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ),
    )
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
    for side in sides:
        assert ask(side, "admin", request, 1).entries[0].error_code is NONE, side.name
    time.sleep(PUBLISHED_SECONDS)


def create(prefix: str, *partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(name=f"{prefix}{place}", num_partitions=count, replication_factor=1)
            for place, count in enumerate(partitions)
        ),
        timeout_ms=9000,
    )


def produce(topic: str, size: int) -> ProduceRequest:
    records = data_batch([bytes(size)], timestamp_ms=1)
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=1,
        timeout_ms=9000,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with both_sides(tmp_path_factory.mktemp("quotas")) as sides:
        yield sides


def test_mutations(sides: tuple[Side, Side]) -> None:
    limit(sides, {"client-id": "m"}, controller_mutation_rate=1.0)  # a bucket of eleven
    for side in sides:
        answer = ask(side, "m", create("m", 6, 10, 1), 6)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes == {"m0": NONE, "m1": NONE, "m2": EXCEEDED}, side.name
        assert answer.throttle_time_ms == pytest.approx(5000, abs=300), side.name
        message = next(topic.error_message for topic in answer.topics if topic.name == "m2")
        assert message is None, side.name
        only = replace(create("v", 1), validate_only=True)
        assert ask(side, "m", only, 6).topics[0].error_code is EXCEEDED, side.name
        older = ask(side, "m", create("o", 4), 5)
        assert older.topics[0].error_code is NONE, side.name
        assert older.throttle_time_ms == pytest.approx(9000, abs=900), side.name


def test_bytes(sides: tuple[Side, Side]) -> None:
    for side in sides:
        assert ask(side, "admin", create("b", 1), 6).topics[0].error_code is NONE
    limit(sides, {"client-id": "p"}, producer_byte_rate=1000.0)
    limit(sides, {"client-id": "f"}, consumer_byte_rate=1000.0)
    waits = []
    for side in sides:
        connection = Connection(side, "p")
        first = connection.ask(produce("b0", 9000), 9)
        assert first.responses[0].partition_responses[0].error_code is NONE, side.name
        assert first.throttle_time_ms == 0, side.name
        connection.close()
        connection = Connection(side, "p")
        waits.append(connection.ask(produce("b0", 1500), 9).throttle_time_ms)
        again = produce("b0", 1)
        connection.send(again, 9)
        with pytest.raises(TimeoutError):  # muted
            connection.receive(again, 9, seconds=waits[-1] / 1000 / 2)
        assert connection.receive(again, 9).throttle_time_ms > 0, side.name
        connection.close()
    assert waits == [pytest.approx(650, abs=200)] * 2, waits
    fetched = []
    for side in sides:
        size = len(data_batch([bytes(9000)], timestamp_ms=1))  # Kafka cuts the batch after it
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
        fetch = FetchRequest(
            max_wait_ms=100, min_bytes=1, topics=(FetchTopic(topic="b0", partitions=(part,)),)
        )
        first = ask(side, "f", fetch, 11)
        assert first.throttle_time_ms == 0, side.name
        assert len(first.responses[0].partitions[0].records) == size, side.name
        fetched.append(ask(side, "f", fetch, 11).throttle_time_ms)
    assert fetched == [pytest.approx(8200, abs=400)] * 2, fetched


def test_order_of_precedence(sides: tuple[Side, Side]) -> None:
    """Each quota is overruled by the next: by turns one that everything exceeds, and nothing."""
    for side in sides:
        assert ask(side, "admin", create("p", 1), 6).topics[0].error_code is NONE
    entities: list[dict[str, str | None]] = [
        {"client-id": None},
        {"client-id": "c"},
        {"user": None},
        {"user": None, "client-id": None},
        {"user": None, "client-id": "c"},
        {"user": "ANONYMOUS"},
        {"user": "ANONYMOUS", "client-id": None},
        {"user": "ANONYMOUS", "client-id": "c"},
    ]
    waits: list[list[bool]] = [[], []]
    try:
        for place, entity in enumerate(entities):
            limit(sides, entity, producer_byte_rate=1e12 if place % 2 else 1.0)
            for side, told in zip(sides, waits, strict=True):
                told.append(ask(side, "c", produce("p0", 1), 9).throttle_time_ms > 0)
    finally:
        for entity in entities:
            limit(sides, entity, producer_byte_rate=None)
    assert waits == [[True, False] * 4] * 2
