"""Clients and followers ask about offsets by ListOffsets and OffsetForLeaderEpoch.

This module decides what "latest" means to a consumer and to a follower. A consumer that reads
committed records only is told of no offset behind the last stable one. A new leader whose high
watermark has not reached the start of its epoch answers OFFSET_NOT_AVAILABLE: its offset could be
lower than the one that its predecessor answered. The log finds the offset of a timestamp. It does
not know its largest timestamp, which is found by bisecting with the same question.

Source: KIP-79, KIP-98, KIP-207, KIP-320, KIP-734; Kafka's Partition.fetchOffsetForTimestamp.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from broker.fetch_protocol import EARLIEST, LATEST
from broker.partition.partition import LeaderOf, Partition
from broker.partition.reads import Isolation, isolation_of, readable_end
from broker.replicas import Replicas
from broker.waiting import Answers
from quorum.core.effects import Event, Reply, Request, TimestampFound
from quorum.core.outbox import Outbox
from quorum.core.types import NO_EPOCH
from wire.errors import ErrorCode
from wire.messages.fetching import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderPartitionResult,
    OffsetForLeaderTopicResult,
)
from wire.primitives import INT64_MAX, ZERO_UUID

__all__ = [
    "Offsets",
]

MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
_CONSUMER = -1
_DEBUGGING = -2  # asks any replica


def is_high_watermark_known(partition: Partition, role: LeaderOf) -> bool:
    """A new leader starts with the high watermark that it last heard of, which may be lower than
    what consumers saw. Once it has reached the start of the epoch it is at least as high."""
    return partition.open_log.high_watermark >= role.epoch_start_offset


@dataclass(slots=True)
class Question:
    """A ListOffsets request waits while the logs look for timestamps."""

    token: int
    isolation: Isolation
    topics: tuple[ListOffsetsTopic, ...]
    answers: Answers[ListOffsetsPartitionResponse]


Found = Callable[[TimestampFound | None], None]


class Offsets:
    def __init__(self, *, replicas: Replicas, outbox: Outbox) -> None:
        self._replicas = replicas
        self._outbox = outbox

    # --- ListOffsets ------------------------------------------------------------------------

    def list_offsets(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, ListOffsetsRequest), body
        count = sum(len(topic.partitions) for topic in body.topics)
        question = Question(
            token=request.token,
            isolation=isolation_of(
                is_follower=body.replica_id not in (_CONSUMER, _DEBUGGING),
                level=body.isolation_level,
            ),
            topics=body.topics,
            answers=Answers(count),
        )
        if count == 0:
            self._outbox.emit(Reply(token=request.token, body=ListOffsetsResponse(topics=())))
        slot = 0
        for topic in body.topics:
            for asked in topic.partitions:
                self._ask(question, slot, topic.name, asked, now_ms)
                slot += 1

    def _ask(
        self,
        question: Question,
        slot: int,
        topic: str,
        asked: ListOffsetsPartition,
        now_ms: int,
    ) -> None:
        if asked.timestamp < LATEST_TIERED:  # newer brokers may know what it means
            self._answer(question, slot, denied(asked, ErrorCode.UNSUPPORTED_VERSION))
            return
        partition = self._replicas.find(topic, ZERO_UUID, asked.partition_index)
        if isinstance(partition, ErrorCode):
            self._answer(question, slot, denied(asked, partition))
            return
        error = partition.check_epoch(asked.current_leader_epoch)
        if error is not ErrorCode.NONE:
            self._answer(question, slot, denied(asked, error))
            return
        role = partition.role
        assert isinstance(role, LeaderOf), role
        if asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
            offset = partition.open_log.start_offset
            self._answer(question, slot, at_offset(partition, asked, offset))
        elif question.isolation is not Isolation.LOG_END and not is_high_watermark_known(
            partition, role
        ):
            self._answer(question, slot, denied(asked, ErrorCode.OFFSET_NOT_AVAILABLE))
        elif asked.timestamp == LATEST:
            offset = readable_end(partition, question.isolation)
            self._answer(question, slot, at_offset(partition, asked, offset))
        elif asked.timestamp == MAX_TIMESTAMP:
            self._find_largest(question, slot, partition, asked, now_ms)
        elif asked.timestamp < 0:
            nowhere = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            self._answer(question, slot, nowhere)
        else:
            self._find(
                question,
                partition,
                asked.timestamp,
                lambda found: self._answer(question, slot, found_at(asked, found)),
            )

    def _find(
        self, question: Question, partition: Partition, timestamp_ms: int, found: Found
    ) -> None:
        def answered(event: Event, _now_ms: int) -> None:
            hit = event if isinstance(event, TimestampFound) and event.offset >= 0 else None
            found(hit)

        log = partition.open_log
        end_offset = min(readable_end(partition, question.isolation), log.high_watermark)
        log.find_timestamp(timestamp_ms=timestamp_ms, end_offset=end_offset, answered=answered)

    def _find_largest(
        self,
        question: Question,
        slot: int,
        partition: Partition,
        asked: ListOffsetsPartition,
        now_ms: int,
    ) -> None:
        """Bisect for the largest timestamp: at most 64 questions, and usually far fewer than
        that, because every hit jumps to a timestamp that exists."""

        def narrow(low: int, high: int, best: TimestampFound | None) -> None:
            """No record is at or after `high`; `best` is the first at or after some time."""
            if low >= high or not isinstance(partition.role, LeaderOf):
                self._answer(question, slot, found_at(asked, best))
                return
            middle = (low + high) // 2

            def found(hit: TimestampFound | None) -> None:
                if hit is None:
                    narrow(low, middle, best)
                else:
                    narrow(hit.timestamp_ms + 1, high, hit)

            self._find(question, partition, middle, found)

        def bounded(hit: TimestampFound | None) -> None:
            if hit is None:
                narrow(0, now_ms + 1, None)
            else:
                narrow(hit.timestamp_ms + 1, INT64_MAX, hit)

        self._find(question, partition, now_ms + 1, bounded)

    def _answer(self, question: Question, slot: int, result: ListOffsetsPartitionResponse) -> None:
        if not question.answers.put(slot, result):
            return
        results = iter(question.answers.take())
        topics = tuple(
            ListOffsetsTopicResponse(
                name=topic.name, partitions=tuple(islice(results, len(topic.partitions)))
            )
            for topic in question.topics
        )
        self._outbox.emit(Reply(token=question.token, body=ListOffsetsResponse(topics=topics)))

    # --- OffsetForLeaderEpoch ---------------------------------------------------------------

    def offset_for_leader_epoch(self, request: Request, _now_ms: int) -> None:
        body = request.body
        assert isinstance(body, OffsetForLeaderEpochRequest), body
        topics = tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(self._epoch_end(topic.topic, asked) for asked in topic.partitions),
            )
            for topic in body.topics
        )
        reply = OffsetForLeaderEpochResponse(topics=topics)
        self._outbox.emit(Reply(token=request.token, body=reply))

    def _epoch_end(
        self, topic: str, asked: OffsetForLeaderPartition
    ) -> OffsetForLeaderPartitionResult:
        partition = self._replicas.find(topic, ZERO_UUID, asked.partition)
        if isinstance(partition, ErrorCode):
            return OffsetForLeaderPartitionResult(error_code=partition, partition=asked.partition)
        error = partition.check_epoch(asked.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return OffsetForLeaderPartitionResult(error_code=error, partition=asked.partition)
        return end_for_epoch(partition, asked)


def end_for_epoch(
    partition: Partition, asked: OffsetForLeaderPartition
) -> OffsetForLeaderPartitionResult:
    """Where the asked epoch, or the last one before it, ended; -1 if that is not known."""
    log = partition.open_log
    end = log.epochs.end_offset_for(asked.leader_epoch, log.end_offset)
    if end is None:
        return OffsetForLeaderPartitionResult(partition=asked.partition)
    return OffsetForLeaderPartitionResult(
        partition=asked.partition, leader_epoch=end.epoch, end_offset=end.offset
    )


def denied(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)


def at_offset(
    partition: Partition, asked: ListOffsetsPartition, offset: int
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        offset=offset,
        leader_epoch=partition.open_log.epochs.epoch_at(offset),
    )


def found_at(
    asked: ListOffsetsPartition, found: TimestampFound | None
) -> ListOffsetsPartitionResponse:
    if found is None:
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, leader_epoch=NO_EPOCH
        )
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )
