"""A scenario tells lines and tables; a directed run keeps an account of what was produced.

The account says what happened when, and what clients saw. The same schedule is played on the
shipped rules and on rules with a bug; judged by the simulator's invariants or left alone, so that
only what clients saw can tell (`is_judged`); in the simulator, and some of them on real processes.
The history is as `jepsen_like.histories.history` has it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from jepsen_like.histories.history import Value
from jepsen_like.scenarios.language.forms import Names
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.open_history import OpenHistory
from jepsen_like.sim.violation import Stuck
from wire.messages.fetching import EpochEndOffset

__all__ = [
    "Awaiting",
    "News",
    "Production",
    "Step",
    "Story",
    "Told",
    "appended_after",
    "logs_table",
    "offsets",
    "table",
    "told_to_part",
]

_STEPS_MAX = 2_000


class Story:
    """Collects lines until they are taken."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def tell(self, *lines: str) -> None:
        self._lines += lines

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines


class Told:
    """What was told of each node last: it is told again when it has changed."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._last: dict[tuple[str, object], object] = {}

    def forget(self, node: int, kinds: Collection[str]) -> None:
        """Its process has ended: what it says next is news."""
        for kind in kinds:
            self._last.pop((kind, node), None)

    def tell(self, kind: str, of: object, what: object, line: str) -> None:
        """`line` says it. None is remembered, and not told."""
        if self._last.get((kind, of)) != what:
            self._last[kind, of] = what
            if what is not None:
                self._story.tell(line)


def offsets(first: int, end: int) -> str:
    """The offsets of records: `4`, or `4-6`."""
    return str(first) if end - first == 1 else f"{first}-{end - 1}"


def appended_after(before: Entry | None, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that are not in the history of `before`, whatever was truncated meanwhile."""
    added: list[Entry] = []
    for entry in reversed(entries):
        if _is_in_history(entry, before):
            break
        added.append(entry)
    return added[::-1]


def _is_in_history(entry: Entry, last: Entry | None) -> bool:
    while last is not None and last.index > entry.index:
        last = last.parent
    return last is entry


def told_to_part(node: int, follower: int, diverging: EpochEndOffset) -> str:
    """What the answer to a fetch says where the logs diverge."""
    return (
        f"{node} tells {follower} that their logs part: here epoch {diverging.epoch}"
        f" ends at offset {diverging.end_offset}"
    )


# --- tables, with the columns under each other ----------------------------------------------


def table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Without blanks at the ends of lines; an empty line would end a block."""
    cells = [list(heading), *(["-" if each is None else str(each) for each in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def logs_table(cells: Mapping[int, Mapping[int, str]]) -> list[str]:
    """Like figure 3.7 of the Raft thesis: one row a node, one column an offset."""
    held = [offset for of_node in cells.values() for offset in of_node]
    if not held:
        return ["no records"]
    columns = range(min(held), max(held) + 1)
    rows = [(node, *(mine.get(offset, "") for offset in columns)) for node, mine in cells.items()]
    return table(("offset", *map(str, columns)), rows)


# --- the account ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    at_ms: int  # of virtual time
    what: str


class News:
    """Notes what `source` says of a partition, if that is news."""

    def __init__(self, source: str, names: Names, note: Callable[[str], None]) -> None:
        self._source = source
        self._names = names
        self._note = note
        self._shown = ""

    def look(self, leader: int, epoch: int, isr: Iterable[int]) -> None:
        """`a leads in epoch 1; in sync: a, b`."""
        who = "nobody" if leader < 0 else self._names.of(leader)
        in_sync = ", ".join(sorted(map(self._names.of, isr))) or "nobody"
        shown = f"{self._source}: {who} leads in epoch {epoch}; in sync: {in_sync}"
        if shown != self._shown:
            self._shown = shown
            self._note(shown)


class _Reaches(Protocol):
    def reach(self, condition: Callable[[], bool], within_ms: int) -> bool: ...


class Awaiting:
    """The base of what is directed: it waits, and notes what has come to hold."""

    wait_ms: ClassVar[int] = 20_000  # for what a schedule waits for, unless it says otherwise
    bound: ClassVar[str] = ""  # that is broken by what does not, if no other is named
    machines: _Reaches

    def note(self, what: str) -> None:
        raise NotImplementedError

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        bound: str = "",
        within_ms: int | None = None,
    ) -> None:
        """Stuck under the name of `bound`; without one, the schedule is not what it should be."""
        bound_ms = self.wait_ms if within_ms is None else within_ms
        if self.machines.reach(condition, bound_ms):
            self.note(what)
            return
        broken = bound or self.bound
        assert broken, f"the schedule never came to this: {what}{self._told_instead()}"
        raise Stuck(broken, f"not within {bound_ms} ms: {what}{self._told_instead()}")

    def _told_instead(self) -> str:
        """What is so, for the message about what did not come to hold."""
        return ""


@dataclass(slots=True, kw_only=True)
class Production(OpenHistory):
    """`settings` overrule those of the schedule; with a `seed`, messages take varying times."""

    settings: Mapping[str, Value] = field(default_factory=dict)
    seed: int = 0
    is_judged: bool = True
    steps: list[Step] = field(default_factory=list)

    def note(self, what: str) -> None:
        if len(self.steps) < _STEPS_MAX:
            self.steps.append(Step(at_ms=self.now_us() // 1000, what=what))
