"""Does a run prove anything? One whose faults never bit, or that did nothing meanwhile, is void.

A void run is not a good one: it is counted as what it is, and says why. The bounds were fixed
before the first run: one proven fault every ten seconds, every wanted kind at least once,
operations under way during each fault, an election wherever the active controller was away for
long enough, and a quarter of the throughput that there was without faults.

The process "nemesis" enters in the history what came of each fault: `inject` and `heal`, with the
fault's number, kind, role, nodes and parameters; `heal` has what shows whether it bit. A fault that
cannot be injected (nobody has the role, or the node is down by an earlier fault) is `not-injected`,
with the reason: it never counts.

Pure. Source: the validity rules of etcd's robustness tests (a floor of requests a second) and
section 4 of the reliability facts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jepsen_like.faults.fault import Fault, Proof, Role, Scheduled
from jepsen_like.faults.kinds import KINDS
from jepsen_like.histories.history import NEMESIS, Kind, Op, Value
from jepsen_like.workloads.workload import deed

__all__ = [
    "FaultOutcome",
    "Figures",
    "fault_outcome_as_json",
    "healed",
    "injected",
    "not_injected",
    "operations_during",
    "why_void",
]

FLOOR = 0.25
_FAULT_EVERY_SECONDS = 10
_ELECTION_MS = 2_500  # the time-outs add up to less: a leader away so long has been replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutcome:
    """A fault of the schedule that was injected and healed, and what came of it."""

    number: int  # in the schedule
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
    strikes: Sequence[FaultOutcome]
    operations: Sequence[int]  # of clients, under way at some moment of each strike
    ok_a_second: float
    ok_a_second_without_faults: float
    controller_elections: int  # while there were faults


def why_void(figures: Figures) -> tuple[str, ...]:
    """All reasons; none if the run counts."""
    return tuple(_reasons(figures))


def _reasons(figures: Figures) -> Iterable[str]:
    bitten = [strike for strike in figures.strikes if strike.proof.bit]
    if figures.kinds:
        for kind in figures.kinds:
            if not any(strike.kind == kind for strike in bitten):
                tried = sum(strike.kind == kind for strike in figures.strikes)
                yield f"{kind} never bit (it was tried {tried} times)"
        due = max(1, figures.seconds // _FAULT_EVERY_SECONDS)
        if len(bitten) < due:
            yield f"{len(bitten)} faults are proven, and {due} are due in {figures.seconds} s"
    during = zip(figures.strikes, figures.operations, strict=True)
    idle = [strike for strike, operations in during if strike.proof.bit and not operations]
    if idle:
        kinds = ", ".join(sorted({strike.kind for strike in idle}))
        yield f"no operation was under way during {len(idle)} of the faults ({kinds})"
    elections = sum(strike.wants_election for strike in figures.strikes)
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


def operations_during(ops: Sequence[Op], strikes: Iterable[FaultOutcome]) -> list[int]:
    """For each strike of a run, how many operations of clients were under way in it."""
    under_way = list(_spans_ns(ops))
    return [
        sum(
            began <= strike.healed_ms * 1_000_000 and ended >= strike.injected_ms * 1_000_000
            for began, ended in under_way
        )
        for strike in strikes
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


def injected(number: int, fault: Fault, nodes: Sequence[int]) -> Op:
    return deed("inject", _described(number, fault, nodes))


def not_injected(number: int, fault: Fault, nodes: Sequence[int], *, why: str) -> Op:
    return deed("not-injected", _described(number, fault, nodes), why=why)


def healed(number: int, fault: Fault, nodes: Sequence[int], proof: Proof) -> Op:
    described = _described(number, fault, nodes)
    return deed("heal", described, bit=proof.bit, evidence=proof.evidence)


def _described(number: int, fault: Fault, nodes: Sequence[int]) -> Value:
    return {
        "fault": number,
        "kind": fault.kind,
        "role": fault.role.value,
        "nodes": list(nodes),
        "parameters": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in fault.parameters.items()
        },
    }


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
