"""docs/museum.md says what the items say."""

import re
from pathlib import Path

from jepsen_like.museum.item import ITEMS
from jepsen_like.museum.table import document, figures_in, key_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "museum.md"


def test_document_is_current() -> None:
    text = DOCUMENT.read_text()
    figures, seeds = figures_in(text)
    assert document(ITEMS.values(), figures, seeds=seeds) == text


def test_document_has_figures_for_every_exhibit_and_all_of_them_are_right() -> None:
    figures, seeds = figures_in(DOCUMENT.read_text())
    for item in ITEMS.values():
        for exhibit in item.exhibits:
            figure = figures[key_of(exhibit)]
            red, of, green = map(int, re.findall(r"\d+", figure)[:3])
            assert (of, red > 0) == (seeds, True), key_of(exhibit)
            assert green + sum(map(int, re.findall(r"(\d+) void", figure))) == seeds, figure
