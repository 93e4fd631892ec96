"""Reassignment: where the replicas of a partition are going.

A reassignment first adds, and removes at the end. While it runs, the replicas are the target's,
followed by those that will go. `adding` names all that were no replicas when it began, `removing`
all that will be none when it ends; one that an overtaken reassignment was adding is both.

Does not elect, and does not know the ISR of the outcome but for completion: that is
`controller.metadata.election`.

Source: KIP-455; Kafka's PartitionReassignmentReplicas and PartitionReassignmentRevert. Kafka
forgets what an overtaken reassignment was adding, so that cancelling the second one keeps it;
here a cancellation goes back to where the first one began.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from controller.metadata.partitions import PartitionState

__all__ = ["Assignment", "assignment_of", "completed", "in_replica_order", "reverted", "towards"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The brokers on which a partition lies, and the directory on each."""

    replicas: tuple[int, ...]  # the first is the preferred leader
    directories: tuple[UUID, ...]  # one for each replica
    adding: tuple[int, ...] = ()  # part of replicas
    removing: tuple[int, ...] = ()  # part of replicas

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def staying(self) -> tuple[int, ...]:
        """The replicas after the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)


def assignment_of(state: PartitionState) -> Assignment:
    return Assignment(
        replicas=state.replicas,
        directories=state.directories,
        adding=state.adding_replicas,
        removing=state.removing_replicas,
    )


def towards(
    state: PartitionState, target: tuple[int, ...], directory_on: Callable[[int], UUID]
) -> Assignment:
    """The beginning of a reassignment to `target`; `directory_on` a broker new replicas lie."""
    removing = tuple(sorted(set(state.replicas) - set(target)))
    replicas = (*target, *removing)
    known = dict(zip(state.replicas, state.directories, strict=True))
    originals = _originals(state)
    return Assignment(
        replicas=replicas,
        directories=tuple(known.get(replica) or directory_on(replica) for replica in replicas),
        adding=tuple(sorted(replica for replica in replicas if replica not in originals)),
        removing=removing,
    )


def reverted(state: PartitionState) -> Assignment:
    """The replicas as they were before the running reassignment, in no better order."""
    return _only(assignment_of(state), _originals(state))


def completed(assignment: Assignment, isr: Iterable[int]) -> Assignment | None:
    """The assignment in the end, if `isr` lets it end now: once all that stay are in sync."""
    if not assignment.is_moving:
        return None
    staying = assignment.staying
    if not staying or not set(staying) <= set(isr):
        return None
    return _only(assignment, staying)


def in_replica_order(assignment: Assignment, members: Iterable[int]) -> tuple[int, ...]:
    """The `members` that are replicas, in the order of preference."""
    found = set(members)
    return tuple(replica for replica in assignment.replicas if replica in found)


def _originals(state: PartitionState) -> tuple[int, ...]:
    return tuple(r for r in state.replicas if r not in state.adding_replicas)


def _only(assignment: Assignment, replicas: tuple[int, ...]) -> Assignment:
    known = dict(zip(assignment.replicas, assignment.directories, strict=True))
    return Assignment(replicas=replicas, directories=tuple(known[replica] for replica in replicas))
