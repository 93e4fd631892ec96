"""Milestones tell how far the replicas on one broker are with electing leaders.

Nothing is decided here. Milestones are those of a run, which looks one after another at all
leaders' nodes that have changed: the partitions that it found without a leader and why, the
elections in which this broker was a candidate and won, and the replicas that know their leader now.
Partitions count as detected when the first watch of the run fired, and as decided when the first
candidacy began.
"""

from collections import Counter

from broker.zk.by_replicas.held import Held
from controller.metadata.partitions import NO_LEADER
from controller.milestones import Cause, Occasion, Step, instant, milestone
from quorum.core.outbox import Outbox

__all__ = ["ElectionMilestones"]

_BEGUN = "leader changes"
_STOOD = "stood for a leader"


class ElectionMilestones:
    def __init__(self, node_id: int, outbox: Outbox) -> None:
        self._node_id = node_id
        self._outbox = outbox
        self._leaderless: Counter[Cause] = Counter()
        self._stood: Counter[Cause] = Counter()
        self._won: Counter[Cause] = Counter()
        self._known: Counter[Cause] = Counter()
        self._has_begun = False

    def watch_fired(self) -> None:
        """The first begins a run, the others belong to it."""
        if not self._has_begun:
            self._has_begun = True
            self._outbox.emit(instant(_BEGUN))

    def misses_leader(self, held: Held) -> None:
        self._leaderless[_cause(held)] += 1

    def stands(self, held: Held) -> None:
        if not self._stood:
            self._outbox.emit(instant(_STOOD))
        self._stood[_cause(held)] += 1

    def wins(self, held: Held) -> None:
        self._won[_cause(held)] += 1

    def finds_leader(self, held: Held) -> None:
        """The leader is another than `held` has."""
        self._known[_cause(held)] += 1

    def run_ended(self) -> None:
        for cause in self._leaderless:
            self._outbox.emit(milestone(Step.DETECTED, cause, since=_BEGUN))
        for cause, count in self._stood.items():
            self._outbox.emit(milestone(Step.DECIDED, cause, count=count, since=_STOOD))
        for cause, count in self._won.items():
            self._outbox.emit(milestone(Step.PERSISTED, cause, count=count))
        for cause, count in self._known.items():
            self._outbox.emit(milestone(Step.APPLIED, cause, count=count, broker=self._node_id))
        for counts in (self._leaderless, self._stood, self._won, self._known):
            counts.clear()
        self._has_begun = False


def _cause(held: Held) -> Cause:
    """The former leader is gone, or the partition never had one."""
    if held.leader == NO_LEADER:
        return Cause(Occasion.TOPIC, held.of.topic)
    return Cause(Occasion.BROKER_FAILED, held.leader)
