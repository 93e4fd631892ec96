"""The trees of a world: one for each log, of all that its replicas ever wrote.

Of a partition the rules of `LogTree` are D-ONE and D-DIV.
"""

from uuid import UUID

from jepsen_like.sim.logs.logtree import Entry, LogTree
from jepsen_like.sim.logs.tolerance import Tolerance
from quorum.core.storage import METADATA_LOG
from wire.primitives import METADATA_TOPIC_ID

__all__ = ["LogTrees"]


class LogTrees:
    def __init__(self, tolerance: Tolerance | None = None) -> None:
        """With `tolerance`: two batches may have one place."""
        self._tolerance = tolerance
        self._trees: dict[tuple[str, UUID], LogTree] = {}

    def of(self, log: str, topic_id: UUID) -> LogTree:
        if log == METADATA_LOG:
            topic_id = METADATA_TOPIC_ID
        known = self._trees.get((log, topic_id))
        if known is None:
            known = self._trees[log, topic_id] = self._new(log)
        return known

    def _new(self, log: str) -> LogTree:
        rules = () if log == METADATA_LOG else ("D-ONE", "D-DIV")
        if self._tolerance is None:
            return LogTree(*rules)
        return _TolerantTree(self._tolerance, *rules)


class _TolerantTree(LogTree):
    """A tree all the same, which knows the latest of the batches that have one place."""

    __slots__ = ("_tolerance",)

    def __init__(self, tolerance: Tolerance, *rules: str) -> None:
        super().__init__(*rules)
        self._tolerance = tolerance

    def _add(self, entry: Entry) -> None:
        with self._tolerance:
            super()._add(entry)
        self._children[(entry.parent, entry.records)] = entry
        self._by_end[entry.end] = entry
