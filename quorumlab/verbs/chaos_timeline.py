"""`quorumlab chaos timeline TARGET`: a history for people, as text."""

import argparse
import json
from pathlib import Path

from quorumlab.histories import VERDICT, find_history
from quorumlab.output import complain, say
from quorumlab.simulated_runs import timeline_of
from quorumlab.verb_errors import UsageError

__all__ = ["add_options"]

_CONTEXT = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a run's directory, or a history file")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--around",
        metavar="N,…",
        help="operations by their index (default: the evidence of the run's own verdict)",
    )
    shown.add_argument("--all", action="store_true", help="not only what surrounds the evidence")
    parser.add_argument(
        "--context",
        type=int,
        default=_CONTEXT,
        metavar="N",
        help=f"operations before and after each piece of evidence (default: {_CONTEXT})",
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.context < 0:
        raise UsageError(f"--context {args.context}: not below 0")
    evidence = _evidence(args)
    history = find_history(args.target).history
    missing = evidence.difference(op.index for op in history.ops)
    if missing:
        complain(f"no operation {', '.join(map(str, sorted(missing)))} is in {args.target}")
    for line in timeline_of(history, evidence, context=args.context):
        say(line)
    return 0


def _evidence(args: argparse.Namespace) -> frozenset[int]:
    if args.around is not None:
        try:
            return frozenset(map(int, args.around.split(",")))
        except ValueError:
            raise UsageError(f"--around {args.around}: numbers, with commas between") from None
    return frozenset() if args.all else _of_verdict(Path(args.target))


def _of_verdict(directory: Path) -> frozenset[int]:
    """Beside the history, if there is one; that of a run on processes tells more than a verdict."""
    try:
        told = json.loads((directory / VERDICT).read_text())
        findings = told.get("verdict", told)["findings"]
        return frozenset(index for finding in findings for index in finding["ops"])
    except (AttributeError, OSError, ValueError, KeyError, TypeError):
        return frozenset()
