"""`quorumlab chaos timeline DIR`: the history of a run for people."""

import argparse
import json
from pathlib import Path

from quorumlab.output import say
from quorumlab.simulated_runs import read_kept, timeline_of
from quorumlab.verbs.common import UsageError

__all__ = ["add_parser"]

_CONTEXT = 20


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "timeline", help="a history as lanes of processes and bands of faults"
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="of a run, or a history")
    parser.add_argument("--all", action="store_true", help="not only what surrounds the evidence")
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
    history = read_kept(args.directory)
    evidence = frozenset() if args.all else _evidence(args.directory)
    for line in timeline_of(history, evidence, context=args.context):
        say(line)
    return 0


def _evidence(directory: Path) -> frozenset[int]:
    """Of the verdict beside the history, if there is one."""
    try:
        told = json.loads((directory / "verdict.json").read_text())
        return frozenset(index for finding in told["findings"] for index in finding["ops"])
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()
