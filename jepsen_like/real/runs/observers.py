"""What every node believes about the partitions of a workload, and how far its replicas have come.

Sampled while a run goes on, by a thread a node: one that is paused or cut off must not keep the
others from being seen. A sample is written when it differs from the one before.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from jepsen_like.histories.history import Value, key_of
from jepsen_like.real.clients.agent import Answered, ask
from jepsen_like.real.clients.target import Target
from jepsen_like.real.runs.worker_threads import Recording
from jepsen_like.workloads.workload import comparable, observation
from wire.zk.designs import Design

__all__ = ["Observers"]

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
        self._http = target.http
        self._topics = topics
        self._recording = recording
        self._interval_seconds = interval_seconds
        self._design = design
        self._stop = threading.Event()
        self._quorums: dict[int, Mapping[str, Any]] = {}  # as each node described it last
        self._partitions: dict[int, Mapping[str, Any]] = {}
        self._starts = Counter[int]()
        self._threads = [
            threading.Thread(target=self._watch, args=(node,), name=f"observer-{node}", daemon=True)
            for node in self._http
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
        _, epoch = self.controller()
        leader_epochs: dict[str, int] = {}
        for states in list(self._partitions.values()):
            for key, (_, leader_epoch, *_) in states.items():
                leader_epochs[key] = max(leader_epoch, leader_epochs.get(key, 0))
        return epoch, sum(leader_epochs.values())

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
        """A process that is gone refuses connections for longer than two samples are apart."""
        answered = ask(self._http[node], path, timeout_seconds=_ANSWER_SECONDS)
        if not answered.is_sent:
            self._starts[node] += 1  # if it comes back, it may know less than it did
        return answered
