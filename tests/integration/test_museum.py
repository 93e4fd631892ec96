"""The museum on real processes: red nodes have a hole, green ones are as they ship.

One item in every run, the others with `-m long`: each takes half a minute.
"""

from pathlib import Path

import pytest

from jepsen_like.museum.collection import ITEMS
from jepsen_like.museum.item import Exhibit
from jepsen_like.real.museum.showing import show_really, told_really

ALWAYS = ("C1",)
EXHIBITS = [
    pytest.param(exhibit, id=item.id, marks=() if item.id in ALWAYS else pytest.mark.long)
    for item in ITEMS.values()
    for exhibit in item.exhibits
    if exhibit.really
]


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_exhibit_is_red_on_planted_nodes_and_green_on_shipped_ones(
    exhibit: Exhibit, tmp_path: Path
) -> None:
    shown = show_really(exhibit, tmp_path)
    item = next(each for each in ITEMS.values() if exhibit in each.exhibits)
    assert shown.is_right, "\n".join(told_really(item, shown))


def test_there_are_at_least_six() -> None:
    assert len({item.id for item in ITEMS.values() for each in item.exhibits if each.really}) >= 6
