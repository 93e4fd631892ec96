"""Invariants of the turn: what a host does in one is what its core has asked for.

T-CTL   a turn gives its core failures of the disk first, then the control plane, then clients: none
        of a client while anything else waits. Where requests have no priority, all of them count
        as those of clients
T-ORD   a turn does everything that its core asks for, once, and in that order over all logs; what
        is told to others leaves when all the rest is done
T-WH    if a write of the turn fails at once, nothing is told: instead each message fails, or the
        connection of who waits for it is closed, once

What the core asked for is compared with what the host then did, and with what waits afterwards.
The order of events is judged by the shipped `is_control`, whatever has been planted in its place.
"""

from collections.abc import Sequence

from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect, Event, HangUp, Request, StorageFailed, Told
from quorum.core.inbox import is_control

__all__ = ["TurnInvariants"]

_FAILURE, _CONTROL, _CLIENT = range(3)  # in their order in a turn
_NAMES = ("a failure of the disk", "the control plane", "a client")


class TurnInvariants(Observer):
    """Watches all hosts of a world; raises `Violation`."""

    def __init__(self, *, prioritises: bool = True) -> None:
        self._prioritises = prioritises
        self._taken: dict[int, int] = {}  # by node: the kind of what its turn has taken last

    def started(self, host: Host) -> None:
        self._taken.pop(host.node_id, None)

    def received(self, host: Host, event: Event) -> None:
        kind, node = self._kind_of(event), host.node_id
        before = self._taken.get(node, _FAILURE)
        if kind < before:
            raise Violation("T-CTL", f"node {node} takes {_NAMES[before]} before {_NAMES[kind]}")
        if kind == _CLIENT and host.waiting.control:
            waiting = host.waiting.control[0]
            raise Violation("T-CTL", f"node {node} takes a client while {waiting} waits")
        self._taken[node] = kind

    def _kind_of(self, event: Event) -> int:
        if isinstance(event, Request):
            return _CONTROL if self._prioritises and is_control(event) else _CLIENT
        return _FAILURE if isinstance(event, StorageFailed) else _CONTROL

    def settled(self, host: Host, effects: list[Effect]) -> None:
        self._taken.pop(host.node_id, None)
        asked = host.asked_for
        if not (asked or effects) or not host.is_up:  # it may have died amid its turn
            return
        has_failed = bool(host.answers) and any(
            isinstance(answer, StorageFailed) for answer in host.answers
        )
        if len(asked) == 1 and effects == asked and not has_failed:
            return
        told = [each for each in asked if isinstance(each, Told)]
        done = [each for each in asked if not isinstance(each, Told)] if told else asked
        left = effects[len(done) :]
        if effects[: len(done)] != done or (left != told and not has_failed):
            raise Violation("T-ORD", f"node {host.node_id} is to do {asked}, and does {effects}")
        if has_failed:
            _look_at_what_is_withheld(host, told, left)


def _look_at_what_is_withheld(host: Host, told: Sequence[Told], left: Sequence[Effect]) -> None:
    node, waiting = host.node_id, host.waiting.control
    if not isinstance(waiting[0], StorageFailed):
        raise Violation("T-CTL", f"node {node} hears of {waiting[0]} before its disk's failure")
    for each in told:
        instead = each.withheld()
        count = [*waiting, *left].count(instead)
        if count != 1:
            raise Violation("T-WH", f"node {node} withholds {each}, which fails {count} times")
    for effect in left:
        if not isinstance(effect, HangUp):
            raise Violation("T-WH", f"node {node} tells {effect}, though a write has failed")
