"""The small shared pieces of workloads: pauses, mixes, unique values, wishes until an end.

Every process draws from a generator of its own, made from the run's seed and its number: what one
process does never depends on how fast another one is. Only unique values are counted over all.

Pure. Source: jepsen.generator (stagger, mix, each-thread, phases).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from jepsen_like.history import Kind, Op
from jepsen_like.workload import Wish

__all__ = [
    "UNTIL_CAUGHT_UP",
    "Pace",
    "Randoms",
    "Unique",
    "is_to_be_repeated",
    "mixed",
]

# In the extra of a wish: it is done again and again, until an ok of it has extra "caught_up".
UNTIL_CAUGHT_UP: Mapping[str, str] = {"until": "caught_up"}
Choice = TypeVar("Choice")


@dataclass(slots=True)
class Randoms:
    """The random generator of each process."""

    seed: int
    _made: dict[int, Random] = field(default_factory=dict)

    def of(self, process: int) -> Random:
        if process not in self._made:
            # A string, since numbers that are neighbours would be seeds of the same run twice.
            self._made[process] = Random(f"{self.seed}/{process}")
        return self._made[process]


def mixed(random: Random, weights: Mapping[Choice, int]) -> Choice:
    """One of the keys, as often as its weight says."""
    choices: Sequence[Choice] = tuple(weights)
    return random.choices(choices, tuple(weights.values()))[0]


@dataclass(slots=True)
class Unique:
    """Values that are never given twice."""

    last: int = 0

    def next(self) -> int:
        self.last += 1
        return self.last


@dataclass(slots=True)
class Pace:
    """When each process may go on: after a pause that is `mean_ms` on the average."""

    mean_ms: int
    due_ms: dict[int, int] = field(default_factory=dict)

    def is_due(self, process: int, now_ms: int, random: Random) -> bool:
        """True once a pause, which begins anew thereby."""
        if now_ms < self.due_ms.get(process, 0):
            return False
        self.due_ms[process] = now_ms + random.randint(0, 2 * self.mean_ms)
        return True


def is_to_be_repeated(wish: Wish, ended: Op) -> bool:
    """Whether a final wish is done once more: what it waits for was not seen."""
    if wish.extra.get("until") != UNTIL_CAUGHT_UP["until"]:
        return False
    return not (ended.kind is Kind.OK and ended.extra.get("caught_up"))
