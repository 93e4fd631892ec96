"""The smallest run that still fails: fewest faults first, then fewest operations of clients.

It fails in the same way if a rule is broken that was broken before. Whatever is taken away changes
what happens after it, so that a smaller run may fail where a larger one does not: what is found is
small, not surely the smallest.

Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (2002), ddmin.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from jepsen_like.faults.fault import Scheduled
from jepsen_like.histories.history import Kind
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan, schedule_of
from jepsen_like.sim.chaos.workload_run import run_plan

__all__ = ["ddmin", "rules_of", "shrink"]

_AT_ONCE_MS = 100
Item = TypeVar("Item")


def rules_of(outcome: ChaosOutcome) -> frozenset[str]:
    """What is broken, by name."""
    broken = [outcome.broken.partition(":")[0]] if outcome.broken else []
    return frozenset([*broken, *(finding.rule for finding in outcome.verdict.findings)])


def ddmin(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """A part of `items`, in their order, that fails and of which no single one can be spared."""
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        chunks = [items[at : at + size] for at in range(0, len(items), size)]
        smaller = next(filter(fails, _candidates(chunks)), None)
        if smaller is not None:
            parts = 2 if len(smaller) <= size else max(2, parts - 1)
            items = smaller
        elif parts < len(items):
            parts = min(len(items), 2 * parts)
        else:
            break
    return items[:0] if len(items) == 1 and fails(items[:0]) else items


def _candidates(chunks: Sequence[Sequence[Item]]) -> Iterator[Sequence[Item]]:
    """Each part alone, then all but each part."""
    yield from chunks
    if len(chunks) > 2:
        for left_out in range(len(chunks)):
            yield [
                item for place, chunk in enumerate(chunks) if place != left_out for item in chunk
            ]


def shrink(outcome: ChaosOutcome, *, progress: Callable[[str], None]) -> ChaosOutcome:
    """`outcome` is red, and so is what is returned."""
    wanted = rules_of(outcome)
    assert wanted, "nothing is broken"
    best = outcome

    def fails(plan: Plan) -> bool:
        nonlocal best
        tried = run_plan(plan)
        if not wanted & rules_of(tried):
            return False
        best = tried
        progress(f"{len(tried.schedule)} faults, {_operations(tried)} operations")
        return True

    schedule = schedule_of(outcome.plan)
    kept = ddmin(schedule, lambda part: fails(replace(outcome.plan, schedule=tuple(part))))
    plan = replace(outcome.plan, schedule=tuple(kept))
    for shorter in (_earlier(kept), kept):
        smaller = replace(plan, schedule=tuple(shorter), seconds=_seconds_of(shorter))
        if smaller != plan and fails(smaller):
            plan = smaller
            break
    _fewest(_operations(best), lambda count: fails(replace(plan, operations_max=count)))
    return best


def _fewest(count: int, fails: Callable[[int], bool]) -> None:
    """Halve the gap between what fails and what does not. What fails is found by `fails`."""
    passes = 0
    while count - passes > 1:
        middle = (passes + count) // 2
        if fails(middle):
            count = middle
        else:
            passes = middle


def _earlier(schedule: Sequence[Scheduled]) -> Sequence[Scheduled]:
    """The first fault comes at once: what clients did before it seldom matters."""
    first_ms = min((each.at_ms for each in schedule), default=0)
    return [replace(each, at_ms=each.at_ms - first_ms + _AT_ONCE_MS) for each in schedule]


def _seconds_of(schedule: Sequence[Scheduled]) -> int:
    """Until the last fault has healed, and a little more."""
    return 2 + max((each.at_ms + each.lasts_ms for each in schedule), default=0) // 1000


def _operations(outcome: ChaosOutcome) -> int:
    ops = outcome.history.ops
    return sum(op.kind is Kind.INVOKE and isinstance(op.process, int) for op in ops)
