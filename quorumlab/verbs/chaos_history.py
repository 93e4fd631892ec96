"""`quorumlab chaos timeline` and `chaos export`: a history for people, or as a file."""

import json
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.histories.edn import EdnError
from jepsen_like.histories.history import MalformedHistory
from jepsen_like.histories.interchange import edn_lines, is_exported, jsonl_lines
from quorumlab.arguments import Failed, UsageError
from quorumlab.histories import VERDICT, find_history
from quorumlab.output import complain, refuse_other_file, say
from quorumlab.simulated_runs import say_timeline

__all__ = ["export", "timeline"]


def timeline(args: SimpleNamespace) -> int:
    if args.context < 0:
        raise UsageError(f"--context {args.context}: not below 0")
    evidence = _evidence(args)
    history = find_history(args.target).history
    missing = evidence.difference(op.index for op in history.ops)
    if missing:
        complain(f"no operation {', '.join(map(str, sorted(missing)))} is in {args.target}")
    say_timeline(history, evidence, context=args.context)
    return 0


def _evidence(args: SimpleNamespace) -> frozenset[int]:
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


def export(args: SimpleNamespace) -> int:
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
