"""`inspect dump`, `inspect tail` and `inspect export`: records, a line each or as tables."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace

from quorumlab.arguments import UsageError, did_you_mean
from quorumlab.folding import columns, folded
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.bulk import BulkText
from quorumlab.inspection.entries import Entry, TopicNames, as_json, as_text, entries
from quorumlab.inspection.selection import (
    EVERYWHERE,
    Selection,
    WhereError,
    parse_place,
    parse_range,
    parse_type,
    parse_where,
)
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target
from quorumlab.output import answer, complain, refuse_other_directory, say, say_folded
from quorumlab.verbs.inspecting import DAMAGED, scanning, target_settings
from wire.explain import explain_batch, hex_lines

__all__ = ["run_dump", "run_export", "run_tail"]


_SELECTING = ("type", "topic", "partition", "broker", "offsets", "since", "until", "where")
_NAMES_MAX = 20
_INDENT = 14  # behind offset and epoch
_HEX_INDENT = 35  # behind the bytes


def run_dump(args: SimpleNamespace, target: Target) -> int:
    selection = _selection(args)
    lines_of = _explained if args.hex else _told
    names = TopicNames()
    is_empty, is_damaged = True, False
    with scanning(target, prints=True) as watched:
        for found in lines_of(watched, selection, args.format, names):
            if isinstance(found, Damage):
                is_damaged = True
                complain(found)
            else:
                is_empty = False
                sys.stdout.write(_fitted(found, args))
    sys.stdout.flush()
    if is_empty and selection != Selection():
        complain(_nothing_matched(args, names))
    return DAMAGED if is_damaged else 0


def _nothing_matched(args: SimpleNamespace, names: TopicNames) -> str:
    """A selection may be empty, which is no error; but one that is misspelt is empty, too."""
    given = [
        f"--{name} {' '.join(value) if isinstance(value, list) else value}"
        for name in _SELECTING
        if (value := getattr(args, name)) not in (None, [])
    ]
    text = f"no record matches {', '.join(given)}"
    if args.topic is None or args.topic in names.known:
        return text
    near = did_you_mean(args.topic, names.known)
    shown = ", ".join(names.known[:_NAMES_MAX]) or "none"
    return f"{text}: {near}the topics in it are {shown}"


def _told(
    target: Target, selection: Selection, form: str, names: TopicNames
) -> Iterator[str | Damage]:
    """The text of each batch that has records which are wanted: a line each."""
    line = partial(_line, names, selection, as_text if form == "text" else as_json)
    bulk = BulkText(names, selection, line, is_json=form != "text")
    for found in _wanted_batches(target, selection):
        if isinstance(found, Damage):
            yield found
            continue
        text = bulk.text(found)
        if text is None:
            text = _lines(filter(None, map(line, _learned(found, names))))
        if text:
            yield text


def _fitted(text: str, args: SimpleNamespace) -> str:
    if columns() is None or args.format != "text":
        return text
    return _lines(folded(text.splitlines(), _HEX_INDENT if args.hex else _INDENT))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _wanted_batches(target: Target, selection: Selection) -> Iterator[Batch | Damage]:
    """Ends where nothing can be wanted any more; batches before the wanted ones may name topics."""
    for found in target_batches(target):
        if isinstance(found, Batch) and found.header.base_offset >= selection.offsets.stop:
            return
        yield found


def _learned(batch: Batch, names: TopicNames) -> Iterator[Entry]:
    for entry in entries(batch):
        names.learn(entry)
        yield entry


def _line(
    names: TopicNames, selection: Selection, tell: Callable[[Entry, TopicNames], str], entry: Entry
) -> str | None:
    """The line of a record, if it is wanted."""
    return tell(entry, names) if _is_wanted(names, selection, entry) else None


def _is_wanted(names: TopicNames, selection: Selection, entry: Entry) -> bool:
    if not selection.may_take(entry.type, entry.offset, entry.timestamp_ms):
        return False
    return not selection.needs_facts or selection.takes(names.facts(entry))


def _explained(
    target: Target, selection: Selection, form: str, names: TopicNames
) -> Iterator[str | Damage]:
    """The bytes, line by line, of each batch that has records which are wanted."""
    for found in _wanted_batches(target, selection):
        if isinstance(found, Damage):
            yield found
        elif [True for entry in _learned(found, names) if _is_wanted(names, selection, entry)]:
            yield _lines(_bytes_of(found, form))


def _bytes_of(batch: Batch, form: str) -> Iterator[str]:
    if form == "text":
        yield f"{batch.path.name}, {batch.header.size_bytes} bytes at {batch.position}"
        yield from hex_lines(batch.content, batch.position)
        return
    for found in explain_batch(batch.content):
        place = {"file": batch.path.name, "start": batch.position + found.start}
        told = {"end": batch.position + found.end, "name": found.name, "value": _plain(found.value)}
        yield json.dumps({**place, **told})


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _selection(args: SimpleNamespace) -> Selection:
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


def run_tail(args: SimpleNamespace) -> int:
    from quorumlab.inspection.tailing import follow  # has a client, which is slow to load

    start: int | None = vars(args)["from"]
    names = TopicNames()
    wanted = Selection(offsets=range(start or 0, EVERYWHERE.stop))
    line = partial(_line, names, wanted, as_text if args.format == "text" else as_json)
    try:
        for found in follow(args.target, names, starts_at=start, settings=target_settings(args)):
            if isinstance(found, Damage):
                complain(found)
                continue
            for text in filter(None, map(line, _learned(found, names))):
                if args.format == "text":
                    say_folded(text, _INDENT)
                else:
                    say(text)
    except KeyboardInterrupt:
        pass
    return 0


# --- export ---------------------------------------------------------------------------------


def run_export(args: SimpleNamespace, target: Target) -> int:
    from quorumlab.inspection.export import RECORDS, export, is_own  # pyarrow is an extra

    refuse_other_directory(args.parquet, option="--parquet", holds=RECORDS, is_own=is_own)
    with scanning(target) as watched:
        rows, problems = export(watched, args.parquet)
    for problem in problems:
        complain(problem)
    lines = (f"{count:>10,}  {args.parquet / name}.parquet" for name, count in rows.items())
    answer(args.format, {"directory": str(args.parquet), "rows": rows}, lines)
    return DAMAGED if problems else 0
