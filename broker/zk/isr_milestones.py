"""Milestones of an ISR that its leader changes by itself: no one else decides, or is told."""

from broker.outbox import Outbox
from quorum.milestones import Step, milestone

__all__ = ["tell_wanted", "tell_written"]

_ISR = "isr"


def tell_wanted(outbox: Outbox, node_id: int) -> None:
    outbox.emit(milestone(Step.DETECTED, what=_ISR, id=node_id))
    outbox.emit(milestone(Step.DECIDED, count=1, what=_ISR, id=node_id))


def tell_written(outbox: Outbox, node_id: int) -> None:
    outbox.emit(milestone(Step.PERSISTED, count=1, what=_ISR, id=node_id))
    outbox.emit(milestone(Step.APPLIED, count=1, what=_ISR, broker=node_id))
