"""`inspect why` and `inspect verify`: what became of one thing, and whether all is true."""

from dataclasses import asdict
from itertools import islice
from types import SimpleNamespace

from jepsen_like.real.layout import ClusterError
from quorumlab.arguments import UsageError
from quorumlab.inspection.batches import Damage
from quorumlab.inspection.entries import TopicNames, as_text, time_text
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.stories import Subject, also_meant, nearest, parse_subject, story
from quorumlab.inspection.stream import target_entries
from quorumlab.inspection.target import Target
from quorumlab.inspection.verifying import Verified, verify
from quorumlab.output import complain, number_of, print_json, say, say_folded
from quorumlab.verbs.inspecting import DAMAGED, VIOLATED, scanning

__all__ = ["run_verify", "run_why"]

_CONTEXT_RECORDS = 3  # before and behind a violation
_INDENT = 26  # behind the time
_VIOLATIONS_MAX = 1000  # where so much is wrong, more of it helps nobody


def run_why(args: SimpleNamespace, target: Target) -> int:
    try:
        subject = parse_subject(" ".join(args.thing))
    except ValueError as error:
        raise UsageError(str(error)) from error
    events, damaged = _told(args, target, subject)
    if not events:
        image = replay(target, Moment()).image
        other = also_meant(subject, image)
        if other is not None:
            subject = other
            events, damaged = _told(args, target, subject)
    if args.format != "text":
        print_json(events, form=args.format)
    if not events:
        hint = nearest(image, subject)
        raise ClusterError(f"{subject}: nothing in this log speaks of it; {hint}")
    return DAMAGED if damaged else 0


def _told(
    args: SimpleNamespace, target: Target, subject: Subject
) -> tuple[list[dict[str, object]], int]:
    """The events, of which people read while they are found, and how much is damaged."""
    events, damaged = [], 0
    with scanning(target, prints=True) as watched:
        for found in story(watched, subject):
            if isinstance(found, Damage):
                damaged += 1
                complain(found)
                continue
            events.append(asdict(found))
            if args.format == "text":
                where = f"offset {found.offset:>6}  epoch {found.epoch}"
                say_folded(f"{time_text(found.timestamp_ms)}  {where}  {found.text}", _INDENT)
    return events, damaged


def run_verify(args: SimpleNamespace, target: Target) -> int:
    seen = Verified()
    with scanning(target) as watched:
        found = list(islice(verify(watched, seen), _VIOLATIONS_MAX))
    if seen.torn_tail:
        complain(f"{seen.torn_tail}; no violation: a write that was cut off, as by a crash")
    if args.format == "text":
        _say_verified(target, seen)
        for violation in found:
            say_folded(str(violation))
        if found:
            _say_context(target, found[0].offset)
    elif args.format == "jsonl":
        print_json([asdict(each) for each in found], form="jsonl")
    else:
        print_json({"violations": [asdict(each) for each in found], **asdict(seen)})
    if found:
        return VIOLATED
    return DAMAGED if seen.torn_tail else 0


def _say_verified(target: Target, seen: Verified) -> None:
    if target.segments:
        say_folded(
            f"{target.path}: {number_of(seen.records, 'record')} in "
            f"{number_of(seen.batches, 'batch', 'batches')}, "
            f"{seen.snapshots_compared} of {len(target.snapshots)} snapshots compared with the log"
        )
    else:
        snapshots = number_of(len(target.snapshots), "snapshot")
        say(f"{target.path}: {snapshots}, and no log to compare them with")
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
    for found in target_entries(target):
        if isinstance(found, Damage):
            if found.offset == offset:
                say(f"> {found.problem}")
            continue
        names.learn(found)
        if found.offset in around:
            say_folded(("> " if found.offset == offset else "  ") + as_text(found, names))
        if found.offset >= around.stop:
            return
