"""A client's work as a sequence of steps: whom to ask what, and how long to wait in between.

    def ping(self) -> Steps[bool]:
        answer = yield Ask(node=1, body=ApiVersionsRequest(), timeout_ms=500)
        return answer is not None

Who drives it carries out one step after the other and sends back what came of it: the answer's
body, or None where there was none. The simulator does that on virtual time
(`jepsen_like.sim.chaos.workload_core`), tests with sockets. The time is read where it is needed,
from a clock that the driver gives.

A step that gets no answer may have been carried out all the same.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Ask", "Clock", "Pause", "Step", "Steps"]

Result = TypeVar("Result")
Clock = Callable[[], int]  # the time in ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    node: int
    body: object
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    ms: int


Step = Ask | Pause
Steps = Generator[Step, object, Result]
