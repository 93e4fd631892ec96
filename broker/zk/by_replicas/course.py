"""How far the replicas on one broker are with electing leaders: their milestones.

Decides nothing. What is told is that of a run, in which all leaders' nodes that have changed are
looked at one after another: whom it found without a leader and why, where this broker stood and
won, and how many replicas know their leader now. They are decided when the first stood, detected
when the first watch of the run fired.
"""

from collections import Counter
from collections.abc import Callable

from broker.zk.by_replicas.held import Held
from controller.metadata.partitions import NO_LEADER
from quorum.effects import Trace
from quorum.milestones import Step, instant, milestone

__all__ = ["Course"]

_BEGUN = "leader changes"
_STOOD = "stood for a leader"
_Cause = tuple[str, int | str]


class Course:
    """Of a run after the other."""

    def __init__(self, node_id: int, tell: Callable[[Trace], None]) -> None:
        self._node_id = node_id
        self._tell = tell
        self._leaderless: Counter[_Cause] = Counter()
        self._stood: Counter[_Cause] = Counter()
        self._won: Counter[_Cause] = Counter()
        self._known: Counter[_Cause] = Counter()
        self._has_begun = False

    def hears(self) -> None:
        """A watch has fired: the first begins a run, the others belong to it."""
        if not self._has_begun:
            self._has_begun = True
            self._tell(instant(_BEGUN))

    def misses_leader(self, held: Held) -> None:
        self._leaderless[_cause(held)] += 1

    def stands(self, held: Held) -> None:
        if not self._stood:
            self._tell(instant(_STOOD))
        self._stood[_cause(held)] += 1

    def wins(self, held: Held) -> None:
        self._won[_cause(held)] += 1

    def finds_leader(self, held: Held) -> None:
        """Another than `held` has."""
        self._known[_cause(held)] += 1

    def ends(self) -> None:
        """The run is over."""
        for each in self._leaderless:
            self._reach(Step.DETECTED, 0, each, _BEGUN)
        for each, count in self._stood.items():
            self._reach(Step.DECIDED, count, each, _STOOD)
        for each, count in self._won.items():
            self._reach(Step.PERSISTED, count, each)
        for (what, id_), count in self._known.items():
            applied = milestone(Step.APPLIED, count=count, what=what, id=id_, broker=self._node_id)
            self._tell(applied)
        for counts in (self._leaderless, self._stood, self._won, self._known):
            counts.clear()
        self._has_begun = False

    def _reach(self, step: Step, count: int, cause: _Cause, since: str = "") -> None:
        what, id_ = cause
        self._tell(milestone(step, count=count, since=since, what=what, id=id_))


def _cause(held: Held) -> _Cause:
    """Whoever led is gone, or nobody ever did."""
    if held.leader == NO_LEADER:
        return "topic", held.of.topic
    return "broker-failed", held.leader
