"""What the museum says of an item."""

import re

from jepsen_like.museum.comparison import compare_item
from jepsen_like.museum.item import ITEMS
from jepsen_like.museum.item_page import item_page, summary


def test_an_item_is_told_with_its_steps_its_witness_and_the_mended_run() -> None:
    item = ITEMS["B6"]
    shown = compare_item(item)
    text = "\n".join(item_page(item, shown))
    assert item.mechanism.split()[0] in text
    assert re.search(r"\d+  the network holds every fetch of b from a", text)
    assert "the simulator's judges: D-THW at" in text
    assert "inconsistent-offsets in orders-0: offset 1 holds" in text
    assert "process" in text
    assert "GREEN, with the shipped rules" in text
    assert "NOT AS IT SHOULD BE" not in text
    assert summary(shown[0]) == "D-THW, inconsistent-offsets"
