"""Does a run prove anything? One whose faults never bit, or that did nothing meanwhile, is void.

A void run is not a good one: it is counted as what it is, and says why. The bounds were fixed
before the first run: one proven fault every ten seconds, every wanted kind at least once,
operations under way during each fault, an election wherever the active controller was away for
long enough, and a quarter of the throughput that there was without faults.

Pure. Source: the validity rules of etcd's robustness tests (a floor of requests a second) and
section 4 of the reliability facts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jepsen_like.faults.fault import Proof, Role, Scheduled
from jepsen_like.faults.kinds import KINDS
from jepsen_like.histories.history import NEMESIS, Kind, Op, Value

__all__ = ["FaultOutcome", "Figures", "fault_outcome_as_json", "operations_during", "why_void"]

FLOOR = 0.25
_FAULT_EVERY_SECONDS = 10
_ELECTION_MS = 2_500  # the time-outs add up to less: a leader away so long has been replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutcome:
    """A fault of the schedule that was injected and healed, and what came of it."""

    scheduled: Scheduled
    nodes: tuple[int, ...]
    injected_ms: int
    healed_ms: int
    proof: Proof

    @property
    def kind(self) -> str:
        return self.scheduled.fault.kind

    @property
    def wants_election(self) -> bool:
        return (
            self.proof.bit
            and self.scheduled.fault.role is Role.ACTIVE_CONTROLLER
            and KINDS[self.kind].ends_leadership
            and self.healed_ms - self.injected_ms >= _ELECTION_MS
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures that decide. Throughputs are of operations that ended as `ok`."""

    seconds: int  # with faults
    kinds: Sequence[str]  # that were wanted
    faults: Sequence[FaultOutcome]
    operations: Sequence[int]  # of clients, under way at some moment of each fault
    ok_a_second: float
    ok_a_second_without_faults: float
    controller_elections: int  # while there were faults


def why_void(figures: Figures) -> tuple[str, ...]:
    """All reasons; none if the run counts."""
    return tuple(_reasons(figures))


def _reasons(figures: Figures) -> Iterable[str]:
    bitten = [fault for fault in figures.faults if fault.proof.bit]
    if figures.kinds:
        for kind in figures.kinds:
            if not any(fault.kind == kind for fault in bitten):
                tried = sum(fault.kind == kind for fault in figures.faults)
                yield f"{kind} never bit (it was tried {tried} times)"
        due = max(1, figures.seconds // _FAULT_EVERY_SECONDS)
        if len(bitten) < due:
            yield f"{len(bitten)} faults are proven, and {due} are due in {figures.seconds} s"
    during = zip(figures.faults, figures.operations, strict=True)
    idle = [fault for fault, operations in during if fault.proof.bit and not operations]
    if idle:
        kinds = ", ".join(sorted({fault.kind for fault in idle}))
        yield f"no operation was under way during {len(idle)} of the faults ({kinds})"
    elections = sum(fault.wants_election for fault in figures.faults)
    if figures.controller_elections < elections:
        yield (
            f"{elections} elections of a controller were due, and "
            f"{figures.controller_elections} were seen"
        )
    floor = FLOOR * figures.ok_a_second_without_faults
    if not floor:
        yield "nothing succeeded without faults, so that there is no floor"
    elif figures.ok_a_second < floor:
        yield (
            f"{figures.ok_a_second:.1f} operations a second succeeded, below the floor of"
            f" {floor:.1f}, a quarter of what there were without faults"
        )


def operations_during(ops: Sequence[Op], faults: Iterable[FaultOutcome]) -> list[int]:
    """For each fault of a run, how many operations of clients were under way in it."""
    under_way = list(_spans_ns(ops))
    return [
        sum(
            began <= fault.healed_ms * 1_000_000 and ended >= fault.injected_ms * 1_000_000
            for began, ended in under_way
        )
        for fault in faults
    ]


def _spans_ns(ops: Sequence[Op]) -> Iterable[tuple[int, int]]:
    """Yields the span of every client operation; one without an end lasts to the last line."""
    begun: dict[int | str, int] = {}
    for op in ops:
        if op.process == NEMESIS or not isinstance(op.process, int):
            continue
        if op.kind is Kind.INVOKE:
            begun[op.process] = op.time_ns
        elif op.process in begun:
            yield begun.pop(op.process), op.time_ns
    last_ns = ops[-1].time_ns if ops else 0
    yield from ((began, last_ns) for began in begun.values())


def fault_outcome_as_json(outcome: FaultOutcome) -> dict[str, Value]:
    """As `verdict.json` has it."""
    fault = outcome.scheduled.fault
    return {
        "kind": fault.kind,
        "role": fault.role.value,
        "nodes": list(outcome.nodes),
        "parameters": dict(fault.parameters),
        "injected_ms": outcome.injected_ms,
        "healed_ms": outcome.healed_ms,
        "bit": outcome.proof.bit,
        "evidence": outcome.proof.evidence,
    }
