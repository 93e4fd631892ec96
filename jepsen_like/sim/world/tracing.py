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

from collections.abc import Callable, Sequence

from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer, ReplicaOf
from jepsen_like.sim.world.traced_messages import describe_body
from quorum.core.effects import (
    Append,
    Effect,
    Event,
    Read,
    ReadDone,
    Reply,
    Request,
    RequestFailed,
    Response,
    SaveElection,
    Send,
    Stop,
    StorageFailed,
    Stored,
    Trace,
    Truncate,
)
from quorum.core.storage import METADATA_LOG

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
        self._events.append(_describe_event(event))

    def performing(self, host: Host, effect: Effect) -> None:
        if self._full:
            self._effects.append(_describe_effect(effect))

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


def _describe_event(event: Event) -> str:
    match event:
        case Request(body=body):
            return f"asked {describe_body(body)}"
        case Response(token=token, body=body):
            return f"answer to {token.number}: {describe_body(body)}"
        case RequestFailed(token=token, failure=failure):
            return f"no answer to {token.number}: {failure.value}"
        case Stored(token=token):
            return f"stored up to {token.number}"
        case StorageFailed(reason=reason):
            return f"storage failed: {reason}"
        case ReadDone(token=token, records=records):
            return f"read {token.number}: {len(records)} bytes"
        case _:
            return type(event).__name__


def _describe_effect(effect: Effect) -> str:
    match effect:
        case Send(token=token, to=to, body=body):
            return f"send {token.number} to {to.node_id}: {describe_body(body)}"
        case Reply(body=body):
            return f"reply {describe_body(body)}"
        case Append(token=token, records=records, durability=durability):
            return f"append {token.number}: {len(records)} bytes, {durability.value}"
        case Truncate(token=token, end_offset=end_offset):
            return f"truncate {token.number} to {end_offset}"
        case SaveElection(token=token, election=election):
            voted = "-" if election.voted is None else election.voted.id
            leader = _or_dash(election.leader_id)
            return f"save {token.number}: epoch {election.epoch} leader {leader} voted {voted}"
        case Read(token=token, start_offset=start_offset, end_offset=end_offset):
            return f"read {token.number}: {start_offset} to {end_offset}"
        case Trace(event=event, fields=fields):
            return " ".join([event, *(f"{name}={value}" for name, value in fields)])
        case Stop(reason=reason):
            return f"stop: {reason}"
        case _:
            return type(effect).__name__
