"""How a bug is planted: it takes the place of one public rule while a `with` lasts.

The rule is a function, a method or a property whose name says what is decided; a test holds that
the bug has its parameters. A bug is a function, too, but where it is no more than one answer, it is
an entry of `fixed_answers.toml`. What a module of bugs calls `_name` is the rule as shipped.
Shipped code knows nothing of this.
"""

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from inspect import getdoc
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, TypeVar

__all__ = ["BUGS", "Plant", "Plants", "plant_in", "planted_in"]

Replacement = TypeVar("Replacement", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A one-line change of a shipped rule."""

    breaks: str  # the rule, in a few words
    holder: ModuleType | type  # through which the rule is called
    name: str  # of the rule, public
    replacement: Callable[..., Any] | property
    seeds_max: int = 0  # found within so many seeds; 0: not found at random
    found_at: int = 0  # the seed at which it was found last: tests try it first


Plants = dict[str, Plant]


BUGS: dict[str, Plants] = {}  # by group; a module of bugs enters its own when it is imported


def plant_in(
    group: str, holder: ModuleType | type, name: str, **seeds: int
) -> Callable[[Replacement], Replacement]:
    """Enter the decorated function in its group under its own name.

    Its docstring says which rule it breaks: `Breaks: who leads is in the ISR, and alive.`
    """

    def enter(replacement: Replacement) -> Replacement:
        told = " ".join((getdoc(replacement) or "").partition("\n\n")[0].split())
        breaks = told.removeprefix("Breaks: ").removesuffix(".")
        plant = _plant(holder, name, replacement, breaks, **seeds)
        BUGS.setdefault(group, {})[replacement.__name__] = plant
        return replacement

    return enter


def _fixed(*, place: str, breaks: str, says: object = None, **seeds: int) -> Plant:
    holder, _, name = place.rpartition(".")
    answer = tuple(says) if isinstance(says, list) else says
    return _plant(resolve_name(holder), name, lambda *_args, **_known: answer, breaks, **seeds)


def _plant(
    holder: ModuleType | type, name: str, replacement: Callable[..., Any], breaks: str, **seeds: int
) -> Plant:
    is_property = isinstance(getattr(holder, name), property)
    return Plant(
        breaks=breaks,
        holder=holder,
        name=name,
        replacement=property(replacement) if is_property else replacement,
        **seeds,
    )


for _group, _bugs in tomllib.loads(
    files(__package__).joinpath("fixed_answers.toml").read_text(encoding="utf-8")
).items():
    BUGS[_group] = {name: _fixed(**bug) for name, bug in _bugs.items()}


@contextmanager
def planted_in(plant: Plant) -> Iterator[None]:
    shipped = getattr(plant.holder, plant.name)
    setattr(plant.holder, plant.name, plant.replacement)
    try:
        yield
    finally:
        setattr(plant.holder, plant.name, shipped)
