"""When two verdicts are the same."""

from collections.abc import Mapping
from dataclasses import replace

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Verdict, compose
from jepsen_like.histories.history import History

__all__ = ["broken", "judged_alone", "same"]


def same(verdict: Verdict) -> tuple[object, ...]:
    """All of a verdict but the order in which it is told, and what was counted and not there."""
    return set(verdict.findings), *broken(verdict)


def broken(verdict: Verdict) -> tuple[object, ...]:
    """The same, but for which operations show what is wrong."""
    rules = {(finding.object, finding.rule) for finding in verdict.findings}
    counts = {name: count for name, count in verdict.counts.items() if count}
    return verdict.outcome, rules, dict(verdict.objects), counts


def judged_alone(histories: Mapping[str, History]) -> Verdict:
    """Without Spark, run by run."""
    return compose(_named_by_run(judge(history), run) for run, history in histories.items())


def _named_by_run(verdict: Verdict, run: str) -> Verdict:
    """With objects named as those of many runs are."""
    return replace(
        verdict,
        findings=tuple(
            replace(finding, object=f"{run}: {finding.object}") for finding in verdict.findings
        ),
        objects={f"{run}: {name}": outcome for name, outcome in verdict.objects.items()},
    )
