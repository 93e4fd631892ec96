"""The verdicts of many workers on many runs become one, of bounded size.

While they are on their way, names of objects carry the run: `named`. A run whose history is wrong
itself (`lint`) is undecided, whatever was found in it; other runs are not touched by that.
"""

import json
from collections.abc import Iterable
from dataclasses import replace

from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, as_json, compose, from_json

__all__ = ["decoded", "encoded", "named", "of_run", "run_and_name", "summed"]

FINDINGS_MAX = 1000  # of one verdict: a system that is that broken needs no more evidence
_SEPARATOR = "\t"  # between the run and the object: no name of a file or a topic has one


def named(run: str, name: str) -> str:
    return f"{run}{_SEPARATOR}{name}"


def run_and_name(full: str) -> tuple[str, str]:
    run, _, name = full.partition(_SEPARATOR)
    return run, name


def of_run(run: str, verdict: Verdict) -> Verdict:
    """With the run in the name of each object."""
    return replace(
        verdict,
        findings=tuple(replace(each, object=named(run, each.object)) for each in verdict.findings),
        reason=verdict.reason and named(run, verdict.reason),
        objects={named(run, name): outcome for name, outcome in verdict.objects.items()},
    )


def encoded(verdict: Verdict, *, with_names: bool) -> str:
    """Without the names of valid objects unless asked for: there may be millions."""
    objects = {
        name: outcome
        for name, outcome in verdict.objects.items()
        if with_names or outcome is not Outcome.VALID
    }
    return json.dumps(as_json(_bounded(replace(verdict, objects=objects))))


def decoded(text: str) -> Verdict:
    return from_json(json.loads(text))


def summed(verdicts: Iterable[Verdict], *, single_run: bool) -> Verdict:
    """The verdict on all runs; objects are named by their run only if there are several."""
    total = _bounded(compose(verdicts))
    lying = {_run(each.object) for each in total.findings if _is_lint(each)}
    believed = [each for each in total.findings if _run(each.object) not in lying]
    outcome = total.outcome
    if lying and not believed:
        outcome = Outcome.UNDECIDED

    def shown(name: str) -> str:
        return name.partition(_SEPARATOR)[2] if single_run else name.replace(_SEPARATOR, ": ")

    return replace(
        total,
        outcome=outcome,
        findings=tuple(
            replace(each, object=shown(each.object))
            for each in sorted(total.findings, key=_is_lint, reverse=True)
        ),
        reason="; ".join(
            shown(part) if _SEPARATOR in part else part for part in total.reason.split("; ")
        ),
        objects={shown(name): of for name, of in total.objects.items()},
    )


def _bounded(verdict: Verdict) -> Verdict:
    left_out = len(verdict.findings) - FINDINGS_MAX
    if left_out <= 0:
        return verdict
    return replace(
        verdict,
        findings=verdict.findings[:FINDINGS_MAX],
        counts={**verdict.counts, "findings not shown": left_out},
    )


def _run(name: str) -> str:
    return name.partition(_SEPARATOR)[0]


def _is_lint(finding: Finding) -> bool:
    return finding.rule.startswith("lint-")
