"""Whether what is told while a history is written agrees with the judge of the whole history."""

from collections.abc import Iterator, Sequence
from random import Random

from jepsen_like.checkers import judge
from jepsen_like.checkers.anomalies import ANOMALIES
from jepsen_like.checkers.online.run import OnlineRun
from jepsen_like.checkers.online.told import Doubt, Limits, Told
from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.histories.history import History

__all__ = ["LEFT_TO_THE_JUDGE", "disagreements", "found", "shuffled_and_cut", "told_of"]

# What only the end tells, or what online checkers do not look at, as their modules say.
LEFT_TO_THE_JUDGE = {
    *("lost-write", "unseen", "vanished"),
    *("nonmonotonic-send", "int-nonmonotonic-send"),
    *("nonmonotonic-read", "inconsistent-version", "lost-update"),
    *(rule for rule, each in ANOMALIES.items() if each.of == "nodes"),
}


def told_of(
    history: History, limits: Limits | None = None, *, restarts: bool = False
) -> tuple[OnlineRun, list[Told]]:
    """Line by line; with `restarts` the state is written and read again before each."""
    run = OnlineRun.of(history.header, limits)
    told: list[Told] = []
    for op in history.ops:
        if restarts:
            run = OnlineRun.loads(run.dumps(), limits)
        told += run.take([op])
    return run, told


def shuffled_and_cut(history: History, random: Random) -> list[Told]:
    """The lines near their places only, some of them twice, in batches."""
    ops = sorted(
        (op for op in history.ops for _ in range(random.choice([1, 1, 2]))),
        key=lambda op: op.index + random.randrange(8),
    )
    run, told = OnlineRun.of(history.header), []
    while ops:
        size = random.randrange(1, 12)
        told += run.take(ops[:size])
        ops = ops[size:]
    return told


def found(told: Sequence[Told]) -> set[str]:
    return {each.object for each in told if isinstance(each, Finding)}


def disagreements(
    history: History, told: Sequence[Told], *, has_versions: bool = False
) -> Iterator[str]:
    """False accusations, and violations of which nothing was said that should have been."""
    verdict = judge(history)
    if any(each.rule.startswith("lint-") for each in verdict.findings):
        return
    broken: dict[str, set[str]] = {}
    for each in verdict.findings:
        broken.setdefault(each.object, set()).add(each.rule)
    for name in found(told) - broken.keys():
        yield f"{name} is accused, and the judge says {verdict.outcome.value}"
    assert verdict.outcome is Outcome.VIOLATED or not broken
    doubted = {each.object for each in told if isinstance(each, Doubt)}
    if has_versions or "" in doubted:
        return
    for name in broken.keys() - found(told) - doubted:
        if not broken[name] <= LEFT_TO_THE_JUDGE:
            yield f"{name} breaks {broken[name]}, and nothing was told"
