"""Each planted bug takes the place of one public rule, with the parameters of that rule."""

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any

import pytest

from jepsen_like.planted.every_bug import EVERY_PLANT, planted
from jepsen_like.planted.planting import Plant

ABSORBING: dict[object, set[object]] = {
    Parameter.VAR_POSITIONAL: {Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL},
    Parameter.VAR_KEYWORD: {Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD},
}


def seam_problem(plant: Plant) -> str | None:
    """Why a plant does not fit the place that it names, if it does not."""
    if plant.name.startswith("_"):
        return f"{plant.name} is private"
    shipped = getattr(plant.holder, plant.name, None)
    if shipped is None:
        return f"there is no {plant.name}"
    if isinstance(shipped, property) or isinstance(plant.replacement, property):
        both = isinstance(shipped, property) and isinstance(plant.replacement, property)
        return None if both else f"only one of the two {plant.name} is a property"
    taken, asked = parameters(plant.replacement), parameters(shipped)
    absorbed = {each for kind in taken.values() for each in ABSORBING.get(kind, ())}
    named = {name: kind for name, kind in taken.items() if kind not in ABSORBING}
    rest = {name: kind for name, kind in asked.items() if name not in named}
    wrong = [name for name, kind in named.items() if asked.get(name) is not kind]
    missed = [name for name, kind in rest.items() if kind not in absorbed]
    return f"not as in {plant.name}: {wrong + missed}" if wrong + missed else None


def parameters(function: Callable[..., Any]) -> Mapping[str, object]:
    found = inspect.signature(function).parameters.items()
    return {name.lstrip("_"): parameter.kind for name, parameter in found}


def test_every_plant_has_the_parameters_of_a_public_rule() -> None:
    problems = {name: seam_problem(plant) for name, plant in EVERY_PLANT.items()}
    assert {name: problem for name, problem in problems.items() if problem} == {}


def test_every_plant_is_in_the_place_of_the_rule_and_out_again() -> None:
    for name, plant in EVERY_PLANT.items():
        shipped = getattr(plant.holder, plant.name)
        with planted(name):
            assert getattr(plant.holder, plant.name) is plant.replacement, name
        assert getattr(plant.holder, plant.name) is shipped, name
        assert shipped is not plant.replacement, name


class Rules:
    def counts(self, size: int, *, needed: int) -> bool:
        return size >= needed

    def _hides(self) -> bool:
        return True

    @property
    def is_open(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "replacement", "problem"),
    [
        ("counts", lambda self, size, *, needed: True, None),
        ("counts", lambda self, *rest, **known: True, None),
        ("counts", lambda self, count, *, needed: True, "not as in counts: ['count', 'size']"),
        ("counts", lambda self, size, needed: True, "not as in counts: ['needed']"),
        ("counts", lambda self, *rest: True, "not as in counts: ['needed']"),
        ("is_open", lambda self: True, "only one of the two is_open is a property"),
        ("_hides", lambda self: True, "_hides is private"),
        ("leads", lambda self: True, "there is no leads"),
    ],
)
def test_place_that_does_not_fit_is_named(
    name: str, replacement: Callable[..., Any], problem: str | None
) -> None:
    plant = Plant(breaks="", holder=Rules, name=name, replacement=replacement)
    assert seam_problem(plant) == problem
