"""docs/planted-bugs.md lists every bug that can be planted, with the rule and the bound of today.

What finds a bug is written by hand, and compared with what a run finds by `test_catches.py` and
`test_cluster_catches.py`; what clients see of it is held by `test_chaos_catches.py`.
docs/planted-places.md says where each bug of commit 59454a9 is planted and found today.
"""

import re
from pathlib import Path

import pytest

from jepsen_like.planted.every_bug import BUGS, EVERY_PLANT
from jepsen_like.planted.planting import Plant, Plants
from jepsen_like.scenarios.schedules import QUORUM_SCHEDULES, SCHEDULES
from jepsen_like.sim.runs.command import CLUSTER, QUORUM

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "planted-bugs.md"
PLACES = DOCUMENT.with_name("planted-places.md")
_HEADING = "| bug | rule | seeds | found by | seen by clients |\n|---|---|---|---|---|\n"
_BY_HAND = "? | ?"


def table_of(plants: Plants, by_hand: dict[str, str]) -> str:
    """As `quorumlab chaos sim --plants` has it, for the page; two columns stay as they are."""
    rows = ((name, plant.breaks, plant.seeds_max or "-") for name, plant in plants.items())
    lines = (
        f"| `{name}` | {breaks} | {seeds} | {by_hand.get(name, _BY_HAND)} |\n"
        for name, breaks, seeds in sorted(rows)
    )
    return _HEADING + "".join(lines)


TABLES = (QUORUM.all_plants, CLUSTER.all_plants, BUGS["checker"])  # as the page has them


@pytest.mark.parametrize("place", range(len(TABLES)), ids=["quorum", "cluster", "checkers"])
def test_the_page_lists_the_bugs_that_can_be_planted(place: int) -> None:
    found = re.findall(re.escape(_HEADING) + r"(?:\|.*\|\n)*", DOCUMENT.read_text())
    assert len(found) == len(TABLES)
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+ \| [^|]+) \|$", "".join(found), re.MULTILINE)
    expected = table_of(TABLES[place], dict(rows))
    assert found[place] == expected, "put this table there:\n" + expected
    assert _BY_HAND not in expected


# --- docs/planted-places.md ---------------------------------------------------------------------

_ROW = re.compile(r"\| `(\w+)` \| `([\w.]+)` \| (?:`([\w.]+)`|the same) \| (.+) \|")
SCRIPTED = {**SCHEDULES, **QUORUM_SCHEDULES}


def rows_of_places() -> dict[str, tuple[str, str, str]]:
    """The place at 59454a9, the place today and what finds the bug, by bug."""
    lines = PLACES.read_text().splitlines()
    rows = [_ROW.fullmatch(line) for line in lines if line.startswith("| `")]
    assert None not in rows, lines
    return {row[1]: (row[2], row[3] or row[2], row[4]) for row in rows if row is not None}


def place_of(plant: Plant) -> str:
    holder = plant.holder
    prefix = f"{holder.__module__}.{holder.__qualname__}" if isinstance(holder, type) else ""
    return f"{prefix or holder.__name__}.{plant.name}"


def test_no_bug_of_59454a9_has_been_dropped() -> None:
    rows = rows_of_places()
    assert len(rows) == 90
    assert list(rows) == sorted(rows)
    younger = len(EVERY_PLANT) - len(rows)
    moved = sum(then != now for then, now, _ in rows.values())
    text = " ".join(PLACES.read_text().split())
    assert f"lists the {younger} bugs that are younger" in text
    assert f"{len(rows) - moved} are planted in the same place" in text


@pytest.mark.parametrize("name", rows_of_places())
def test_a_bug_of_59454a9_is_planted_where_the_page_says_and_found_as_it_says(name: str) -> None:
    _, now, found_at = rows_of_places()[name]
    plant = EVERY_PLANT[name]
    assert now == place_of(plant)
    if plant.seeds_max:
        assert found_at == str(plant.found_at)
        return
    finder = found_at.strip("`")
    assert f"`{finder}` |" in row_of_bugs(name), "the other page names it, too"
    if finder.endswith(".py"):
        assert [*TESTS.rglob(finder.removeprefix("tests/"))], finder
    else:
        assert name in {each for plants in SCRIPTED[finder].finds for each in plants.split(",")}


def row_of_bugs(name: str) -> str:
    (row,) = (line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| `{name}`"))
    return row
