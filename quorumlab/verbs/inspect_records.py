"""`inspect dump` and `inspect tail`: records, one line each."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.bulk import BulkText
from quorumlab.inspection.entries import Entry, entries
from quorumlab.inspection.selection import (
    EVERYWHERE,
    Selection,
    parse_place,
    parse_range,
    parse_type,
)
from quorumlab.inspection.stream import log_batches
from quorumlab.inspection.target import Target
from quorumlab.inspection.telling import TopicNames, as_json, as_text
from quorumlab.inspection.where import WhereError, parse_where
from quorumlab.output import complain, say
from quorumlab.verbs.common import Failed, UsageError
from wire.explain import hex_lines

__all__ = ["add_parquet", "add_selection", "add_start", "run_dump", "run_export", "run_tail"]

_DAMAGED = 1


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", action="append", default=[], help="of records (repeatable)")
    parser.add_argument("--topic", help="records about this topic")
    parser.add_argument("--partition", type=int, help="records about partitions of this number")
    parser.add_argument("--broker", type=int, help="records that name this broker")
    parser.add_argument("--offsets", metavar="A..B", help="from A on, and before B")
    parser.add_argument("--since", metavar="TIME", help="not before; ISO 8601, or milliseconds")
    parser.add_argument("--until", metavar="TIME", help="before")
    parser.add_argument("--where", metavar="EXPR", help="such as 'leader == 3 and 2 not in isr'")
    parser.add_argument("--hex", action="store_true", help="every byte of the batches, explained")


def run_dump(args: argparse.Namespace, target: Target) -> int:
    selection = _selection(args)
    if args.hex:
        return _dump_bytes(target, selection)
    names = TopicNames()
    bulk = BulkText(names) if selection.takes_all and args.format == "text" else None
    tell = as_text if args.format == "text" else as_json
    damaged = 0
    for found in log_batches(target.files):
        if isinstance(found, Damage):
            damaged += 1
            complain(found)
            continue
        lines = None if bulk is None else bulk.lines(found)
        if lines is None:
            lines = _lines(found, names, selection, tell)
        if lines:
            sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return _DAMAGED if damaged else 0


def _lines(
    batch: Batch, names: TopicNames, selection: Selection, tell: Callable[[Entry, TopicNames], str]
) -> list[str]:
    lines = []
    for entry in entries(batch):
        names.learn(entry)
        if selection.takes_all or selection.takes(names.facts(entry)):
            lines.append(tell(entry, names))
    return lines


def _dump_bytes(target: Target, selection: Selection) -> int:
    """The batches that hold a record that is wanted."""
    names = TopicNames()
    damaged = 0
    for found in log_batches(target.files):
        if isinstance(found, Damage):
            damaged += 1
            complain(found)
        elif _has_wanted(found, names, selection):
            say(f"{found.path.name}, {found.header.size_bytes} bytes at {found.position}")
            for line in hex_lines(found.content, found.position):
                say(line)
    return _DAMAGED if damaged else 0


def _has_wanted(batch: Batch, names: TopicNames, selection: Selection) -> bool:
    wanted = False
    for entry in entries(batch):
        names.learn(entry)
        wanted = wanted or selection.takes(names.facts(entry))
    return wanted


def _selection(args: argparse.Namespace) -> Selection:
    try:
        return Selection(
            types=frozenset(map(parse_type, args.type)),
            topic=args.topic,
            partition=args.partition,
            broker=args.broker,
            offsets=parse_range(args.offsets) if args.offsets else EVERYWHERE,
            times_ms=range(_time(args.since, EVERYWHERE.start), _time(args.until, EVERYWHERE.stop)),
            condition=parse_where(args.where) if args.where else None,
        )
    except (WhereError, ValueError) as error:
        raise UsageError(str(error)) from error


def _time(text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    offset, time_ms = parse_place(text)
    if time_ms is None:
        raise ValueError(f"{offset} is an offset, not a time: use --offsets")
    return time_ms


# --- tail -----------------------------------------------------------------------------------


def add_start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="starts_at", type=int, metavar="OFFSET", help="start there")


def run_tail(args: argparse.Namespace) -> int:
    from quorumlab.inspection.tailing import follow  # has a client, which is slow to load

    names = TopicNames()
    tell = as_text if args.format == "text" else as_json
    try:
        for found in follow(args.target, starts_at=args.starts_at):
            if isinstance(found, Damage):
                complain(found)
                continue
            for line in _lines(found, names, Selection(), tell):
                say(line)
    except KeyboardInterrupt:
        pass
    return 0


# --- export ---------------------------------------------------------------------------------


def add_parquet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parquet", type=Path, required=True, metavar="DIR", help="where the tables go"
    )


def run_export(args: argparse.Namespace, target: Target) -> int:
    try:
        from quorumlab.inspection.export import export  # pyarrow is large, and an extra
    except ModuleNotFoundError as error:
        raise Failed(f"{error.name} is missing: pip install 'quorumlab[spark]'") from error
    rows, problems = export(target, args.parquet)
    for problem in problems:
        complain(problem)
    for name, count in rows.items():
        say(f"{count:>10,}  {args.parquet / name}.parquet")
    return _DAMAGED if problems else 0
