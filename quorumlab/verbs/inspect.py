"""`quorumlab inspect`: look into a metadata log, ours or the one of a real Apache Kafka.

Reading only: no lock is taken and nothing is written, so that a running node may be looked at.
Exit codes: 0 fine, 1 damage was met, 2 usage, 4 `verify` found a violation.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from quorumlab.arguments import Parser
from quorumlab.inspection.opening import opened
from quorumlab.inspection.target import Target
from quorumlab.verbs import inspect_records as records
from quorumlab.verbs import inspect_states as states
from quorumlab.verbs import inspect_summary as summary
from quorumlab.verbs import inspect_tree as tree
from quorumlab.verbs import inspect_verdicts as verdicts
from quorumlab.verbs.common import UsageError

__all__ = ["add_options", "with_default_verb"]

_Parser = argparse.ArgumentParser
_TEXT = ("text", "json", "jsonl")
_A_TARGET = "a node's directory or __cluster_metadata-0, a .log, a .checkpoint, HOST:PORT"
_EPILOG = """\
A TARGET is a node's directory (log.dirs), its __cluster_metadata-0, one segment (.log), one
snapshot (.checkpoint), or HOST:PORT of a broker or controller of a live cluster. A directory or
file that is named like a VERB is given as ./dump. Nothing is locked or written.

  quorumlab inspect /var/lib/kafka/data          what is this, and is it whole?
  quorumlab inspect dump --topic orders DIR      records about one topic
  quorumlab inspect why orders-3 DIR             why is it offline? (or broker 2)
  quorumlab inspect at 2026-11-21T06:20 DIR      brokers and topics as they were then
  quorumlab inspect tail localhost:9092          what is being committed now

Exit codes: 0 fine, 1 damage was met, 2 usage, 4 `verify` found a violation."""


class _AnyOrder(Parser):
    """Options may stand before, between and behind words of which some may be missing."""

    _is_within = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        if self._is_within:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # the other method comes back here, up to Python 3.11
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False


def _nothing(_parser: _Parser) -> None:
    """No arguments but the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    about: str
    run: Callable[[argparse.Namespace], int]
    add: Callable[[_Parser], None] = _nothing
    formats: Sequence[str] = _TEXT
    add_behind: Callable[[_Parser], None] | None = _nothing  # the target; None: it takes its own


def _on_files(run: Callable[[argparse.Namespace, Target], int]) -> Callable[..., int]:
    return partial(_with_target, run)


def _with_target(run: Callable[[argparse.Namespace, Target], int], args: argparse.Namespace) -> int:
    with opened(args.target) as target:
        return run(args, target)


_VERBS: dict[str, _Verb] = {
    "summary": _Verb(about="what is this, and is it whole?", run=_on_files(summary.run_summary)),
    "dump": _Verb(
        about="every record, one line each",
        run=_on_files(records.run_dump),
        add=records.add_selection,
    ),
    "at": _Verb(
        about="the cluster as it was",
        run=_on_files(states.run_at),
        add=states.add_place,
        formats=("table", "tree", "json", "jsonl"),
    ),
    "diff": _Verb(
        about="what changed between A and B, or is different in two directories",
        run=states.run_diff,
        add=states.add_diff,
        add_behind=None,
    ),
    "why": _Verb(
        about="the story of a partition, a broker or a configuration",
        run=_on_files(verdicts.run_why),
        add=verdicts.add_subject,
    ),
    "tree": _Verb(
        about="browse the state like a file system",
        run=_on_files(tree.run_tree),
        add_behind=tree.add_path,
    ),
    "tail": _Verb(
        about="follow it as it grows",
        run=records.run_tail,
        add=records.add_start,
    ),
    "verify": _Verb(
        about="checksums, offsets, epochs, states, snapshots",
        run=_on_files(verdicts.run_verify),
    ),
    "export": _Verb(
        about="records and state as tables for Spark and pandas",
        run=_on_files(records.run_export),
        add=records.add_parquet,
    ),
}


def with_default_verb(arguments: Sequence[str]) -> list[str]:
    """`inspect DIR` is `inspect summary DIR`; a target named like a verb is given as ./dump."""
    at = list(arguments).index("inspect") + 1
    rest = list(arguments[at:])
    is_verb = rest[:1] and rest[0] in (*_VERBS, "-h", "--help")
    if rest and not is_verb and not _is_misspelt(rest):
        rest.insert(0, "summary")
    return [*arguments[:at], *rest]


def _is_misspelt(rest: Sequence[str]) -> bool:
    """A word that can only be a verb: then the list of verbs is the answer."""
    first, *others = rest
    return bool(others) and first.isalpha() and not Path(first).exists()


def _refuse_nothing(_args: argparse.Namespace) -> int:
    raise UsageError(f"inspect: name a TARGET, {_A_TARGET}: see `quorumlab inspect --help`")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Look into a metadata log. Without a VERB it is `summary`."
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=_refuse_nothing)
    actions = parser.add_subparsers(metavar="VERB", parser_class=_AnyOrder)
    for name, verb in _VERBS.items():
        action: Any = actions.add_parser(name, help=verb.about, description=verb.about)
        action.add_argument("--format", choices=verb.formats, default=verb.formats[0])
        verb.add(action)
        if verb.add_behind is not None:
            action.add_argument(
                "target",
                metavar="TARGET",
                help=_A_TARGET,
            )
            verb.add_behind(action)
        action.set_defaults(run=verb.run)
