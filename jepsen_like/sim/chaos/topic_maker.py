"""Makes a workload's topics before its history begins: a workload of its own, and its client."""

from collections.abc import Sequence

from jepsen_like.clients.admin_client import create_topic
from jepsen_like.clients.steps import Steps
from jepsen_like.histories.history import Kind, Op
from jepsen_like.workloads.workload import Done, NewTopic, Wish

__all__ = ["TopicMaker"]


class TopicMaker:
    name = "setup"
    processes = 1

    def __init__(self, topics: Sequence[NewTopic], broker: int, timeout_ms: int) -> None:
        self.topics = topics
        self._left = {topic.name: topic for topic in topics}
        self._broker = broker
        self._timeout_ms = timeout_ms

    @property
    def missing(self) -> str:
        return ", ".join(self._left)

    def next(self, process: int, now_ms: int) -> Wish | None:
        return Wish(f="add", value=next(iter(self._left))) if self._left else None

    def perform(self, wish: Wish) -> Steps[Done]:
        error = yield from create_topic(self._left[wish.value], self._broker, self._timeout_ms)
        return Done(kind=Kind.OK if error is not None else Kind.INFO, value=wish.value)

    def completed(self, op: Op) -> None:
        if op.kind is Kind.OK:
            self._left.pop(op.value, None)

    def final(self, process: int) -> Sequence[Wish]:
        return ()
