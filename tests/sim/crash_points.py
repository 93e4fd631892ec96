"""Crash points: the moments at which a process of a simulated quorum may die; and a death at one.

A process changes the world by its effects and by the syncs of its disk alone. So whenever it dies,
it leaves what it would have left at one of these moments:

    given      its core is about to be given an event: a request, an answer, what the disk says
    write      an effect on its disk is about to be carried out
    begun      all that the turn wrote is written, and a sync of it is about to begin
    due        the sync is about to end: nothing of it is on the medium
    done       the medium has it, and nobody has been told
    tell       a message is about to leave
    settled    the turn is over, and all its effects are under way

`Death` is raised out of whatever runs the world. The catcher crashes the host; then the world can
be run on.
"""

from dataclasses import dataclass
from functools import partial

from jepsen_like.sim.assemblies.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect, Event, Told, Trace

__all__ = ["KINDS", "CrashPoint", "CrashPoints", "Death"]

KINDS = ("given", "write", "begun", "due", "done", "tell", "settled")


@dataclass(frozen=True, slots=True)
class CrashPoint:
    node: int  # whose process is at it
    kind: str  # one of `KINDS`
    what: str  # the type of the event or effect, if there is one


class Death(BaseException):
    """A process ends at `point`. A BaseException: no handler of errors may catch it."""

    def __init__(self, point: CrashPoint) -> None:
        super().__init__(point)
        self.point = point


class CrashPoints(Observer):
    """Counts the crash points of a quorum."""

    def __init__(self, dies_at: int | None = None) -> None:
        """`dies_at`: the number, from 0, of the crash point to die at; None: none."""
        self.passed: list[CrashPoint] = []
        self._dies_at = dies_at
        self._counts = False

    def begin(self, quorum: SimulatedQuorum) -> None:
        """Count from now on."""
        for host in quorum.hosts:
            host.disk.syncs_at = partial(self._pass, host)
        self._counts = True

    def end(self) -> None:
        self._counts = False

    def _pass(self, host: Host, kind: str, what: object = None) -> None:
        if not self._counts:
            return
        point = CrashPoint(host.node_id, kind, "" if what is None else type(what).__name__)
        self.passed.append(point)
        if len(self.passed) - 1 == self._dies_at:
            self.end()
            raise Death(point)

    # --- Observer -----------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        self._pass(host, "given", event)

    def performing(self, host: Host, effect: Effect) -> None:
        if not isinstance(effect, Trace):  # a trace changes nothing but logs
            self._pass(host, "tell" if isinstance(effect, Told) else "write", effect)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        self._pass(host, "settled")
