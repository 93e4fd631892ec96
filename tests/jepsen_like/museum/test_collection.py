"""Every item of the museum is red with its bug and green without, by the rules that it names."""

import pytest

from jepsen_like.museum.comparison import compare, count_seeds
from jepsen_like.museum.item import ITEMS, Exhibit
from jepsen_like.planted.every_bug import EVERY_PLANT
from jepsen_like.scenarios.schedules import ALL_SCHEDULES
from wire.zk.switches import names_in

DEAR = {"B17", "C1", "D7", "R11"}  # more than a second each: left to `make extra`
EXHIBITS = [
    pytest.param(
        exhibit,
        id=f"{item.id}-{exhibit.bug}",
        marks=[pytest.mark.extra] if item.id in DEAR else [],
    )
    for item in ITEMS.values()
    for exhibit in item.exhibits
]
REQUIRED = {
    *("A1", "A2", "A4", "B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9", "B13", "B16", "B17"),
    *("C1", "C2", "D1", "D4", "D5", "D6", "D7"),
    *("R1", "R2", "R4", "R5", "R8", "R10"),
}


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_exhibit_is_red_with_its_bug_and_green_without(exhibit: Exhibit) -> None:
    assert list(compare(exhibit).problems()) == []


def test_the_failures_that_cost_records_are_here() -> None:
    assert set(ITEMS) >= REQUIRED


def test_every_exhibit_names_a_schedule_and_plants_that_there_are() -> None:
    for item in ITEMS.values():
        for exhibit in item.exhibits:
            assert exhibit.schedule in ALL_SCHEDULES, item.id
            assert set(exhibit.plants.split(",")) - {""} <= set(EVERY_PLANT), item.id


def test_every_mechanism_is_told_in_two_sentences() -> None:
    for item in ITEMS.values():
        assert item.mechanism.count(". ") == 1, item.id


def test_exhibit_of_a_switch_differs_from_its_mended_run_by_that_switch_alone() -> None:
    exhibits = [each for item in ITEMS.values() for each in item.exhibits]
    switched = [each for each in exhibits if "without" in each.settings]
    for each in switched:
        assert each.settings["design"] == each.mended["design"]
        off, still_off = (
            set(names_in(str(settings.get("without", ""))))
            for settings in (each.settings, each.mended)
        )
        assert still_off < off
        assert len(off - still_off) == 1, each.bug
    shown = {each.bug for item in ("B2", "B8") for each in ITEMS[item].exhibits}
    assert shown >= {each.bug for each in switched if "guarded-writes" in each.bug}
    assert len(switched) == 5


def test_other_times_count_as_red_and_green_too() -> None:
    counted = count_seeds(ITEMS["B5"].exhibits[0], 3)
    assert (counted.seeds, counted.red, counted.green) == (3, 3, 3)
