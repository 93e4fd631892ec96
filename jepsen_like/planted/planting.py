"""How a bug is planted: it takes the place of one public rule while a `with` lasts.

The rule is a function, a method or a property whose name says what is decided; a test holds that
the bug has its parameters. Shipped code knows nothing of this.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import getdoc
from types import ModuleType
from typing import Any, TypeVar

__all__ = ["Plant", "Plants", "plant_in", "planted_in"]

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


def plant_in(
    plants: Plants,
    holder: ModuleType | type,
    name: str,
    *,
    seeds_max: int = 0,
    found_at: int = 0,
) -> Callable[[Replacement], Replacement]:
    """Enter the decorated function in `plants` under its own name.

    Its docstring says which rule it breaks: `Breaks: who leads is in the ISR, and alive.`
    """

    def enter(replacement: Replacement) -> Replacement:
        told = " ".join((getdoc(replacement) or "").partition("\n\n")[0].split())
        is_property = isinstance(getattr(holder, name), property)
        plants[replacement.__name__] = Plant(
            breaks=told.removeprefix("Breaks: ").removesuffix("."),
            holder=holder,
            name=name,
            replacement=property(replacement) if is_property else replacement,
            seeds_max=seeds_max,
            found_at=found_at,
        )
        return replacement

    return enter


@contextmanager
def planted_in(plant: Plant) -> Iterator[None]:
    shipped = getattr(plant.holder, plant.name)
    setattr(plant.holder, plant.name, plant.replacement)
    try:
        yield
    finally:
        setattr(plant.holder, plant.name, shipped)
