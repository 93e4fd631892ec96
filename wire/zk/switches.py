"""The switches of the ZooKeeper designs: improvements that can be turned off, each by itself.

`up --without` and `quorumlab.zk.without` in server.properties name them. A switch is one field of
`Design`, so a cluster with it and a cluster without it differ in nothing else.

Source: seed 001, improvements 1, 2, 5, 6 and 7; the museum of bugs, B2 and B8.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from wire.zk.designs import DESIGNS, Design

__all__ = ["SWITCHES", "Switch", "names_in", "switched_off", "without"]


@dataclass(frozen=True, slots=True)
class Switch:
    field: str  # of `Design`
    off: str  # a sentence about a design in which the field is off


SWITCHES: Mapping[str, Switch] = {
    "pipelined-writes": Switch(
        "pipelines_writes", "its controller waits for each answer of ZooKeeper before it asks again"
    ),
    "batched-commands": Switch(
        "batches_commands", "its controller sends a request for each partition"
    ),
    "prioritised-commands": Switch(
        "prioritises_commands", "its commands wait behind the requests of clients"
    ),
    "generation-check": Switch(
        "checks_generation", "its commands do not name the life of the broker that they are for"
    ),
    "immediate-session-events": Switch(
        "hears_session_at_once",
        "its controller hears of the end of its session behind what is queued",
    ),
    "guarded-writes": Switch(
        "guards_writes", "its writes do not check the epoch of the controller"
    ),
}


def names_in(text: str) -> tuple[str, ...]:
    """Returns the names that `NAME,…` holds, each once and in the order of SWITCHES.

    Raises ValueError for a name that is no switch; the message names the nearest one.
    """
    names = {each.strip() for each in text.split(",") if each.strip()}
    for name in sorted(names - SWITCHES.keys()):
        near = get_close_matches(name, SWITCHES, n=1)
        asked = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"no switch {name!r}: {asked}one of {', '.join(SWITCHES)}")
    return tuple(name for name in SWITCHES if name in names)


def without(design: Design, text: str) -> Design:
    """Returns `design` with the switches that `text` names (`NAME,…`) turned off.

    Raises ValueError for a name that is no switch, and for a switch that the design does not have.
    """
    names = names_in(text)
    for name in names:
        if not getattr(design, SWITCHES[name].field):
            why = SWITCHES[name].off if design.has_controller else "it has no controller"
            raise ValueError(f"{design.name} has no {name} to turn off: {why}")
    off: dict[str, Any] = dict.fromkeys((SWITCHES[name].field for name in names), False)
    return replace(design, **off)


def switched_off(design: Design) -> tuple[str, ...]:
    """Returns the names of the switches by which `design` differs from its document."""
    documented = DESIGNS[design.name]
    return tuple(
        name
        for name, switch in SWITCHES.items()
        if getattr(documented, switch.field) and not getattr(design, switch.field)
    )
