"""Every planted bug is found within its bound of seeds: the simulator can see.

The bounds were set on one set of seeds and confirmed on another; docs/simulation.md has the record.
Those that take long are left to `quorumlab chaos sim --catches`, which `make sim` runs.
"""

import inspect

import pytest

from jepsen_like.sim.planted.quorum import PLANTS, SURVIVORS, planted
from jepsen_like.sim.quorum.simulation import run

_QUICK = 30  # seeds that the fast suite runs for one plant at most


@pytest.mark.parametrize(
    "name", [name for name, plant in PLANTS.items() if plant.seeds_max <= _QUICK]
)
def test_planted_bug_is_found(name: str) -> None:
    bound = PLANTS[name].seeds_max
    found = next((seed for seed in range(bound) if run(seed, plant=name).kind != "ok"), None)
    assert found is not None, f"quorumlab chaos sim --sweep {bound} --plant {name}"


@pytest.mark.parametrize("name", [*PLANTS, *SURVIVORS])
def test_plant_replaces_one_shipped_function_and_puts_it_back(name: str) -> None:
    plant = {**PLANTS, **SURVIVORS}[name]
    shipped = getattr(plant.holder, plant.name)
    with planted(name):
        assert getattr(plant.holder, plant.name) is plant.replacement
    assert getattr(plant.holder, plant.name) is shipped
    assert shipped is not plant.replacement


@pytest.mark.parametrize("name", [*PLANTS, *SURVIVORS])
def test_plant_takes_the_arguments_of_the_rule(name: str) -> None:
    plant = {**PLANTS, **SURVIVORS}[name]
    if isinstance(plant.replacement, property):
        return
    shipped = inspect.signature(getattr(plant.holder, plant.name))
    replacement = inspect.signature(plant.replacement)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in replacement.parameters.values())
    assert takes_all or len(replacement.parameters) == len(shipped.parameters)
