"""Tables of the page: what the client saw, the ledger, and exponents of growth. Pure.

Every field knows the name of its column, so that a narrow page can stack a row's fields below each
other, each behind its name.
"""

from collections.abc import Mapping, Sequence
from html import escape

from quorumlab.compare.experiments import DATA_MAX
from quorumlab.compare.node_measurements import goes_on, of_all_roles
from quorumlab.compare.plots import shown_ms
from quorumlab.compare.results import MEASURED, Cell, Spread
from quorumlab.compare.runs import Runs
from quorumlab.compare.segments import exponent, in_words

__all__ = ["clients", "growth_table", "ledger", "with_exponent"]

_NOTHING = "&ndash;"


# --- what the client saw ------------------------------------------------------------------


def clients(shown: Sequence[Runs]) -> str:
    """A row a run: whether any of them lost a record is no matter of averages."""
    measured = [(runs, cell) for runs in shown for cell in runs.measured]
    if not measured:
        return ""
    if measured[0][1].partitions > DATA_MAX:
        return '<p class="note">Without data: brokers hold none, and no client writes.</p>'
    head = (
        "design", "lost", "acknowledged", "new leaders", "half", "99 %", "last",
        "others: half", "others: last", "longest gap", "errors",
    )  # fmt: skip
    rows = [_client_row(cell, _named(runs, cell)) for runs, cell in measured]
    notes = "".join(
        f'<p class="note">{escape(cell.subject)} lost what it acknowledged; its document says so: '
        f"{escape(cell.records.admitted)}</p>"
        for _, cell in measured
        if cell.records.lost and cell.records.admitted
    )
    told = "<h3>What the client saw: time without an acknowledged write</h3>"
    return told + _table(head, rows, wide=(len(head) - 1,)) + notes


def _named(runs: Runs, cell: Cell) -> str:
    again = f" <small>run {cell.run}</small>" if len(runs.cells) > 1 else ""
    return escape(cell.subject) + again


def _client_row(cell: Cell, name: str) -> list[str]:
    errors = ", ".join(f"{name} {count:,}" for name, count in sorted(cell.errors.items()))
    return [
        name,
        _lost(cell),
        f"{cell.records.acknowledged:,}",
        f"{cell.affected:,}" if cell.affected else _NOTHING,
        *_quantiles(cell.client["first_ms"]),
        *_quantiles(cell.client["others_ms"])[::2],
        _quantiles(cell.client["longest_ms"])[2],
        escape(errors) or "none",
    ]


def _lost(cell: Cell) -> str:
    records = cell.records
    unread = f" <small>({records.unread} partitions unread)</small>" if records.unread else ""
    return (f'<span class="bad">{records.lost}</span>' if records.lost else "0") + unread


def _quantiles(spread: Spread) -> tuple[str, str, str]:
    if not spread.count:
        return (_NOTHING,) * 3
    most = "never" if spread.never else None
    half, nearly = (
        "never" if each is None else shown_ms(each) for each in (spread.half, spread.most_99)
    )
    return half, nearly, most or ("never" if spread.most is None else shown_ms(spread.most))


# --- the ledger ---------------------------------------------------------------------------


def ledger(shown: Sequence[Runs]) -> str:
    """The counts of the run in the middle."""
    cells = [runs.middle for runs in shown]
    measured = [cell for cell in cells if cell.outcome == MEASURED and cell.ledger]
    if not measured:
        return ""
    summed = {cell.subject: of_all_roles(cell.ledger) for cell in measured}
    names = sorted({name for counts in summed.values() for name in counts})
    partitions = measured[0].partitions
    said = "<h3>The ledger: what the nodes did on account of it</h3>"
    own = _ledger_table([name for name in names if not goes_on(name)], summed, partitions)
    other = _ledger_table([name for name in names if goes_on(name)], summed, partitions)
    return (
        f"{said}{own}<details><summary>What goes on anyway <small>fetches, heartbeats, what the "
        f"client sent, bytes: more of it the longer it lasts</small></summary>{other}</details>"
    )


def _ledger_table(
    names: Sequence[str], summed: Mapping[str, Mapping[str, int]], partitions: int
) -> str:
    rows = [
        [escape(name), *(_counted(counts.get(name, 0), partitions) for counts in summed.values())]
        for name in names
    ]
    return _table(("count (a partition)", *map(escape, summed)), rows)


def _counted(count: int, partitions: int) -> str:
    if not count:
        return _NOTHING
    each = count / partitions
    return f"{count:,} <small>{each:{'.2g' if each < 10 else ',.0f'}}</small>"


# --- growth -------------------------------------------------------------------------------

Points = Sequence[tuple[int, float]]  # partitions, ms


def growth_table(
    steps: Sequence[str], by_step: Mapping[str, Mapping[str, Points]], subjects: Sequence[str]
) -> str:
    rows = [
        [escape(step), *(with_exponent(by_step[step].get(subject, ())) for subject in subjects)]
        for step in steps
    ]
    return _table(("exponent", *map(escape, subjects)), rows)


def with_exponent(points: Points) -> str:
    found = exponent(points)
    if found is None:
        return _NOTHING
    sizes = len({partitions for partitions, _ in points})
    return f"{found:.2f} <small>{in_words(found)}, of {sizes} sizes</small>"


# --- markup -------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], wide: Sequence[int] = ()) -> str:
    """`head` and `rows` are markup already."""
    marks = [" class=wide" if at in wide else "" for at in range(len(head))]
    first = "".join(
        f'<th scope="col"{mark}>{name}</th>' for name, mark in zip(head, marks, strict=True)
    )
    body = "".join(f"<tr>{_fields(head, row, marks)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{head[0]}"><table>'
        f"<thead><tr>{first}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _fields(head: Sequence[str], row: Sequence[str], marks: Sequence[str]) -> str:
    return "".join(
        f'<td data-of="{name}"{mark}>{value}</td>'
        for name, value, mark in zip(head, row, marks, strict=True)
    )
