"""`quorumlab inspect`: look into a metadata log, ours or the one of a real Apache Kafka.

It only reads: no lock is taken and nothing is written, so that a running node may be looked at. A
verb's module is imported once a command line names the verb. Below are also the exit codes and the
progress that these modules share.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

from quorumlab.arguments import Parser, UsageError, declare, later, loading_modules
from quorumlab.inspection.target import Target
from quorumlab.output import Progress

__all__ = ["DAMAGED", "VIOLATED", "add_options", "say_lines", "scanning", "with_default_verb"]

_A_TARGET = "a node's directory or __cluster_metadata-0, a .log, a .checkpoint, HOST:PORT"
_TARGET = f"target TARGET  {_A_TARGET}"
_FORMAT = "--format text|json|jsonl [text]"
_PLACE = "OFFSET|TIME"
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

    _is_within = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        if self._is_within:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # the other method comes back here, up to Python 3.11
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False


class _Verb(NamedTuple):
    about: str
    run: str  # `module:function`, where records:run_dump is in `inspect_records`
    table: str  # of options
    opens_target: bool = True  # for `run`, which gets its files


def _with_target(run: str, args: argparse.Namespace) -> int:
    with loading_modules():
        from quorumlab.inspection.stream import opened  # knows all records, which `--help` need not

        module, _, function = run.partition(":")
        told = getattr(import_module(f"quorumlab.verbs.inspect_{module}"), function)
    with opened(args.target) as target:
        code: int = told(args, target)
        return code


_VERBS = {
    "summary": _Verb(
        "what is this, and is it whole?", "summary:run_summary", f"{_FORMAT}\n{_TARGET}"
    ),
    "dump": _Verb(
        "every record, one line each",
        "records:run_dump",
        f"""{_FORMAT}
            --type TYPE [*]  of records (repeatable)
            --topic TOPIC  records about this topic
            --partition PARTITION [int]  records about partitions of this number
            --broker BROKER [int]  records that name this broker
            --offsets A..B  from A on, and before B
            --since TIME  not before; ISO 8601, or milliseconds
            --until TIME  before
            --where EXPR  such as 'leader == 3 and 2 not in isr'
            --hex  every byte of the batches, explained
            {_TARGET}""",
    ),
    "at": _Verb(
        "the cluster as it was",
        "states:run_at",
        f"""--format table|tree|json|jsonl [table]
            place {_PLACE} [place]  after this record, or at this time (ISO 8601, or ms); `end`
            {_TARGET}""",
    ),
    "diff": _Verb(
        "what changed between A and B, or is different in two directories",
        "states:run_diff",
        f"""{_FORMAT}
            between A B TARGET [+]  two offsets or times and a target, or two targets
            --at {_PLACE}  where to compare two targets (default: ends)""",
        opens_target=False,
    ),
    "why": _Verb(
        "the story of a partition, a broker or a configuration",
        "verdicts:run_why",
        f"{_FORMAT}\nthing THING [+]  orders-3, broker 2, config orders\n{_TARGET}",
    ),
    "tree": _Verb(
        "browse the state like a file system",
        "tree:run_tree",
        f"""{_FORMAT}
            {_TARGET}
            path PATH [?]  what to list, such as /topics or '/topics/*/id'; without it, and on \
            a terminal, there is a prompt
            --at {_PLACE}  (default: the end of the log)
            -r/--recursive  everything below, indented""",
    ),
    "tail": _Verb(
        "follow it as it grows",
        "records:run_tail",
        f"{_FORMAT}\n--from OFFSET [int]  start there\n{_TARGET}",
        opens_target=False,
    ),
    "verify": _Verb(
        "checksums, offsets, epochs, states, snapshots",
        "verdicts:run_verify",
        f"{_FORMAT}\n{_TARGET}",
    ),
    "export": _Verb(
        "records and state as tables for Spark and pandas",
        "records:run_export",
        f"{_FORMAT}\n--parquet DIR [!]  where the tables go\n{_TARGET}",
    ),
}
_USAGE_OF_DIFF = (
    "quorumlab inspect diff [-h] [--format F] A B TARGET\n"
    "       quorumlab inspect diff [-h] [--format F] [--at OFFSET|TIME] TARGET TARGET"
)


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
        action = actions.add_parser(name, help=verb.about)
        run = partial(_with_target, verb.run) if verb.opens_target else later(f"inspect_{verb.run}")
        declare(action, run, verb.table, verb.about, place=_place)
        action.usage = _USAGE_OF_DIFF if name == "diff" else None


def _place(text: str) -> str:
    """Refuses a target in its place: else the target is what seems to be missing."""
    from quorumlab.inspection.states import moment_of  # knows all records

    try:
        moment_of(text)
    except ValueError as error:
        if os.path.exists(text):
            told = f"{text!r} is neither: write `inspect at {_PLACE} TARGET`"
            raise argparse.ArgumentTypeError(told) from error
    return text


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
    if prints and sys.stdout.isatty():
        yield target
        return
    sizes = [path.stat().st_size for path in target.files]
    before = dict(zip(target.files, accumulate(sizes, initial=0), strict=False))
    total = sum(sizes)
    shown = Progress()
    following = time.monotonic() + _INTERVAL_SECONDS

    def reading(path: Path, position: int) -> None:
        """Says how much of all files was read, a few times a second."""
        nonlocal following
        now = time.monotonic()
        if now >= following:
            following = now + _INTERVAL_SECONDS
            percent = 100 * (before.get(path, 0) + position) // max(total, 1)
            shown(f"{percent} % of {total // _MEBIBYTE} MiB read")

    try:
        yield replace(target, progress=reading)
    finally:
        shown.done()
