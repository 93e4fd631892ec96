"""The results as one HTML page of slides that needs nothing else: no network, no script, no server.

A slide is an experiment, and its title the answer (`answers`). It shows the bars that the answer is
about, and how that grows; all other sizes, what the client saw and the ledger are folded below. The
last slide lists the answers, and says how they were measured. The
page's policy allows its own style by its digest, and nothing else at all: what moves from slide to
slide is the browser's own scrolling.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from jepsen_like.report.parts import digest, filled, part
from quorumlab.compare.answers import Answer, Question, answer, busy
from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.plots import bars, curve_legend, curves, legend, shown_ms
from quorumlab.compare.results import MEASURED, Cell, Results
from quorumlab.compare.runs import Runs, runs_of
from quorumlab.compare.segments import SINCE_DETECTED, own_times, segments
from quorumlab.compare.sheets import clients, growth_table, ledger, with_exponent
from quorumlab.compare.subjects import as_shown
from quorumlab.compare.subjects import in_words as settings_in_words
from quorumlab.compare.table import in_order

__all__ = ["answers_of", "facts", "page", "title_of"]

_LAST = "measured"  # the slide behind the experiments
_FACTS: Mapping[str, str] = {
    "date": "measured",
    "processors": "processors",
    "processor": "of kind",
    "memory_gib": "memory, GiB",
    "python": "Python",
    "load_average": "load before",
    "commit": "commit",
}
_NAME = re.compile(r"\bzk-[\w-]+")
_UNIT = re.compile(r"(?<=\d) (?=m?s\b)")
Points = Sequence[tuple[int, float]]  # partitions, ms


def page(results: Results) -> str:
    style = part(__package__, "page.css")
    warning = busy(results)
    answers = answers_of(results)
    names = [*answers, _LAST]
    warned = f'<p class="warning">{escape(warning)}.</p>' if warning else ""
    slides = (
        _slide(told, _cells_of(results, name), (names[at - 1] if at else "", names[at + 1]), warned)
        for at, (name, told) in enumerate(answers.items())
    )
    slots = {
        "policy": f"default-src 'none'; style-src {digest(style)}",
        "title": escape(title_of(answers)),
        "style": style,
        "facts": "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in facts(results).items()
        ),
        "warning": warned,
        "nav": "".join(
            f'<li><a href="#{name}">{_sentence(each)}</a></li>' for name, each in answers.items()
        ),
        "sections": "".join(slides),
    }
    return filled(__package__, slots)


def title_of(answers: Mapping[str, Answer]) -> str:
    """The first answer."""
    return next((told.claim for told in answers.values()), "Nothing was measured")


def answers_of(results: Results) -> dict[str, Answer]:
    """By experiment, in their order."""
    is_busy = bool(busy(results))
    measured = {cell.experiment for cell in results.cells.values()}
    return {
        name: answer(_cells_of(results, name), is_busy=is_busy)
        for name in EXPERIMENTS
        if name in measured
    }


def facts(results: Results) -> dict[str, str]:
    """The machine, and how much of what was asked for was measured."""
    machine = {name: str(results.machine.get(key, "")) for key, name in _FACTS.items()}
    if results.zookeeper_delay_ms:
        machine["ZooKeeper answers later by"] = shown_ms(results.zookeeper_delay_ms)
    if results.security:
        machine["clients speak"] = results.security
    measured = sum(cell.outcome == MEASURED for cell in results.cells.values())
    told = {**machine, "cells": f"{measured} of {len(results.cells)}"}
    return {name: value for name, value in told.items() if value}


def _cells_of(results: Results, experiment: str) -> list[Cell]:
    return in_order(cell for cell in results.cells.values() if cell.experiment == experiment)


# --- a slide ------------------------------------------------------------------------------


def _slide(told: Answer, cells: Sequence[Cell], around: tuple[str, str], warned: str) -> str:
    experiment = EXPERIMENTS[cells[0].experiment]
    name = experiment.name
    before, after = around
    back = f'<a href="#{before}">&larr; before</a> ' if before else ""
    seen = {each.step for cell in cells for each in segments(cell)}
    steps = [step for step in experiment.steps if step in seen]
    parts = [
        f'<section id="{name}" class="slide" aria-labelledby="{name}-answer">',
        f'<p class="kicker">{escape(experiment.title)} <span>{escape(experiment.what)}; '
        f"{_size(told)}</span></p>",
        f'<h2 id="{name}-answer">{_sentence(told)}</h2>',
        f'<p class="note">{escape(". ".join(told.caveats))}.</p>' if told.caveats else "",
        warned,
        legend(steps, experiment.waits),
        bars(told.shown, told.question),
        _picture(told, cells),
        _everything(cells),
        f'<p class="turn">{back}<a href="#{after}">next &rarr;</a> '
        f'<a href="#{_LAST}">all answers</a></p></section>',
    ]
    return "".join(parts)


def _sentence(told: Answer) -> str:
    """No line ends within a design's name, or between a number and its unit."""
    rest = f"; <small>{escape('; '.join(told.reservations))}.</small>" if told.reservations else "."
    said = _UNIT.sub("\u00a0", escape(told.claim) + rest)
    return _NAME.sub(r'<span class="name">\g<0></span>', said)


