"""Plays a client's steps against brokers that a test scripts; time passes by the steps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from jepsen_like.clients.steps import Ask, Pause, Steps
from wire.batch import Record, assign, build_batch
from wire.errors import ErrorCode
from wire.messages.fetching import FetchedPartition, FetchedTopic, FetchResponse
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.messages.producing import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

__all__ = ["TOPIC_ID", "Played", "fetched", "led", "produced"]

Result = TypeVar("Result")
TOPIC_ID = UUID(int=7)


def led(leader: int, epoch: int, *, topic_id: UUID = TOPIC_ID) -> MetadataResponse:
    """What Metadata tells: one topic "a" of one partition."""
    partition = MetadataResponsePartition(
        partition_index=0,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=(leader,),
        isr_nodes=(leader,),
    )
    topic = MetadataResponseTopic(name="a", topic_id=topic_id, partitions=(partition,))
    return MetadataResponse(topics=(topic,))


def produced(error: ErrorCode = ErrorCode.NONE, offset: int = -1) -> ProduceResponse:
    partition = PartitionProduceResponse(index=0, error_code=error, base_offset=offset)
    topic = TopicProduceResponse(name="a", topic_id=TOPIC_ID, partition_responses=(partition,))
    return ProduceResponse(responses=(topic,))


def fetched(
    values: tuple[bytes, ...] = (),
    *,
    base_offset: int = 0,
    epoch: int = 1,
    error: ErrorCode = ErrorCode.NONE,
    high_watermark: int | None = None,
    **others: object,
) -> FetchResponse:
    records = b""
    if values:
        batch = build_batch([Record(value=value) for value in values], timestamp_ms=0)
        records = assign(batch, base_offset=base_offset, leader_epoch=epoch)
    data = FetchedPartition(
        partition_index=0,
        error_code=error,
        high_watermark=base_offset + len(values) if high_watermark is None else high_watermark,
        records=records,
        **others,  # type: ignore[arg-type]  # fields by name
    )
    topic = FetchedTopic(topic_id=TOPIC_ID, partitions=(data,))
    return FetchResponse(responses=(topic,))


@dataclass
class Played:
    """Metadata and producer ids are answered by themselves; the rest is the test's.

    `answer` gets each other request, and returns a response, or None for none.
    """

    answer: Callable[[Ask], object]
    metadata: Callable[[], MetadataResponse] = lambda: led(1, 1)
    now_ms: int = 0
    asked: list[Ask] = field(default_factory=list)

    def clock(self) -> int:
        return self.now_ms

    def play(self, steps: Steps[Result]) -> Result:
        told: object = None
        while True:
            try:
                step = steps.send(told)
            except StopIteration as end:
                result: Result = end.value
                return result
            match step:
                case Pause(ms=ms):
                    self.now_ms += ms
                    told = None
                case Ask():
                    told = self._told(step)
                    self.now_ms += 1 if told is not None else step.timeout_ms

    def _told(self, step: Ask) -> object:
        match step.body:
            case MetadataRequest():
                return self.metadata()
            case InitProducerIdRequest():
                return InitProducerIdResponse(producer_id=40, producer_epoch=0)
            case _:
                self.asked.append(step)
                return self.answer(step)
