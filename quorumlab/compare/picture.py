"""The answers of a comparison as one SVG: a title and bars for each experiment. Pure."""

from collections.abc import Mapping, Sequence

from jepsen_like.report.svg import Drawing, shortened
from quorumlab.compare.answers import Answer, Question, busy, in_time, spread_in_words
from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.page import answers_of, facts, title_of
from quorumlab.compare.results import MEASURED, Results
from quorumlab.compare.runs import Runs
from quorumlab.compare.segments import segments, waited
from quorumlab.compare.subjects import in_words as settings_in_words

__all__ = ["picture"]

_WIDTH = 1280.0
_NAME_WIDTH, _TOLD_WIDTH = 210.0, 390.0
_NAME_SIZE, _TOLD_SIZE = 15.0, 12.5
_BAR, _ROW = 16.0, 30.0
# As in page.css, on a light ground.
_COLOURS: Mapping[str, str] = {
    "detected": "#c3c9d0",
    "elected": "#8a6fc9",
    "decided": "#2f73b7",
    "shrunk": "#2f73b7",
    "persisted": "#7b4fb5",
    "answered": "#a77b16",
    "first change": "#a77b16",
    "told": "#11839a",
    "applied": "#2a8a55",
    "ready": "#2a8a55",
    "in sync": "#2a8a55",
    "grown": "#2a8a55",
}
_LAST = "#d9730d"


def picture(results: Results) -> str:
    drawing, answers = Drawing(_WIDTH), answers_of(results)
    if warning := busy(results):
        drawing.paragraph(f"{warning}.", 15, colour="warn", is_bold=True)
    for experiment, each in answers.items():
        _draw(drawing, experiment, each)
    told = "; ".join(f"{name} {value}" for name, value in facts(results).items())
    drawing.paragraph(f"quorumlab compare: {told}.", 13, colour="soft")
    return drawing.svg(title_of(answers))


def _draw(drawing: Drawing, name: str, told: Answer) -> None:
    experiment = EXPERIMENTS[name]
    settings = settings_in_words(told.timeouts)
    drawing.paragraph(
        f"{experiment.title}: {experiment.what}; {told.partitions:,} partitions, {settings}",
        13,
        colour="soft",
    )
    drawing.paragraph(f"{told.claim}.", 21, colour="head", is_bold=True)
    notes = [each for each in ("; ".join(told.reservations), *told.caveats) if each]
    if notes:
        drawing.paragraph(f"{'. '.join(notes)}.", 14, colour="soft")
    drawn = {each.step for runs in told.shown for each in segments(runs.middle)}
    steps = [step for step in experiment.steps if step in drawn]
    drawing.key(
        [(_in_words(each, experiment.waits), _colour(each, experiment.waits)) for each in steps]
    )
    longest = max((runs.ends.most or 0.0 for runs in told.shown), default=0.0)
    for runs in told.shown:
        _row(drawing, runs, longest, told.question)
    drawing.rule()


def _in_words(step: str, waits: Sequence[str]) -> str:
    return f"{step}: a setting" if step in waits else step


def _colour(step: str, waits: Sequence[str]) -> str:
    return "" if step in waits else _COLOURS.get(step, _LAST)


def _row(drawing: Drawing, runs: Runs, longest: float, question: Question) -> None:
    top, base = drawing.y, drawing.y + _BAR - 3
    name = shortened(runs.subject, _NAME_WIDTH - 10, _NAME_SIZE, is_bold=True)
    drawing.text(name, drawing.margin, base, _NAME_SIZE, is_bold=True)
    left = drawing.margin + _NAME_WIDTH
    room = drawing.room - _NAME_WIDTH - _TOLD_WIDTH
    cell = runs.middle
    drawing.y += _ROW
    if cell.outcome != MEASURED or not (parts := segments(cell)):
        why = f"{cell.outcome}: {cell.why}" if cell.why else "no step was seen to end"
        drawing.text(shortened(why, room + _TOLD_WIDTH, 13), left, base, 13, colour="soft")
        return
    drawing.bar(left, top, room, _BAR, "grid")
    scale = room / longest if longest else 0.0
    waits = EXPERIMENTS[cell.experiment].waits
    for each in parts:
        place = (left + each.start_ms * scale, top, each.ms * scale, _BAR)
        if each.step in waits:
            drawing.hollow_bar(*place)
        else:
            drawing.bar(*place, _colour(each.step, waits))
    _spread(drawing, runs, left, top + _BAR / 2, scale)
    drawing.text(_told(runs, question), left + room + 12, base, _TOLD_SIZE)


def _spread(drawing: Drawing, runs: Runs, left: float, middle: float, scale: float) -> None:
    least, most = runs.ends.least, runs.ends.most
    if runs.ends.count < 2 or least is None or most is None:
        return
    low, high = left + least * scale, left + most * scale
    tops = "".join(f"M{x:.1f} {middle - 6:.1f}v12" for x in (low, high))
    drawing.path(f"M{low:.1f} {middle:.1f}H{high:.1f}{tops}")


def _told(runs: Runs, question: Question) -> str:
    """The parts of one run; how far several lie apart."""
    setting, design = waited(runs.middle)
    parts = f" = {in_time(setting)} setting + {in_time(design)} design" if setting else ""
    told = spread_in_words(runs, question) or in_time(setting + design) + parts
    return shortened(told, _TOLD_WIDTH - 12, _TOLD_SIZE)
