"""A client that raises a log's start (DeleteRecords) is answered when all live replicas follow.

The leader raises its own start at once. A follower does so when it fetches, and states its new
start in the Fetch after that.

Source: KIP-107; Kafka's ReplicaManager.deleteRecords and DelayedDeleteRecords.
"""

from dataclasses import dataclass
from functools import partial
from itertools import islice

from broker.partition.isr_rules import Peers
from broker.partition.partition import LeaderOf, Partition
from broker.replicas import Replicas
from broker.waiting import WAIT_MAX_MS, Answers, Deadlines, OffsetWaiters
from controller.metadata.topics import INTERNAL_TOPICS
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from quorum.core.types import NO_EPOCH
from wire.errors import ErrorCode
from wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from wire.primitives import ZERO_UUID

__all__ = ["Deletions", "low_watermark"]

_HIGH_WATERMARK = -1
_UNKNOWN = -1


@dataclass(slots=True, eq=False)
class PendingDeletion:
    token: int
    topics: tuple[DeleteRecordsTopic, ...]
    answers: Answers[DeleteRecordsPartitionResult]

    @property
    def is_done(self) -> bool:
        return self.answers.is_done


@dataclass(frozen=True, slots=True)
class Waiter:
    """The followers of this partition of a request have not followed yet."""

    pending: PendingDeletion
    slot: int
    index: int

    @property
    def is_done(self) -> bool:
        return self.pending.answers.is_done


class Deletions:
    def __init__(
        self, *, replicas: Replicas, peers: Peers, outbox: Outbox, deadlines: Deadlines
    ) -> None:
        self._replicas = replicas
        self._peers = peers
        self._outbox = outbox
        self._deadlines = deadlines
        self._waiting: OffsetWaiters[Waiter] = OffsetWaiters()  # for the start of the last replica

    def handle(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, DeleteRecordsRequest), body
        asked = [(topic.name, each) for topic in body.topics for each in topic.partitions]
        count = len(asked)
        pending = PendingDeletion(request.token, body.topics, Answers(count))
        for slot, (topic, each) in enumerate(asked):
            self._delete(pending, slot, topic, each)
        if count == 0:
            self._reply(pending)
        elif not pending.is_done:
            deadline_ms = now_ms + min(max(body.timeout_ms, 0), WAIT_MAX_MS)
            if not self._deadlines.add(pending, deadline_ms, partial(self._expire, pending)):
                self._expire(pending, now_ms)

    def _delete(
        self, pending: PendingDeletion, slot: int, topic: str, asked: DeleteRecordsPartition
    ) -> None:
        index = asked.partition_index
        found = self._replicas.find(topic, ZERO_UUID, index)
        if isinstance(found, ErrorCode):
            self._settle(pending, slot, failure(index, found))
            return
        error = refusal(found, asked.offset)
        if error is not ErrorCode.NONE:
            self._settle(pending, slot, failure(index, error))
            return
        log, role = found.open_log, found.role
        assert isinstance(role, LeaderOf), role
        offset = log.high_watermark if asked.offset == _HIGH_WATERMARK else asked.offset
        log.trim(offset)
        low = low_watermark(found, role, self._peers)
        if low >= offset:
            self._settle(pending, slot, success(index, low))
        else:
            self._waiting.add(found, offset, Waiter(pending, slot, index))

    def progressed(self, partition: Partition) -> None:
        """A follower of a led partition has said where its log starts."""
        role = partition.role
        if not self._waiting.has(partition) or not isinstance(role, LeaderOf):
            return
        low = low_watermark(partition, role, self._peers)
        for waiter in self._waiting.reached(partition, low):
            self._settle(waiter.pending, waiter.slot, success(waiter.index, low))

    def lost(self, partition: Partition, error: ErrorCode) -> None:
        """The leader epoch has ended in which this broker led the partition."""
        for waiter in self._waiting.lost(partition):
            self._settle(waiter.pending, waiter.slot, failure(waiter.index, error))

    def _expire(self, pending: PendingDeletion, _now_ms: int) -> None:
        indexes = [each.partition_index for topic in pending.topics for each in topic.partitions]
        for slot in pending.answers.missing:
            late = failure(indexes[slot], ErrorCode.REQUEST_TIMED_OUT)
            self._settle(pending, slot, late)

    def _settle(
        self, pending: PendingDeletion, slot: int, result: DeleteRecordsPartitionResult
    ) -> None:
        if pending.answers.put(slot, result):
            self._reply(pending)

    def _reply(self, pending: PendingDeletion) -> None:
        results = iter(pending.answers.take())
        topics = tuple(
            DeleteRecordsTopicResult(
                name=topic.name, partitions=tuple(islice(results, len(topic.partitions)))
            )
            for topic in pending.topics
        )
        self._outbox.emit(Reply(token=pending.token, body=DeleteRecordsResponse(topics=topics)))


def refusal(partition: Partition, offset: int) -> ErrorCode:
    """Why records of this replica may not be deleted up to `offset`."""
    if partition.topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    error = partition.check_epoch(NO_EPOCH)
    if error is not ErrorCode.NONE:
        return error
    if not partition.settings.may_delete_records:
        return ErrorCode.POLICY_VIOLATION
    if offset != _HIGH_WATERMARK and not 0 <= offset <= partition.open_log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return ErrorCode.NONE


def low_watermark(partition: Partition, role: LeaderOf, peers: Peers) -> int:
    """Where the last of the live replicas starts."""
    starts = [
        follower.log_start_offset
        for follower in role.followers.values()
        if peers.is_active(follower.broker_id)
    ]
    return min([partition.open_log.start_offset, *starts])


def success(index: int, low: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low)


def failure(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=_UNKNOWN, error_code=error
    )
