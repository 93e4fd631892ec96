"""The outcome of a simulated run."""

from dataclasses import dataclass, field
from hashlib import blake2b

from jepsen_like.checkers.verdict import Verdict
from jepsen_like.faults.fault import Scheduled
from jepsen_like.faults.validity import FaultOutcome
from jepsen_like.histories.history import History, encode_header, encode_op
from jepsen_like.sim.chaos.plan import Plan

__all__ = ["ChaosOutcome", "digest_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosOutcome:
    plan: Plan
    schedule: tuple[Scheduled, ...]
    history: History
    verdict: Verdict
    broken: str = ""  # the invariant that was, how a core failed, or an exception
    is_error: bool = False  # an exception that no rule foresees: then nothing is judged
    void: tuple[str, ...] = ()
    fault_outcomes: tuple[FaultOutcome, ...] = ()
    digest: str
    now_ms: int
    events: int
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_red(self) -> bool:
        return bool(self.verdict.findings) or bool(self.broken)


def digest_of(history: History, of_stage: str) -> str:
    digest = blake2b(encode_header(history.header), digest_size=8)
    for op in history.ops:
        digest.update(encode_op(op))
    digest.update(of_stage.encode())
    return digest.hexdigest()
