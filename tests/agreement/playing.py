"""Small random histories of an object: processes that wish for something, and what they were told.

An operation takes effect when it is answered. Of a share of them nobody learns the end: they took
effect at once, or do so later, or never. What the object answers is its own affair: it may lie.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from jepsen_like.histories.history import Value
from tests.jepsen_like.play import Play

__all__ = ["UNKNOWN_MAX", "Answer", "Simulated", "played"]

UNKNOWN_MAX = 0.15  # share of operations without a known end, at most
_PROCESSES = 3
_FAILED = 0.06  # share of operations that fail
_FALSELY = 0.1  # share of these that were done nevertheless


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    value: Value = None
    has_failed: bool = False
    extra: dict[str, Value] = field(default_factory=dict)


class Simulated(Protocol):
    workload: str
    fails_falsely: bool

    def wish(self, number: int) -> tuple[str, Any]:
        """What is asked next, and with what argument; `number` is asked for once only."""
        ...

    def answer(self, f: str, argument: Any) -> Answer:
        """It takes effect now."""
        ...


def played(simulated: Simulated, random: Random) -> Play:
    play = Play(workload=simulated.workload)
    unknown = random.choice([0.0, UNKNOWN_MAX * random.random()])
    names = list(range(_PROCESSES))
    pending: dict[int, tuple[str, Any]] = {}
    late: list[tuple[str, Any]] = []
    for number in range(random.randint(6, 20)):
        if late and random.random() < 0.3:
            simulated.answer(*late.pop())
        place = random.randrange(_PROCESSES)
        process = names[place]
        if process not in pending:
            pending[process] = simulated.wish(number)
            play.invoke(process, *pending[process])
        elif random.random() < unknown:
            wish = pending.pop(process)
            match random.choice(["now", "late", "never"]):
                case "now":
                    simulated.answer(*wish)
                case "late":
                    late.append(wish)
            play.info(process)
            names[place] += _PROCESSES
        elif random.random() < _FAILED:
            f, argument = pending.pop(process)
            if simulated.fails_falsely and random.random() < _FALSELY:
                simulated.answer(f, argument)
            play.fail(process)
        else:
            answer = simulated.answer(*pending.pop(process))
            end = play.fail if answer.has_failed else play.ok
            end(process, answer.value, **answer.extra)
    return play
