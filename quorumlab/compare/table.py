"""The figures of a comparison, and the tables of them that a terminal shows.

The time of a step is counted since the step before. Steps may overlap: a step that is done before
another one that is named before it took no time. Growth is the exponent of a power: log(time)
against log(partitions), by least squares. Times between two steps are fitted, never times since the
fault: those begin with a time-out, which is the same for all and would hide growth. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log

from quorumlab.compare.experiments import ALL_DESIGNS, EXPERIMENTS, subject_named
from quorumlab.compare.experiments import in_words as settings_in_words
from quorumlab.compare.node_measurements import goes_on, of_all_roles, total
from quorumlab.compare.results import MEASURED, Cell

__all__ = [
    "SINCE_DETECTED",
    "Segment",
    "exponent",
    "growth_of",
    "in_order",
    "in_words",
    "own_times",
    "segments",
    "tables",
]

SINCE_DETECTED = "since detected"  # all steps but the first, which is a time-out


_FLOOR_MS = 0.5  # below it, one time is as good as another on a machine that does other things
_FLAT = 0.3
_LINEAR = (0.8, 1.25)


@dataclass(frozen=True, slots=True)
class Segment:
    """Both ends are in ms since the fault."""

    step: str
    start_ms: float
    end_ms: float

    @property
    def ms(self) -> float:
        return self.end_ms - self.start_ms


def segments(cell: Cell) -> list[Segment]:
    """Returns the steps in the experiment's order; those that were not seen to end are left out."""
    found: list[Segment] = []
    reached_ms = 0.0
    for step in EXPERIMENTS[cell.experiment].steps:
        done_ms = cell.done_ms(step)
        if done_ms is not None:
            found.append(Segment(step, reached_ms, max(reached_ms, done_ms)))
            reached_ms = found[-1].end_ms
    return found


def own_times(cells: Iterable[Cell]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Returns (partitions, ms) of every cell, by step and subject, and of all steps once the fault
    is detected. `cells` are of one experiment."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for cell in cells:
        parts = segments(cell)
        times = [(each.step, each.ms) for each in parts]
        if len(parts) > 1 and parts[0].step == "detected":
            times.append((SINCE_DETECTED, parts[-1].end_ms - parts[0].end_ms))
        for step, ms in times:
            found.setdefault(step, {}).setdefault(cell.subject, []).append((cell.partitions, ms))
    return found


def exponent(points: Iterable[tuple[int, float]]) -> float | None:
    """Fits (partitions, ms); None if there are not two different numbers of partitions."""
    logs = [(log(partitions), log(max(ms, _FLOOR_MS))) for partitions, ms in points]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def in_words(found: float | None) -> str:
    if found is None:
        return "not known"
    if found < _FLAT:
        return "flat"
    if found < _LINEAR[0]:
        return "less than linear"
    if found <= _LINEAR[1]:
        return "linear"
    return "more than linear"


_KINDS = ("set", "create", "delete")
# Znodes written, each by itself or in a transaction; and requests, of which that is one.
ZOOKEEPER_WRITES = (*(f"zk.{each}" for each in _KINDS), *(f"zk.multi.{each}" for each in _KINDS))
ZOOKEEPER_REQUESTS = tuple(f"zk.{each}" for each in (*_KINDS, "multi", "get", "exists", "children"))


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Sorts cells by experiment, setting and size; then the oldest design comes first."""
    experiments = list(EXPERIMENTS)
    return sorted(
        cells,
        key=lambda cell: (
            experiments.index(cell.experiment),
            cell.timeouts != "equal",
            cell.partitions,
            ALL_DESIGNS.index(subject_named(cell.subject).design),
            cell.subject,
        ),
    )


def headline(cell: Cell) -> str:
    title = EXPERIMENTS[cell.experiment].title
    return f"{title}: {cell.partitions:,} partitions, {settings_in_words(cell.timeouts)}"


def figures(cell: Cell) -> dict[str, str]:
    """The columns of a cell that was measured: times in ms since the fault, then counts."""
    shown = {step: _ms(cell.done_ms(step)) for step in EXPERIMENTS[cell.experiment].steps}
    longest = cell.client["longest_ms"]
    shown["longest gap"] = _ms(longest.most)
    shown["affected"] = f"{cell.affected:,}"
    shown["lost"] = str(cell.records.lost)
    shown["zk writes"] = f"{total(cell.ledger, ZOOKEEPER_WRITES):,}"
    shown["zk requests"] = f"{total(cell.ledger, ZOOKEEPER_REQUESTS):,}"
    shown["records"] = f"{of_all_roles(cell.ledger).get('log.records', 0):,}"
    # Requests that nodes sent on account of the event.
    requests = [
        n for n in of_all_roles(cell.ledger) if n.startswith("rpc.sent.") and not goes_on(n)
    ]
    shown["requests"] = f"{total(cell.ledger, requests):,}"
    return shown


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, str]]
    notes: Sequence[str]


def tables(cells: Iterable[Cell]) -> Iterator[Table]:
    """One of each experiment, setting and size. A column that says nothing is left out."""
    for title, group in groupby(in_order(cells), key=headline):
        rows: list[dict[str, str]] = []
        notes: list[str] = []
        for cell in group:
            if cell.outcome == MEASURED:
                rows.append({"subject": cell.subject, **figures(cell)})
                notes += _of_records(cell)
            else:
                notes.append(f"{cell.subject}: {cell.outcome}: {cell.why}")
        columns = list(dict.fromkeys(name for row in rows for name in row))
        columns = [name for name in columns if _says_something(rows, name)]
        yield Table(title, columns, rows, notes)


def _says_something(rows: Iterable[Mapping[str, str]], column: str) -> bool:
    return any(row.get(column) not in (None, "-", "0") for row in rows) or column == "lost"


def _of_records(cell: Cell) -> Iterator[str]:
    records = cell.records
    if records.lost:
        why = records.admitted or "its document promises otherwise"
        yield f"{cell.subject}: {records.lost} of {records.acknowledged:,} acknowledged lost: {why}"
    if records.unread:
        yield f"{cell.subject}: {records.unread} partitions could not be read back"


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a step's own time with the number of partitions."""

    experiment: str
    subject: str
    step: str
    sizes: int  # numbers of partitions that it was fitted to
    exponent: float
    grows: str


def growth_of(cells: Iterable[Cell]) -> Iterator[Growth]:
    """Yields growth by experiment and subject, steps in their order; of equal time-outs only."""
    equal = [
        cell for cell in in_order(cells) if cell.outcome == MEASURED and cell.timeouts == "equal"
    ]
    by_subject = sorted(equal, key=lambda cell: (cell.experiment, cell.subject))
    for (experiment, subject), group in groupby(by_subject, lambda c: (c.experiment, c.subject)):
        for step, points in own_times(group).items():
            fitted = exponent(points[subject])
            if fitted is not None:
                sizes = len({partitions for partitions, _ in points[subject]})
                words = in_words(fitted)
                yield Growth(experiment, subject, step, sizes, round(fitted, 2), words)
