"""The schedules of the quorum: each holds under the shipped rules.

The museum shows that each bug is found which one of its schedules is about.
"""

from collections.abc import Mapping

import pytest

from jepsen_like.scenarios.schedules import QUORUM_SCHEDULES
from jepsen_like.scenarios.stage.story import Production

# Each as it is, and some with other settings.
CASES: list[tuple[str, Mapping[str, int]]] = [
    *((name, {}) for name in QUORUM_SCHEDULES),
    *(("first_election", {"voters": voters}) for voters in (1, 2, 4, 5)),
    ("leader_is_killed", {"voters": 5}),
    ("node_is_far_behind", {"observers": 1}),
]
OTHER_SEEDS = [pytest.param(seed, marks=pytest.mark.long) for seed in (0, 2)]


@pytest.mark.parametrize("seed", [1, *OTHER_SEEDS])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_shipped_rules_hold(name: str, settings: Mapping[str, int], seed: int) -> None:
    QUORUM_SCHEDULES[name].run(Production(seed=seed, settings=settings))
