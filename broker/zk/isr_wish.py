"""The change of an ISR that a leader wants, as it stands when it comes to be written or sent.

Who writes it waits for others, who sends it for an answer: what was wanted at first may be of an
earlier leader epoch by then, and nothing else is queued for the change that is wanted since.
"""

from dataclasses import dataclass
from typing import Self

from broker.isr import PendingExpand, PendingShrink
from broker.outbox import Outbox
from broker.partition import LeaderOf, Partition
from quorum.core.milestones import Cause, Occasion, Step, milestone

__all__ = ["Wish", "tell_wanted", "tell_written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    partition: Partition
    role: LeaderOf
    asked: PendingExpand | PendingShrink

    @classmethod
    def of(cls, partition: Partition) -> Self | None:
        """None if it wants nothing."""
        role = partition.role
        if not isinstance(role, LeaderOf) or not isinstance(
            role.isr, PendingExpand | PendingShrink
        ):
            return None
        return cls(partition=partition, role=role, asked=role.isr)

    @property
    def is_wanted(self) -> bool:
        """Does the partition still want this change?"""
        return self.partition.role is self.role and self.role.isr is self.asked


def tell_wanted(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.DETECTED, cause))
    outbox.emit(milestone(Step.DECIDED, cause, count=1))


def tell_written(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.PERSISTED, cause, count=1))
    outbox.emit(milestone(Step.APPLIED, cause, count=1, broker=node_id))
