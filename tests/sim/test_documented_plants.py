"""docs/planted-bugs.md lists every bug that can be planted, with the rule and the bound of today.

What finds a bug is written by hand; what clients see of it is held by `test_chaos_catches.py`.
"""

import re
from pathlib import Path

import pytest

from jepsen_like.planted.checker_bugs import CHECKER_PLANTS
from jepsen_like.planted.planting import Plants
from jepsen_like.sim.runs.command import CLUSTER, QUORUM

DOCUMENT = Path(__file__).parents[2] / "docs" / "planted-bugs.md"
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


TABLES = (QUORUM.all_plants, CLUSTER.all_plants, CHECKER_PLANTS)  # as the page has them


@pytest.mark.parametrize("place", range(len(TABLES)), ids=["quorum", "cluster", "checkers"])
def test_the_page_lists_the_bugs_that_can_be_planted(place: int) -> None:
    found = re.findall(re.escape(_HEADING) + r"(?:\|.*\|\n)*", DOCUMENT.read_text())
    assert len(found) == len(TABLES)
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+ \| [^|]+) \|$", "".join(found), re.MULTILINE)
    expected = table_of(TABLES[place], dict(rows))
    assert found[place] == expected, "put this table there:\n" + expected
    assert _BY_HAND not in expected
