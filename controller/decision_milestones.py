"""Milestones of the quorum's active controller: how far it is with its decisions on partitions.

Decides nothing. A decision is noted when it is appended, with its cause, and again when it is
committed. From then on brokers may fetch and apply it: that is how a quorum tells them.
"""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from controller.metadata.changes import Change, record_count
from controller.milestones import Cause, Occasion, Step, milestone
from quorum.core.effects import Trace
from wire.messages.log_dirs import AssignReplicasToDirsRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ElectLeadersRequest,
)
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    UnregisterBrokerRequest,
)
from wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest
from wire.metadata_records import PartitionChangeRecord, PartitionRecord
from wire.partition_columns import NewPartitions, PartitionChanges

__all__ = ["ControllerMilestones", "cause_of", "partition_count"]

_OF_PARTITIONS = {PartitionRecord, PartitionChangeRecord, NewPartitions, PartitionChanges}


def cause_of(body: object) -> Cause:
    match body:
        case BrokerHeartbeatRequest():
            return Cause(_heartbeat(body), body.broker_id)
        case BrokerRegistrationRequest() | UnregisterBrokerRequest():
            return Cause(Occasion.BROKER_FAILED, body.broker_id)  # its earlier life, or all of it
        case AlterPartitionRequest():
            return Cause(Occasion.ISR, body.broker_id)
        case AssignReplicasToDirsRequest():
            return Cause(Occasion.DIRECTORIES, body.broker_id)
        case CreateTopicsRequest() | CreatePartitionsRequest():
            return Cause(Occasion.TOPIC, body.topics[0].name if body.topics else "")
        case AlterPartitionReassignmentsRequest():
            return Cause(Occasion.REASSIGNMENT, body.topics[0].name if body.topics else "")
        case ElectLeadersRequest():
            return Cause(Occasion.ELECTION)
        case _:
            return Cause(Occasion.REQUEST)


def _heartbeat(body: BrokerHeartbeatRequest) -> Occasion:
    if body.want_shut_down:
        return Occasion.CONTROLLED_SHUTDOWN
    return Occasion.BROKER_FAILED if body.want_fence else Occasion.BROKER_JOINED


def partition_count(changes: Collection[Change]) -> int:
    """How many partitions the changes are about."""
    return record_count([each for each in changes if type(each) in _OF_PARTITIONS])


@dataclass(frozen=True, slots=True)
class _Decided:
    last_offset: int
    cause: Cause
    count: int


class ControllerMilestones:
    """Owned by one `Controller`: what it has appended and not yet seen committed."""

    def __init__(self) -> None:
        self._decided: deque[_Decided] = deque()
        self._ready: tuple[int, int] | None = None  # the epoch, and what is to be committed first

    def decided(
        self, changes: Collection[Change], cause: Cause, *, last_offset: int
    ) -> Iterable[Trace]:
        """The changes are appended, up to `last_offset` (inclusive)."""
        count = partition_count(changes)
        if not count:
            return
        self._decided.append(_Decided(last_offset, cause, count))
        yield milestone(Step.DETECTED, cause)
        yield milestone(Step.DECIDED, cause, count=count)

    def took_over(self, epoch: int, *, end_offset: int) -> None:
        """This controller has become the active one, and decided what was overdue."""
        self._ready = (epoch, end_offset)

    def committed(self, next_offset: int) -> Iterable[Trace]:
        """All below `next_offset`."""
        while self._decided and self._decided[0].last_offset < next_offset:
            done = self._decided.popleft()
            for step in (Step.PERSISTED, Step.TOLD):
                yield milestone(step, done.cause, count=done.count, offset=done.last_offset)
        if self._ready is not None and self._ready[1] <= next_offset:
            epoch, _ = self._ready
            self._ready = None
            yield milestone(Step.READY, epoch=epoch)

    def clear(self) -> None:
        """A former leader does not hear what becomes of its decisions."""
        self._decided.clear()
        self._ready = None
