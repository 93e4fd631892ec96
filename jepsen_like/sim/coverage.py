"""Which transitions and trace events runs went through: what never happened proves nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from jepsen_like.sim.host import Host
from jepsen_like.sim.quorum.replicas import RunningReplica
from jepsen_like.sim.world import World
from quorum.core.effects import Effect, Event, Trace
from quorum.raft.roles import ALLOWED

__all__ = ["TRANSITIONS", "Coverage"]

_ROLE = "role"  # the trace of a transition

# All that there can be, as `previous -> role`.
TRANSITIONS = tuple(
    sorted(
        f"{before.__name__.lower()} -> {after.__name__.lower()}"
        for before, possible in ALLOWED.items()
        for after in possible
    )
)


@dataclass(slots=True)
class Coverage:
    """Watches runs as a tracer does, and writes nothing."""

    transitions: Counter[str] = field(default_factory=Counter)
    traces: Counter[str] = field(default_factory=Counter)

    def never_seen(self) -> Iterator[str]:
        return (each for each in TRANSITIONS if not self.transitions[each])

    def add(self, other: "Coverage") -> None:
        self.transitions.update(other.transitions)
        self.traces.update(other.traces)

    def attach(self, world: World) -> None:
        """A run begins."""

    def received(self, host: Host, event: Event) -> None:
        """What comes in says nothing of what is done with it."""

    def performing(self, host: Host, effect: Effect) -> None:
        if not isinstance(effect, Trace):
            return
        self.traces[effect.event] += 1
        if effect.event == _ROLE:
            fields = dict(effect.fields)
            self.transitions[f"{fields['previous']} -> {fields['role']}"] += 1

    def settled(self, host: Host, replica: RunningReplica) -> None:
        """The state is looked at by others."""
