"""The lines of the screen of `quorumlab top`, and what a key does to it.

Pure: a view of the cluster, what the reader has selected, and the size of the screen go in; lines
come out. Trouble stands above what is well, and the log gets what is left below.
"""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from quorumlab.output import aligned, number_of
from quorumlab.top.cluster_view import ClusterView, LogEntry, Partitions

__all__ = ["Line", "Reader", "chaos_lines", "pressed", "screen_lines", "story_lines"]

_Cells = Sequence[str]
_Row = tuple[_Cells, str]  # and its style
_Table = tuple[_Cells, Sequence[_Row], int]  # a heading, rows, and how many there are in all

_WIDE = 60
_LOG_LINES_MIN = 5  # with its heading
_NODE_LINES_MIN = 2
_WELL = ("leader", "follower", "observer", "running")
_STORY_LINES_MAX = 1_000_000
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10}
_UNITS = (("G", 1e9), ("M", 1e6), ("k", 1e3))


class Line(NamedTuple):
    text: str
    style: str = ""  # as rich has it


@dataclass(frozen=True, slots=True)
class Reader:
    """What the person before the screen looks at."""

    selected: int | None = None  # an offset; None: the newest, whichever it is
    asks_why: LogEntry | None = None
    scrolled: int = 0  # lines of the story
    is_done: bool = False


# --- keys ------------------------------------------------------------------------------------


def pressed(
    reader: Reader, key: str, log: Sequence[LogEntry], *, story_length: int = _STORY_LINES_MAX
) -> Reader:
    """`story_length` is how many lines the story has that is shown."""
    if key in ("q", "ctrl-c"):
        return replace(reader, is_done=True)
    if reader.asks_why is not None:
        if key in ("enter", "escape"):
            return replace(reader, asks_why=None, scrolled=0)
        scrolled = min(reader.scrolled + _STEPS.get(key, 0), story_length - 1)
        return replace(reader, scrolled=max(0, scrolled))
    if not log:
        return reader
    place = _selected(reader, log)
    if key == "enter":
        return replace(reader, asks_why=log[place], scrolled=0)
    if key in ("end", "G", "escape"):
        return replace(reader, selected=None)
    if key not in _STEPS:
        return reader
    place = max(0, place + _STEPS[key])
    return replace(reader, selected=log[place].offset if place < len(log) - 1 else None)


def _selected(reader: Reader, log: Sequence[LogEntry]) -> int:
    """The place of the selected entry; of the oldest one if it is no longer kept."""
    if reader.selected is None:
        return len(log) - 1
    return max((at for at, each in enumerate(log) if each.offset <= reader.selected), default=0)


# --- lines -----------------------------------------------------------------------------------


