"""A history as one SVG: the headline, what was planted, how to make it again, faults as bands over
the operations that ended, and what broke. Pure; drawn from the document of the page.
"""

from collections.abc import Mapping
from itertools import groupby

from jepsen_like.histories.history import History
from jepsen_like.report.document import Document, Told, document
from jepsen_like.report.svg import Drawing, shortened

__all__ = ["picture"]

_WIDTH = 1280.0
_MARGIN = 40.0
_LEFT = 190.0  # of the margin, the plots begin
_PLOT_HEIGHT = 190.0
_BAND_HEIGHT, _LANES_MAX = 17.0, 12
_FINDINGS_MAX = 6
# As in page.css, on a light ground.
_COLOURS: Mapping[str, str] = {"ok": "#2f73b7", "info": "#b97300", "fail": "#a6297f"}
_NAMES: Mapping[str, str] = {"ok": "ok", "info": "unknown", "fail": "failed"}
_BAND, _UNPROVEN = "#6b7480", "#c3c9d0"
_OUTCOMES: Mapping[str, str] = {"valid": "good", "violated": "bad"}


def picture(history: History, told: Told) -> str:
    shown = document(history, told)
    drawing = Drawing(_WIDTH, margin=_MARGIN)
    header, said = shown["header"], shown["said"]
    title = f"{said['outcome']}: {said['headline']}"
    colour = _OUTCOMES.get(said["outcome"], "warn")
    drawing.paragraph(said["outcome"].upper(), 18, colour=colour, is_bold=True)
    drawing.paragraph(f"{said['headline']}.", 30, colour="head", is_bold=True)
    drawing.paragraph(f"{header['workload']}, seed {header['seed']}", 15, colour="soft")
    for reason in (shown["verdict"]["reason"], *shown["verdict"]["void"]):
        if reason:
            drawing.paragraph(reason, 15, colour="warn")
    for text in (said["planted"], said["again"]):
        drawing.paragraph(text, 15)
    drawing.paragraph(shown["about"].get("command", ""), 15, colour="head", is_bold=True)
    drawing.rule()
    _draw_faults(drawing, shown)
    _draw_ended(drawing, shown)
    _draw_findings(drawing, shown)
    return drawing.svg(title)


# --- faults, by kind ------------------------------------------------------------------------


def _draw_faults(drawing: Drawing, shown: Document) -> None:
    """A lane a kind, over the same time as the operations below."""
    faults = sorted(shown["faults"], key=lambda fault: fault["kind"])
    lanes = [(kind, list(mine)) for kind, mine in groupby(faults, lambda fault: fault["kind"])]
    for kind, mine in lanes[:_LANES_MAX]:
        name = shortened(kind, _LEFT - 14, 13)
        drawing.text(name, drawing.margin, drawing.y + 12, 13, colour="soft")
        for fault in mine:
            end = shown["end"] if fault["end"] is None else fault["end"]
            begin, until = _across(fault["begin"], shown), _across(end, shown)
            colour = _BAND if fault["bit"] else _UNPROVEN
            drawing.bar(begin, drawing.y, max(2.0, until - begin), _BAND_HEIGHT - 4, colour)
        drawing.y += _BAND_HEIGHT
    if lanes[_LANES_MAX:]:
        drawing.paragraph(f"and {len(lanes) - _LANES_MAX} more kinds of faults", 13, colour="soft")


def _across(at: float, shown: Document) -> float:
    left, right = _MARGIN + _LEFT, _WIDTH - _MARGIN
    end: int = max(1, shown["end"])
    return left + (right - left) * at / end


# --- operations that ended ------------------------------------------------------------------


def _draw_ended(drawing: Drawing, shown: Document) -> None:
    series = shown["series"]
    ended, width = series["ended"], series["width"]
    highest = max((sum(each) for each in zip(*ended.values(), strict=True)), default=0)
    top = drawing.y + 10
    bottom = top + _PLOT_HEIGHT
    for place, counts in enumerate(zip(*ended.values(), strict=True)):
        begin = _across(place * width, shown)
        room = _across(min((place + 1) * width, shown["end"]), shown) - begin
        floor = bottom
        for name, count in zip(ended, counts, strict=True):
            height = _PLOT_HEIGHT * count / max(1, highest)
            floor -= height
            if count:
                drawing.bar(begin, floor, max(0.6, room - 0.5), height, _COLOURS[name])
    drawing.path(
        f"M{_across(0, shown):.1f} {bottom:.1f}H{_across(shown['end'], shown):.1f}", "line"
    )
    drawing.text("operations ended", drawing.margin, top + 12, 13, colour="soft")
    each = f"{highest:,} in {width / 1e6:g} s" if shown["is_time"] else f"{highest:,}"
    drawing.text(f"at most {each}", drawing.margin, top + 30, 13, colour="soft")
    end = f"{shown['end'] / 1e6:.1f} s" if shown["is_time"] else f"{shown['lines']:,} lines"
    drawing.text(end, _WIDTH - _MARGIN, bottom + 18, 13, colour="soft", anchor="end")
    drawing.y = bottom + 20
    faults = [("a proven fault", _BAND), ("one not proven", _UNPROVEN)] if shown["faults"] else []
    drawing.key([*((_NAMES[name], _COLOURS[name]) for name in ended), *faults])


# --- what broke -----------------------------------------------------------------------------


def _draw_findings(drawing: Drawing, shown: Document) -> None:
    findings = shown["findings"]
    if not findings:
        return
    drawing.rule()
    drawing.paragraph("What broke", 18, colour="bad", is_bold=True)
    explained: set[str] = set()
    for finding in findings[:_FINDINGS_MAX]:
        told = f"{finding['rule']}  {finding['object']}: {finding['detail']}"
        drawing.paragraph(shortened(told, drawing.room, 14), 14)
        if finding["says"] and finding["rule"] not in explained:
            drawing.paragraph(finding["says"], 13, colour="soft")
        explained.add(finding["rule"])
    more = shown["verdict"]["findings"] - len(findings[:_FINDINGS_MAX])
    if more > 0:
        drawing.paragraph(f"and {more:,} more", 14, colour="soft")
