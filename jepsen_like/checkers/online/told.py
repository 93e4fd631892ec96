"""What an online checker tells, and how a value is named in what it remembers."""

from dataclasses import dataclass

from jepsen_like.checkers.operations import exact
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Value

__all__ = ["Doubt", "Limits", "Name", "Told", "name_of"]

_OTHER = "\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """From here on nothing is said of an object; "": of the run."""

    object: str
    why: str


Told = Finding | Doubt
Name = int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is remembered of one run, at most."""

    values: int = 50_000  # of all objects together; each has 200 in any case
    unknown: int = 10_000  # of one object: writes that may still happen
    zones: int = 16  # values of a register, beyond those that are known to be needed
    waiting: int = 200_000  # lines that came before the one that is due

    def values_of_each(self, objects: int) -> int:
        return max(self.values // max(objects, 1), min(self.values, 200))


def name_of(value: Value) -> Name:
    """Equal where the value is the same, and of a kind that a state can be written with."""
    kind = type(value)
    if (kind is int and -(1 << 63) <= value < 1 << 63) or value is None:
        return value  # type: ignore[no-any-return] # as the line before says
    if kind is str and not value.startswith(_OTHER):
        return value  # type: ignore[no-any-return] # as the line before says
    return f"{_OTHER}{exact(value)!r}"
