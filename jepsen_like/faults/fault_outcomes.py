"""What came of a schedule of faults: whom each struck, from when to when, and whether it bit.

In the history, by the process "nemesis": `inject` and `heal`, each with the fault's number, kind,
role, nodes and parameters; `heal` has what shows whether it bit. What cannot be injected (nobody
has the role, or the node is down by an earlier fault) is `not-injected`, with the reason: it never
counts.

Pure: whoever plays a schedule, on processes or on virtual time, says it in these words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jepsen_like.faults.fault import Fault, Proof, Scheduled
from jepsen_like.faults.validity import Strike, operations_during
from jepsen_like.histories.history import Op, Value
from jepsen_like.workloads.entries import Entry, deed

__all__ = ["FaultOutcome", "healed", "injected", "not_injected", "strikes", "fault_outcome_as_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutcome:
    """A fault of the schedule, and what came of it."""

    number: int  # in the schedule
    scheduled: Scheduled
    nodes: tuple[int, ...]
    injected_ms: int
    healed_ms: int
    proof: Proof


def injected(number: int, fault: Fault, nodes: Sequence[int]) -> Entry:
    return deed("inject", _described(number, fault, nodes))


def not_injected(number: int, fault: Fault, nodes: Sequence[int], *, why: str) -> Entry:
    return deed("not-injected", _described(number, fault, nodes), why=why)


def healed(number: int, fault: Fault, nodes: Sequence[int], proof: Proof) -> Entry:
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


def strikes(struck: Sequence[FaultOutcome], ops: Sequence[Op]) -> list[Strike]:
    """What the rules of validity look at."""
    during = operations_during(ops, [(each.injected_ms, each.healed_ms) for each in struck])
    return [
        Strike(
            kind=each.scheduled.fault.kind,
            role=each.scheduled.fault.role,
            injected_ms=each.injected_ms,
            healed_ms=each.healed_ms,
            bit=each.proof.bit,
            operations=operations,
        )
        for each, operations in zip(struck, during, strict=True)
    ]


def fault_outcome_as_json(struck: FaultOutcome) -> dict[str, Value]:
    """As `verdict.json` has it."""
    fault = struck.scheduled.fault
    return {
        "kind": fault.kind,
        "role": fault.role.value,
        "nodes": list(struck.nodes),
        "parameters": dict(fault.parameters),
        "injected_ms": struck.injected_ms,
        "healed_ms": struck.healed_ms,
        "bit": struck.proof.bit,
        "evidence": struck.proof.evidence,
    }
