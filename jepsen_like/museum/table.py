"""The museum as a table, for docs/museum.md.

Its figures, how many runs were red and green, were measured by the command that it names;
everything else follows from the items. `figures_in` reads the figures back, so that a test can tell
whether the rest is current.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from jepsen_like.museum.comparison import Counted
from jepsen_like.museum.item import Exhibit, Item
from jepsen_like.planted.every_bug import EVERY_PLANT

__all__ = ["Figures", "document", "figure_of", "figures_in", "key_of"]

Figures = Mapping[str, str]  # by `key_of`: "20 of 20 red, 20 of 20 green"

_HEAD = """\
# The museum of bugs

Known failures of Apache Kafka, each with a schedule that shows it: red on rules with the bug,
green on the shipped ones. Written by

    quorumlab chaos museum --seeds {seeds} --format markdown > docs/museum.md

`quorumlab chaos museum` lists them, `quorumlab chaos museum all` plays all of them, in a minute or
two, and `quorumlab chaos museum ITEM` plays one and tells it step by step,
with the violation, its witness and the mended run. The exit code is 4 if red is not red or green is
not green.

`tests/jepsen_like/museum` plays each exhibit once: all were red and green on 2026-11-29, at the
commit that brought T1 to T6.

A *bug* is planted for as long as a run lasts, or is a setting that Apache Kafka still
has: nothing that ships can plant one. Or it is a design of [ZooKeeper mode](zookeeper-mode.md),
which has it by its document; green is the design that mends it. Or it is a design without one of
its improvements (`without=`), and green differs by that switch alone. *Said by*: the simulator's
invariants and bounds (see [simulation.md](simulation.md)), and in italics what the clients' history
says alone, with no judge at all, where a client can see it. *Runs*: the schedule with the times of
so many seeds. *At random*: the simulator's random faults find the bug within so many seeds; -
where it takes the schedule. *Processes*: what says so on real processes, where `--real` plays the
same schedule through proxies that hold single messages; red nodes are started with the bug, green
ones are as they ship.

| item | mechanism | design | schedule, bug | said by | mended by | runs | at random | processes |
|---|---|---|---|---|---|---|---|---|
"""


def document(items: Iterable[Item], figures: Figures, *, seeds: int) -> str:
    """The whole of docs/museum.md."""
    rows = "".join(_row(item, figures) + "\n" for item in items)
    return _HEAD.format(seeds=seeds) + rows


def figures_in(text: str) -> tuple[Figures, int]:
    """The figures of a document, and of how many seeds they are."""
    seeds = re.search(r"--seeds (\d+)", text)
    assert seeds is not None, "the document does not say how it was written"
    figures: dict[str, str] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 9 and cells[0].startswith("**"):
            shown, runs = cells[3].split("<br>"), cells[6].split("<br>")
            figures.update(zip(shown, runs, strict=True))
    return figures, int(seeds[1])


def key_of(exhibit: Exhibit) -> str:
    """As it stands in the table."""
    return f"`{exhibit.schedule}`, `{exhibit.bug}`"


def figure_of(counted: Counted) -> str:
    void = f", {counted.void} void" if counted.void else ""
    return f"{counted.red} of {counted.seeds} red, {counted.green} green{void}"


def _row(item: Item, figures: Figures) -> str:
    exhibits = item.exhibits
    cells = [
        f"**{item.id}** {item.title} ({item.issue})",
        item.mechanism,
        item.design,
        "<br>".join(map(key_of, exhibits)),
        "<br>".join(", ".join(_said_by(exhibit)) for exhibit in exhibits),
        item.mended_by,
        "<br>".join(figures.get(key_of(exhibit), "?") for exhibit in exhibits),
        "<br>".join(map(_at_random, exhibits)),
        "<br>".join(exhibit.really or "-" for exhibit in exhibits),
    ]
    return f"| {' | '.join(cells)} |"


def _said_by(exhibit: Exhibit) -> Iterator[str]:
    if exhibit.violated:
        yield exhibit.violated
    if exhibit.seen:
        yield f"*{exhibit.seen}*"


def _at_random(exhibit: Exhibit) -> str:
    bounds = [EVERY_PLANT[name].seeds_max for name in exhibit.plants.split(",") if name]
    return str(bounds[0]) if len(bounds) == 1 and bounds[0] else "-"
