"""A row of agreement: how its histories are made, and what `judge` says beside the truth.

Each honest history is judged once more with one answer changed: what the truth then
calls wrong was planted, and must be found. A verdict may be undecided for a known reason only.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from jepsen_like.checkers.operations import NEVER, operations
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import History
from tests.agreement.planting import changed

__all__ = ["DOUBTS", "Compared", "Row", "Tally", "known_doubts", "tallied"]

# What may leave a verdict open, and by what words of its reason it is known.
DOUBTS = {
    "nothing was ok": "no operation that is judged was ok",
    "search ended": "not decided after",
    "nobody read it back": "acknowledged values were not read, and no reader that began",
    "offset not told": "an acknowledgement did not tell its offset",
}


@dataclass(slots=True)
class Tally:
    """What came of a number of histories of one row."""

    truth: Counter[Outcome] = field(default_factory=Counter)
    undecided: int = 0
    unknown: int = 0  # histories with operations of unknown end
    reasons: Counter[str] = field(default_factory=Counter)
    planted: int = 0
    found: int = 0  # of these
    wrong: list[str] = field(default_factory=list)  # who was, and where

    def add_reason(self, verdict: Verdict, where: str) -> None:
        for doubt in known_doubts(verdict):
            self.reasons[doubt] += 1
            if doubt not in DOUBTS:
                self.wrong.append(f"{where}: undecided, because {doubt!r}")


@dataclass(frozen=True, slots=True)
class Compared:
    truth: Outcome
    verdict: Verdict
    differs: list[str]


@dataclass(frozen=True, slots=True)
class Row:
    """`make`: a history of clients; the share of lies among what they are told."""

    make: Callable[[Random, float], History]
    compare: Callable[[History], Compared]


def known_doubts(verdict: Verdict) -> Iterable[str]:
    """The names of what leaves it open; the reason itself, where that is none of the known."""
    if verdict.outcome is not Outcome.UNDECIDED:
        return []
    found = [name for name, words in DOUBTS.items() if words in verdict.reason]
    return found or [verdict.reason]


def tallied(name: str, row: Row, numbers: Iterable[int]) -> Tally:
    tally = Tally()
    for number in numbers:
        random = Random(f"free {name} {number}")
        lying = random.choice([0.0, 0.0, 0.1, 0.3])
        history = row.make(random, lying)
        where = f"{name} {number}"
        compared = row.compare(history)
        tally.truth[compared.truth] += 1
        tally.unknown += any(each.ret == NEVER for each in operations(history.ops))
        tally.undecided += compared.verdict.outcome is Outcome.UNDECIDED
        tally.add_reason(compared.verdict, where)
        tally.wrong += [f"{where}: {each}" for each in compared.differs]
        if not lying:
            if compared.truth is Outcome.VIOLATED:
                tally.wrong.append(f"{where}: it is honest, and called wrong by the truth")
            _plant(tally, row, changed(history, random), f"{where}, changed")
    return tally


def _plant(tally: Tally, row: Row, history: History, where: str) -> None:
    compared = row.compare(history)
    tally.wrong += [f"{where}: {each}" for each in compared.differs]
    if compared.truth is Outcome.VIOLATED:
        tally.planted += 1
        tally.found += compared.verdict.outcome is Outcome.VIOLATED
