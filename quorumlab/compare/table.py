"""The figures of a comparison, and the tables of them that a terminal shows. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.node_measurements import goes_on, of_all_roles, total
from quorumlab.compare.results import MEASURED, Cell
from quorumlab.compare.segments import exponent, in_words, own_times
from quorumlab.compare.subjects import as_shown
from quorumlab.compare.subjects import in_words as settings_in_words

__all__ = ["growth_of", "in_order", "tables"]

_KINDS = ("set", "create", "delete")
# Znodes written, each by itself or in a transaction; and requests, of which that is one.
ZOOKEEPER_WRITES = (*(f"zk.{each}" for each in _KINDS), *(f"zk.multi.{each}" for each in _KINDS))
ZOOKEEPER_REQUESTS = tuple(f"zk.{each}" for each in (*_KINDS, "multi", "get", "exists", "children"))


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Sorts cells by experiment, setting and size; then the quorum comes first (`as_shown`)."""
    experiments = list(EXPERIMENTS)
    return sorted(
        cells,
        key=lambda cell: (
            experiments.index(cell.experiment),
            cell.timeouts != "equal",
            cell.partitions,
            as_shown(cell.subject),
            cell.run,
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
                rows.append(_named(cell) | figures(cell))
                notes += _of_records(cell)
            else:
                notes.append(f"{cell.subject}: {cell.outcome}: {cell.why}")
        columns = list(dict.fromkeys(name for row in rows for name in row))
        columns = [name for name in columns if _says_something(rows, name)]
        yield Table(title, columns, rows, notes)


def _named(cell: Cell) -> dict[str, str]:
    return {"subject": cell.subject, "run": f"{cell.run}"}


def _says_something(rows: Iterable[Mapping[str, str]], column: str) -> bool:
    if column == "run":
        return any(row[column] != "1" for row in rows)
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
