"""After all faults are healed: what must be so again within a bound, and what is missing yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.real.clients.agent import ask
from jepsen_like.real.clients.target import Target

__all__ = ["Served", "missing_in_cluster"]

_WRITES = ("send", "write", "cas", "add")
_READS = ("poll", "read")
_ANSWER_SECONDS = 1.0


@dataclass(slots=True)
class Served:
    """Which keys were written and read since the faults were healed. Told of every op."""

    keys: Sequence[str]  # that must be; empty: any one
    _since: int | None = None  # the index of the history behind which operations must begin
    _invoked: dict[int | str, int] = field(default_factory=dict)
    _written: set[str] = field(default_factory=set)
    _read: set[str] = field(default_factory=set)

    def begin(self, op: Op) -> None:
        """All is healed."""
        self._since = op.index

    def __call__(self, op: Op) -> None:
        if op.kind is Kind.INVOKE:
            self._invoked[op.process] = op.index
            return
        began = self._invoked.pop(op.process, -1)
        if self._since is None or began < self._since or op.kind is not Kind.OK:
            return
        if op.f in _WRITES:
            self._written.update(_keys(op.value))
        elif op.f in _READS:
            self._read.update(_keys(op.value))

    def missing(self) -> Sequence[str]:
        if not self.keys:
            return [] if self._written else ["nothing was written yet"]
        unwritten = sorted(set(self.keys) - self._written)
        unread = sorted(set(self.keys) - self._read)
        return [
            *([f"not written: {', '.join(unwritten)}"] if unwritten else []),
            *([f"not read: {', '.join(unread)}"] if unread else []),
        ]


def _keys(value: Value) -> Sequence[str]:
    """The keys in the value of an ok operation, in each of its forms."""
    match value:
        case [["send", key, _]]:
            return [key]
        case [["poll", found]]:
            return list(found)
        case [str(key), _]:
            return [key]
        case str(element):
            return [element]
        case _:
            return []


def missing_in_cluster(target: Target, topics: Sequence[str]) -> Sequence[str]:
    """What keeps our own nodes from being whole: who is not ready, what is not in sync."""
    missing = []
    for node, address in target.http.items():
        if ask(address, "/readyz", timeout_seconds=_ANSWER_SECONDS).status != 200:
            missing.append(f"node {node} is not ready")
    if missing:
        return missing
    brokers = [node for node in target.http if node in target.brokers]
    return [
        reason
        for topic in topics
        for node in brokers
        for reason in _out_of_sync(target, node, topic)
    ]


def _out_of_sync(target: Target, node: int, topic: str) -> Sequence[str]:
    answered = ask(target.http[node], f"/v1/topics/{topic}", timeout_seconds=_ANSWER_SECONDS)
    if answered.status != 200:
        return [f"node {node} does not know {topic}"]
    rows: Sequence[Mapping[str, Any]] = answered.page["partitions"]
    return [
        f"{topic}-{row['partition']} has ISR {row['isr']} of {row['replicas']} at node {node}"
        for row in rows
        if row["leader"] < 0 or set(row["replicas"]) - set(row["isr"])
    ]
