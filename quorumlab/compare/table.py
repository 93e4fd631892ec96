"""The results for a terminal: one table for each experiment, setting and number of partitions."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.growth import exponent, told
from quorumlab.compare.ledger import goes_on, total
from quorumlab.compare.results import MEASURED, Cell
from quorumlab.compare.subjects import ALL_DESIGNS, subject_named

__all__ = [
    "ZOOKEEPER_REQUESTS",
    "ZOOKEEPER_WRITES",
    "Grown",
    "figures",
    "grown",
    "headline",
    "in_order",
    "table",
]

_KINDS = ("set", "create", "delete")
# Znodes written, each by itself or in a transaction; and requests, of which that is one.
ZOOKEEPER_WRITES = (*(f"zk.{each}" for each in _KINDS), *(f"zk.multi.{each}" for each in _KINDS))
ZOOKEEPER_REQUESTS = tuple(f"zk.{each}" for each in (*_KINDS, "multi", "get", "exists", "children"))


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """By experiment, setting, size; then the oldest design first."""
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
    settings = "equal time-outs" if cell.timeouts == "equal" else "each design's own time-outs"
    return f"{title}: {cell.partitions:,} partitions, {settings}"


def figures(cell: Cell) -> dict[str, str]:
    """The columns of a cell that was measured: times in ms since the fault, then counts."""
    shown = {step: _ms(cell.done_ms(step)) for step in EXPERIMENTS[cell.experiment].steps}
    longest = cell.client["longest_ms"]
    shown["longest gap"] = _ms(longest.most)
    shown["lost"] = str(cell.records.lost)
    shown["zk writes"] = _count(total(cell.ledger, ZOOKEEPER_WRITES))
    shown["zk requests"] = _count(total(cell.ledger, ZOOKEEPER_REQUESTS))
    shown["records"] = _count(_appended(cell))
    shown["requests"] = _count(_requests(cell.ledger))
    return shown


def _appended(cell: Cell) -> int:
    """Records of the metadata log, each counted once, whoever has it."""
    return max((counts.get("log.records", 0) for counts in cell.ledger.values()), default=0)


def _requests(ledger: Mapping[str, Mapping[str, int]]) -> int:
    """Sent by nodes on account of the event."""
    return sum(
        count
        for counts in ledger.values()
        for name, count in counts.items()
        if name.startswith("rpc.sent.") and not goes_on(name)
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _count(value: int) -> str:
    return f"{value:,}"


def table(
    cells: Iterable[Cell],
) -> Iterator[tuple[str, list[str], list[dict[str, str]], list[str]]]:
    """(headline, columns, rows, notes) of each group."""
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
        yield title, [name for name in columns if _says_something(rows, name)], rows, notes


def _says_something(rows: Iterable[Mapping[str, str]], column: str) -> bool:
    return any(row.get(column) not in (None, "-", "0") for row in rows) or column == "lost"


def _of_records(cell: Cell) -> Iterator[str]:
    records = cell.records
    if records.lost:
        why = records.admitted or "its document promises otherwise"
        yield f"{cell.subject}: {records.lost} of {records.acknowledged:,} acknowledged lost: {why}"
    if records.unread:
        yield f"{cell.subject}: {records.unread} partitions could not be read back"


Grown = tuple[str, str, str, float, str]  # experiment, subject, step, exponent, in words


def grown(cells: Iterable[Cell]) -> Iterator[Grown]:
    """How the time of each step, since the one before, grows with the partitions."""
    equal = [
        cell for cell in in_order(cells) if cell.outcome == MEASURED and cell.timeouts == "equal"
    ]
    by_subject = sorted(equal, key=lambda cell: (cell.experiment, cell.subject, cell.partitions))
    for (experiment, subject), group in groupby(by_subject, lambda c: (c.experiment, c.subject)):
        points: dict[str, list[tuple[int, float]]] = {}
        for cell in group:
            before = 0.0
            for step in EXPERIMENTS[experiment].steps:
                done_ms = cell.done_ms(step)
                if done_ms is None:
                    continue
                points.setdefault(step, []).append((cell.partitions, max(0.0, done_ms - before)))
                before = max(before, done_ms)
        for step, found in points.items():
            fitted = exponent(found)
            if fitted is not None:
                yield experiment, subject, step, round(fitted, 2), told(fitted)
