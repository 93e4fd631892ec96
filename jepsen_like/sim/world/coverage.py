"""Coverage: counts the transitions, the messages by role and the trace events of runs.

A rule about an event that never happened in any run has not been tested.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer, ReplicaOf
from quorum.core.effects import Effect, Event, Request, Response, Trace
from quorum.raft.roles import ALLOWED
from wire.canonical import canonical_class

__all__ = ["MEETINGS", "TRANSITIONS", "Coverage"]

_ROLE = "role"  # the trace of a transition
_ROLES = [role.__name__.lower() for role in ALLOWED]
_APIS = ("begin_quorum_epoch", "end_quorum_epoch", "fetch", "fetch_snapshot", "vote")
_MESSAGES = tuple(canonical_class(api, kind) for api in _APIS for kind in ("request", "response"))

# All that there can be, as `previous -> role`.
TRANSITIONS = tuple(
    sorted(
        f"{before.__name__.lower()} -> {after.__name__.lower()}"
        for before, possible in ALLOWED.items()
        for after in possible
    )
)
# Each role and each message between replicas, as `role < message`.
MEETINGS = tuple(f"{role} < {message.__name__}" for role in sorted(_ROLES) for message in _MESSAGES)


@dataclass(slots=True)
class Coverage(Observer):
    """Watches runs as a tracer does, and writes nothing."""

    received_kinds = _MESSAGES
    performing_kinds = (Trace,)

    transitions: Counter[str] = field(default_factory=Counter)
    traces: Counter[str] = field(default_factory=Counter)
    meetings: Counter[str] = field(default_factory=Counter)
    _replica_of: ReplicaOf | None = None  # of the present run

    def attach(self, world: VirtualTime, replica_of: ReplicaOf) -> None:
        self._replica_of = replica_of

    def detach(self) -> None:
        """The runs are over: what is left can be sent to another process."""
        self._replica_of = None

    def never_seen(self) -> Iterator[str]:
        return (each for each in TRANSITIONS if not self.transitions[each])

    def never_met(self) -> Iterator[str]:
        return (each for each in MEETINGS if not self.meetings[each])

    def add(self, other: "Coverage") -> None:
        self.transitions.update(other.transitions)
        self.traces.update(other.traces)
        self.meetings.update(other.meetings)

    def received(self, host: Host, event: Event) -> None:
        if isinstance(event, Request | Response) and isinstance(event.body, _MESSAGES):
            assert self._replica_of is not None, "not attached"
            role = self._replica_of(host).role_name
            self.meetings[f"{role} < {type(event.body).__name__}"] += 1

    def performing(self, host: Host, effect: Effect) -> None:
        if not isinstance(effect, Trace):
            return
        self.traces[effect.event] += 1
        if effect.event == _ROLE:
            fields = dict(effect.fields)
            self.transitions[f"{fields['previous']} -> {fields['role']}"] += 1
