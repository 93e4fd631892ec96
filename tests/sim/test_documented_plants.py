"""docs/testing.md lists every bug that can be planted, with the rule and the bound of today."""

import re
from pathlib import Path

import pytest

from jepsen_like.planted.planting import Plants
from jepsen_like.sim.command import CLUSTER, QUORUM

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"
_HEADING = "| bug | rule | seeds |\n|---|---|---|\n"


def table_of(plants: Plants) -> str:
    """As `quorumlab chaos sim --plants` has it, for the page."""
    rows = ((name, plant.breaks, plant.seeds_max or "-") for name, plant in plants.items())
    lines = (f"| `{name}` | {breaks} | {seeds} |\n" for name, breaks, seeds in sorted(rows))
    return _HEADING + "".join(lines)


@pytest.mark.parametrize("place", [0, 1], ids=["quorum", "cluster"])
def test_the_page_lists_the_bugs_that_can_be_planted(place: int) -> None:
    found = re.findall(re.escape(_HEADING) + r"(?:\|.*\|\n)*", DOCUMENT.read_text())
    assert len(found) == 2
    expected = table_of((QUORUM, CLUSTER)[place].all_plants)
    assert found[place] == expected, "put this table there:\n" + expected
