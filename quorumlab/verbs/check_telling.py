"""A verdict for people: what was looked at, each object, and the operations that break a rule."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from jepsen_like.checkers.anomalies import anomaly_of
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict
from jepsen_like.histories.history import Op
from jepsen_like.installation import command
from quorumlab.output import one_line, print_rows, say

__all__ = ["Evidence", "exit_code", "tell", "tell_how_to_look_closer"]

# Of some findings the operations that show each of them.
Evidence = Callable[[Sequence[Finding]], Sequence[Sequence[Op]]]

_FINDINGS_SHOWN = 10
_OBJECTS_SHOWN = 20
_OPS_SHOWN = 16  # of a finding: most show what is wrong in two or four
_VALUE_SHOWN = 120


def tell(verdict: Verdict, void: Sequence[str], evidence: Evidence) -> None:
    if verdict.counts:
        counts = ", ".join(f"{count} {name}" for name, count in verdict.counts.items())
        say(f"looked at  {counts}")
    _tell_objects(verdict)
    _tell_findings(verdict.findings, evidence)
    if verdict.reason:
        say(f"undecided because  {verdict.reason}")
    for why in void:
        say(f"void  {why}")
    say(_summary(verdict, void))


def tell_how_to_look_closer(target: str | None, verdict: Verdict, page: Path | None) -> None:
    """`target` as it was named; None: there are several histories in it."""
    shown = next((finding for finding in verdict.findings if finding.ops), None)
    if target is not None and shown is not None:
        ops = ",".join(map(str, shown.ops[:_OPS_SHOWN]))
        say(f"look closer  {command('chaos', 'timeline', target, '--around', ops)}")
    if page is not None:
        say(f"report       {page}")


def exit_code(verdict: Verdict, void: Sequence[str]) -> int:
    """A run that proves nothing is not valid, however quiet it is."""
    if verdict.outcome is Outcome.VALID and void:
        return Outcome.UNDECIDED.exit_code
    return verdict.outcome.exit_code


def _tell_objects(verdict: Verdict) -> None:
    """Tells the objects that are not valid first: one looks for these."""
    counted = Counter(finding.object for finding in verdict.findings)
    ordered = sorted(verdict.objects.items(), key=lambda each: (each[1] is Outcome.VALID, each[0]))
    rows = [
        {"object": _name(name), "verdict": outcome.value, "findings": counted[name]}
        for name, outcome in ordered[:_OBJECTS_SHOWN]
    ]
    if rows:
        say("")
        print_rows(rows, ("object", "verdict", "findings"))
    if len(ordered) > _OBJECTS_SHOWN:
        rest = Counter(outcome.value for _, outcome in ordered[_OBJECTS_SHOWN:])
        say("and " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(rest.items())))


def _tell_findings(findings: Sequence[Finding], evidence: Evidence) -> None:
    shown = findings[:_FINDINGS_SHOWN]
    explained: set[str] = set()
    for finding, ops in zip(shown, evidence(shown), strict=True):
        say("")
        say(f"{finding.rule}  {_name(finding.object)}: {one_line(finding.detail)}")
        if finding.rule not in explained and (says := anomaly_of(finding.rule).says):
            say(f"    ({says})")
        explained.add(finding.rule)
        for op in ops[:_OPS_SHOWN]:
            say(f"    {_line(op)}")
        if len(ops) > _OPS_SHOWN:
            say(f"    and {len(ops) - _OPS_SHOWN} more")
    if len(findings) > _FINDINGS_SHOWN:
        say(f"and {len(findings) - _FINDINGS_SHOWN} more findings: --format json has them all")
    if findings:
        say("")


def _name(thing: str) -> str:
    """A register without a key has an empty one."""
    return one_line(thing) or '""'


def _line(op: Op) -> str:
    value = repr(op.value)
    short = value if len(value) <= _VALUE_SHOWN else f"{value[:_VALUE_SHOWN]}…"
    when = f"{op.time_ns / 1e9:9.3f} s"
    error = f"  {op.error}" if op.error else ""
    done = f"{op.kind:<6}  {op.f}  {short}{error}"
    return one_line(f"{op.index:>6}  {when}  process {op.process}  {done}")


def _summary(verdict: Verdict, void: Sequence[str]) -> str:
    objects = Counter(outcome.value for outcome in verdict.objects.values())
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(objects.items()))
    caveat = ", in a run that is void" if void else ""
    return f"{verdict.outcome.value}{caveat}" + (f": {counted}" if counted else "")
