"""Bars of how long each step took, and curves of how that grows with the number of partitions.

Bars are drawn since the fault, and once more from when it was detected: the first is what clients
wait for, and mostly a time-out; the second is what the design does with the time after it. Curves
have scales of powers, on which a straight line is a power, and its slope the exponent. Pure: markup
without style, so that the policy of the page can forbid that.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from statistics import median_low

from quorumlab.compare.answers import Question, ranged, spread_in_words
from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.results import MEASURED
from quorumlab.compare.runs import Runs
from quorumlab.compare.segments import Segment, segments, waited

__all__ = ["bars", "curve_legend", "curves", "legend", "shown_ms"]

_WIDE = 1000.0  # units of a bar; it is stretched to where it stands
_CLASSES: Mapping[str, str] = {
    "detected": "detected",
    "elected": "elected",
    "decided": "decided",
    "persisted": "persisted",
    "answered": "answered",
    "told": "told-step",
    "applied": "applied",
    "ready": "ready",
    "first change": "answered",
    "shrunk": "decided",
    "in sync": "applied",
    "grown": "applied",
}
_WIDTH, _HEIGHT = 340.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 34.0, 10.0, 24.0
_CHARACTER = 6.5  # wide at most, in the style's size
_LEAST_MS = 0.1
_DASHES = ("", "6 4", "2 4", "9 3 2 3", "", "4 2", "1 3")

Points = Sequence[tuple[int, float]]  # partitions, ms


def shown_ms(ms: float) -> str:
    if ms >= 10_000:
        return f"{ms / 1000:,.1f} s"
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def legend(steps: Sequence[str], waits: Sequence[str]) -> str:
    """Steps that a setting decides are told apart from those of the design."""
    groups = (
        ("a setting:", [step for step in steps if step in waits]),
        ("the design:", [step for step in steps if step not in waits]),
    )
    items = (
        f"<li><b>{name}</b></li>" + "".join(_swatch(step, waits) for step in mine)
        for name, mine in groups
        if mine
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _swatch(step: str, waits: Sequence[str]) -> str:
    return (
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true"><rect class="{_class(step, waits)}" '
        f'x="1" y="1" width="24" height="10" rx="2"/></svg>{escape(step)}</li>'
    )


def bars(shown: Sequence[Runs], brief: Question | None = None) -> str:
    """Draws one experiment at one size: all bars have the same scales. Of several runs, the one in
    the middle is drawn, and a line from the end of the shortest to that of the longest. Brief
    rows tell of what the question is about, and not of every step."""
    found = {
        runs.subject: segments(runs.middle) for runs in shown if runs.middle.outcome == MEASURED
    }
    longest = max((runs.ends.most or 0.0 for runs in shown), default=0.0)
    whole = max((parts[-1].end_ms for parts in found.values() if parts), default=0.0)
    whole = max(whole, longest)
    has_detection = any(parts and parts[0].step == "detected" for parts in found.values())
    after = max(
        (parts[-1].end_ms - _detected_ms(parts) for parts in found.values() if parts), default=0.0
    )
    rows = [
        '<span class="axis blank"></span>',
        _axis("since the fault", whole, "" if has_detection else " whole"),
        _axis("since it was detected", after, " zoomed") if has_detection else "",
        '<span class="axis blank"></span>' if brief else "",
    ]
    for runs in shown:
        parts = found.get(runs.subject)
        told = _brief(runs, parts or (), brief) if brief else _told(runs, parts or ())
        rows.extend(_row(runs, parts, (whole, after if has_detection else None), told))
    return f'<div class="bars{" brief" if brief else ""}">{"".join(rows)}</div>'


def _axis(name: str, ms: float, mark: str) -> str:
    return f'<span class="axis{mark}"><span>{name}</span><span>{shown_ms(ms)}</span></span>'


def _row(
    runs: Runs, parts: list[Segment] | None, spans: tuple[float, float | None], told: str
) -> Iterator[str]:
    whole, after = spans
    cell = runs.middle
    yield f'<span class="subject">{escape(cell.subject)}</span>'
    if parts is None:
        why = f"{cell.outcome}: {cell.why}" if cell.why else cell.outcome
        yield f'<span class="out">{escape(why)}</span>'
        return
    if not parts:
        yield '<span class="out">no step was seen to end</span>'
        return
    first = _detected_ms(parts)
    zoomed = [each for each in parts if each.step != "detected"]
    waits = EXPERIMENTS[cell.experiment].waits
    since_fault = _bar(parts, 0.0, whole, waits, _whisker(runs, whole))
    if after is None:
        yield f'<div class="whole">{since_fault}</div>'
    else:
        yield since_fault + _bar(zoomed, first, after, waits, "")
    yield f'<p class="told">{told}</p>'


def _whisker(runs: Runs, whole: float) -> str:
    ends = runs.ends
    if len(runs.measured) < 2 or ends.least is None or ends.most is None:
        return ""
    least, most = (_at(ms, whole) for ms in (ends.least, ends.most))
    return f'<path class="spread" d="M{least:.1f} 1V9M{least:.1f} 5H{most:.1f}M{most:.1f} 1V9"/>'


def _bar(
    parts: Sequence[Segment], begin: float, span: float, waits: Sequence[str], spread: str
) -> str:
    rects = (
        f'<rect class="{_class(each.step, waits)}" x="{_at(each.start_ms - begin, span):.1f}" '
        f'y="0" width="{max(1.5, _at(each.ms, span)):.1f}" height="10">'
        f"<title>{escape(each.step)}: {shown_ms(each.end_ms)}</title></rect>"
        for each in parts
    )
    told = ", ".join(f"{each.step} {shown_ms(each.end_ms)}" for each in parts)
    return (
        f'<svg viewBox="0 0 {_WIDE:.0f} 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(told)}">{"".join(rects)}{spread}</svg>'
    )


def _told(runs: Runs, parts: Sequence[Segment]) -> str:
    said = [
        f"{escape(each.step)} {'+' if each.start_ms else ''}{shown_ms(each.ms)}" for each in parts
    ]
    if len(runs.measured) > 1:
        said.append(escape(ranged(runs.ends)))
    return " &middot; ".join([*said, _sum_told(runs, parts)])


def _sum_told(runs: Runs, parts: Sequence[Segment]) -> str:
    """What a setting decided, and what the design did."""
    if not parts:
        return ""
    setting, design = waited(runs.middle)
    whole = f"<b>{shown_ms(parts[-1].end_ms)}</b>"
    if setting:
        whole += f" = {shown_ms(setting)} setting + <b>{shown_ms(design)} design</b>"
    return whole


def _brief(runs: Runs, parts: Sequence[Segment], question: Question) -> str:
    spread = spread_in_words(runs, question)
    return _sum_told(runs, parts) + (f"<br>{escape(spread)}" if spread else "")


def _detected_ms(parts: Sequence[Segment]) -> float:
    """Returns 0 where nothing has to be noticed first."""
    return parts[0].end_ms if parts[0].step == "detected" else 0.0


def _at(ms: float, span: float) -> float:
    return min(_WIDE, _WIDE * ms / span) if span else 0.0


def _class(step: str, waits: Sequence[str] = ()) -> str:
    return "wait" if step in waits else _CLASSES.get(step, "last")


def curve_legend(subjects: Sequence[str], numbers: Mapping[str, int]) -> str:
    items = (
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true"><path class="curve k{numbers[name]}" '
        f'd="M1 6H25" stroke-width="2.5"{_dash(numbers[name])}/></svg>{escape(name)}</li>'
        for name in subjects
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def curves(title: str, found: Mapping[str, Points], numbers: Mapping[str, int]) -> str:
    """One plot of a step, a curve a subject."""
    points = [point for each in found.values() for point in each]
    left, right = (log10(f(x for x, _ in points)) for f in (min, max))
    low = floor(log10(max(_LEAST_MS, min(y for _, y in points))))
    high = max(low + 1, ceil(log10(max(_LEAST_MS, *(y for _, y in points)))))

    def at(partitions: int, ms: float) -> tuple[float, float]:
        x = (log10(partitions) - left) / max(right - left, 1e-9)
        y = (log10(max(ms, _LEAST_MS)) - low) / (high - low)
        across = _LEFT + min(1.0, max(0.0, x)) * (_WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - min(1.0, max(0.0, y)) * (_HEIGHT - _TOP - _BOTTOM)

    drawn = [_line(10.0**power, at(1, 10.0**power)[1]) for power in range(low, high + 1)]
    sizes = {partitions for partitions, _ in points}
    drawn += _sizes({size: at(size, 1)[0] for size in sizes})
    for subject, each in found.items():
        drawn.append(_curve(subject, each, [at(*point) for point in each], numbers[subject]))
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(title)} against partitions">{"".join(drawn)}</svg></figure>'
    )


def _line(ms: float, y: float) -> str:
    return (
        f'<path class="grid" d="M{_LEFT:.0f} {y:.1f}H{_WIDTH - _RIGHT:.0f}"/>'
        f'<text x="{_LEFT - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{_round(ms)}</text>'
    )


def _sizes(places: Mapping[int, float]) -> Iterator[str]:
    """Labels as many sizes below the plot as there is room for, the largest in any case."""
    free = _WIDTH
    for size in sorted(places, reverse=True):
        x, text = places[size], f"{size:,}"
        half = len(text) * _CHARACTER / 2
        if x + half <= free:
            free = x - half
            yield f'<text x="{x:.0f}" y="{_HEIGHT - 7:.0f}" text-anchor="middle">{text}</text>'


def _round(ms: float) -> str:
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def _curve(subject: str, points: Points, places: Sequence[tuple[float, float]], number: int) -> str:
    """A dot a run, and a line through those in the middle."""
    by_x: dict[float, list[float]] = {}
    for x, y in places:
        by_x.setdefault(x, []).append(y)
    path = "L".join(f"{x:.1f} {median_low(by_x[x]):.1f}" for x in sorted(by_x))
    dots = "".join(
        f'<circle class="k{number}" cx="{x:.1f}" cy="{y:.1f}" r="3.2">'
        f"<title>{escape(subject)}: {partitions:,} partitions, {shown_ms(ms)}</title></circle>"
        for (partitions, ms), (x, y) in zip(points, places, strict=True)
    )
    return f'<path class="curve k{number}" d="M{path}"{_dash(number)}/>{dots}'


def _dash(number: int) -> str:
    pattern = _DASHES[number % len(_DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""
