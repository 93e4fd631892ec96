"""The client of a scenario's cluster: it asks what the scenario says, and tells the answers."""

from collections.abc import Iterator

from jepsen_like.scenarios.story import Story
from jepsen_like.sim.cluster.client import Acknowledged, Judge, Key
from jepsen_like.sim.quorum.asking import AskingCore
from wire.batch import Record, build_batch, headers, records_of
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.messages.producing import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["ScenarioClient", "values_in"]

_FETCH_BYTES = 1 << 20


class ScenarioClient(AskingCore):
    """A core. Every operation has a connection of its own, so that none waits for another."""

    def __init__(self, story: Story, judge: Judge, *, timeout_ms: int) -> None:
        super().__init__(timeout_ms=timeout_ms)
        self._story = story
        self._judge = judge

    @property
    def is_quiet(self) -> bool:
        """Is nothing under way?"""
        return self._asking.is_quiet

    # --- producing ----------------------------------------------------------------------

    def produce(
        self, topic: str, key: Key, value: str, *, to: int, producer: tuple[int, int] = (-1, -1)
    ) -> None:
        """With acks=all. `producer`: its id, and the sequence of the record."""
        records = build_batch(
            [Record(value=value.encode())],
            timestamp_ms=0,
            producer_id=producer[0],
            producer_epoch=0 if producer[0] >= 0 else -1,
            base_sequence=producer[1],
        )
        data = PartitionProduceData(index=key[1], records=records)
        topics = (TopicProduceData(name=topic, topic_id=key[0], partition_data=(data,)),)
        body = ProduceRequest(acks=-1, timeout_ms=self._timeout_ms, topic_data=topics)
        self.ask(to, body, lambda answer, _now_ms: self._produced(key, value, to, answer))

    def _produced(self, key: Key, value: str, to: int, answer: object) -> None:
        if not isinstance(answer, ProduceResponse):
            self._story.tell(f"client: {value} gets no answer of {to}")
            return
        told = answer.responses[0].partition_responses[0]
        if told.error_code is not ErrorCode.NONE:
            self._story.tell(f"client: {value} is refused by {to}: {told.error_code.name}")
            return
        self._story.tell(f"client: {value} is acknowledged by {to} at offset {told.base_offset}")
        batch = Acknowledged(base_offset=told.base_offset, values=(value.encode(),))
        self._judge.acknowledged(key, batch)

    # --- reading ------------------------------------------------------------------------

    def read(self, topic: str, key: Key, *, of: int) -> None:
        """From the beginning, what one fetch gives."""
        place = FetchPartition(partition=key[1], fetch_offset=0, partition_max_bytes=_FETCH_BYTES)
        topics = (FetchTopic(topic=topic, topic_id=key[0], partitions=(place,)),)
        body = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
        self.ask(of, body, lambda answer, _now_ms: self._has_read(key, of, answer))

    def _has_read(self, key: Key, of: int, answer: object) -> None:
        if not isinstance(answer, FetchResponse) or not answer.responses:
            self._story.tell(f"client: a read gets no answer of {of}")
            return
        told = answer.responses[0].partitions[0]
        if told.error_code is not ErrorCode.NONE:
            self._story.tell(f"client: a read is refused by {of}: {told.error_code.name}")
            return
        values = list(values_in(told.records or b""))
        for offset, value in values:
            self._judge.has_read(key, offset, value.encode())
        text = ", ".join(f"{value} at {offset}" for offset, value in values)
        self._story.tell(f"client: reads of {of}: {text or 'nothing'}")


def values_in(batches: bytes) -> Iterator[tuple[int, str]]:
    """Offset and value of each record."""
    for position, header in headers(batches):
        for record in records_of(batches[position : position + header.size_bytes]):
            yield record.offset, (record.value or b"").decode()
