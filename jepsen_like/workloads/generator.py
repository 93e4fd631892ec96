"""The small shared pieces of workloads: pauses, mixes, unique values, wishes until an end.

Every process draws from a generator of its own, made from the run's seed and its number: what one
process does never depends on how fast another one is. Only unique values are counted over all.

Pure. Source: jepsen.generator (stagger, mix, each-thread, phases).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from jepsen_like.histories.history import Kind, Op
from jepsen_like.workloads.workload import Wish

__all__ = [
    "UNTIL_CAUGHT_UP",
    "Turns",
    "Unique",
    "is_to_be_repeated",
    "mixed",
]

# In the extra of a wish: it is done again and again, until an ok of it has extra "caught_up".
UNTIL_CAUGHT_UP: Mapping[str, str] = {"until": "caught_up"}
Choice = TypeVar("Choice")


@dataclass(slots=True, kw_only=True)
class Turns:
    """When each process may go on, and what it draws from then.

    A pause lasts `mean_ms` on the average.
    """

    seed: int
    mean_ms: int
    _randoms: dict[int, Random] = field(default_factory=dict)
    _due_ms: dict[int, int] = field(default_factory=dict)

    def take(self, process: int, now_ms: int) -> Random | None:
        """None while the process pauses; else its generator, and a pause begins anew."""
        if now_ms < self._due_ms.get(process, 0):
            return None
        if process not in self._randoms:
            # A string, since numbers that are neighbours would be seeds of the same run twice.
            self._randoms[process] = Random(f"{self.seed}/{process}")
        random = self._randoms[process]
        self._due_ms[process] = now_ms + random.randint(0, 2 * self.mean_ms)
        return random


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


def is_to_be_repeated(wish: Wish, ended: Op) -> bool:
    """Whether a final wish is done once more: what it waits for was not seen."""
    if wish.extra.get("until") != UNTIL_CAUGHT_UP["until"]:
        return False
    return not (ended.kind is Kind.OK and ended.extra.get("caught_up"))
