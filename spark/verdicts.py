"""Names of objects carry their run while several runs are judged at once; and verdicts as JSON, as
the pieces of a large log tell them."""

import json
from dataclasses import replace

from jepsen_like.checkers.verdict import Outcome, Verdict, as_json, from_json

__all__ = ["FINDINGS_MAX", "decoded", "encoded", "named", "of_run", "run_and_name"]

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


def encoded(verdict: Verdict) -> str:
    """Without the names of valid objects, and of bounded size."""
    objects = {name: of for name, of in verdict.objects.items() if of is not Outcome.VALID}
    told = replace(verdict, objects=objects, findings=verdict.findings[:FINDINGS_MAX])
    left_out = len(verdict.findings) - FINDINGS_MAX
    if left_out > 0:
        told = replace(told, counts={**verdict.counts, "findings not shown": left_out})
    return json.dumps(as_json(told))


def decoded(text: str) -> Verdict:
    return from_json(json.loads(text))
