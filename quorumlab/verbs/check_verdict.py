"""The verdict of `quorumlab check`: for people, as JSON, and as a page.

The page goes where `--report` says, or beside a run that is violated.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.checkers.anomalies import anomaly_of
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, as_json
from jepsen_like.histories.history import Op
from jepsen_like.installation import command
from jepsen_like.report.document import Told
from jepsen_like.report.page import is_page, page
from jepsen_like.report.picture import picture
from quorumlab.arguments import Failed
from quorumlab.histories import Asked, Found
from quorumlab.output import one_line, print_json, print_rows, refuse_other_file, say, say_folded
from quorumlab.pictures import refuse_other_picture, write_picture

__all__ = [
    "PAGE",
    "Evidence",
    "asked_in",
    "conclude",
    "refuse_other_report",
    "write_page",
]

# The operations that show each of some findings.
Evidence = Callable[[Sequence[Finding]], Sequence[Sequence[Op]]]

PAGE = "report.html"
_FINDINGS_SHOWN = 10
_OBJECTS_SHOWN = 20
_OPS_SHOWN = 16  # of a finding: most show what is wrong in two or four
_VALUE_SHOWN = 120


def conclude(
    args: SimpleNamespace,
    verdict: Verdict,
    void: Sequence[str],
    *,
    history: str,
    evidence: Evidence,
    write: Callable[[], Path | None],
    target: str | None,
) -> int:
    """Tell the verdict, `write` its page, and return the exit code.

    `target` is what the user named; None: it has several histories. A run that proves nothing is
    not valid, however quiet it is.
    """
    is_told = args.format == "table"
    if is_told:
        _tell(verdict, void, evidence)
    path = write()
    if is_told:
        _tell_how_to_look_closer(target, verdict, path)
        if args.export is not None:
            say(f"picture      {args.export}")
    else:
        report = None if path is None else str(path)
        told = {"history": history, "void": list(void), "report": report, **as_json(verdict)}
        print_json(told, form=args.format)
    is_void = verdict.outcome is Outcome.VALID and void
    return Outcome.UNDECIDED.exit_code if is_void else verdict.outcome.exit_code


# --- for people ---------------------------------------------------------------------------------


def _tell(verdict: Verdict, void: Sequence[str], evidence: Evidence) -> None:
    if verdict.counts:
        counts = ", ".join(f"{count} {name}" for name, count in verdict.counts.items())
        say_folded(f"looked at  {counts}")
    _tell_objects(verdict)
    _tell_findings(verdict.findings, evidence)
    if verdict.reason:
        say_folded(f"undecided because  {verdict.reason}")
    for why in void:
        say_folded(f"void  {why}")
    objects = Counter(outcome.value for outcome in verdict.objects.values())
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(objects.items()))
    caveat = ", in a run that is void" if void else ""
    say_folded(f"{verdict.outcome.value}{caveat}" + (f": {counted}" if counted else ""))


def _tell_how_to_look_closer(target: str | None, verdict: Verdict, path: Path | None) -> None:
    shown = next((finding for finding in verdict.findings if finding.ops), None)
    if target is not None and shown is not None:
        ops = ",".join(map(str, shown.ops[:_OPS_SHOWN]))
        say(f"look closer  {command('chaos', 'timeline', target, '--around', ops)}")
    if path is not None:
        say(f"report       {path}")


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
        say_folded(f"{finding.rule}  {_name(finding.object)}: {one_line(finding.detail)}")
        if finding.rule not in explained and (says := anomaly_of(finding.rule).says):
            say_folded(f"    ({says})")
        explained.add(finding.rule)
        for op in ops[:_OPS_SHOWN]:
            say_folded(f"    {_line(op)}")
        if len(ops) > _OPS_SHOWN:
            say(f"    and {len(ops) - _OPS_SHOWN} more")
    if len(findings) > _FINDINGS_SHOWN:
        say(f"and {len(findings) - _FINDINGS_SHOWN} more findings: --format json has them all")
    if findings:
        say("")


def _name(thing: str) -> str:
    """A register without a key has an empty name."""
    return one_line(thing) or '""'


def _line(op: Op) -> str:
    value = repr(op.value)
    short = value if len(value) <= _VALUE_SHOWN else f"{value[:_VALUE_SHOWN]}…"
    when = f"{op.time_ns / 1e9:9.3f} s"
    error = f"  {op.error}" if op.error else ""
    done = f"{op.kind:<6}  {op.f}  {short}{error}"
    return one_line(f"{op.index:>6}  {when}  process {op.process}  {done}")


# --- as a page ----------------------------------------------------------------------------------


def asked_in(args: SimpleNamespace) -> Asked:
    return Asked(
        model=args.model,
        initial=() if args.initial is None else (_value_of(args.initial),),
        trusts_failures=args.trust_failures,
        isolation=args.isolation,
    )


def _value_of(text: str) -> object:
    """As JSON, or else the text itself."""
    try:
        return None if text == "nil" else json.loads(text)
    except ValueError:
        return text


def refuse_other_report(args: SimpleNamespace) -> None:
    """Called before anything is judged, which may take long. Raises `Failed`."""
    refuse_other_picture(args.export)
    if args.report is not None:
        refuse_other_file(args.report, option="--report", is_own=is_page)


def write_page(args: SimpleNamespace, target: Path, found: Found, verdict: Verdict) -> Path | None:
    """Returns where the page is, if there is to be one. A page that nobody asked for may fail."""
    report: Path | None = args.report
    path = report
    about = {"history": str(found.path), **_told_of_run(found.path)}
    told = Told(verdict=verdict, void=found.void, about=about)
    if args.export is not None:
        write_picture(args.export, picture(found.history, told))
    if path is None:
        if not target.is_dir() or verdict.outcome is not Outcome.VIOLATED:
            return None
        path = target / PAGE
    try:
        refuse_other_file(path, option="--report", is_own=is_page)
        try:
            path.write_text(page(found.history, told), encoding="ascii")
        except OSError as error:
            raise Failed(f"cannot write {path}: {error.strerror}") from error
    except Failed as error:
        if report is not None:
            raise
        say(f"no report: {error}", sys.stderr)
        return None
    return path


def _told_of_run(history: Path) -> Mapping[str, str]:
    """Returns what the run said of itself, if it did."""
    try:
        told = json.loads((history.parent / "run.json").read_text())
    except (OSError, ValueError):
        return {}
    names = ("planted", "command", "commit", "began")
    known = {name: str(told[name]) for name in names if isinstance(told, dict) and name in told}
    if "planted" in known:
        from jepsen_like.planted.every_bug import in_words  # which imports all that can be broken

        known["planted"] = in_words(known["planted"])
    return known
