"""Schedules that no cluster of processes would bear: many short faults, on whomever they meet.

Virtual time is cheap, and most bugs of replication need two faults within a few messages of each
other, or all of a quorum to lose its power at once. Nothing is spared here, and no run is void for
that: what a cluster acknowledged, it must keep.

Source: TigerBeetle's VOPR, and this project's `jepsen_like.sim.assemblies.quorum.drawn_faults`.
"""

from collections.abc import Sequence
from random import Random

from jepsen_like.faults.fault import Fault, Role, Scheduled
from jepsen_like.faults.kinds import KINDS, kind_and_role

__all__ = ["draw_storm"]

_EVERY = 3  # units between two faults, on the average
_LASTS = (0.05, 0.5, 2.0, 5.0)  # units
_WIDE = (Role.ALL, Role.MAJORITY, Role.BROKERS)
_MAY_BE_WIDE = ("kill", "pause", "power-loss", "torn-write")


def draw_storm(
    *, seed: int, kinds: Sequence[str], seconds: int, unit_ms: int
) -> tuple[Scheduled, ...]:
    """In the order of time; `unit_ms` is an election's time-out."""
    if not kinds:
        return ()
    random = Random(f"storm/{seed}")
    drawn: list[Scheduled] = []
    at_ms = 0.0
    while (at_ms := at_ms + random.expovariate(1 / (_EVERY * unit_ms))) < seconds * 1000:
        name, given = kind_and_role(random.choice(kinds))
        drawn.append(
            Scheduled(
                at_ms=int(at_ms),
                lasts_ms=1 + int(random.expovariate(1 / (random.choice(_LASTS) * unit_ms))),
                fault=_fault(name, given, random),
            )
        )
    return tuple(drawn)


def _fault(name: str, given: Role | None, random: Random) -> Fault:
    kind = KINDS[name]
    roles = kind.roles
    if len(roles) > 1:
        roles = (*roles, Role.ACTIVE_CONTROLLER, Role.ONE_CONTROLLER)
    if name in _MAY_BE_WIDE and random.random() < 0.5:
        roles = _WIDE
    parameters = {key: random.choice(choices) for key, choices in kind.choices.items()}
    if name == "power-loss":
        parameters["amid"] = "write"  # of a sync's time, a power failure at random sees little
    return Fault(kind=name, role=given or random.choice(roles), parameters=parameters)
