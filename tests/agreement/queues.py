"""A FIFO queue, honest or not, and what its operations may do."""

from dataclasses import dataclass, field
from typing import Any

from jepsen_like.checkers.models import ILLEGAL
from jepsen_like.checkers.operations import Operation
from jepsen_like.histories.history import Kind
from tests.agreement.objects import KEY, _Liar
from tests.agreement.playing import Answer

__all__ = ["Queue", "RepeatingQueue", "after_queueing"]


@dataclass
class Queue(_Liar):
    workload = "queue"
    values: list[int] = field(default_factory=list)

    def wish(self, number: int) -> tuple[str, Any]:
        if self.random.random() < 0.5:
            return "enqueue", [KEY, number]
        return "dequeue", [KEY, None]

    def answer(self, f: str, argument: Any) -> Answer:
        if f == "enqueue":
            at = self.random.randrange(len(self.values) + 1) if self.lies() else len(self.values)
            self.values.insert(at, argument[1])
            return Answer()
        if not self.values or (self.lies() and self.random.random() < 0.5):
            return Answer(value=[KEY, None])
        at = self.random.randrange(len(self.values)) if self.lies() else 0
        value = self.values[at]
        if not self.lies():
            self.values.pop(at)
        return Answer(value=[KEY, value])


class RepeatingQueue(Queue):
    def wish(self, number: int) -> tuple[str, Any]:
        return super().wish(number % 3)


def after_queueing(values: tuple[int, ...], operation: Operation) -> Any:
    if operation.f == "enqueue":
        return (*values, operation.argument)
    if operation.kind is Kind.INFO:
        return values[1:]
    head = values[0] if values else None
    return values[1:] if operation.result == head else ILLEGAL
