"""The outcome of a run and its figures, as `verdict.json` and `--format json` tell them.

A violation is a violation. Some designs, and engines, have documents that admit that a rule may be
broken (`ADMITTED`): that is told beside the violation, so that nobody looks for a mistake in the
code where the paper has it. No document admits a partition that stays stuck: only the logs of the
nodes tell whether a lost command or a mistake did that.

Source: the seeds, as docs/zookeeper-mode.md names them; for raftos, docs/engines.md.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jepsen_like.checkers.operations import paired
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, as_json
from jepsen_like.faults.fault import Scheduled
from jepsen_like.faults.validity import FaultOutcome, fault_outcome_as_json
from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.real.runs.run_options import RunOptions
from quorum.raftos.engines import NATIVE, RAFTOS

__all__ = [
    "ADMITTED",
    "Interrupted",
    "Measured",
    "Ran",
    "Watcher",
    "admitted_by",
    "described",
    "whole_run",
    "whose_document",
    "why_admitted",
]

_HIGH_WATERMARK = (
    "a follower takes back what lies above a high watermark that lags (KAFKA-1211), and without a "
    "live member of the ISR any live replica leads: potential data loss (seed 000, A.3.2)"
)
_LOSES = (  # the last one: an offset that was taken back is given again
    "lost-write",
    "unseen",
    "vanished",
    "inconsistent-offsets",
    "acknowledged-elsewhere",
    "not-linearizable",
)
_SPLIT_BRAIN = (
    "without epochs a leader that has lost its session acknowledges beside its successor (the "
    "split brain that seed 004 names)"
)
_BY_REPLICAS = (
    "a replica takes back what lies above a high watermark that lags, and after "
    "LeaderElectionWaitTime replicas outside the ISR may lead (seed 002)"
)
_RAFTOS = (
    "raftos forgets its votes, so that a term may have two leaders, and a late copy of a message "
    "cuts off what a follower has acknowledged (docs/engines.md)"
)

ADMITTED: Mapping[str, Mapping[str, str]] = {
    "zk-v1": dict.fromkeys(_LOSES, f"{_SPLIT_BRAIN}; {_BY_REPLICAS}"),
    "zk-v2": dict.fromkeys(_LOSES, _BY_REPLICAS),
    "zk-v3": dict.fromkeys(_LOSES, _HIGH_WATERMARK),
    RAFTOS: dict.fromkeys(_LOSES, _RAFTOS),
}


def whose_document(design: str, engine: str = NATIVE) -> str:
    """The document of the design, unless another engine than ours replicates its log."""
    return design if engine == NATIVE else engine


def why_admitted(whose: str, finding: Finding) -> str:
    """The sentence; nothing if the document promises otherwise."""
    return ADMITTED.get(whose, {}).get(finding.rule, "")


def admitted_by(whose: str, findings: Iterable[Finding]) -> dict[str, str]:
    """By rule, of those that were broken."""
    return {each.rule: why for each in findings if (why := why_admitted(whose, each))}


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
    """The operations of clients in one phase, or in all of them."""

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
        "security": options.security,
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
        "faults": [fault_outcome_as_json(each) for each in ran.fault_outcomes],
    }


def _measured(measured: Measured) -> dict[str, Value]:
    return {
        "seconds": round(measured.seconds, 3),
        "ok": measured.ok,
        "fail": measured.fail,
        "info": measured.info,
        "ok_a_second": round(measured.ok_a_second, 1),
    }
