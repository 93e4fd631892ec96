"""The results as one HTML page that needs nothing else: no network, no script, no server.

Bars of steps, curves of growth, what the client saw, and the ledger. The page's policy allows its
own style by its digest, and nothing else at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from jepsen_like.report.page import digest, filled, part
from quorumlab.compare.experiments import DATA_MAX, EXPERIMENTS
from quorumlab.compare.node_measurements import goes_on, of_all_roles
from quorumlab.compare.plots import bars, curve_legend, curves, legend, shown_ms
from quorumlab.compare.results import MEASURED, Cell, Results, Spread
from quorumlab.compare.segments import SINCE_DETECTED, exponent, in_words, own_times, segments
from quorumlab.compare.subjects import ALL_DESIGNS, subject_named
from quorumlab.compare.subjects import in_words as settings_in_words
from quorumlab.compare.table import in_order

__all__ = ["page"]

_TITLE = "What each way of keeping the metadata costs when something fails"
_OPEN_SIZE = 1000  # of an experiment, the group nearest to it is shown at once
_FACTS: Mapping[str, str] = {
    "date": "measured",
    "processors": "processors",
    "processor": "of kind",
    "memory_gib": "memory, GiB",
    "python": "Python",
    "load_average": "load before",
    "commit": "commit",
}


def page(results: Results) -> str:
    style = part(__package__, "page.css")
    cells = in_order(results.cells.values())
    experiments = [name for name in EXPERIMENTS if any(c.experiment == name for c in cells)]
    slots = {
        "policy": f"default-src 'none'; style-src {digest(style)}",
        "title": _TITLE,
        "style": style,
        "facts": "".join(_facts(results)),
        "nav": "".join(f'<a href="#{name}">{EXPERIMENTS[name].title}</a>' for name in experiments),
        "sections": "".join(
            _section(name, [cell for cell in cells if cell.experiment == name])
            for name in experiments
        ),
    }
    return filled(__package__, slots)


def _facts(results: Results) -> Iterator[str]:
    machine = {name: str(results.machine.get(key, "")) for key, name in _FACTS.items()}
    if results.zookeeper_delay_ms:
        machine["ZooKeeper answers later by"] = shown_ms(results.zookeeper_delay_ms)
    measured = sum(cell.outcome == MEASURED for cell in results.cells.values())
    for name, value in {**machine, "cells": f"{measured} of {len(results.cells)}"}.items():
        if value:
            yield f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"


def _section(name: str, cells: Sequence[Cell]) -> str:
    experiment = EXPERIMENTS[name]
    groups = [
        (key, list(group))
        for key, group in groupby(cells, lambda cell: (cell.timeouts, cell.partitions))
    ]
    nearest = min(groups, key=lambda each: (each[0][0] != "equal", abs(each[0][1] - _OPEN_SIZE)))
    steps = [
        step
        for step in experiment.steps
        if any(step == each.step for cell in cells for each in segments(cell))
    ]
    parts = [
        f'<section id="{name}"><h2>{escape(experiment.title)}</h2>',
        f'<p class="note">{escape(experiment.what)}.</p>',
        legend(steps),
        *(_group(key, group, is_open=(key, group) == nearest) for key, group in groups),
        _growth(cells),
        "</section>",
    ]
    return "".join(parts)


def _group(key: tuple[str, int], cells: Sequence[Cell], *, is_open: bool) -> str:
    timeouts, partitions = key
    found = sorted({cell.silence_ms for cell in cells if cell.outcome == MEASURED})
    silences = [f"{ms / 1000:g}" for ms in found]
    return (
        f"<details{' open' if is_open else ''}><summary>{partitions:,} partitions "
        f"<small>{settings_in_words(timeouts)}: a broker is given up after "
        f"{' or '.join(silences)} s</small></summary>"
        f"{bars(cells)}{_clients(cells)}{_ledger(cells)}</details>"
    )


# --- what the client saw ------------------------------------------------------------------


def _clients(cells: Sequence[Cell]) -> str:
    measured = [cell for cell in cells if cell.outcome == MEASURED]
    if not measured:
        return ""
    if measured[0].partitions > DATA_MAX:
        return '<p class="note">Without data: brokers hold none, and no client writes.</p>'
    head = (
        "design", "lost", "acknowledged", "new leaders", "half", "99 %", "last",
        "others: half", "last", "longest gap", "errors",
    )  # fmt: skip
    rows = [
        [
            escape(cell.subject),
            _lost(cell),
            f"{cell.records.acknowledged:,}",
            f"{cell.affected:,}" if cell.affected else "&ndash;",
            *_quantiles(cell.client["first_ms"]),
            *_quantiles(cell.client["others_ms"])[::2],
            _quantiles(cell.client["longest_ms"])[2],
            escape(", ".join(f"{name} {n:,}" for name, n in sorted(cell.errors.items()))) or "none",
        ]
        for cell in measured
    ]
    notes = "".join(
        f'<p class="note">{escape(cell.subject)} lost what it acknowledged; its document says so: '
        f"{escape(cell.records.admitted)}</p>"
        for cell in measured
        if cell.records.lost and cell.records.admitted
    )
    told = "<h3>What the client saw: time without an acknowledged write</h3>"
    return told + _table(head, rows, wide=(len(head) - 1,)) + notes


def _lost(cell: Cell) -> str:
    records = cell.records
    unread = f" <small>({records.unread} partitions unread)</small>" if records.unread else ""
    return (f'<span class="bad">{records.lost}</span>' if records.lost else "0") + unread


def _quantiles(spread: Spread) -> tuple[str, str, str]:
    if not spread.count:
        return ("&ndash;",) * 3
    most = "never" if spread.never else None
    half, nearly = (
        "never" if each is None else shown_ms(each) for each in (spread.half, spread.most_99)
    )
    return half, nearly, most or ("never" if spread.most is None else shown_ms(spread.most))


# --- the ledger ---------------------------------------------------------------------------


def _ledger(cells: Sequence[Cell]) -> str:
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
        return "&ndash;"
    each = count / partitions
    return (
        f"{count:,} <small>{each:.2g}</small>"
        if each < 10
        else f"{count:,} <small>{each:,.0f}</small>"
    )


# --- growth -------------------------------------------------------------------------------


def _growth(cells: Sequence[Cell]) -> str:
    equal = [cell for cell in cells if cell.outcome == MEASURED and cell.timeouts == "equal"]
    if len({cell.partitions for cell in equal}) < 2:
        return ""
    by_step = own_times(equal)
    subjects = list(dict.fromkeys(sorted((c.subject for c in equal), key=_rank)))
    numbers = {name: number for number, name in enumerate(subjects)}
    steps = (*EXPERIMENTS[cells[0].experiment].steps, SINCE_DETECTED)
    order = [step for step in steps if step in by_step]
    rows = [
        [escape(step), *(_exponent(by_step[step].get(subject, ())) for subject in subjects)]
        for step in order
    ]
    plots = "".join(
        curves(_growing(step), by_step[step], numbers)
        for step in order
        if step != "detected"  # a time-out, and no growth
    )
    return (
        "<details open><summary>Growth <small>time of each step against the number of partitions; "
        "the exponent: 0 is flat, 1 is linear</small></summary>"
        f'{curve_legend(subjects, numbers)}<div class="curves">{plots}</div>'
        f"{_table(('exponent', *map(escape, subjects)), rows)}</details>"
    )


def _growing(step: str) -> str:
    return (
        "all since it was detected" if step == SINCE_DETECTED else f"{step}, since the step before"
    )


def _rank(subject: str) -> tuple[int, str]:
    return ALL_DESIGNS.index(subject_named(subject).design), subject


def _exponent(points: Sequence[tuple[int, float]]) -> str:
    found = exponent(points)
    if found is None:
        return "&ndash;"
    sizes = len({partitions for partitions, _ in points})
    return f"{found:.2f} <small>{in_words(found)}, of {sizes} sizes</small>"


# --- markup -------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], wide: Sequence[int] = ()) -> str:
    marks = [" class=wide" if at in wide else "" for at in range(len(head))]
    first = "".join(
        f'<th scope="col"{mark}>{name}</th>' for name, mark in zip(head, marks, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{mark}>{value}</td>" for value, mark in zip(row, marks, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{head[0]}"><table>'
        f"<thead><tr>{first}</tr></thead><tbody>{body}</tbody></table></div>"
    )
