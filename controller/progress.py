"""How far the active controller is with what it has decided of partitions: its milestones.

Decides nothing: a decision of the controller is noted when it is appended, with what made it
necessary, and again when it is committed. From then on brokers may fetch and apply it: in a quorum
that is how they are told.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from controller.metadata.changes import Change
from quorum.effects import Trace
from quorum.milestones import Step, milestone
from wire.messages.alter_partition import AlterPartitionRequest
from wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from wire.messages.broker_registration import BrokerRegistrationRequest
from wire.messages.create_partitions import CreatePartitionsRequest
from wire.messages.create_topics import CreateTopicsRequest
from wire.messages.elect_leaders import ElectLeadersRequest
from wire.messages.unregister_broker import UnregisterBrokerRequest
from wire.metadata_records import PartitionChangeRecord, PartitionRecord
from wire.partition_columns import NewPartitions, PartitionChanges

__all__ = ["TAKE_OVER", "Cause", "Progress", "cause_of", "partition_count"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something was decided: what has happened, and to which broker or topic."""

    what: str
    id: int | str = -1


TAKE_OVER = Cause("controller-failed")


def cause_of(body: object) -> Cause:
    """Of a request."""
    match body:
        case BrokerHeartbeatRequest():
            return Cause(_heartbeat(body), body.broker_id)
        case BrokerRegistrationRequest() | UnregisterBrokerRequest():
            return Cause("broker-failed", body.broker_id)  # its earlier life, or all of it
        case AlterPartitionRequest():
            return Cause("isr", body.broker_id)
        case AssignReplicasToDirsRequest():
            return Cause("directories", body.broker_id)
        case CreateTopicsRequest() | CreatePartitionsRequest():
            return Cause("topic", body.topics[0].name if body.topics else "")
        case AlterPartitionReassignmentsRequest():
            return Cause("reassignment", body.topics[0].name if body.topics else "")
        case ElectLeadersRequest():
            return Cause("election")
        case _:
            return Cause("request")


def _heartbeat(body: BrokerHeartbeatRequest) -> str:
    if body.want_shut_down:
        return "controlled-shutdown"
    return "broker-failed" if body.want_fence else "broker-joined"


def partition_count(changes: Iterable[Change]) -> int:
    """How many partitions the changes are about."""
    return sum(map(_partitions, changes))


def _partitions(change: Change) -> int:
    if isinstance(change, PartitionChanges | NewPartitions):
        return len(change)
    return int(isinstance(change, PartitionRecord | PartitionChangeRecord))


@dataclass(frozen=True, slots=True)
class _Decided:
    last_offset: int
    cause: Cause
    count: int


class Progress:
    """Owned by one `Controller`: what it has appended and not yet seen committed."""

    def __init__(self) -> None:
        self._decided: deque[_Decided] = deque()
        self._ready: tuple[int, int] | None = None  # the epoch, and what is to be committed first

    def decided(
        self, changes: Iterable[Change], cause: Cause, *, last_offset: int
    ) -> Iterable[Trace]:
        count = partition_count(changes)
        if not count:
            return
        self._decided.append(_Decided(last_offset, cause, count))
        yield milestone(Step.DETECTED, what=cause.what, id=cause.id)
        yield milestone(Step.DECIDED, count=count, what=cause.what, id=cause.id)

    def begun(self, epoch: int, *, end_offset: int) -> None:
        """This controller has become the active one, and decided what was overdue."""
        self._ready = (epoch, end_offset)

    def committed(self, next_offset: int) -> Iterable[Trace]:
        while self._decided and self._decided[0].last_offset < next_offset:
            done = self._decided.popleft()
            for step in (Step.PERSISTED, Step.TOLD):
                yield milestone(
                    step,
                    count=done.count,
                    what=done.cause.what,
                    id=done.cause.id,
                    offset=done.last_offset,
                )
        if self._ready is not None and self._ready[1] <= next_offset:
            epoch, _ = self._ready
            self._ready = None
            yield milestone(Step.READY, epoch=epoch)

    def clear(self) -> None:
        """Who is not the leader any more does not hear what becomes of it."""
        self._decided.clear()
        self._ready = None
