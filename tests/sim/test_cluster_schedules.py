"""Schedules of the data plane hold under the shipped rules; what they show is in the museum."""

import pytest

from jepsen_like.museum.item import ITEMS
from jepsen_like.planted.every_bug import CLUSTER_PLANTS, CLUSTER_SCHEDULED, planted
from jepsen_like.scenarios.schedules import SCHEDULES
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.sim.violation import Stuck, Violation

SHOWN = {exhibit.schedule: exhibit.plants for item in ITEMS.values() for exhibit in item.exhibits}
FINDS = [(name, plants) for name, entry in SCHEDULES.items() for plants in entry.finds]


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name not in SHOWN])
def test_shipped_rules_hold_in_what_the_museum_does_not_show(name: str) -> None:
    SCHEDULES[name].run(Production())


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("an_epoch_that_wrote_nothing", "D-EPC"),
        ("batches_in_flight_are_cut", "H-SEQ"),
        ("follower_that_stops_after_a_rest", "D-LAG"),
        ("heartbeat_of_an_earlier_life", "M-LIFE"),
        ("leads_again_without_knowing", "D-THW"),
        ("logs_of_one_length", "D-THW"),
        ("move_to_a_replica_that_lags", "M-MOV"),
        ("name_that_is_used_again", "D-ONE"),
        ("read_during_an_election", "D-DIV"),
    ],
)
def test_what_the_museum_does_not_show_is_found(name: str, rule: str) -> None:
    for plant in SCHEDULES[name].finds:
        with planted(plant), pytest.raises(Violation, match=rule):
            SCHEDULES[name].run(Production())


def test_pause_after_a_rest_is_judged_by_the_last_fetch_of_the_session() -> None:
    entry = SCHEDULES["follower_that_pauses_after_a_rest"]
    for plant in entry.finds:
        with planted(plant), pytest.raises(Stuck, match="L-ISR"):
            entry.run(Production())


def test_every_schedule_shows_a_bug_that_can_be_planted_or_a_setting() -> None:
    known = {*CLUSTER_PLANTS, *CLUSTER_SCHEDULED}
    for name, entry in SCHEDULES.items():
        assert entry.finds or SHOWN[name] == "", name
        assert {part for plants in entry.finds for part in plants.split(",")} <= known, name


def test_what_is_not_found_at_random_has_a_schedule() -> None:
    shown = {part for _, plants in FINDS for part in plants.split(",")}
    assert set(CLUSTER_SCHEDULED) <= shown
