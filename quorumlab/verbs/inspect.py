"""`quorumlab inspect`: look into a metadata log, ours or the one of a real Apache Kafka.

Reading only: no lock is taken and nothing is written, so that a running node may be looked at.
Exit codes: 0 fine, 1 damage was met, 2 usage, 4 `verify` found a violation.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from jepsen_like.real.layout import ClusterError
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
from quorumlab.inspection.states import Moment, Replay, replay
from quorumlab.inspection.stories import parse_subject, story
from quorumlab.inspection.stream import log_batches, log_entries
from quorumlab.inspection.summary import Summary, identity, summarize
from quorumlab.inspection.target import Address, Target, find_target
from quorumlab.inspection.telling import TopicNames, as_json, as_text, time_text
from quorumlab.inspection.tree import differences, find, leaves, tree_of
from quorumlab.inspection.verifying import Verified, verify
from quorumlab.inspection.where import WhereError, parse_where
from quorumlab.output import print_json, say
from quorumlab.verbs.common import UsageError
from wire.explain import hex_lines

__all__ = ["add_parser", "with_default_verb"]

_DAMAGED = 1
_VIOLATED = 4
_CONTEXT_RECORDS = 3  # before and behind a violation

Run = Callable[[argparse.Namespace], int]


def with_default_verb(arguments: Sequence[str]) -> list[str]:
    """`inspect DIR` is `inspect summary DIR`; a target named like a verb is given as ./dump."""
    at = list(arguments).index("inspect") + 1
    rest = list(arguments[at:])
    if rest and rest[0] not in (*_VERBS, "-h", "--help"):
        rest.insert(0, "summary")
    return [*arguments[:at], *rest]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "inspect",
        help="look into a metadata log, ours or Kafka's",
        epilog="Without a VERB it is `summary`. A target named like a verb is given as ./dump.",
    )
    actions = parser.add_subparsers(required=True, metavar="VERB")
    for name, (run, about, formats) in _VERBS.items():
        action = actions.add_parser(name, help=about)
        action.add_argument("--format", choices=formats, default=formats[0])
        if name in _ARGUMENTS:
            _ARGUMENTS[name](action)
        action.add_argument(
            "target",
            metavar="TARGET",
            help="a node's directory, its __cluster_metadata-0, a segment, or a .checkpoint",
        )
        action.set_defaults(run=run)


def _files(text: str) -> Target:
    target = find_target(text)
    if isinstance(target, Address):
        raise ClusterError(f"{target} is an address: only files can be inspected so far")
    return target


def _complain(found: object) -> None:
    print(f"quorumlab: {found}", file=sys.stderr)


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


def _say_identity(known: dict[str, Any]) -> None:
    for name, value in known.items():
        if name == "snapshots":
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


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", action="append", default=[], help="of records (repeatable)")
    parser.add_argument("--topic", help="records about this topic")
    parser.add_argument("--partition", type=int, help="records about partitions of this number")
    parser.add_argument("--broker", type=int, help="records that name this broker")
    parser.add_argument("--offsets", metavar="A..B", help="from A on, and before B")
    parser.add_argument("--since", metavar="TIME", help="not before; ISO 8601, or milliseconds")
    parser.add_argument("--until", metavar="TIME", help="before")
    parser.add_argument("--where", metavar="EXPR", help="such as 'leader == 3 and 2 not in isr'")
    parser.add_argument("--hex", action="store_true", help="every byte of the batches, explained")


def _run_dump(args: argparse.Namespace) -> int:
    target = _files(args.target)
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
            _complain(found)
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
            _complain(found)
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


# --- states: at, diff, tree -----------------------------------------------------------------


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="OFFSET|TIME", help="after this record, or at this time")


def _add_two_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="an offset or a time, or a target of its own")
    parser.add_argument("after", metavar="B", help="the same")


def _add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--path", default="/", help="what to list (default: /)")
    parser.add_argument("--at", metavar="OFFSET|TIME", help="(default: the end of the log)")


def _moment(text: str | None) -> Moment:
    if text is None:
        return Moment()
    try:
        offset, time_ms = parse_place(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Moment(offset=offset, time_ms=time_ms)


def _state(target: Target, place: str | None) -> Replay:
    state = replay(target, _moment(place))
    for problem in state.problems:
        _complain(problem)
    return state


def _run_at(args: argparse.Namespace) -> int:
    state = _state(_files(args.target), args.place)
    tree = tree_of(state.image)
    if args.format == "json":
        print_json(tree)
    else:
        for path, value in leaves(tree):
            say(f"{path:<56} {value}")
    return _DAMAGED if state.problems else 0


def _run_diff(args: argparse.Namespace) -> int:
    target = _files(args.target)
    before, after = _state(target, args.before), _state(target, args.after)
    found = list(differences(tree_of(before.image), tree_of(after.image)))
    if args.format == "json":
        print_json([asdict(change) for change in found])
    else:
        for change in found:
            say(f"{change.path:<56} {change.before} -> {change.after}")
    return _DAMAGED if before.problems or after.problems else 0


def _run_tree(args: argparse.Namespace) -> int:
    state = _state(_files(args.target), args.at)
    try:
        found = find(tree_of(state.image), args.path)
    except KeyError as error:
        raise ClusterError(f"{args.path}: there is no {error} there") from error
    if args.format == "json" or not isinstance(found, dict):
        print_json(found)
    else:
        for name, child in found.items():
            say(f"{name}/" if isinstance(child, dict) else f"{name} = {child}")
    return _DAMAGED if state.problems else 0


# --- why, verify ----------------------------------------------------------------------------


def _add_subject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("thing", metavar="THING", help="orders-3, 'broker 2', 'config orders'")


def _run_why(args: argparse.Namespace) -> int:
    try:
        subject = parse_subject(args.thing)
    except ValueError as error:
        raise UsageError(str(error)) from error
    events, damaged = [], 0
    for found in story(_files(args.target), subject):
        if isinstance(found, Damage):
            damaged += 1
            _complain(found)
            continue
        events.append(asdict(found))
        if args.format == "text":
            head = f"{time_text(found.timestamp_ms)}  offset {found.offset:>6}  epoch {found.epoch}"
            say(f"{head}  {found.text}")
    if args.format == "json":
        print_json(events)
    if not events:
        raise ClusterError(f"{subject}: nothing in this log speaks of it")
    return _DAMAGED if damaged else 0


def _run_verify(args: argparse.Namespace) -> int:
    target = _files(args.target)
    seen = Verified()
    found = list(verify(target, seen))
    if args.format == "json":
        print_json({"violations": [asdict(each) for each in found], **asdict(seen)})
    else:
        _say_verified(target, seen)
        for violation in found:
            say(str(violation))
        if found:
            _say_context(target, found[0].offset)
    return _VIOLATED if found else 0


def _say_verified(target: Target, seen: Verified) -> None:
    say(
        f"{target.path}: {seen.records} records in {seen.batches} batches, "
        f"{seen.snapshots_compared} of {len(target.snapshots)} snapshots compared with the log"
    )
    if seen.unknown_from >= 0:
        say(
            f"the state from offset {seen.unknown_from} on is not looked at: a later Kafka wrote it"
        )


def _say_context(target: Target, offset: int) -> None:
    """The records around the first violation."""
    if offset < 0:
        return
    names = TopicNames()
    around = range(offset - _CONTEXT_RECORDS, offset + _CONTEXT_RECORDS + 1)
    for found in log_entries(target.segments):
        if isinstance(found, Damage):
            continue
        names.learn(found)
        if found.offset in around:
            say(("> " if found.offset == offset else "  ") + as_text(found, names))


_TEXT = ("text", "json")
_VERBS: dict[str, tuple[Run, str, tuple[str, ...]]] = {
    "summary": (_run_summary, "what is this, and is it whole?", _TEXT),
    "dump": (_run_dump, "every record, one line each", ("text", "json", "jsonl")),
    "at": (_run_at, "the cluster as it was", _TEXT),
    "diff": (_run_diff, "what changed between two offsets or times", _TEXT),
    "why": (_run_why, "the story of a partition, a broker or a configuration", _TEXT),
    "tree": (_run_tree, "browse the state like a file system", _TEXT),
    "verify": (_run_verify, "checksums, offsets, epochs, states, snapshots", _TEXT),
}
_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "dump": _add_selection,
    "at": _add_place,
    "diff": _add_two_places,
    "why": _add_subject,
    "tree": _add_path,
}