def screen_lines(
    view: ClusterView,
    reader: Reader,
    *,
    width: int,
    height: int,
    story: Sequence[str] | None = None,
) -> list[Line]:
    """At most `height` lines of at most `width` characters. `story` is None while it is read."""
    lines = [Line(f"quorumlab top  {view.time}  {view.cluster}", "bold")]
    for line in (*_health(view), *chaos_lines(view)):
        lines += [Line(text, line.style) for text in textwrap.wrap(line.text, max(width, 2))]
    gap = " " if width < _WIDE else "  "
    left = height - len(lines)
    if reader.asks_why is not None:
        lines += _why(reader, reader.asks_why, story, width=width, room=left)
    else:
        nodes_max = max(_NODE_LINES_MIN, (left - _LOG_LINES_MIN) // 4)
        lines += _table(*_controllers(view), nodes_max, gap=gap)
        lines += _table(*_brokers(view), nodes_max, gap=gap)
        left = height - len(lines)
        if view.partitions is not None:
            room = max(2, min(left // 2, left - _LOG_LINES_MIN))
            lines += _table(*_partitions(view.partitions, room), room - 1, gap=gap)
        lines += _log(view, reader, height - len(lines))
    return [Line(_fitted(line.text, width), line.style) for line in lines[:height]]


def _fitted(text: str, width: int) -> str:
    """What others wrote may hold characters that move the cursor."""
    text = text[:width]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _health(view: ClusterView) -> Iterator[Line]:
    active = view.active_controller
    who = "no active controller" if active is None else f"controller {active}"
    parts = [f"{who}, epoch {_number(view.epoch)}"]
    is_well = active is not None
    if view.partitions is None:
        parts.append("partitions are not known")
    else:
        counts = view.partitions
        parts.append(number_of(counts.count, "partition"))
        parts += [f"{counts.under_replicated} under-replicated"] * bool(counts.under_replicated)
        parts += [f"{counts.offline} without a leader"] * bool(counts.offline)
        is_well = is_well and not counts.offline
    yield Line("  ".join(parts), "" if is_well else "bold red")
    controllers = [each.id for each in view.controllers if not each.answers]
    brokers = [each.id for each in view.brokers if not each.answers]
    gone = [f"controllers {_ids(controllers)}"] * bool(controllers)
    gone += [f"brokers {_ids(brokers)}"] * bool(brokers)
    if gone:
        yield Line(f"missing: {', '.join(gone)}", "bold red")


def chaos_lines(view: ClusterView) -> Iterator[Line]:
    if view.chaos is None:
        return
    told = ", ".join(f"{fault.text} for {fault.seconds:.0f} s" for fault in view.faults)
    style = "bold yellow" if view.faults else "yellow"
    yield Line(f"chaos run, {view.chaos}: {told or 'no fault in force'}", style)


def _controllers(view: ClusterView) -> _Table:
    heading = ("CONTROLLER", "ROLE", "EPOCH", "LAG", "LAG MS")
    rows = []
    for each in sorted(view.controllers, key=lambda each: (each.role in _WELL, each.id)):
        lag = (_number(each.lag_records), _number(each.lag_ms))
        rows.append(((str(each.id), each.role, _number(each.epoch), *lag), _style(each.role)))
    return heading, rows, len(rows)


def _brokers(view: ClusterView) -> _Table:
    heading = ("BROKER", "STATE", "LED", "OUT ISR", "REQ/S", "BYTES/S")
    partitions, rows = view.partitions, []
    for each in sorted(view.brokers, key=lambda each: (each.state in _WELL, each.id)):
        led = out = None
        if partitions is not None:
            led, out = partitions.led.get(each.id, 0), partitions.out_of_isr.get(each.id, 0)
        counts = (_number(led), _number(out), _short(each.requests), _short(each.bytes))
        style = _style(each.state) or ("yellow" if out else "")
        rows.append(((str(each.id), each.state, *counts), style))
    return heading, rows, len(rows)


def _style(state: str) -> str:
    return "" if state in _WELL else "red"


def _partitions(partitions: Partitions, room: int) -> _Table:
    heading = ("PARTITION", "LEADER", "ISR", "REPLICAS", "TROUBLE")
    rows = []
    for each in partitions.listed[:room]:
        cells = (each.name, _number(each.leader), _ids(each.isr), _ids(each.replicas), each.trouble)
        rows.append((cells, "red" if each.leader is None else "yellow" if each.trouble else ""))
    return heading, rows, partitions.count


def _table(
    heading: _Cells, rows: Sequence[_Row], count: int, room: int, *, gap: str
) -> Iterator[Line]:
    """A heading, and up to `room` of the `count` rows that there are; the last line tells how many
    more."""
    if not rows:
        return
    shown = rows if count <= room else rows[: room - 1]
    texts = aligned([heading, *(cells for cells, _ in shown)], gap)
    for text, style in zip(texts, ("dim", *(style for _, style in shown)), strict=True):
        yield Line(text.rstrip(), style)
    if count > len(shown):
        yield Line(f"... {count - len(shown)} more", "dim")


def _log(view: ClusterView, reader: Reader, room: int) -> Iterator[Line]:
    if room < 2:
        return
    keys = "j/k select, Enter why, q quit"
    yield Line(f"METADATA LOG, end {_number(view.log_end)}  {keys}  {view.note}".rstrip(), "dim")
    room -= 1
    if view.problem:
        yield Line(view.problem, "yellow")
        room -= 1
    elif not view.log and view.log_end is not None:
        yield Line("nothing but no-ops since the newest snapshot", "dim")
    if not view.log or room < 1:
        return
    place = _selected(reader, view.log)
    first = max(0, min(len(view.log) - room, place - room // 2))
    for at, entry in enumerate(view.log[first : first + room], first):
        mark, style = ("> ", "reverse") if at == place else ("  ", "")
        yield Line(mark + entry.text, style)


def _why(
    reader: Reader, entry: LogEntry, story: Sequence[str] | None, *, width: int, room: int
) -> Iterator[Line]:
    about = f"why {entry.subject}" if entry.subject else "the record"
    yield Line(f"{about}  (j/k scroll, Enter back, q quit)", "dim")
    wrapped = story_lines(entry, story, width)
    first = min(reader.scrolled, max(0, len(wrapped) - (room - 1)))
    for line in wrapped[first : first + room - 1]:
        yield Line(line)


def story_lines(entry: LogEntry, story: Sequence[str] | None, width: int) -> list[str]:
    texts = [entry.text, "", *(("reading the log ...",) if story is None else story)]
    return [line for text in texts for line in textwrap.wrap(text, max(width, 2)) or [""]]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    for unit, size in _UNITS:
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}"


def _ids(brokers: Collection[int]) -> str:
    return ",".join(map(str, brokers)) or "-"
