"""How the fields of a layout meet those of a canonical class, where names alone do not say it.

`wire.differences` has the rules of every version of the protocol; records have `NOTHING_IS_LOST`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NOTHING_IS_LOST", "Difference", "Rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`write`: field of the version -> its value, from the canonical entity.

    `read` takes the fields that were read, by name, and returns those that the canonical entity has
    instead. It may take away what it has used.
    """

    api: str
    kind: str  # "request" or "response"
    entity: str
    versions: range
    story: str  # for docs/compatibility.md
    write: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    read: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    elements: Mapping[str, type] = field(default_factory=dict)  # of fields that only it has


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one version of a message, for the structs in it, too."""

    differences: Mapping[str, Difference] = field(default_factory=dict)  # by entity
    # By entity, fields that may not be left out unless they have their default. None: no field may.
    must_arrive: Mapping[str, tuple[str, ...]] | None

    def adjust(self, entity: str) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
        """The function that replaces fields of an entity after reading."""
        found = self.differences.get(entity)
        return found.read if found is not None else None

    def source(self, entity: str, name: str) -> Callable[[Any], Any] | None:
        """The function that gives a field's value, if not the canonical field of that name."""
        found = self.differences.get(entity)
        return found.write.get(name) if found is not None else None

    def element(self, entity: str, name: str) -> type | None:
        """The class of the elements of a field that the canonical message lacks."""
        found = self.differences.get(entity)
        return found.elements.get(name) if found is not None else None

    def checked(self, entity: str, lacking: Iterable[str]) -> list[str]:
        """Returns the fields that a layout lacks and that must have their default."""
        if self.must_arrive is None:
            return list(lacking)
        names = self.must_arrive.get(entity, ())
        return [name for name in lacking if name in names]


NOTHING_IS_LOST = Rules(must_arrive=None)
