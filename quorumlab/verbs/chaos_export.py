"""`quorumlab chaos export TARGET --edn FILE | --jsonl FILE`: a history for other checkers."""

import argparse
from pathlib import Path

from jepsen_like.histories.edn import EdnError
from jepsen_like.histories.history import MalformedHistory
from jepsen_like.histories.interchange import edn_lines, is_exported, jsonl_lines
from quorumlab.histories import find_history
from quorumlab.output import say
from quorumlab.overwriting import refuse_other_file
from quorumlab.verb_errors import Failed

__all__ = ["add_options"]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a history as Jepsen's EDN, or as JSON lines; `quorumlab check` reads both back."
    )
    parser.add_argument("target", metavar="TARGET", help="a run's directory, or a history file")
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--edn", type=Path, metavar="FILE", help="as Jepsen's history.edn")
    form.add_argument("--jsonl", type=Path, metavar="FILE", help="an object an operation")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    history = find_history(args.target).history
    path, lines = (args.edn, edn_lines) if args.edn else (args.jsonl, jsonl_lines)
    option = "--edn" if args.edn else "--jsonl"
    refuse_other_file(path, option=option, is_own=is_exported)
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines(history))
    except (EdnError, MalformedHistory, TypeError) as error:  # bytes, in a value that others wrote
        raise Failed(f"{path}: {error}") from error
    say(f"{len(history.ops):,} operations in {path}")
    return 0
