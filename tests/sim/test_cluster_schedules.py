"""The museum's schedules: each holds under the shipped rules, and shows the bug it is about."""

import pytest

from jepsen_like.sim.planted.cluster import (
    CLUSTER_PLANTS,
    CLUSTER_SCHEDULED,
    planted,
)
from jepsen_like.sim.schedules.data_plane import SCHEDULES
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.violation import Stuck, Violation

# The invariant, or the bound, that a planted bug breaks in its schedule.
SHOWN_BY = {
    "answers_from_old_knowledge": "L-ISR",
    "asks_once": "L-ISR",
    "believes_only_answers": "L-ISR",
    "chases_the_end_of_the_log": "L-BR",
    "counts_on_the_committed_isr": "D-THW",
    "counts_on_the_shrunk_isr": "D-THW",
    "does_not_look_after_an_answer": "L-HW",
    "joins_at_the_high_watermark": "D-THW",
    "obeys_late_answers": "D-PRE",
    "takes_in_other_lives": "D-THW",
    "takes_in_the_fenced": "M-FEN",
    "takes_silence_for_a_refusal": "D-MAX",
    "trusts_every_stop": "D-THW",
    "waits_for_whoever_fetches": "L-WR",
}
BY_SETTING = {"leader_alone"}  # no bug is needed: the museum has the settings
FINDS = [(name, plant) for name, entry in SCHEDULES.items() for plant in entry.finds]


@pytest.mark.parametrize("name", SCHEDULES)
def test_shipped_rules_hold_in_every_schedule(name: str) -> None:
    SCHEDULES[name].run(Production())


@pytest.mark.parametrize(("name", "plant"), [find for find in FINDS if find[1] in SHOWN_BY])
def test_planted_bug_shows_as_the_museum_says(name: str, plant: str) -> None:
    with planted(plant), pytest.raises((Violation, Stuck)) as raised:
        SCHEDULES[name].run(Production())
    assert str(raised.value).startswith(SHOWN_BY[plant])


def test_every_schedule_shows_a_bug() -> None:
    known = {*CLUSTER_PLANTS, *CLUSTER_SCHEDULED}
    for name, entry in SCHEDULES.items():
        assert entry.finds or name in BY_SETTING, name
        assert {part for plant in entry.finds for part in plant.split(",")} <= known, name


def test_what_is_not_found_at_random_has_a_schedule() -> None:
    shown = {part for _, plant in FINDS for part in plant.split(",")}
    assert set(CLUSTER_SCHEDULED) <= shown
