"""`quorumlab inspect`: look into a metadata log, ours or the one of a real Apache Kafka.

Reading only: no lock is taken and nothing is written, so that a running node may be looked at.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.batches import Damage
from quorumlab.inspection.selection import Selection, parse_place, parse_range, parse_type
from quorumlab.inspection.stream import log_entries
from quorumlab.inspection.summary import Summary, identity, summarize
from quorumlab.inspection.target import Address, Target, find_target
from quorumlab.inspection.telling import TopicNames, as_json, as_text, time_text
from quorumlab.inspection.where import WhereError, parse_where
from quorumlab.output import print_json, say
from quorumlab.verbs.common import UsageError

__all__ = ["add_parser", "with_default_verb"]

_VERBS = ("summary", "dump")
_DAMAGED = 1
_MAX_MS = 1 << 62


def with_default_verb(arguments: Sequence[str]) -> list[str]:
    """`inspect DIR` is `inspect summary DIR`; a target named like a verb is given as ./dump."""
    at = list(arguments).index("inspect") + 1
    rest = list(arguments[at:])
    if rest and not any(word in _VERBS for word in rest[:1]) and rest[0] not in ("-h", "--help"):
        rest.insert(0, "summary")
    return [*arguments[:at], *rest]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("inspect", help="look into a metadata log, ours or Kafka's")
    actions = parser.add_subparsers(required=True, metavar="VERB")
    summary = actions.add_parser("summary", help="what is this, and is it whole?")
    _add_target(summary, ("text", "json"))
    summary.set_defaults(run=_run_summary)
    dump = actions.add_parser("dump", help="every record, one line each")
    _add_selection(dump)
    _add_target(dump, ("text", "json", "jsonl"))
    dump.set_defaults(run=_run_dump)


def _add_target(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    parser.add_argument("--format", choices=formats, default="text")
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="a node's directory, its __cluster_metadata-0, a segment (.log) or a .checkpoint",
    )


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", action="append", default=[], help="of records (repeatable)")
    parser.add_argument("--topic", help="records about this topic")
    parser.add_argument("--partition", type=int, help="records about partitions of this number")
    parser.add_argument("--broker", type=int, help="records that name this broker")
    parser.add_argument("--offsets", metavar="A..B", help="from A on, and before B")
    parser.add_argument("--since", metavar="TIME", help="not before; ISO 8601, or milliseconds")
    parser.add_argument("--until", metavar="TIME", help="before")
    parser.add_argument("--where", metavar="EXPR", help="such as 'leader == 3 and 2 not in isr'")


def _files(text: str) -> Target:
    target = find_target(text)
    if isinstance(target, Address):
        raise ClusterError(f"{target} is an address: only files can be inspected so far")
    return target


# --- summary --------------------------------------------------------------------------------


def _run_summary(args: argparse.Namespace) -> int:
    target = _files(args.target)
    known = identity(target)
    if args.format == "json":
        summary = summarize(target)
        scanned = asdict(summary) | {"records_per_second": summary.records_per_second}
        print_json({**known, **scanned, "types": dict(summary.types)})
    else:
        _say_identity(known)
        summary = summarize(target)
        _say_summary(summary)
    return _DAMAGED if summary.problems else 0


def _say_identity(known: dict[str, object]) -> None:
    for name, value in known.items():
        if name == "snapshots":
            assert isinstance(value, list), value
            value = ", ".join(f"{s['end_offset']}-{s['epoch']} ({s['bytes']} B)" for s in value)
        if value not in (None, ""):
            say(f"{name.replace('_', ' '):<16} {value}")


def _say_summary(summary: Summary) -> None:
    say(f"{'problems':<16} {len(summary.problems) or 'none'}")
    for problem in summary.problems:
        say(f"  {problem}")
    say(f"{'offsets':<16} {summary.start_offset} to {summary.end_offset} (exclusive)")
    say(f"{'records':<16} {summary.records} in {summary.batches} batches, {summary.bytes} B")
    say(f"{'times':<16} {time_text(summary.first_ms)} to {time_text(summary.last_ms)}")
    say(f"{'records/s':<16} {summary.records_per_second}")
    say(f"{'kraft.version':<16} {summary.kraft_version}")
    say(f"{'voters':<16} {','.join(map(str, summary.voters)) or '-'}, {summary.voters_from}")
    for epoch in summary.epochs:
        say(
            f"  epoch {epoch['epoch']}: leader {epoch['leader']}, offsets {epoch['start_offset']}"
            f" to {epoch['end_offset']}, since {time_text(epoch['since_ms'])}"
        )
    for name, count in summary.types.most_common():
        say(f"  {count:>9,}  {name}")


# --- dump -----------------------------------------------------------------------------------


def _run_dump(args: argparse.Namespace) -> int:
    target = _files(args.target)
    selection = _selection(args)
    names = TopicNames()
    tell = as_text if args.format == "text" else as_json
    damaged = 0
    for found in log_entries(target.files):
        if isinstance(found, Damage):
            damaged += 1
            print(f"quorumlab: {found}", file=sys.stderr)
            continue
        names.learn(found)
        if selection.takes(names.facts(found)):
            say(tell(found, names))
    return _DAMAGED if damaged else 0


def _selection(args: argparse.Namespace) -> Selection:
    try:
        return Selection(
            types=frozenset(map(parse_type, args.type)),
            topic=args.topic,
            partition=args.partition,
            broker=args.broker,
            offsets=parse_range(args.offsets or ".."),
            times_ms=range(_time(args.since, -1), _time(args.until, _MAX_MS)),
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
