"""How a search works in turns, and what it says at the end."""

from collections.abc import Generator
from dataclasses import dataclass

from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.verdict import Outcome

__all__ = ["TURN", "Answer", "Search"]

TURN = 512  # configurations that one search looks at before another has its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    outcome: Outcome
    blocked: Operation | None = None  # violated: the one that no order has a place for
    reason: str = ""  # undecided: why
    steps: int = 0


# Yields how many configurations it remembers, once a turn; returns the answer.
Search = Generator[int, None, Answer]
