"""Faults as values: what is done to whom, from when to when, and how it is known to have bitten.

A schedule of faults is drawn from a seed, and runs unchanged on real processes and in the
simulator: whom a role means is found out at the moment of injection. Its injector
(`jepsen_like.faults.injectors`) returns what heals it and says whether it bit. A fault that never
bit proves nothing: a run that has too few of them is void (`jepsen_like.faults.validity`).

Pure. Source: jepsen.nemesis.combined.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jepsen_like.histories.history import Value

__all__ = [
    "Fault",
    "Proof",
    "Role",
    "Scheduled",
    "schedule_as_json",
    "schedule_from_json",
]


class Role(StrEnum):
    """Whom a fault strikes, as known at the moment when it strikes."""

    ACTIVE_CONTROLLER = "active-controller"
    LEADER = "leader"  # of a partition of the workload
    ONE = "one"  # any node
    ONE_BROKER = "one-broker"
    ONE_CONTROLLER = "one-controller"
    MINORITY = "minority"  # of the voters
    MAJORITY = "majority"  # of the voters
    BROKERS = "brokers"
    ONE_ZOOKEEPER = "one-zookeeper"  # a server, in the designs that have them
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`kind` names an injector ("kill", "pause", "partition"); the rest is for it to read."""

    kind: str
    role: Role = Role.ONE
    parameters: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A fault from `at_ms` of the run on, for `lasts_ms`; 0: it has no duration of its own."""

    at_ms: int
    lasts_ms: int
    fault: Fault


def schedule_as_json(schedule: Iterable[Scheduled]) -> list[dict[str, Value]]:
    """As `run.json` has it."""
    return [
        {
            "at_ms": each.at_ms,
            "lasts_ms": each.lasts_ms,
            "kind": each.fault.kind,
            "role": each.fault.role.value,
            "parameters": dict(each.fault.parameters),
        }
        for each in schedule
    ]


def schedule_from_json(told: Iterable[Mapping[str, Value]]) -> tuple[Scheduled, ...]:
    """What `schedule_as_json` made of a schedule. Raises KeyError, TypeError or ValueError."""
    return tuple(
        Scheduled(
            at_ms=each["at_ms"],
            lasts_ms=each["lasts_ms"],
            fault=Fault(kind=each["kind"], role=Role(each["role"]), parameters=each["parameters"]),
        )
        for each in told
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What shows that a fault bit: a counter that moved, or something that was seen."""

    bit: bool
    evidence: str
