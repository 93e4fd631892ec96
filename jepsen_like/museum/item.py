"""What hangs in the museum: an item for each known failure, with the exhibits that show it.

An exhibit is a schedule and a bug: the schedule is red with the bug, by the rule that is named,
and green on the shipped rules. The bug is a planted bug (`jepsen_like.planted`), or a setting
that Apache Kafka still has: nothing that ships can plant one, only the museum and the tests do. Or
it is a design of ZooKeeper mode that has it by its document, and another design mends it; or a
design without one of its improvements, and the mended run has that switch on.

The items stand in `items.toml`, in the order of the gallery.

Source: the ids are those of the reliability facts, section 4.1.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from jepsen_like.histories.history import Value

__all__ = ["ITEMS", "Exhibit", "Item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """`violated` and `seen` may not both be empty.

    violated    the invariant, the bound or the crash by which the simulator's judges tell; empty
                where they excuse it, since whoever set the setting asked for it
    seen        the rule by which the history of the clients tells, without any judge; empty where
                no client can see it
    really      the rule by which it is told on real processes; empty where it is not played there
    """

    schedule: str
    plants: str = ""  # several that belong together joined by commas
    settings: Mapping[str, Value] = field(default_factory=dict)
    mended: Mapping[str, Value] = field(default_factory=dict)  # settings of the run without it
    violated: str = ""
    seen: str = ""
    really: str = ""

    def __post_init__(self) -> None:
        assert self.plants or self.settings, self.schedule
        assert self.violated or self.seen, self.schedule

    @property
    def bug(self) -> str:
        """What is wrong in the red run, by name."""
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return ",".join([*self.plants.split(",")] if self.plants else settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    id: str
    title: str
    issue: str  # of Apache Kafka: an issue, a KIP, or a report
    design: str  # which of Kafka's designs had it
    mechanism: str  # in two sentences
    mended_by: str
    exhibits: tuple[Exhibit, ...]


def _item(told: Mapping[str, Any]) -> Item:
    mechanism = " ".join(told["mechanism"].split())
    exhibits = tuple(Exhibit(**each) for each in told["exhibits"])
    return Item(**{**told, "mechanism": mechanism, "exhibits": exhibits})


_TOLD = tomllib.loads(files(__package__).joinpath("items.toml").read_text(encoding="utf-8"))
ITEMS: Mapping[str, Item] = {each["id"]: _item(each) for each in _TOLD["items"]}
