"""Faults as values: what is done to whom, from when to when, and how it is known to have bitten.

A schedule of faults is drawn from a seed, and runs unchanged on real processes and in the
simulator: the nodes that have a role are found at the moment of injection. The injector of a kind
returns a fault in force, which heals it and says whether it bit. A fault that never bit proves
nothing: a run that has too few of them is void (`jepsen_like.faults.validity`).

Pure. Source: jepsen.nemesis.combined.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ParamSpec

from jepsen_like.histories.history import Value

__all__ = [
    "Course",
    "Fault",
    "InForce",
    "Injector",
    "Proof",
    "Role",
    "Scheduled",
    "cannot",
    "in_force",
    "proof_of",
    "schedule_as_json",
    "schedule_from_json",
]


class Role(StrEnum):
    """The nodes that a fault is injected on, found at that moment."""

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
    """The inverse of `schedule_as_json`. Raises KeyError, TypeError or ValueError."""
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
    """The evidence that a fault bit: a counter that moved, or something that was seen."""

    bit: bool
    evidence: str


# Injects it, yields the nodes that have it, heals them, and returns the proof, or what was seen.
Course = Generator[Sequence[int], None, Proof | Sequence[str]]
Arguments = ParamSpec("Arguments")


class InForce:
    """A fault in force: the nodes that have it, how it heals, and the proof that it bit.

    Healing ends it, and starts again what it killed; the second time it does nothing.
    """

    def __init__(self, course: Course) -> None:
        self.nodes = tuple(next(course))
        self._course = course
        self._shown: Proof | Sequence[str] = ()

    def heal(self) -> None:
        try:
            next(self._course)
        except StopIteration as end:
            self._shown = end.value or self._shown

    def proof(self) -> Proof:
        """It is there once the fault is healed."""
        return self._shown if isinstance(self._shown, Proof) else proof_of(self._shown)


def in_force(course_of: Callable[Arguments, Course]) -> Callable[Arguments, InForce]:
    """The decorator makes an injector of a function that tells the whole course of a fault."""

    def inject(*arguments: Arguments.args, **named: Arguments.kwargs) -> InForce:
        return InForce(course_of(*arguments, **named))

    return inject


def proof_of(seen: Sequence[str]) -> Proof:
    """It bit if anything was seen."""
    return Proof(bit=bool(seen), evidence="; ".join(seen) or "nothing was seen")


@dataclass(frozen=True, slots=True)
class Injector:
    """Knows one kind of fault on one cluster, and injects it on these nodes."""

    inject: Callable[[Fault, Sequence[int]], InForce]
    why_not: str = ""  # why this cluster, or this machine, cannot do it ("needs root")


def cannot(why: str) -> Injector:
    def inject(fault: Fault, targets: Sequence[int]) -> InForce:
        raise AssertionError(f"{fault.kind} on {targets}: {why}")

    return Injector(inject, why)
