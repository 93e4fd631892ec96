"""`quorumlab inspect`: look into a metadata log, ours or the one of a real Apache Kafka.

Reading only: no lock is taken and nothing is written, so that a running node may be looked at.
Exit codes: 0 fine, 1 damage was met, 2 usage, 4 `verify` found a violation.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from quorumlab.inspection.target import Target, opened
from quorumlab.verbs import inspect_records as records
from quorumlab.verbs import inspect_states as states
from quorumlab.verbs import inspect_verdicts as verdicts

__all__ = ["add_parser", "with_default_verb"]

_Run = Callable[[argparse.Namespace, Target], int]
_Add = Callable[[argparse.ArgumentParser], None]


def _nothing(_parser: argparse.ArgumentParser) -> None:
    """No arguments but the target."""


_TEXT = ("text", "json")
_LINES = ("text", "json", "jsonl")
_VERBS: dict[str, tuple[_Run, _Add, tuple[str, ...], str]] = {
    "summary": (verdicts.run_summary, _nothing, _TEXT, "what is this, and is it whole?"),
    "dump": (records.run_dump, records.add_selection, _LINES, "every record, one line each"),
    "at": (states.run_at, states.add_place, _TEXT, "the cluster as it was"),
    "diff": (states.run_diff, states.add_two_places, _TEXT, "what changed between A and B"),
    "why": (verdicts.run_why, verdicts.add_subject, _TEXT, "the story of one thing"),
    "tree": (states.run_tree, states.add_path, _TEXT, "browse the state like a file system"),
    "export": (records.run_export, records.add_parquet, _TEXT, "tables for Spark and pandas"),
    "verify": (verdicts.run_verify, _nothing, _TEXT, "checksums, offsets, states, snapshots"),
}


def with_default_verb(arguments: Sequence[str]) -> list[str]:
    """`inspect DIR` is `inspect summary DIR`; a target named like a verb is given as ./dump."""
    at = list(arguments).index("inspect") + 1
    rest = list(arguments[at:])
    if rest and rest[0] not in (*_VERBS, "tail", "-h", "--help"):
        rest.insert(0, "summary")
    return [*arguments[:at], *rest]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "inspect",
        help="look into a metadata log, ours or Kafka's",
        epilog="Without a VERB it is `summary`. A target named like a verb is given as ./dump.",
    )
    actions = parser.add_subparsers(required=True, metavar="VERB")
    for name, (run, add, formats, about) in _VERBS.items():
        action = actions.add_parser(name, help=about)
        add(action)
        _add_target(action, formats)
        action.set_defaults(run=partial(_on_files, run))
    tail = actions.add_parser("tail", help="follow it as it grows")
    records.add_start(tail)
    _add_target(tail, _LINES)
    tail.set_defaults(run=records.run_tail)


def _add_target(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    parser.add_argument("--format", choices=formats, default=formats[0])
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="a node's directory or __cluster_metadata-0, a .log, a .checkpoint, HOST:PORT",
    )


def _on_files(run: _Run, args: argparse.Namespace) -> int:
    with opened(args.target) as target:
        return run(args, target)
