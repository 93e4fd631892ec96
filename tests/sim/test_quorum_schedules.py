"""The museum's schedules of the quorum: each holds under the shipped rules."""

import pytest

from jepsen_like.planted.every_bug import PLANTS
from jepsen_like.scenarios.production import Production
from jepsen_like.scenarios.schedules import QUORUM_SCHEDULES


@pytest.mark.parametrize("name", QUORUM_SCHEDULES)
def test_shipped_rules_hold_in_every_schedule(name: str) -> None:
    QUORUM_SCHEDULES[name].run(Production(seed=1))


def test_every_schedule_says_what_happens_and_finds_known_bugs() -> None:
    for name, entry in QUORUM_SCHEDULES.items():
        assert entry.story, name
        assert set(entry.finds) <= set(PLANTS), name
