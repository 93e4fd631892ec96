"""The museum on real processes: red nodes have a bug, green ones are as they ship.

One item in every run, the others with `-m long`: each takes half a minute.
"""

from pathlib import Path

import pytest

from jepsen_like.museum.item import ITEMS, Exhibit, Item
from jepsen_like.real.museum.playing_on_processes import compare_on_processes, process_page
from jepsen_like.real.zookeeper import missing_reason

pytestmark = pytest.mark.extra  # simulated, every exhibit is in the fast suite

ALWAYS = ("C1",)
NO_ZOOKEEPER = missing_reason()


def marks(item: Item, exhibit: Exhibit) -> list[pytest.MarkDecorator]:
    needs_zookeeper = "design" in exhibit.settings
    return [
        *([] if item.id in ALWAYS else [pytest.mark.long]),
        *([pytest.mark.skipif(bool(NO_ZOOKEEPER), reason=str(NO_ZOOKEEPER))] * needs_zookeeper),
    ]


EXHIBITS = [
    pytest.param(exhibit, id=f"{item.id}-{exhibit.schedule}", marks=marks(item, exhibit))
    for item in ITEMS.values()
    for exhibit in item.exhibits
    if exhibit.really
]


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_exhibit_is_red_on_planted_nodes_and_green_on_shipped_ones(
    exhibit: Exhibit, tmp_path: Path
) -> None:
    shown = compare_on_processes(exhibit, tmp_path)
    item = next(each for each in ITEMS.values() if exhibit in each.exhibits)
    assert shown.is_right, "\n".join(process_page(item, shown))


def test_there_are_at_least_six_and_four_with_zookeeper() -> None:
    really = [(item.id, each) for item in ITEMS.values() for each in item.exhibits if each.really]
    assert len({item for item, _ in really}) >= 6
    assert len({item for item, each in really if "design" in each.settings}) >= 4
