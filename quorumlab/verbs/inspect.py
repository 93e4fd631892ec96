"""`quorumlab inspect`: look into a metadata log, ours or the one of a real Apache Kafka.

It only reads: no lock is taken and nothing is written, so that a running node may be looked at.
Exit codes: 0 fine, 1 damage was met, 2 usage, 4 `verify` found a violation.

A verb's module is imported once a command line names the verb: a dump does not pay for the others.
Below are also the exit codes and the progress that these modules share.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from quorumlab.arguments import Parser, UsageError
from quorumlab.inspection.target import Target
from quorumlab.output import Progress

__all__ = ["DAMAGED", "VIOLATED", "add_options", "say_lines", "scanning", "with_default_verb"]

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
DAMAGED = 1
VIOLATED = 4
_INTERVAL_SECONDS = 0.2
_LINES_AT_ONCE = 1000
_MEBIBYTE = 1 << 20


class _AnyOrder(Parser):
    """Options may stand before, between and behind words of which some may be missing."""

    verb: "_Verb"
    _is_within = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        if self._is_within:
            return super().parse_known_args(args, namespace)
        _add_arguments(self, self.verb)
        self._is_within = True  # the other method comes back here, up to Python 3.11
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    """Functions are named by their modules: `records:run_dump` is in `inspect_records`."""

    about: str
    run: str
    add: str = ""  # arguments before the target
    add_behind: str = ""
    formats: Sequence[str] = _TEXT
    takes_target: bool = True  # as a path or an address
    opens_target: bool = True  # for `run`, which gets its files


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(f"quorumlab.verbs.inspect_{module}"), function)


def _with_target(run: str, args: argparse.Namespace) -> int:
    from quorumlab.inspection.stream import opened  # knows all records, which `--help` need not

    with opened(args.target) as target:
        code: int = _function(run)(args, target)
        return code


_VERBS: dict[str, _Verb] = {
    "summary": _Verb(about="what is this, and is it whole?", run="summary:run_summary"),
    "dump": _Verb(
        about="every record, one line each", run="records:run_dump", add="records:add_selection"
    ),
    "at": _Verb(
        about="the cluster as it was",
        run="states:run_at",
        add="states:add_place",
        formats=("table", "tree", "json", "jsonl"),
    ),
    "diff": _Verb(
        about="what changed between A and B, or is different in two directories",
        run="states:run_diff",
        add="states:add_diff",
        takes_target=False,
        opens_target=False,
    ),
    "why": _Verb(
        about="the story of a partition, a broker or a configuration",
        run="verdicts:run_why",
        add="verdicts:add_subject",
    ),
    "tree": _Verb(
        about="browse the state like a file system", run="tree:run_tree", add_behind="tree:add_path"
    ),
    "tail": _Verb(
        about="follow it as it grows",
        run="records:run_tail",
        add="records:add_start",
        opens_target=False,
    ),
    "verify": _Verb(
        about="checksums, offsets, epochs, states, snapshots", run="verdicts:run_verify"
    ),
    "export": _Verb(
        about="records and state as tables for Spark and pandas",
        run="records:run_export",
        add="records:add_parquet",
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
        action.verb = verb


def _add_arguments(parser: _Parser, verb: _Verb) -> None:
    add = parser.add_argument
    add("--format", choices=verb.formats, default=verb.formats[0])
    if verb.add:
        _function(verb.add)(parser)
    if verb.takes_target:
        add("target", metavar="TARGET", help=_A_TARGET)
    if verb.add_behind:
        _function(verb.add_behind)(parser)
    parser.set_defaults(
        run=partial(_with_target, verb.run) if verb.opens_target else _function(verb.run)
    )


# --- what the verbs share --------------------------------------------------------------------


def say_lines(lines: Iterable[str]) -> None:
    """Many lines: a reader waits for none of them alone."""
    rest = iter(lines)
    while piece := list(islice(rest, _LINES_AT_ONCE)):
        sys.stdout.write("\n".join(piece) + "\n")
    sys.stdout.flush()


@contextmanager
def scanning(target: Target, *, prints: bool = False) -> Iterator[Target]:
    """The target, with progress on stderr; not where what is `printed` goes to a terminal, too."""
    shown = Progress()
    if prints and sys.stdout.isatty():
        yield target
        return
    reading = _Reading(target, shown)
    try:
        yield replace(target, progress=reading)
    finally:
        shown.done()


class _Reading:
    """Says how much of all files was read, a few times a second."""

    def __init__(self, target: Target, shown: Progress) -> None:
        self._shown = shown
        self._before: dict[Path, int] = {}  # bytes of the files before it
        self._total = 0
        for path in target.files:
            self._before[path] = self._total
            self._total += path.stat().st_size
        self._next = time.monotonic() + _INTERVAL_SECONDS

    def __call__(self, path: Path, position: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _INTERVAL_SECONDS
        read = self._before.get(path, 0) + position
        percent = 100 * read // max(self._total, 1)
        self._shown(f"{percent} % of {self._total // _MEBIBYTE} MiB read")
