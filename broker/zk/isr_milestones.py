"""Milestones of an ISR that its leader changes by itself: no one else decides, or is told."""

from broker.outbox import Outbox
from quorum.core.milestones import Cause, Occasion, Step, milestone

__all__ = ["tell_wanted", "tell_written"]


def tell_wanted(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.DETECTED, cause))
    outbox.emit(milestone(Step.DECIDED, cause, count=1))


def tell_written(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.PERSISTED, cause, count=1))
    outbox.emit(milestone(Step.APPLIED, cause, count=1, broker=node_id))
