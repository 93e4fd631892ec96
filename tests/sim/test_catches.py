"""Every planted bug is found within its bound of seeds: the simulator can see.

The bounds were set on one set of seeds and confirmed on another; docs/simulation.md has the record.
Here the seed that found a bug before is tried first, so that all are found in seconds. Where the
draws of a run have changed and it does so no more, the test goes through all seeds of the bound,
and says which one to enter. What takes many seeds all the same is left to `quorumlab chaos sim
--catches`, which `make sim` runs.
"""

from collections.abc import Callable
from typing import Any

import pytest

from jepsen_like.planted.every_bug import CLUSTER_PLANTS, PLANTS
from jepsen_like.planted.planting import Plant
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.assemblies.quorum.simulation import run
from tests.sim.found_by import found_by, rule_broken


@pytest.mark.parametrize("name", PLANTS)
def test_planted_bug_is_found_in_a_quorum(name: str) -> None:
    is_found_where_it_was(name, PLANTS[name], run, "chaos sim")


@pytest.mark.parametrize("name", CLUSTER_PLANTS)
def test_planted_bug_is_found_in_a_cluster(name: str) -> None:
    is_found_where_it_was(name, CLUSTER_PLANTS[name], run_cluster, "chaos sim --cluster")


def is_found_where_it_was(name: str, plant: Plant, run: Callable[..., Any], verb: str) -> None:
    seeds = (plant.found_at, *range(plant.seeds_max))
    outcomes = ((seed, run(seed, plant=name)) for seed in seeds)
    found = next(((seed, each) for seed, each in outcomes if each.kind != "ok"), None)
    assert found is not None, f"quorumlab {verb} --sweep {plant.seeds_max} --plant {name}"
    at, outcome = found
    assert at == plant.found_at, f"found at {at} now: enter it as found_at"
    assert rule_broken(outcome) in found_by(name), "docs/planted-bugs.md says otherwise"
