"""When two verdicts are the same."""

from jepsen_like.verdict import Verdict

__all__ = ["same"]


def same(verdict: Verdict) -> tuple[object, ...]:
    """All of a verdict but the order in which it is told, and what was counted and not there."""
    counts = {name: count for name, count in verdict.counts.items() if count}
    return verdict.outcome, set(verdict.findings), dict(verdict.objects), counts
