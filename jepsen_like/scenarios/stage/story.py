"""A scenario tells lines and tables; a directed run keeps an account of what was produced.

The account says what happened when, and what clients saw. The same schedule is played on the
shipped rules and on rules with a bug; judged by the simulator's invariants or left alone, so that
only what clients saw can tell (`is_judged`); in the simulator, and some of them on real processes.
The history is as `jepsen_like.histories.history` has it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jepsen_like.histories.history import Value
from jepsen_like.scenarios.language.forms import Names
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.open_history import OpenHistory
from wire.messages.fetching import EpochEndOffset

__all__ = [
    "Production",
    "Step",
    "Story",
    "appended_after",
    "led",
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


def led(names: Names, leader: int, epoch: int, isr: Iterable[int]) -> str:
    """`a leads in epoch 1; in sync: a, b`."""
    who = "nobody" if leader < 0 else names.of(leader)
    in_sync = ", ".join(sorted(map(names.of, isr))) or "nobody"
    return f"{who} leads in epoch {epoch}; in sync: {in_sync}"


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
