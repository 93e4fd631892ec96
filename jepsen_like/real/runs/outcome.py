"""What a run measured, and what came of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jepsen_like.checkers.operations import paired
from jepsen_like.faults import Scheduled
from jepsen_like.history import Kind, Op
from jepsen_like.struck import Struck
from jepsen_like.verdict import Outcome, Verdict

__all__ = ["Interrupted", "Measured", "Ran", "Watcher", "whole_run"]


class Interrupted(Exception):
    """Somebody has had enough. The history is kept."""


class Watcher:
    """Who watches a run: told what goes on, and asked whether to go on."""

    def progress(self, text: str) -> None:
        """One line, which replaces the one before."""

    def is_interrupted(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What clients did in one phase, or in all of them."""

    seconds: float
    ok: int
    fail: int
    info: int

    @property
    def ok_a_second(self) -> float:
        return self.ok / self.seconds if self.seconds else 0.0


def whole_run(ops: Sequence[Op]) -> Measured:
    """Counts every operation that a client began, as the page does; unended ones are info."""
    counts = Counter(each.kind for each in paired(ops))
    return Measured(
        seconds=ops[-1].time_ns / 1e9 if ops else 0.0,
        ok=counts[Kind.OK],
        fail=counts[Kind.FAIL],
        info=counts[Kind.INFO],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    verdict: Verdict
    warm_up: Measured
    safety: Measured
    schedule: Sequence[Scheduled]
    struck: Sequence[Struck]
    controller_elections: int  # in the safety phase
    leader_elections: int  # of partitions, in the safety phase
    recovered_seconds: float | None  # from the last heal until all was served again
    whole: Measured = Measured(seconds=0.0, ok=0, fail=0, info=0)  # all phases
    void: Sequence[str] = ()  # why it proves nothing, if it found nothing

    @property
    def summary(self) -> str:
        """valid, violated, undecided or void."""
        is_void = self.void and self.verdict.outcome is not Outcome.VIOLATED
        return "void" if is_void else self.verdict.outcome.value

    @property
    def exit_code(self) -> int:
        outcome = Outcome.UNDECIDED if self.summary == "void" else self.verdict.outcome
        return outcome.exit_code
