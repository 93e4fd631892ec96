"""AlterPartition: ask the controller for the ISR changes that leaders want.

One request is in flight at a time; what is wanted meanwhile goes into the next one, for all
partitions together. An answer counts only if what was asked is still what the partition wants
(`IsrChange`). Which change to want is decided by the partition.

Source: KIP-497 (seed 003); Kafka's DefaultAlterPartitionManager and Partition.
"""

from collections import deque
from enum import Enum
from uuid import UUID

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from broker.partition import isr
from broker.partition.partition import IsrChange, Partition
from quorum.core.effects import Event, Response
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    IsrPartition,
    IsrPartitionResult,
    IsrTopic,
)

__all__ = ["Alterations", "Verdict", "judge"]

_BATCH_MAX = 1000  # partitions in one request
_RECOVERED = 0
Key = tuple[UUID, int]  # topic id, partition


class Verdict(Enum):
    """What an answer means for the change that was asked."""

    ACCEPTED = "accepted"
    REVERT = "revert"  # not made, for certain: back to the committed ISR
    WAIT = "wait"  # refused because our metadata is old: keep counting on the maximal ISR
    RETRY = "retry"


def judge(error: ErrorCode | None) -> Verdict:
    """None: there is no answer, which does not say that nothing was done."""
    match error:
        case ErrorCode.NONE:
            return Verdict.ACCEPTED
        case ErrorCode.OPERATION_NOT_ATTEMPTED | ErrorCode.INELIGIBLE_REPLICA:
            return Verdict.REVERT
        case (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode.UNKNOWN_TOPIC_ID
            | ErrorCode.FENCED_LEADER_EPOCH
            | ErrorCode.INVALID_UPDATE_VERSION
            | ErrorCode.INVALID_REQUEST
            | ErrorCode.NEW_LEADER_ELECTED
        ):
            return Verdict.WAIT
        case _:
            return Verdict.RETRY


class Alterations:
    def __init__(
        self,
        *,
        incarnation: Incarnation,
        controller: ControllerChannel,
        retry_backoff_ms: int,
        timeout_ms: int,
    ) -> None:
        self.decided: deque[Partition] = deque()
        self._incarnation = incarnation
        self._controller = controller
        self._retry_backoff_ms = retry_backoff_ms
        self._timeout_ms = timeout_ms
        self._wanted: dict[Key, IsrChange] = {}
        self._in_flight: dict[Key, IsrChange] | None = None
        self._next_send_ms = 0

    def want(self, change: IsrChange, now_ms: int) -> None:
        """Ask the controller for it."""
        self._wanted[key_of(change)] = change
        self._send(now_ms)

    def tick(self, now_ms: int) -> None:
        self._send(now_ms)

    def deadline_ms(self) -> int | None:
        return self._next_send_ms if self._wanted and self._in_flight is None else None

    def _send(self, now_ms: int) -> None:
        if self._in_flight is not None or now_ms < self._next_send_ms:
            return
        self._wanted = {key: each for key, each in self._wanted.items() if each.is_wanted}
        batch = dict(list(self._wanted.items())[:_BATCH_MAX])
        if not batch:
            return
        request = alter_partition_request(
            tuple(batch.values()), self._incarnation.node_id, self._incarnation.broker_epoch
        )
        sent = self._controller.ask(
            request,
            channel="alter-partition",
            timeout_ms=self._timeout_ms,
            answered=self._answered,
        )
        if sent:
            self._in_flight = batch
        else:
            self._next_send_ms = now_ms + self._retry_backoff_ms

    def _answered(self, event: Event, now_ms: int) -> None:
        assert self._in_flight is not None
        in_flight, self._in_flight = self._in_flight, None
        results = results_of(event)
        for key, change in in_flight.items():
            self.conclude(change, results.get(key), now_ms)
        self._send(now_ms)

    def conclude(self, change: IsrChange, result: IsrPartitionResult | None, now_ms: int) -> None:
        verdict = judge(None if result is None else result.error_code)
        if verdict is Verdict.RETRY:
            self._next_send_ms = now_ms + self._retry_backoff_ms
            return
        key = key_of(change)
        if self._wanted.get(key) is change:
            del self._wanted[key]
        is_decided = False
        if verdict is Verdict.ACCEPTED:
            assert result is not None
            is_decided = change.accept(result)
        elif verdict is Verdict.REVERT:
            is_decided = change.revert()
        if is_decided:
            self.decided.append(change.partition)


def key_of(change: IsrChange) -> Key:
    return change.partition.topic_id, change.partition.index


def results_of(event: Event) -> dict[Key, IsrPartitionResult]:
    """By partition; nothing if there is no answer, or the request was refused as a whole."""
    body = event.body if isinstance(event, Response) else None
    if not isinstance(body, AlterPartitionResponse) or body.error_code is not ErrorCode.NONE:
        return {}
    return {
        (topic.topic_id, result.partition_index): result
        for topic in body.topics
        for result in topic.partitions
    }


def alter_partition_request(
    changes: tuple[IsrChange, ...], node_id: int, broker_epoch: int
) -> AlterPartitionRequest:
    topics: dict[UUID, list[IsrPartition]] = {}
    for change in changes:
        topics.setdefault(change.partition.topic_id, []).append(
            IsrPartition(
                partition_index=change.partition.index,
                leader_epoch=change.role.leader_epoch,
                new_isr_with_epochs=isr_with_epochs(change, node_id, broker_epoch),
                leader_recovery_state=_RECOVERED,
                partition_epoch=change.role.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        topics=tuple(
            IsrTopic(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
    )


def isr_with_epochs(change: IsrChange, node_id: int, broker_epoch: int) -> tuple[BrokerState, ...]:
    """The ISR that is asked for, each member with the epoch under which we know its progress.

    The controller then refuses a member that has restarted since (KIP-903).
    """
    followers = change.role.followers
    return tuple(
        BrokerState(
            broker_id=replica,
            broker_epoch=broker_epoch if replica == node_id else followers[replica].broker_epoch,
        )
        for replica in isr.proposed_isr(change.asked)
    )
