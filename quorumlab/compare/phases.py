"""When each step of an event was done: from milestones of the nodes, by one clock of the machine.

Pure. A step is done when its milestones have counted all partitions that the event is about; `told`
and `applied`, when that holds for every broker that lives. What nodes do not say is not guessed: a
step without milestones, or one that has not counted to the end, has no time.

The six steps of seed 000, discussion 1, are named where they fall: docs/compare.md.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["STEPS", "Milestone", "Phase", "milestone_of", "phases_of"]

STEPS = ("detected", "decided", "persisted", "told", "applied", "elected", "ready")
_ONCE = ("detected", "elected", "ready")  # the first is the step: nothing is counted
_OF_EACH_BROKER = ("told", "applied")


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    node: int
    at_ns: int
    step: str
    count: int = 1
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Milliseconds since the fault; `done_ms` None: it was begun, and not seen to end."""

    first_ms: float
    done_ms: float | None
    count: int  # of partitions, as the milestones say


def milestone_of(node: int, told: Mapping[str, Any]) -> Milestone:
    """As `/v1/milestones` has it."""
    return Milestone(
        node=node,
        at_ns=int(told["at_ns"]),
        step=str(told["step"]),
        count=int(told["count"]),
        about=dict(told.get("about") or {}),
    )


def phases_of(
    milestones: Iterable[Milestone],
    *,
    fault_ns: int,
    partitions: int,
    brokers: Collection[int],
    causes: Sequence[str] = (),
) -> dict[str, Phase]:
    """By step. `partitions`: how many must be counted; `brokers`: those that live.

    Milestones that name another cause than one of `causes` are about something else.
    """
    since = sorted(
        (each for each in milestones if each.at_ns >= fault_ns and _is_due_to(each, causes)),
        key=lambda each: each.at_ns,
    )
    found = {}
    for step in STEPS:
        of_step = [each for each in since if each.step == step]
        if of_step:
            done_ns = _done_ns(step, of_step, partitions, brokers)
            found[step] = Phase(
                first_ms=_ms(of_step[0].at_ns - fault_ns),
                done_ms=None if done_ns is None else _ms(done_ns - fault_ns),
                count=sum(each.count for each in of_step),
            )
    return found


def _is_due_to(each: Milestone, causes: Sequence[str]) -> bool:
    return not causes or "what" not in each.about or each.about["what"] in causes


def _done_ns(
    step: str, of_step: Sequence[Milestone], partitions: int, brokers: Collection[int]
) -> int | None:
    if step in _ONCE:
        return of_step[0].at_ns
    if step not in _OF_EACH_BROKER:
        return _counted_ns(of_step, partitions)
    if step == "told" and not any("broker" in each.about for each in of_step):
        return _counted_ns(of_step, partitions)  # a log tells everybody at once
    ends = []
    for broker in brokers:
        own = [each for each in of_step if each.about.get("broker", each.node) == broker]
        end = _counted_ns(own, partitions)
        if end is None:
            return None
        ends.append(end)
    return max(ends, default=None)


def _counted_ns(of_step: Sequence[Milestone], partitions: int) -> int | None:
    """When so many have been counted."""
    counted = 0
    for each in of_step:
        counted += each.count
        if counted >= partitions:
            return each.at_ns
    return None


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 1)
