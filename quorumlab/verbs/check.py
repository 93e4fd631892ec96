"""`quorumlab check TARGET`: the verdict on a history, with the operations that break a rule.

Exit codes: 0 valid, 1 no history, 2 usage, 4 violated, 5 undecided or void: it proves nothing.
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence

from jepsen_like.checkers import judge
from jepsen_like.checkers.judges import JUDGED
from jepsen_like.checkers.search import Budget
from jepsen_like.history import History, MalformedHistory, Op
from jepsen_like.verdict import Finding, Outcome, Verdict, as_json
from quorumlab.histories import Found, find_history
from quorumlab.output import one_line, print_json, print_rows, say
from quorumlab.verbs.common import Failed, UsageError, add_format_option

__all__ = ["add_parser"]

_FINDINGS_SHOWN = 10
_OBJECTS_SHOWN = 20
_OPS_SHOWN = 16  # of a finding: most show what is wrong in two or four
_VALUE_SHOWN = 120
_SECONDS = 60.0


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "check",
        help="judge a history: valid, violated or undecided, and why",
        description="Judge a history. Exit codes: 0 valid, 4 violated, 5 undecided or void.",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="a run's directory, or a .msgpack, .edn, .jsonl, .txt or .log file",
    )
    parser.add_argument(
        "--on", choices=("local", "spark"), default="local", help="where (default: local)"
    )
    parser.add_argument(
        "--model",
        choices=sorted(JUDGED),
        metavar="NAME",
        help=f"what it is judged as, if not what it says: {', '.join(sorted(JUDGED))}",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=_SECONDS,
        metavar="N",
        help=f"for searches, all together; then undecided (default: {_SECONDS:.0f})",
    )
    add_format_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.on == "spark":
        raise UsageError("--on spark: not there yet; --on local judges by the same rules")
    found = find_history(args.target, args.model)
    deadline = time.monotonic() + args.seconds
    try:
        verdict = judge(found.history, Budget(is_late=lambda: time.monotonic() > deadline))
    except MalformedHistory as error:
        raise Failed(f"{found.path}: {error}") from error
    if args.format == "table":
        _tell(found, verdict)
    else:
        told = {"history": str(found.path), "void": list(found.void), **as_json(verdict)}
        print_json(told, form=args.format)
    if verdict.outcome is Outcome.VALID and found.void:
        return Outcome.UNDECIDED.exit_code
    return verdict.outcome.exit_code


def _tell(found: Found, verdict: Verdict) -> None:
    history = found.history
    kinds = Counter(op.kind.value for op in history.ops)
    told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    cut = "; the last operation is torn" if history.is_cut else ""
    say(
        f"history  {found.path}: {history.header.workload}, seed {history.header.seed}, {told}{cut}"
    )
    if verdict.counts:
        counts = ", ".join(f"{count} {name}" for name, count in verdict.counts.items())
        say(f"looked at  {counts}")
    _tell_objects(verdict)
    _tell_findings(history, verdict.findings)
    if verdict.reason:
        say(f"undecided because  {verdict.reason}")
    for why in found.void:
        say(f"void  {why}")
    say(_summary(verdict, found))


def _tell_objects(verdict: Verdict) -> None:
    """Those that are not valid first; they are what one looks for."""
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


def _tell_findings(history: History, findings: Sequence[Finding]) -> None:
    wanted = {index for finding in findings[:_FINDINGS_SHOWN] for index in finding.ops}
    shown = {op.index: op for op in history.ops if op.index in wanted}
    for finding in findings[:_FINDINGS_SHOWN]:
        say("")
        say(f"{finding.rule}  {_name(finding.object)}: {one_line(finding.detail)}")
        for index in finding.ops[:_OPS_SHOWN]:
            if index in shown:
                say(f"    {_line(shown[index])}")
        if len(finding.ops) > _OPS_SHOWN:
            say(f"    and {len(finding.ops) - _OPS_SHOWN} more")
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


def _summary(verdict: Verdict, found: Found) -> str:
    objects = Counter(outcome.value for outcome in verdict.objects.values())
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(objects.items()))
    void = ", in a run that is void" if found.void else ""
    return f"{verdict.outcome.value}{void}" + (f": {counted}" if counted else "")
