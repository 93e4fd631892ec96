"""Where `quorumlab check` writes its page: what is asked for, or beside a run that is violated."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import History
from jepsen_like.report.document import Told
from jepsen_like.report.page import is_page, page
from quorumlab.histories import Asked, Found, find_history
from quorumlab.output import say
from quorumlab.overwriting import refuse_other_file
from quorumlab.verb_errors import Failed

__all__ = [
    "PAGE",
    "add_report_option",
    "asked_in",
    "refuse_other_report",
    "write_asked_page",
    "write_page",
    "write_wanted_page",
]

PAGE = "report.html"


def add_report_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write what happened as one HTML page (default, if a run's directory is judged here "
        f"and is violated: {PAGE} in it)",
    )


def asked_in(args: argparse.Namespace) -> Asked:
    return Asked(model=args.model, initial=args.initial)


def refuse_other_report(args: argparse.Namespace) -> None:
    """Called before anything is judged, which may take long. Raises `Failed`."""
    if args.report is not None:
        refuse_other_file(args.report, option="--report", is_own=is_page)


def _wanted(args: argparse.Namespace, outcome: Outcome) -> Path | None:
    asked: Path | None = args.report
    if asked is not None:
        return asked
    target = Path(args.target)
    return target / PAGE if target.is_dir() and outcome is Outcome.VIOLATED else None


def write_wanted_page(args: argparse.Namespace, found: Found, verdict: Verdict) -> Path | None:
    """The page, if there is to be one. One that nobody asked for may fail."""
    path = _wanted(args, verdict.outcome)
    if path is None:
        return None
    about = {"history": str(found.path), **_run(found.path)}
    told = Told(verdict=verdict, void=found.void, about=about)
    try:
        write_page(path, found.history, told)
    except Failed as error:
        if args.report is not None:
            raise
        say(f"no report: {error}", sys.stderr)
        return None
    return path


def write_asked_page(args: argparse.Namespace, verdict: Verdict) -> Path | None:
    """Only if it is asked for: whoever judges elsewhere may not want to read the history here."""
    if args.report is None:
        return None
    return write_wanted_page(args, find_history(args.target, asked_in(args)), verdict)


def write_page(path: Path, history: History, told: Told) -> None:
    """Raises `Failed`."""
    refuse_other_file(path, option="--report", is_own=is_page)
    try:
        path.write_text(page(history, told), encoding="ascii")
    except OSError as error:
        raise Failed(f"cannot write {path}: {error.strerror}") from error


def _run(history: Path) -> Mapping[str, str]:
    """What the run said of itself, if it did."""
    try:
        told = json.loads((history.parent / "run.json").read_text())
    except (OSError, ValueError):
        return {}
    names: Sequence[str] = ("planted", "command", "commit", "began")
    return {name: str(told[name]) for name in names if isinstance(told, dict) and name in told}
