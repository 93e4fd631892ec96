"""`quorumlab inspect`: look into a metadata log, ours or the one of a real Apache Kafka.

It only reads: no lock is taken and nothing is written, so that a running node may be looked at. A
verb's module is imported once a command line names the verb.
"""

import os
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import click

from quorumlab.arguments import Verbs, declare, loading_modules
from quorumlab.verbs.common import COMMAND_CONFIG

__all__ = ["VERBS"]

_A_TARGET = "a node's directory or __cluster_metadata-0, a .log, a .checkpoint, HOST:PORT"
_TARGET = f"target TARGET  {_A_TARGET}\n{COMMAND_CONFIG}, for HOST:PORT"
_FORMAT = "--format text|json|jsonl [text]"
_PLACE = "OFFSET|TIME"
_WITHOUT_TARGET = ("diff", "tail", "partition")  # these open it themselves
_EPILOG = """\
A TARGET is a node's directory (log.dirs), its __cluster_metadata-0, one segment (.log), one
snapshot (.checkpoint), or HOST:PORT of a broker or controller of a live cluster. A directory or
file that is named like a VERB is given as ./dump. Nothing is locked or written.

Exit codes: 0 fine, 1 damage was met, 2 usage, 4 `verify` found a violation."""
_ABOUT = """Look into a metadata log. Without a VERB it is `summary`.
$ /var/lib/kafka/data  what is this, and is it whole?
$ dump --topic orders DIR  records about one topic
$ why orders-3 DIR  why is it offline? (or broker 2)
$ at 2026-11-21T06:20 DIR  brokers and topics as they were then
$ tail localhost:9092  what is being committed now"""


def _with_target(run: str, args: SimpleNamespace) -> int:
    with loading_modules():
        from quorumlab.inspection.stream import opened  # knows all records, which `--help` need not
        from quorumlab.verbs.inspecting import target_settings

        module, _, function = run.partition(":")
        told = getattr(import_module(f"quorumlab.verbs.inspect_{module}"), function)
    with opened(args.target, target_settings(args)) as target:
        code: int = told(args, target)
        return code


# Verb -> what it does; `module:function`, where records:run_dump is in `inspect_records`; options.
_VERBS = {
    "summary": (
        "what is this, and is it whole?",
        "summary:run_summary",
        f"{_FORMAT}\n{_TARGET}\n$ data/node-1",
    ),
    "dump": (
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
            {_TARGET}
            $ --topic orders --since 2026-11-21T06:00 data/node-1
            $ --where 'leader == 3 and 2 not in isr' data/node-1""",
    ),
    "at": (
        "the cluster as it was",
        "states:run_at",
        f"""--format table|tree|json|jsonl [table]
            place {_PLACE} [place]  after this record, or at this time (ISO 8601, or ms); `end`
            {_TARGET}
            $ 1200 data/node-1
            $ 2026-11-21T06:20 data/node-1 --format tree""",
    ),
    "diff": (
        "what changed between A and B, or is different in two directories",
        "states:run_diff",
        f"""{_FORMAT}
            between A B TARGET [+]  two offsets or times and a target, or two targets
            --at {_PLACE}  where to compare two targets (default: ends)
            $ 100 200 data/node-1  what these records changed
            $ data/node-1 data/node-2""",
    ),
    "why": (
        "the story of a partition, a broker or a configuration",
        "verdicts:run_why",
        f"{_FORMAT}\nthing THING [+]  orders-3, broker 2, config orders\n{_TARGET}\n"
        "$ orders-3 data/node-1  why is it offline?\n$ broker 2 data/node-1",
    ),
    "tree": (
        "browse the state like a file system",
        "tree:run_tree",
        f"""{_FORMAT}
            {_TARGET}
            path PATH [?]  what to list, such as /topics or '/topics/*/id'; without it, and on \
            a terminal, there is a prompt
            --at {_PLACE}  (default: the end of the log)
            -r/--recursive  everything below, indented
            $ data/node-1 /topics
            $ data/node-1 -r""",
    ),
    "tail": (
        "follow it as it grows",
        "records:run_tail",
        f"{_FORMAT}\n--from OFFSET [int]  start there\n{_TARGET}\n$ localhost:9092",
    ),
    "verify": (
        "checksums, offsets, epochs, states, snapshots",
        "verdicts:run_verify",
        f"{_FORMAT}\n{_TARGET}\n$ data/node-1 --format json",
    ),
    "partition": (
        "batches, markers and transactions of a topic's partition",
        "partition:run_partition",
        f"""{_FORMAT}
            --offsets A..B  batches with offsets from A on, and before B
            target TARGET  its directory (orders-0), or one file of it: .log, .txnindex, .snapshot
            $ data/node-1/data/orders-0
            $ data/node-1/data/__transaction_state-7""",
    ),
    "export": (
        "records and state as tables for Spark and pandas",
        "records:run_export",
        f"{_FORMAT}\n--parquet DIR [!]  where the tables go\n{_TARGET}\n"
        "$ data/node-1 --parquet tables",
    ),
}


class _Inspect(Verbs):
    """`inspect DIR` is `inspect summary DIR`; a target named like a verb is given as ./dump."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"name a TARGET, {_A_TARGET}", ctx)
        is_verb = args[:1] and args[0] in (*_VERBS, "-h", "--help")
        if args and not is_verb and not _is_misspelt(args):
            args = ["summary", *args]
        return super().parse_args(ctx, args)


def _is_misspelt(rest: Sequence[str]) -> bool:
    """A word that can only be a verb: then the list of verbs is the answer."""
    first, *others = rest
    return bool(others) and first.isalpha() and not Path(first).exists()


def _inspect() -> Verbs:
    verbs = {}
    for name, (told, run, table) in _VERBS.items():
        opens = name not in _WITHOUT_TARGET
        ran = partial(_with_target, run) if opens else f"inspect_{run}"
        verbs[name] = declare(ran, table, told=told, place=_place)
    found = _Inspect(_ABOUT, verbs)
    found.epilog = _EPILOG
    return found


def _place(text: str) -> str:
    """Refuses a target in its place: else the target is what seems to be missing."""
    from quorumlab.inspection.states import moment_of  # knows all records

    try:
        moment_of(text)
    except ValueError as error:
        if os.path.exists(text):
            told = f"{text!r} is neither: write `inspect at {_PLACE} TARGET`"
            raise ValueError(told) from error
    return text


VERBS = {"inspect": _inspect()}
