"""A broker asks the controller for the ISR changes that its leaders want (AlterPartition).

The partition decides which change to want. An answer counts only if what was asked is still what
the partition wants (`IsrChange`). A request without an answer may be held and arrive later: what is
refused after one is not made *yet*, and the leader asks for the ISR as it is (`PendingStay`).

Source: KIP-497 (seed 003); Kafka's DefaultAlterPartitionManager and Partition.
"""

from collections import deque
from enum import Enum
from uuid import UUID

from broker.cluster import Incarnation
from broker.membership.controller_batches import ControllerBatches
from broker.membership.controller_channel import ControllerChannel
from broker.partition import isr
from broker.partition.isr import PendingStay
from broker.partition.partition import IsrChange, Partition
from quorum.core.effects import Event, body_of
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

_BATCH_MAX = 1000
_RECOVERED = 0
_PASSES = (  # refusals that no news need follow: what must not be left in doubt is asked again
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)
Key = tuple[UUID, int]  # topic id, partition


class Verdict(Enum):
    """An answer has one of these meanings for the change that was asked."""

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
        incarnation: Incarnation,
        controller: ControllerChannel,
        *,
        retry_backoff_ms: int,
        timeout_ms: int,
    ) -> None:
        self.decided: deque[Partition] = deque()
        self._incarnation = incarnation
        self._batches = ControllerBatches[Key, IsrChange](
            controller=controller,
            channel="alter-partition",
            batch_max=_BATCH_MAX,
            retry_backoff_ms=retry_backoff_ms,
            timeout_ms=timeout_ms,
        )

    def want(self, change: IsrChange, now_ms: int) -> None:
        """Ask the controller for it."""
        self._batches.wanted[key_of(change)] = change
        self.tick(now_ms)

    def tick(self, now_ms: int) -> None:
        batches, ours = self._batches, self._incarnation
        if not batches.is_due(now_ms):
            return
        batches.keep(lambda change: change.is_wanted)
        batch = batches.next_batch()
        if batch:
            changes = tuple(batch.values())
            request = alter_partition_request(changes, ours.node_id, ours.broker_epoch)
            batches.send(batch, request, self._answered, now_ms)

    def deadline_ms(self) -> int | None:
        return self._batches.deadline_ms()

    def _answered(self, event: Event, now_ms: int) -> None:
        body = body_of(event)
        results = results_of(body)
        is_done = isinstance(body, AlterPartitionResponse) and body.error_code is ErrorCode.NONE
        for key, change in self._batches.take_asked().items():
            change.is_in_doubt |= not is_done
            self.conclude(change, results.get(key), now_ms)
        self.tick(now_ms)

    def conclude(self, change: IsrChange, result: IsrPartitionResult | None, now_ms: int) -> None:
        error = None if result is None else result.error_code
        verdict = judge(error)
        if isinstance(change.asked, PendingStay) and error in _PASSES:
            verdict = Verdict.RETRY
        is_refused = verdict is Verdict.REVERT
        if verdict is Verdict.RETRY:
            self._batches.retry(now_ms)
            return
        self._batches.settle(key_of(change), change)
        instead = change.stay() if is_refused else None
        if instead is not None:
            self._batches.wanted[key_of(instead)] = instead
            return
        is_decided = False
        if verdict is Verdict.ACCEPTED:
            assert result is not None
            is_decided = change.accept(result)
        elif is_refused:
            is_decided = change.revert()
        if is_decided:
            self.decided.append(change.partition)


def key_of(change: IsrChange) -> Key:
    return change.partition.topic_id, change.partition.index


def results_of(body: object) -> dict[Key, IsrPartitionResult]:
    """By partition; nothing if there is no answer, or the request was refused as a whole."""
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
