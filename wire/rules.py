"""How the fields of a layout meet those of a canonical class, where names alone do not say it.

`wire.differences` has the rules of every version of the protocol; records have `NOTHING_IS_LOST`,
or `NOTHING_IS_SKIPPED` where a reader must know of tagged fields that it does not know.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NOTHING_IS_LOST", "NOTHING_IS_SKIPPED", "Difference", "Rules"]


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


_NONE = Difference(api="", kind="", entity="", versions=range(0), story="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one version of a message, for the structs in it, too."""

    differences: Mapping[str, Difference] = field(default_factory=dict)  # by entity
    # By entity, fields that may not be left out unless they have their default. None: no field may.
    must_arrive: Mapping[str, tuple[str, ...]] | None
    skips_unknown_tags: bool = True  # as KIP-482 wants it

    def of(self, entity: str) -> Difference:
        """How the fields of an entity differ: mostly not at all."""
        return self.differences.get(entity, _NONE)

    def checked(self, entity: str, lacking: Iterable[str]) -> list[str]:
        """Returns the fields that a layout lacks and that must have their default."""
        if self.must_arrive is None:
            return list(lacking)
        names = self.must_arrive.get(entity, ())
        return [name for name in lacking if name in names]


NOTHING_IS_LOST = Rules(must_arrive=None)
NOTHING_IS_SKIPPED = Rules(must_arrive=None, skips_unknown_tags=False)
