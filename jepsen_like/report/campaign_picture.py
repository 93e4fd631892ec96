"""A campaign as one SVG: the headline, which kinds of faults bit in which run, the verdict of each
run, and what clients got done. Pure; drawn from what each run's `verdict.json` says.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from jepsen_like.report.svg import COLOURS, Drawing, shortened, width_of

__all__ = ["campaign_picture"]

_WIDTH = 1280.0
_MARGIN = 40.0
_LEFT = 190.0  # of the margin, the columns of runs begin
_LANE, _BARS = 17.0, 120.0
_COLUMN_MAX = 130.0
_BIT, _CALM = "#6b7480", "#c3c9d0"
_OUTCOMES: Mapping[str, str] = {"valid": "good", "violated": "bad"}  # others are hollow

Told = Mapping[str, Any]


def campaign_picture(told: Sequence[Told], command: str) -> str:
    """`command` makes the runs again."""
    drawing = Drawing(_WIDTH, margin=_MARGIN)
    outcomes = Counter(each["summary"] for each in told)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    bitten = sum(bool(fault["bit"]) for each in told for fault in each["faults"])
    done = sum(each["safety"]["ok"] for each in told)
    worst = next((name for name in ("violated", "void", "undecided") if outcomes[name]), "valid")
    drawing.paragraph(counted.upper(), 18, colour=_OUTCOMES.get(worst, "warn"), is_bold=True)
    headline = f"{done:,} operations in {len(told):,} runs, under {bitten:,} proven faults."
    drawing.paragraph(headline, 30, colour="head", is_bold=True)
    drawing.paragraph(command, 15, colour="head", is_bold=True)
    drawing.rule()
    column = min(_COLUMN_MAX, (drawing.room - _LEFT) / max(1, len(told)))
    _draw_names(drawing, told, column)
    _draw_kinds(drawing, told, column)
    _draw_done(drawing, told, column)
    return drawing.svg(f"{counted}: {headline}")


def _draw_names(drawing: Drawing, told: Sequence[Told], column: float) -> None:
    """Runs have numbers, and names of workloads where there is room; many are numbered in tens."""
    drawing.text("run", drawing.margin, drawing.y + 12, 13, colour="soft")
    for number, each in enumerate(told, 1):
        name = f"{number} {each['workload']}"
        is_narrow = width_of(name, 13) > column
        if is_narrow and number % 10 != 1:
            continue
        left = drawing.margin + _LEFT + (number - 1) * column
        drawing.text(str(number) if is_narrow else name, left, drawing.y + 12, 13, colour="soft")
    drawing.y += _LANE + 4


def _draw_kinds(drawing: Drawing, told: Sequence[Told], column: float) -> None:
    """A lane a kind, a column a run; the last lane is the verdict's."""
    bitten = [{fault["kind"] for fault in each["faults"] if fault["bit"]} for each in told]
    for kind in sorted(set[str]().union(*bitten)):
        _draw_lane(drawing, kind, column, [_BIT if kind in each else "" for each in bitten])
    verdicts = [_verdict_colour(each["summary"]) for each in told]
    _draw_lane(drawing, "verdict", column, verdicts, is_hollow_else=True)


def _draw_lane(
    drawing: Drawing,
    name: str,
    column: float,
    colours: Sequence[str],
    *,
    is_hollow_else: bool = False,
) -> None:
    text = shortened(name, _LEFT - 14, 13)
    drawing.text(text, drawing.margin, drawing.y + 12, 13, colour="soft")
    for number, colour in enumerate(colours):
        place = (drawing.margin + _LEFT + number * column, drawing.y, 0.85 * column, _LANE - 4)
        if colour:
            drawing.bar(*place, colour)
        elif is_hollow_else:
            drawing.hollow_bar(*place)
    drawing.y += _LANE


def _draw_done(drawing: Drawing, told: Sequence[Told], column: float) -> None:
    """Two bars a run: operations a second without faults, and with them."""
    rates = [(each["warm_up"]["ok_a_second"], each["safety"]["ok_a_second"]) for each in told]
    highest = max((max(pair) for pair in rates), default=0)
    bottom = drawing.y + 14 + _BARS
    for number, pair in enumerate(rates):
        for place, (rate, colour) in enumerate(zip(pair, (_CALM, COLOURS["head"]), strict=True)):
            height = _BARS * rate / max(1, highest)
            left = drawing.margin + _LEFT + (number + 0.45 * place) * column
            drawing.bar(left, bottom - height, 0.4 * column, height, colour)
    drawing.text("ok a second", drawing.margin, drawing.y + 26, 13, colour="soft")
    drawing.text(f"at most {highest:,.0f}", drawing.margin, drawing.y + 44, 13, colour="soft")
    drawing.y = bottom + 4
    outcomes = sorted({each["summary"] for each in told})
    drawing.key([("a fault that bit", _BIT), *((name, _verdict_colour(name)) for name in outcomes)])
    drawing.key([("ok a second without faults", _CALM), ("with faults", COLOURS["head"])])


def _verdict_colour(outcome: str) -> str:
    """Empty if nothing was decided."""
    return COLOURS[_OUTCOMES[outcome]] if outcome in _OUTCOMES else ""
