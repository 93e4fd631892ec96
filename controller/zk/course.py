"""What a controller in office is dealing with, and how far it has come: its milestones.

Decides nothing. Procedures run one after another: what is decided and written belongs to the cause
that was noticed last. Where partitions are dealt with one after another, they are decided when the
first of them is, and persisted when the last is.
"""

from quorum.asking import Outbox
from quorum.milestones import Step, instant, milestone

__all__ = ["Course"]

_DECIDING = "deciding"


class Course:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._what = ""
        self._id: int | str = -1

    def hears(self, path: str) -> None:
        """A watch has fired. What it means is known when it has been read."""
        self._outbox.emit(instant(path))

    def notices(self, what: str, id_: int | str = -1, *, heard: str = "") -> None:
        """`heard`: the path of the watch that has told of it, if it was one."""
        self.detects(what, id_, heard=heard)
        self.goes_on(what, id_)

    def detects(self, what: str, id_: int | str = -1, *, heard: str = "") -> None:
        """What has to wait for its turn."""
        self._outbox.emit(milestone(Step.DETECTED, since=heard, what=what, id=id_))

    def goes_on(self, what: str, id_: int | str = -1) -> None:
        """With what was noticed before."""
        self._what, self._id = what, id_

    def decides(self) -> None:
        """The first of some partitions."""
        self._outbox.emit(instant(_DECIDING))

    def has_written(self, *, decided: int, written: int) -> None:
        """So many partitions; none is not worth a word."""
        if decided:
            self._reach(Step.DECIDED, decided, since=_DECIDING)
        if written:
            self._reach(Step.PERSISTED, written)

    def has_told(self, broker_id: int, command: str, count: int) -> None:
        """A command is on its way: again, if it has to be repeated."""
        self._outbox.emit(milestone(Step.TOLD, count=count, broker=broker_id, command=command))

    def is_elected(self, epoch: int) -> None:
        self._outbox.emit(milestone(Step.ELECTED, epoch=epoch))

    def is_ready(self, epoch: int) -> None:
        self._outbox.emit(milestone(Step.READY, epoch=epoch))

    def _reach(self, step: Step, count: int, since: str = "") -> None:
        reached = milestone(step, count=count, since=since, what=self._what, id=self._id)
        self._outbox.emit(reached)
