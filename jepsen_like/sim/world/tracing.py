"""The trace of a run, one line for each turn of a core, in fixed columns.

    event      number of the event in the run: what --until-event counts
    t_ms       virtual time
    node       whose core had the turn
    role       its role afterwards
    epoch      its epoch, and the leader it knows (- for none)
    hw         its high watermark (- while unknown)
    end        end of its log as written
    synced     end of its log as durable on its disk
    what       the first event of the turn, or tick; under `full` the others, each as a line
               `< event`, and its effects, each as a line `> effect`

The columns are documented in docs/testing.md.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from uuid import UUID

from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer, ReplicaOf
from quorum.core.effects import Effect, Event, Trace
from quorum.core.storage import METADATA_LOG
from wire.message import Value, fields_of

__all__ = ["HEADING", "Tracer"]

HEADING = " event      t_ms node role        epoch leader     hw    end synced what"


class Tracer(Observer):
    """Writes lines as the run goes on. Without `full` only those of turns that changed a node."""

    def __init__(self, write: Callable[[str], None], *, full: bool) -> None:
        self._write = write
        self._full = full
        self._world: VirtualTime | None = None
        self._replica_of: ReplicaOf
        self._events: list[str] = ["start"]  # of the turn, in order
        self._effects: list[str] = []
        self._before: dict[int, tuple[object, ...]] = {}

    def attach(self, world: VirtualTime, replica_of: ReplicaOf) -> None:
        self._world, self._replica_of = world, replica_of
        self._write(HEADING)

    def received(self, host: Host, event: Event) -> None:
        self._events.append(_described(event))

    def performing(self, host: Host, effect: Effect) -> None:
        if self._full:
            self._effects.append(_described(effect))

    def settled(self, host: Host, effects: list[Effect]) -> None:
        assert self._world is not None
        replica = self._replica_of(host)
        leader = replica.leader
        state = (replica.role_name, leader.epoch, leader.leader_id, replica.high_watermark)
        if self._full or self._before.get(host.node_id) != state:
            self._before[host.node_id] = state
            log = host.disk.log(METADATA_LOG)
            self._write(
                f"{self._world.events_done:6} {self._world.now_us / 1000:9.3f} {host.node_id:4}"
                f" {replica.role_name:11} {leader.epoch:5} {_or_dash(leader.leader_id):>6}"
                f" {_or_dash(replica.high_watermark):>6} {log.written.end_offset:6}"
                f" {log.durable.end_offset:6} {self._events[0] if self._events else 'tick'}"
            )
            if self._full:
                self._list("<", self._events[1:])
                self._list(">", self._effects)
        self._events.clear()
        self._effects.clear()

    def _list(self, mark: str, lines: Sequence[str]) -> None:
        for line in lines:
            self._write(f"{'':68}{mark} {line}")


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _described(value: Value) -> str:
    """What it is, and what it says beside the defaults; of several parts, what the first says."""
    if isinstance(value, Trace):
        return " ".join([value.event, *(f"{name}={told}" for name, told in value.fields)])
    return " ".join([type(value).__name__, *_said_in(value)])


def _said_in(value: Value) -> Iterator[str]:
    for name, field in fields_of(type(value)).items():
        told = getattr(value, name)
        first = told[0] if isinstance(told, tuple) and told else told
        if told is None or told == field.default or isinstance(told, UUID):
            continue
        if isinstance(first, Value):
            yield _described(first) if name == "body" else " ".join(_said_in(first))
        elif isinstance(told, bytes):
            yield f"{name}={len(told)} bytes"
        else:
            yield f"{name}={told.name if isinstance(told, Enum) else told}"
