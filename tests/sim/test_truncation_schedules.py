"""Truncation by leader epoch: red with the rules that KIP-101, KIP-279 and KIP-320 replaced."""

import pytest

from jepsen_like.sim.planted.cluster import planted
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.truncation import TRUNCATION_SCHEDULES
from jepsen_like.sim.violation import Stuck, Violation


@pytest.mark.parametrize("name", TRUNCATION_SCHEDULES)
def test_shipped_rules_keep_what_is_committed(name: str) -> None:
    TRUNCATION_SCHEDULES[name].run(Production())


@pytest.mark.parametrize(
    ("name", "plant"),
    [(name, plant) for name, entry in TRUNCATION_SCHEDULES.items() for plant in entry.finds],
)
def test_rules_of_old_do_not(name: str, plant: str) -> None:
    with planted(plant), pytest.raises((Violation, Stuck)):
        TRUNCATION_SCHEDULES[name].run(Production())