def _size(told: Answer) -> str:
    silences = sorted({cell.silence_ms for runs in told.shown for cell in runs.measured})
    return f"{told.partitions:,} partitions, {_given_up(told.timeouts, silences)}"


def _given_up(timeouts: str, silences_ms: Sequence[int]) -> str:
    silences = [f"{ms / 1000:g}" for ms in silences_ms]
    after = f": a broker is given up after {' or '.join(silences)} s" if silences else ""
    return settings_in_words(timeouts) + after


def _picture(told: Answer, cells: Sequence[Cell]) -> str:
    """What the answer is about, against the number of partitions."""
    equal = [cell for cell in cells if cell.timeouts == "equal"]
    found = _needed(equal, told.question)
    if len({partitions for points in found.values() for partitions, _ in points}) < 2:
        return ""
    numbers = {name: at for at, name in enumerate(found)}
    rows = "".join(
        f"<li>{escape(name)}: {with_exponent(points)}</li>" for name, points in found.items()
    )
    since = told.question.since or "the fault"
    return (
        f'<div class="picture">{curves(f"from {since} to {told.question.until}", found, numbers)}'
        f"<div>{curve_legend(list(found), numbers)}"
        '<p class="note">How it grows with the partitions, as a power: 0 is flat, 1 is linear.</p>'
        f'<ul class="powers">{rows}</ul></div></div>'
    )


def _needed(cells: Sequence[Cell], question: Question) -> dict[str, Points]:
    """A point a run, by subject."""
    found: dict[str, list[tuple[int, float]]] = {}
    for runs in runs_of(cells):
        for cell in runs.measured:
            ms = Runs([cell]).between(question.since, question.until).half
            if ms is not None:
                found.setdefault(cell.subject, []).append((cell.partitions, ms))
    return {name: found[name] for name in sorted(found, key=as_shown)}


# --- everything that was measured -----------------------------------------------------------


def _everything(cells: Sequence[Cell]) -> str:
    groups = groupby(cells, lambda cell: (cell.timeouts, cell.partitions))
    told = "".join(_group(key, runs_of(group)) for key, group in groups)
    return (
        '<details class="all"><summary>Every size and setting <small>what the client saw, and the '
        f"ledger</small></summary>{told}{_growth(cells)}</details>"
    )


def _group(key: tuple[str, int], shown: Sequence[Runs]) -> str:
    timeouts, partitions = key
    silences = sorted({cell.silence_ms for runs in shown for cell in runs.measured})
    return (
        f"<details open><summary>{partitions:,} partitions "
        f"<small>{_given_up(timeouts, silences)}</small></summary>"
        f"{bars(shown)}{clients(shown)}{ledger(shown)}</details>"
    )


def _growth(cells: Sequence[Cell]) -> str:
    equal = [cell for cell in cells if cell.outcome == MEASURED and cell.timeouts == "equal"]
    if len({cell.partitions for cell in equal}) < 2:
        return ""
    by_step = own_times(equal)
    subjects = sorted({cell.subject for cell in equal}, key=as_shown)
    numbers = {name: number for number, name in enumerate(subjects)}
    experiment = EXPERIMENTS[cells[0].experiment]
    order = [step for step in (*experiment.steps, SINCE_DETECTED) if step in by_step]
    plots = "".join(
        curves(_growing(step), by_step[step], numbers)
        for step in order
        if step not in experiment.waits
    )
    return (
        "<details open><summary>Growth <small>time of each step against the number of partitions; "
        "the exponent: 0 is flat, 1 is linear</small></summary>"
        f'{curve_legend(subjects, numbers)}<div class="curves">{plots}</div>'
        f"{growth_table(order, by_step, subjects)}</details>"
    )


def _growing(step: str) -> str:
    if step == SINCE_DETECTED:
        return "all since it was detected"
    return f"{step}, since the step before"
