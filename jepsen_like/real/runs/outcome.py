"""What a run measured and what came of it, as `verdict.json` and `--format json` tell it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jepsen_like.checkers.operations import paired
from jepsen_like.checkers.verdict import Outcome, Verdict, as_json
from jepsen_like.faults.fault import Scheduled
from jepsen_like.faults.fault_outcomes import FaultOutcome, fault_outcome_as_json
from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.real.runs.admitted import admitted_by, whose_document
from jepsen_like.real.runs.run_options import RunOptions

__all__ = ["Interrupted", "Measured", "Ran", "Watcher", "described", "whole_run"]


class Interrupted(Exception):
    """Somebody has had enough. The history is kept."""


class Watcher:
    """The watcher of a run is told what goes on, and asked whether to go on."""

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
    fault_outcomes: Sequence[FaultOutcome]
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


def described(options: RunOptions, ran: Ran) -> dict[str, Value]:
    """Keys are added, never changed."""
    return {
        "summary": ran.summary,
        "exit_code": ran.exit_code,
        "void": list(ran.void),
        "verdict": as_json(ran.verdict),
        "design": options.design,
        "engine": options.engine,
        "admitted": dict(
            admitted_by(whose_document(options.design, options.engine), ran.verdict.findings)
        ),
        "workload": options.workload,
        "client": options.client,
        "seed": options.seed,
        "seconds": options.seconds,
        "command": options.command,
        "directory": str(options.directory),
        "warm_up": _measured(ran.warm_up),
        "safety": _measured(ran.safety),
        "whole": _measured(ran.whole),
        "controller_elections": ran.controller_elections,
        "leader_elections": ran.leader_elections,
        "recovered_seconds": ran.recovered_seconds,
        "faults_planned": len(ran.schedule),
        "faults": [fault_outcome_as_json(struck) for struck in ran.fault_outcomes],
    }


def _measured(measured: Measured) -> dict[str, Value]:
    return {
        "seconds": round(measured.seconds, 3),
        "ok": measured.ok,
        "fail": measured.fail,
        "info": measured.info,
        "ok_a_second": round(measured.ok_a_second, 1),
    }
