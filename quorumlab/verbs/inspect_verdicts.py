"""`inspect summary`, `inspect why` and `inspect verify`: what all of it comes to."""

import argparse
from dataclasses import asdict
from typing import Any

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.batches import Damage
from quorumlab.inspection.stories import parse_subject, story
from quorumlab.inspection.stream import log_entries
from quorumlab.inspection.summary import Summary, identity, summarize
from quorumlab.inspection.target import Target
from quorumlab.inspection.telling import TopicNames, as_text, time_text
from quorumlab.inspection.verifying import Verified, verify
from quorumlab.output import complain, print_json, say
from quorumlab.verbs.common import UsageError

__all__ = ["add_subject", "run_summary", "run_verify", "run_why"]

_DAMAGED = 1
_VIOLATED = 4
_CONTEXT_RECORDS = 3  # before and behind a violation


def run_summary(args: argparse.Namespace, target: Target) -> int:
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


# --- why, verify ----------------------------------------------------------------------------


def add_subject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("thing", metavar="THING", help="orders-3, 'broker 2', 'config orders'")


def run_why(args: argparse.Namespace, target: Target) -> int:
    try:
        subject = parse_subject(args.thing)
    except ValueError as error:
        raise UsageError(str(error)) from error
    events, damaged = [], 0
    for found in story(target, subject):
        if isinstance(found, Damage):
            damaged += 1
            complain(found)
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


def run_verify(args: argparse.Namespace, target: Target) -> int:
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
