"""`quorumlab chaos timeline` and `chaos export`: a history for people, or as a file."""

import argparse
import json
from pathlib import Path

from jepsen_like.histories.edn import EdnError
from jepsen_like.histories.history import MalformedHistory
from jepsen_like.histories.interchange import edn_lines, is_exported, jsonl_lines
from quorumlab.arguments import Failed, UsageError, declare
from quorumlab.histories import VERDICT, find_history
from quorumlab.output import complain, refuse_other_file, say
from quorumlab.simulated_runs import timeline_of

__all__ = ["add_export_options", "add_timeline_options"]

_CONTEXT = 20
_TARGET = "target TARGET  a run's directory, or a history file"


def add_timeline_options(parser: argparse.ArgumentParser) -> None:
    table = f"""
        {_TARGET}
        | --around N,…  operations by their index (default: the evidence of the run's own verdict)
        | --all  not only what surrounds the evidence
        --context N [{_CONTEXT}]  operations before and after each piece of evidence \
          (default: {_CONTEXT})"""
    declare(parser, _timeline, table)


def _timeline(args: argparse.Namespace) -> int:
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
    return frozenset() if args.all else _evidence_of_verdict(Path(args.target))


def _evidence_of_verdict(directory: Path) -> frozenset[int]:
    """A run on processes tells more than the verdict, which then lies one level deeper."""
    try:
        told = json.loads((directory / VERDICT).read_text())
        findings = told.get("verdict", told)["findings"]
        return frozenset(index for finding in findings for index in finding["ops"])
    except (AttributeError, OSError, ValueError, KeyError, TypeError):
        return frozenset()


def add_export_options(parser: argparse.ArgumentParser) -> None:
    about = "Write a history as Jepsen's EDN, or as JSON lines; `quorumlab check` reads both back."
    table = f"""
        {_TARGET}
        |! --edn FILE  as Jepsen's history.edn
        |! --jsonl FILE  an object an operation"""
    declare(parser, _export, table, about)


def _export(args: argparse.Namespace) -> int:
    history = find_history(args.target).history
    path, lines = (args.edn, edn_lines) if args.edn else (args.jsonl, jsonl_lines)
    refuse_other_file(path, option="--edn" if args.edn else "--jsonl", is_own=is_exported)
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines(history))
    except (EdnError, MalformedHistory, TypeError) as error:  # bytes, in a value that others wrote
        raise Failed(f"{path}: {error}") from error
    say(f"{len(history.ops):,} operations in {path}")
    return 0
