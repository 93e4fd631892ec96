"""`quorumlab chaos museum [ITEM]`: known failures of Apache Kafka, red and green (docs/museum.md).

Exit codes: 0 red is red and green is green, 1 an exception in the simulator, 2 no such item, 4
something is not as the museum says.
"""

import shutil
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.museum.comparison import Comparison, Counted, compare_item, count_seeds
from jepsen_like.museum.item import ITEMS, Item
from jepsen_like.museum.item_page import item_page, summary
from jepsen_like.museum.table import document, figure_of, key_of
from jepsen_like.real.museum.playing_on_processes import (
    ProcessComparison,
    compare_on_processes,
    process_page,
)
from jepsen_like.sim.time.ending import ANY_ERROR, described
from quorumlab.arguments import UsageError
from quorumlab.output import Progress, answer, complain, say, table_lines

__all__ = ["run"]

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_WRONG = 4
_ALL = "all"
_COLUMNS = ("item", "title", "design", "bug", "said_by", "red", "green")


def run(args: SimpleNamespace) -> int:
    is_told = args.item not in (None, _ALL)
    if args.seeds is not None and args.seeds < 1:
        raise UsageError(f"--seeds {args.seeds}: at least one")
    if args.real and (args.seeds or args.format == "markdown"):
        raise UsageError("--real plays each exhibit once: leave out --seeds and markdown")
    if args.real and args.item is None:
        raise UsageError("--real takes a minute an item: name one, or `all`")
    items = _chosen(args.item)
    if args.real:
        return _show_really(items, args.format, is_told=is_told)
    if args.seeds or args.format == "markdown":
        return _count(items, args.seeds or 1, args.format)
    if args.item is None:
        return _list(items, args.format)
    return _show(items, args.format, is_told=is_told)


def _chosen(name: str | None) -> Sequence[Item]:
    if name is None or name == _ALL:
        return tuple(ITEMS.values())
    item = ITEMS.get(name.upper())
    if item is None:
        raise UsageError(f"no item {name}: the museum has {', '.join(ITEMS)}, and {_ALL}")
    return (item,)


def _list(items: Sequence[Item], form: str) -> int:
    rows = [
        {"item": item.id, "title": item.title, "issue": item.issue, "design": item.design}
        for item in items
    ]
    plays = (
        f"\n`quorumlab chaos museum {items[0].id}` plays that one, and `quorumlab chaos museum "
        f"{_ALL}` all of them, in a minute or two"
    )
    answer(form, rows, [*table_lines(rows, ("item", "title", "issue")), plays])
    return EXIT_OK


# --- once, each exhibit ---------------------------------------------------------------------


def _show(items: Sequence[Item], form: str, *, is_told: bool) -> int:
    progress = Progress()
    shown = []
    failed: list[str] = []
    for item in items:
        progress(f"{item.id} {item.title}")
        try:
            shown.append((item, compare_item(item)))
        except ANY_ERROR as error:
            failed.append(f"{type(error).__name__}: {described(error)}")
            _complain_of(item, failed[-1:])
    progress.done()
    each_shown = [(item, each) for item, of_item in shown for each in of_item]
    rows = (_row(item, each, said_by=summary(each)) for item, each in each_shown)
    pages = chain.from_iterable(item_page(item, of_item) for item, of_item in shown)
    lines = pages if is_told else table_lines(rows, _COLUMNS)
    answer(form, [_as_json(item, each) for item, each in each_shown], lines)
    is_right = all(each.is_right for _, each in each_shown)
    if not is_right:
        return EXIT_WRONG
    return EXIT_ERROR if failed else EXIT_OK


def _complain_of(item: Item, errors: Sequence[str], options: str = "") -> None:
    for error in errors:
        complain(f"{item.id}: {error}")
    if errors:
        complain(f"repro: quorumlab chaos museum {item.id}{options}")


def _row(item: Item, shown: Comparison | ProcessComparison, *, said_by: str) -> dict[str, object]:
    return {
        "item": item.id,
        "title": item.title,
        "design": item.design.partition(",")[0],
        "bug": shown.exhibit.bug,
        "said_by": said_by,
        "red": "; ".join(shown.not_red()) or "red",
        "green": "; ".join(shown.not_green()) or "green",
    }


def _as_json(item: Item, shown: Comparison) -> dict[str, object]:
    findings = () if shown.seen is None else shown.seen.findings
    return {
        "item": item.id,
        "title": item.title,
        "issue": item.issue,
        "design": item.design,
        "mechanism": item.mechanism,
        "mended_by": item.mended_by,
        "schedule": shown.exhibit.schedule,
        "bug": shown.exhibit.bug,
        "violated": "" if shown.judged is None else shown.judged.rule,
        "detail": "" if shown.judged is None else shown.judged.detail,
        "findings": [
            {"rule": each.rule, "object": each.object, "detail": each.detail, "ops": each.ops}
            for each in findings
        ],
        "steps": [{"at_ms": step.at_ms, "what": step.what} for step in shown.red.steps],
        "mended_steps": [{"at_ms": step.at_ms, "what": step.what} for step in shown.green.steps],
        "problems": list(shown.problems()),
    }


# --- on real processes ----------------------------------------------------------------------


def _show_really(items: Sequence[Item], form: str, *, is_told: bool) -> int:
    exhibits = [(item, each) for item in items for each in item.exhibits if each.really]
    if not exhibits:
        really = [item.id for item in ITEMS.values() if any(x.really for x in item.exhibits)]
        raise UsageError(f"not played on real processes; these are: {', '.join(really)}")
    progress = Progress()
    rows = []
    directory = Path(tempfile.mkdtemp(prefix="museum-"))
    for number, (item, exhibit) in enumerate(exhibits):
        progress(f"{item.id} {item.title}: two runs of half a minute")
        shown = compare_on_processes(exhibit, directory / f"{item.id}-{number}")
        progress.done()
        if is_told and form == "table":
            for line in process_page(item, shown):
                say(line)
        row = _row(item, shown, said_by=", ".join(shown.rules()))
        rows.append(row | {"is_right": shown.is_right})
    answer(form, rows, () if is_told else table_lines(rows, _COLUMNS))
    if all(row["is_right"] for row in rows):
        shutil.rmtree(directory)
        return EXIT_OK
    complain(f"what the nodes said is in {directory}")
    return EXIT_WRONG


# --- over seeds -----------------------------------------------------------------------------


def _count(items: Sequence[Item], seeds: int, form: str) -> int:
    progress = Progress()
    counted: dict[str, Counted] = {}
    rows = []
    for item in items:
        for exhibit in item.exhibits:
            progress(f"{item.id} {exhibit.bug}")
            count = counted[key_of(exhibit)] = count_seeds(exhibit, seeds)
            _complain_of(item, count.errors, f" --seeds {seeds}")
            found = {"item": item.id, "bug": exhibit.bug, "schedule": exhibit.schedule}
            rows.append(found | {"seeds": seeds, "red": count.red, "green": count.green})
    progress.done()
    if form == "markdown":
        figures = {key: figure_of(count) for key, count in counted.items()}
        say(document(items, figures, seeds=seeds).rstrip("\n"))
    else:
        columns = ("item", "bug", "schedule", "seeds", "red", "green")
        answer(form, rows, table_lines(rows, columns))
    return EXIT_OK if all(count.is_right for count in counted.values()) else EXIT_WRONG
