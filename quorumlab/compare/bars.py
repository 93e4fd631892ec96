"""How long each step took, as bars: since the fault, and once more from when it was detected.

The first is what clients wait for, and mostly a time-out; the second is what the design does with
the time after it. Pure: markup without style, so that the page's policy can forbid that.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from quorumlab.compare.results import MEASURED, Cell
from quorumlab.compare.segments import Segment, segments

__all__ = ["bars", "legend", "shown_ms"]

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
    "resumed": "detected",
    "in sync": "applied",
    "grown": "applied",
}


def shown_ms(ms: float) -> str:
    if ms >= 10_000:
        return f"{ms / 1000:,.1f} s"
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def legend(steps: Sequence[str]) -> str:
    items = (
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true"><rect class="{_class(step)}" width="26" '
        f'height="12" rx="2"/></svg>{escape(step)}</li>'
        for step in steps
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def bars(cells: Sequence[Cell]) -> str:
    """Of one experiment at one size: all bars on the same scales."""
    found = {cell.subject: segments(cell) for cell in cells if cell.outcome == MEASURED}
    whole = max((parts[-1].end_ms for parts in found.values() if parts), default=0.0)
    has_detection = any(parts and parts[0].step == "detected" for parts in found.values())
    after = max(
        (parts[-1].end_ms - _detected_ms(parts) for parts in found.values() if parts), default=0.0
    )
    rows = [
        '<span class="axis blank"></span>'
        f'<span class="axis"><span>since the fault</span><span>{shown_ms(whole)}</span></span>'
        '<span class="axis zoomed">'
        + (
            f"<span>since it was detected</span><span>{shown_ms(after)}</span>"
            if has_detection
            else ""
        )
        + "</span>"
    ]
    for cell in cells:
        parts = found.get(cell.subject)
        rows.extend(_row(cell, parts, whole, after if has_detection else 0.0))
    return f'<div class="bars">{"".join(rows)}</div>'


def _row(cell: Cell, parts: list[Segment] | None, whole: float, after: float) -> Iterator[str]:
    yield f'<span class="subject">{escape(cell.subject)}</span>'
    if parts is None:
        yield f'<span class="out">{escape(cell.outcome)}: {escape(cell.why)}</span>'
        return
    if not parts:
        yield '<span class="out">no step was seen to end</span>'
        return
    first = _detected_ms(parts)
    zoomed = [each for each in parts if each.step != "detected"]
    yield _bar(parts, 0.0, whole)
    yield _bar(zoomed, first, after) if after else "<span></span>"
    yield f'<p class="told">{_told(parts)}</p>'


def _bar(parts: Sequence[Segment], begin: float, span: float) -> str:
    rects = (
        f'<rect class="{_class(each.step)}" x="{_at(each.start_ms - begin, span):.1f}" y="0" '
        f'width="{max(1.5, _at(each.ms, span)):.1f}" height="10">'
        f"<title>{escape(each.step)}: {shown_ms(each.end_ms)}</title></rect>"
        for each in parts
    )
    told = ", ".join(f"{each.step} {shown_ms(each.end_ms)}" for each in parts)
    return (
        f'<svg viewBox="0 0 {_WIDE:.0f} 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(told)}">{"".join(rects)}</svg>'
    )


def _told(parts: Sequence[Segment]) -> str:
    said = [
        f"{escape(each.step)} {'+' if each.start_ms else ''}{shown_ms(each.ms)}" for each in parts
    ]
    return " &middot; ".join([*said, f"<b>{shown_ms(parts[-1].end_ms)}</b>"])


def _detected_ms(parts: Sequence[Segment]) -> float:
    """When; 0 where nothing has to be noticed first."""
    return parts[0].end_ms if parts[0].step == "detected" else 0.0


def _at(ms: float, span: float) -> float:
    return min(_WIDE, _WIDE * ms / span) if span else 0.0


def _class(step: str) -> str:
    return _CLASSES.get(step, "last")
