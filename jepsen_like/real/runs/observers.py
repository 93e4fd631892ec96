"""Observers ask every node about itself and the partitions of a workload.

`Observers` sample it while a run goes on, with a thread a node: one that is paused or cut off must
not keep the others from being seen. A sample is written when it differs from the one before.

After all faults are healed, everything must be served again within a bound: `Served` knows which
keys were written and read since, and `missing_in_cluster` asks the nodes what is not whole yet.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from jepsen_like.histories.history import Kind, Op, Value, key_of
from jepsen_like.real.clients.target import Target
from jepsen_like.real.pages import Answered
from jepsen_like.real.runs.worker_threads import Recording
from jepsen_like.workloads.workload import comparable, observation
from wire.zk.designs import Design

__all__ = ["Observers", "Served", "missing_in_cluster"]

_ANSWER_SECONDS = 1.0
_MORE = ("replicas", "elr", "high_watermark", "log_end")


class Observers:
    """Nobody observes a cluster whose nodes have no HTTP side."""

    def __init__(
        self,
        target: Target,
        topics: Sequence[str],
        recording: Recording,
        *,
        interval_seconds: float,
        design: Design | None = None,
    ) -> None:
        self._target = target
        self._topics = topics
        self._recording = recording
        self._interval_seconds = interval_seconds
        self._design = design
        self._stop = threading.Event()
        self._quorums: dict[int, Mapping[str, Any]] = {}  # as each node described it last
        self._partitions: dict[int, Mapping[str, Any]] = {}
        self._starts = Counter[int]()
        self._newest_epoch = -1
        self._threads = [
            threading.Thread(target=self._watch, args=(node,), name=f"observer-{node}", daemon=True)
            for node in target.http
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def controller(self) -> tuple[int | None, int]:
        """The node that says that it leads the newest epoch of all that were told; that epoch."""
        quorums = dict(self._quorums)
        epoch = max((quorum["epoch"] for quorum in quorums.values()), default=-1)
        leaders = (
            node
            for node, quorum in quorums.items()
            if quorum["epoch"] == epoch and quorum["role"] == "leader"
        )
        return next(leaders, None), epoch

    def elections(self) -> tuple[int, int]:
        """How often controllers and partition leaders were elected since the cluster began."""
        self._newest_epoch = max(self._newest_epoch, self.controller()[1])  # all may be down now
        leader_epochs: dict[str, int] = {}
        for states in list(self._partitions.values()):
            for key, (_, leader_epoch, *_) in states.items():
                leader_epochs[key] = max(leader_epoch, leader_epochs.get(key, 0))
        return self._newest_epoch, sum(leader_epochs.values())

    def partition_leaders(self) -> set[int]:
        """As the nodes told last; they need not agree."""
        seen = list(self._partitions.values())
        return {state[0] for states in seen for state in states.values() if state[0] >= 0}

    def _watch(self, node: int) -> None:
        last: Value = None
        while not self._stop.wait(self._interval_seconds):
            self._look_at_quorum(node)
            seen = self._look_at_partitions(node)
            if seen:
                self._partitions[node] = seen
            told = comparable(seen, self._design)
            if told and told != last:
                self._recording.enter(observation(node, told, incarnation=self._starts[node]))
                last = told

    def _look_at_quorum(self, node: int) -> None:
        answered = self._ask(node, "/v1/node")
        if answered.status == 200:
            self._quorums[node] = answered.page["quorum"]
        else:
            self._quorums.pop(node, None)

    def _look_at_partitions(self, node: int) -> dict[str, Value]:
        seen: dict[str, Value] = {}
        for topic in self._topics:
            answered = self._ask(node, f"/v1/topics/{topic}")
            if answered.status != 200:
                continue
            for row in answered.page["partitions"]:
                if row["leader"] < 0 and not row["isr"] and row["partition_epoch"] == 0:
                    continue  # nothing has been decided of it yet
                seen[key_of(topic, row["partition"])] = [
                    row["leader"],
                    row["leader_epoch"],
                    row["partition_epoch"],
                    row["isr"],
                    {name: row[name] for name in _MORE if name in row},
                ]
        return seen

    def _ask(self, node: int, path: str) -> Answered:
        """A process that is gone refuses connections for longer than one interval of samples."""
        answered = self._target.page(node, path, timeout_seconds=_ANSWER_SECONDS)
        if not answered.is_sent:
            self._starts[node] += 1  # if it comes back, it may know less than it did
        return answered


_WRITES = ("send", "write", "cas", "add", "txn", "transfer")
_READS = ("poll", "read")


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
        case [["poll", found]]:
            return list(found)
        case [["send", _, _], *_]:
            return [key for _, key, _ in value]
        case {"from": giver, "to": taker}:
            return [giver, taker]
        case dict(balances):
            return list(balances)
        case [str(key), _]:
            return [key]
        case str(element):
            return [element]
        case _:
            return []


def missing_in_cluster(target: Target, topics: Sequence[str]) -> Sequence[str]:
    """The nodes that are not ready, and the partitions that are not in sync."""
    missing = [
        f"node {node} is not ready"
        for node in target.http
        if target.page(node, "/readyz", timeout_seconds=_ANSWER_SECONDS).status != HTTPStatus.OK
    ]
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
    answered = target.page(node, f"/v1/topics/{topic}", timeout_seconds=_ANSWER_SECONDS)
    if answered.status != 200:
        return [f"node {node} does not know {topic}"]
    rows: Sequence[Mapping[str, Any]] = answered.page["partitions"]
    return [
        f"{topic}-{row['partition']} has ISR {row['isr']} of {row['replicas']} at node {node}"
        for row in rows
        if row["leader"] < 0 or set(row["replicas"]) - set(row["isr"])
    ]
