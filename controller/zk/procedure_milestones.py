"""Milestones of an active controller in ZooKeeper mode: what it is working on, and how far it is.

Decides nothing. Procedures run one after another, so decisions and writes belong to the cause that
was noticed last. Where partitions are worked on one after another, they count as decided when the
first of them is, and as persisted when the last one is.
"""

from controller.milestones import Cause, Occasion, Step, instant, milestone
from quorum.core.outbox import Outbox

__all__ = ["ProcedureMilestones"]

_DECIDING = "deciding"


class ProcedureMilestones:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._cause = Cause(Occasion.REQUEST)

    def watch_fired(self, path: str) -> None:
        """The meaning of the event is known once the node has been read."""
        self._outbox.emit(instant(path))

    def begin(self, cause: Cause, *, heard: str = "") -> None:
        """The cause is noticed, and work on it begins. `heard` is the path of the watch that
        fired."""
        self.detected(cause, heard=heard)
        self.go_on(cause)

    def detected(self, cause: Cause, *, heard: str = "") -> None:
        """The cause is noticed, and has to wait for its turn."""
        self._outbox.emit(milestone(Step.DETECTED, cause, since=heard))

    def go_on(self, cause: Cause) -> None:
        """Work continues on a cause that was noticed before."""
        self._cause = cause

    def deciding(self) -> None:
        """The first of some partitions is being decided."""
        self._outbox.emit(instant(_DECIDING))

    def written(self, *, decided: int, persisted: int) -> None:
        """Counts of partitions; zero is not traced."""
        if decided:
            self._outbox.emit(milestone(Step.DECIDED, self._cause, count=decided, since=_DECIDING))
        if persisted:
            self._outbox.emit(milestone(Step.PERSISTED, self._cause, count=persisted))

    def told(self, broker_id: int, command: str, count: int) -> None:
        """A command is on its way, perhaps repeated."""
        self._outbox.emit(milestone(Step.TOLD, count=count, broker=broker_id, command=command))

    def elected(self, epoch: int) -> None:
        self._outbox.emit(milestone(Step.ELECTED, epoch=epoch))

    def ready(self, epoch: int) -> None:
        self._outbox.emit(milestone(Step.READY, epoch=epoch))
