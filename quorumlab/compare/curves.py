"""Growth as curves: the time of a step against the number of partitions, both on scales of powers.

On these a straight line is a power, and its slope the exponent. Pure: markup without style.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from quorumlab.compare.bars import shown_ms

__all__ = ["curve_legend", "curves"]

_WIDTH, _HEIGHT = 340.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 34.0, 10.0, 24.0
_CHARACTER = 6.5  # wide at most, in the style's size
_LEAST_MS = 0.1
_DASHES = ("", "6 4", "2 4", "9 3 2 3", "", "4 2", "1 3")

Points = Sequence[tuple[int, float]]  # partitions, ms


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
    """Below the plot, as many as there is room for: the largest is always told."""
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
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle class="k{number}" cx="{x:.1f}" cy="{y:.1f}" r="3.2">'
        f"<title>{escape(subject)}: {partitions:,} partitions, {shown_ms(ms)}</title></circle>"
        for (partitions, ms), (x, y) in zip(points, places, strict=True)
    )
    return f'<path class="curve k{number}" d="M{path}"{_dash(number)}/>{dots}'


def _dash(number: int) -> str:
    pattern = _DASHES[number % len(_DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""
