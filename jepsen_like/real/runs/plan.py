"""Which faults a run has, when, and whether what came of them proves anything."""

from collections.abc import Sequence
from random import Random

from jepsen_like.faults import Fault, Role, Scheduled
from jepsen_like.real.runs.options import RunOptions
from jepsen_like.real.runs.outcome import Ran

__all__ = ["kinds_of_faults", "schedule_of", "why_void"]

_PERIOD_MS = 5_000
_LASTS_MS = 2_500
_FLOOR = 0.25
_FAULT_EVERY_SECONDS = 10
_ROLES = (Role.LEADER, Role.ACTIVE_CONTROLLER, Role.ONE_BROKER, Role.ONE_CONTROLLER)
_KINDS = ("kill", "pause", "stop", "partition", "delay", "reset")


def kinds_of_faults(*, is_theirs: bool) -> Sequence[str]:
    return () if is_theirs else _KINDS


def schedule_of(options: RunOptions) -> Sequence[Scheduled]:
    random = Random(options.seed)
    if not options.faults:
        return ()
    return [
        Scheduled(
            at_ms=at_ms,
            lasts_ms=_LASTS_MS,
            fault=Fault(kind=random.choice(options.faults), role=random.choice(_ROLES)),
        )
        for at_ms in range(500, options.seconds * 1000 - _LASTS_MS, _PERIOD_MS)
    ]


def why_void(options: RunOptions, ran: Ran) -> tuple[str, ...]:
    reasons = []
    proven = sum(struck.proof.bit for struck in ran.struck)
    due = options.seconds // _FAULT_EVERY_SECONDS if options.faults else 0
    if proven < due:
        reasons.append(f"{proven} faults are proven, {due} are due")
    if ran.safety.ok_a_second < _FLOOR * ran.warm_up.ok_a_second:
        reasons.append("throughput fell below a quarter")
    return tuple(reasons)
