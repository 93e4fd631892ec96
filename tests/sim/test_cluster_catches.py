"""Every bug that is planted in brokers or controllers is found within its bound of seeds.

Bounds were set on one set of seeds and confirmed on another; docs/simulation.md has the record.
Those that take long are left to `quorumlab chaos sim --cluster --catches`.
"""

import inspect

import pytest

from jepsen_like.sim.cluster.run import run_cluster
from jepsen_like.sim.planted.cluster import (
    CLUSTER_PLANTS,
    CLUSTER_SCHEDULED,
    CLUSTER_SURVIVORS,
    planted,
)

ALL = {**CLUSTER_PLANTS, **CLUSTER_SCHEDULED, **CLUSTER_SURVIVORS}
_QUICK = 25  # seeds that the fast suite runs for one plant at most


@pytest.mark.parametrize(
    "name", [name for name, plant in CLUSTER_PLANTS.items() if plant.seeds_max <= _QUICK]
)
def test_planted_bug_is_found(name: str) -> None:
    bound = CLUSTER_PLANTS[name].seeds_max
    found = next((s for s in range(bound) if run_cluster(s, plant=name).kind != "ok"), None)
    assert found is not None, f"quorumlab chaos sim --cluster --sweep {bound} --plant {name}"


@pytest.mark.parametrize("name", ALL)
def test_plant_replaces_one_shipped_function_and_puts_it_back(name: str) -> None:
    plant = ALL[name]
    shipped = getattr(plant.holder, plant.name)
    with planted(name):
        assert getattr(plant.holder, plant.name) is plant.replacement
    assert getattr(plant.holder, plant.name) is shipped
    assert shipped is not plant.replacement


@pytest.mark.parametrize("name", ALL)
def test_plant_takes_the_arguments_of_the_rule(name: str) -> None:
    plant = ALL[name]
    if isinstance(plant.replacement, property):
        return
    shipped = inspect.signature(getattr(plant.holder, plant.name))
    replacement = inspect.signature(plant.replacement)
    kinds = {parameter.kind for parameter in replacement.parameters.values()}
    takes_all = kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    assert takes_all or len(replacement.parameters) == len(shipped.parameters)
