"""Draws a schedule of faults from a seed: which, on whom, when, for how long.

A run must have one proven fault every ten seconds, and each wanted kind at least once, so that more
are drawn than that: the kinds by turns, in an order of their own each time, with a pause between
two, or overlapping with the next one now and then. How long a fault lasts is short or long against
the time-outs of a local cluster (half a second to three seconds).

What takes nodes away never takes two of a group at a time, nor one while another comes back: of
three voters two must be left, and of three replicas two, or there is nothing to be seen. A wanted
kind that names its role (`kill:majority`) has leave to do so.

Decides nothing about what a kind does, or whether a machine can do it. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from jepsen_like.faults.fault import Fault, Role, Scheduled
from jepsen_like.faults.kinds import KINDS, FaultKind, kind_and_role

__all__ = ["BACK_MS", "draw_schedule"]

_FIRST_MS = 500
_PERIOD_MS = 4_500  # from one fault to the next, if there is room
_STEP_MS = 250  # how far to look ahead when nothing fits
BACK_MS = 3_000  # until a node that was away is of use again
_SHORTEST_MS = 1_000
_OVERLAPS = 0.35  # of the faults begin while the one before lasts

_TAKEN_FROM: Mapping[Role, tuple[str, ...]] = {
    Role.ACTIVE_CONTROLLER: ("voters",),
    Role.ONE_CONTROLLER: ("voters",),
    Role.MINORITY: ("voters",),
    Role.MAJORITY: ("voters",),
    Role.LEADER: ("brokers",),
    Role.ONE_BROKER: ("brokers",),
    Role.BROKERS: ("brokers",),
    Role.ONE_ZOOKEEPER: ("zookeepers",),
    Role.ONE: ("voters", "brokers"),
    Role.ALL: ("voters", "brokers"),
}


def draw_schedule(
    *,
    seed: int,
    kinds: Sequence[str],
    seconds: int,
    combined: bool = False,
    has_controller: bool = True,
) -> tuple[Scheduled, ...]:
    """In the order of time. `combined`: brokers are voters, so that they are one group.

    Where nobody is the controller, since replicas elect, a leader is meant in its place.
    """
    if not kinds:
        return ()
    drawn = _Drawing(Random(seed), kinds, seconds * 1000, combined=combined).run()
    return tuple(drawn if has_controller else map(_of_a_leader, drawn))


def _of_a_leader(scheduled: Scheduled) -> Scheduled:
    if scheduled.fault.role is not Role.ACTIVE_CONTROLLER:
        return scheduled
    return replace(scheduled, fault=replace(scheduled.fault, role=Role.LEADER))


class _Drawing:
    def __init__(
        self, random: Random, kinds: Sequence[str], end_ms: int, *, combined: bool
    ) -> None:
        self._random = random
        self._kinds = kinds
        self._end_ms = end_ms
        self._combined = combined
        # Where many kinds are wanted in a short time, each gets less of it.
        self._scale = min(1.0, end_ms / (_PERIOD_MS * len(kinds)))
        self._waiting: list[str] = []  # kinds whose turn it is, before any has a second one
        self._busy_until_ms = {"voters": 0, "brokers": 0, "zookeepers": 0}

    def run(self) -> Iterator[Scheduled]:
        at_ms = _FIRST_MS
        while at_ms + _SHORTEST_MS <= self._end_ms:
            found = self._next(at_ms)
            if found is None:
                at_ms += _STEP_MS
                continue
            yield found
            at_ms = self._after(found)

    def _next(self, at_ms: int) -> Scheduled | None:
        """The first kind in turn that has a node to befall now."""
        if not self._waiting:
            self._waiting = self._random.sample(self._kinds, len(self._kinds))
        for wanted in self._waiting:
            name, given = kind_and_role(wanted)
            kind = KINDS[name]
            roles = [given] if given else self._free_roles(kind, at_ms)
            if roles:
                self._waiting.remove(wanted)
                return self._schedule(name, self._random.choice(roles), at_ms)
        return None

    def _schedule(self, name: str, role: Role, at_ms: int) -> Scheduled:
        kind, random = KINDS[name], self._random
        drawn_ms = int(random.randint(*kind.lasts_ms) * self._scale)
        lasts_ms = min(max(drawn_ms, _SHORTEST_MS), self._end_ms - at_ms)
        if kind.takes_away:
            for group in self._groups(role):
                back_ms = at_ms + lasts_ms + int(BACK_MS * self._scale)
                self._busy_until_ms[group] = max(self._busy_until_ms[group], back_ms)
        parameters = {key: random.choice(choices) for key, choices in kind.choices.items()}
        return Scheduled(
            at_ms=at_ms,
            lasts_ms=lasts_ms,
            fault=Fault(kind=name, role=role, parameters=parameters),
        )

    def _free_roles(self, kind: FaultKind, at_ms: int) -> list[Role]:
        def is_free(role: Role) -> bool:
            return all(self._busy_until_ms[group] <= at_ms for group in self._groups(role))

        return [role for role in kind.roles if not kind.takes_away or is_free(role)]

    def _groups(self, role: Role) -> tuple[str, ...]:
        groups = _TAKEN_FROM[role]
        is_one_group = self._combined and "zookeepers" not in groups
        return ("voters", "brokers") if is_one_group else groups

    def _after(self, scheduled: Scheduled) -> int:
        """When the next one may begin: while this one lasts, or a while after it."""
        random, lasts_ms = self._random, scheduled.lasts_ms
        if random.random() < _OVERLAPS:
            return scheduled.at_ms + random.randint(lasts_ms // 4, lasts_ms // 2)
        return scheduled.at_ms + lasts_ms + int(random.randint(300, 1_500) * self._scale)
