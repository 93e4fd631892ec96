"""Replicas back to back on virtual time: a small deterministic stand-in for network and disk.

Messages take 1 ms, syncs take 1 ms, nothing is random but what the replicas draw from their own
seeded generators. Tests cut links, hold disks and crash replicas by hand. The simulator proper is
`jepsen_like.sim`; this one is small enough to read beside a test.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from quorum.config import QuorumConfig
from quorum.effects import (
    Append,
    Durability,
    Effect,
    EpochStart,
    Event,
    Failure,
    LogState,
    Read,
    ReadDone,
    Reply,
    Request,
    RequestFailed,
    Response,
    SaveElection,
    Send,
    Stop,
    Stored,
    Token,
    Trace,
    Truncate,
)
from quorum.raft import RaftNode
from quorum.roles import Leader
from quorum.storage import METADATA_LOG
from quorum.types import ElectionState, Endpoint, ReplicaKey
from quorum.voters import Voter, VoterSet
from wire.batch import headers

CLUSTER_ID = "clusterclustercluster1"
LATENCY_MS = 1
SYNC_MS = 1


def endpoint(node_id: int) -> Endpoint:
    return Endpoint(node_id, f"node-{node_id}", 9000 + node_id)


def voter_set(ids: Iterable[int]) -> VoterSet:
    return VoterSet.of(Voter(ReplicaKey(node_id), endpoint(node_id)) for node_id in ids)


def config(node_id: int, voters: Iterable[int] = (1, 2, 3), **settings: object) -> QuorumConfig:
    plain = {"directory_id": UUID(int=1000 + node_id), "cluster_id": CLUSTER_ID}
    return QuorumConfig(
        node_id=node_id,
        voters=voter_set(voters),
        **(plain | settings),  # type: ignore[arg-type] # named by the test
    )


@dataclass
class Disk:
    """Batches and the election as written, and as they would be found after a power failure."""

    batches: list[bytes] = field(default_factory=list)
    election: ElectionState = field(default_factory=ElectionState)
    durable: tuple[tuple[bytes, ...], ElectionState] = field(
        default_factory=lambda: ((), ElectionState())
    )
    unsynced: list[tuple[Token, tuple[tuple[bytes, ...], ElectionState]]] = field(
        default_factory=list
    )
    is_held: bool = False

    def write(self, effect: Append | Truncate | SaveElection) -> bool:
        """Does the effect wait for a sync?"""
        match effect:
            case Append(records=records):
                self.batches += [
                    records[at : at + header.size_bytes] for at, header in headers(records)
                ]
            case Truncate(end_offset=end):
                self.batches = [b for b in self.batches if first_header(b).base_offset < end]
            case SaveElection(election=election):
                self.election = election
        if not isinstance(effect, SaveElection) and effect.durability is Durability.WRITTEN:
            return False
        self.unsynced.append((effect.token, (tuple(self.batches), self.election)))
        return True

    def sync(self) -> Token | None:
        if self.is_held or not self.unsynced:
            return None
        token, self.durable = self.unsynced[-1]
        self.unsynced.clear()
        return token

    def read(self, effect: Read) -> bytes:
        found: list[bytes] = []
        size = 0
        for batch in self.batches:
            header = first_header(batch)
            if header.next_offset <= effect.start_offset or header.next_offset > effect.end_offset:
                continue
            if found and size + len(batch) > effect.bytes_max:
                break
            found.append(batch)
            size += len(batch)
        return b"".join(found)

    def lose_power(self) -> None:
        self.batches, self.election = list(self.durable[0]), self.durable[1]
        self.unsynced.clear()

    def recovered(self) -> LogState:
        epochs: list[EpochStart] = []
        found = [first_header(batch) for batch in self.batches]
        for header in found:
            if not epochs or epochs[-1].epoch != header.leader_epoch:
                epochs.append(EpochStart(header.leader_epoch, header.base_offset))
        return LogState(
            log=METADATA_LOG,
            end_offset=found[-1].next_offset if found else 0,
            last_epoch=found[-1].leader_epoch if found else -1,
            epochs=tuple(epochs),
        )


def first_header(batch: bytes):  # type: ignore[no-untyped-def] # a BatchHeader
    return next(header for _, header in headers(batch))


class Replicas:
    """A cluster of replicas; node ids below 10 vote unless `voters` says otherwise."""

    def __init__(
        self,
        ids: Iterable[int] = (1, 2, 3),
        *,
        voters: Iterable[int] | None = None,
        seed: int = 0,
        build: Callable[[RaftNode], object] = lambda node: node,
        **settings: object,
    ) -> None:
        self.ids = tuple(ids)
        self.voters = tuple(voters) if voters is not None else self.ids
        self.seed = seed
        self.settings = settings
        self.build = build
        self.now_ms = 0
        self.disks = {node_id: Disk() for node_id in self.ids}
        self.nodes: dict[int, RaftNode] = {}
        self.cores: dict[int, object] = {}
        self.cut: set[tuple[int, int]] = set()  # (from, to)
        self.stopped: dict[int, Stop] = {}
        self.traces: list[tuple[int, Trace]] = []
        self.sent: list[tuple[int, Send]] = []
        self.lives = dict.fromkeys(self.ids, 0)
        self._events: list[tuple[int, int, int, int, Event | None]] = []
        self._sequence = 0
        self._requests: dict[int, tuple[int, int, Token]] = {}  # server's token: who asked
        self._asked: dict[int, object] = {}
        for node_id in self.ids:
            self.start(node_id)

    # --- life ---------------------------------------------------------------------------------

    def start(self, node_id: int) -> RaftNode:
        disk = self.disks[node_id]
        self.lives[node_id] += 1
        random = Random(f"{self.seed} {node_id} {self.lives[node_id]}")
        node = RaftNode(
            config(node_id, self.voters, **self.settings),
            disk.recovered(),
            disk.election,
            random,
            self.now_ms,
        )
        self.nodes[node_id] = node
        self.cores[node_id] = self.build(node)
        self._carry_out(node_id)
        return node

    def crash(self, node_id: int) -> None:
        """Lose power: what was not synced is gone, and so is everything on its way."""
        del self.nodes[node_id], self.cores[node_id]
        self.disks[node_id].lose_power()
        self._events = [event for event in self._events if event[2] != node_id]
        heapq.heapify(self._events)

    def isolate(self, node_id: int) -> None:
        for other in self.ids:
            self.cut |= {(node_id, other), (other, node_id)}

    def heal(self) -> None:
        self.cut.clear()

    # --- time ---------------------------------------------------------------------------------

    def run(self, duration_ms: int) -> None:
        self.run_until(lambda: False, duration_ms)

    def run_until(self, is_done: Callable[[], bool], within_ms: int = 20_000) -> bool:
        end_ms = self.now_ms + within_ms
        while not is_done():
            next_ms = min(
                [end_ms, *(at for at, *_ in self._events[:1]), *self._deadlines()], default=end_ms
            )
            self.now_ms = max(self.now_ms, next_ms)
            if self.now_ms >= end_ms:
                return False
            self._step()
        return True

    def _deadlines(self) -> list[int]:
        due = [core.deadline_ms() for core in self.cores.values()]  # type: ignore[attr-defined]
        return [at_ms for at_ms in due if at_ms is not None]

    def _step(self) -> None:
        while self._events and self._events[0][0] <= self.now_ms:
            _, _, node_id, life, event = heapq.heappop(self._events)
            if node_id not in self.cores or self.lives[node_id] != life:
                continue
            if event is None:
                token = self.disks[node_id].sync()
                event = None if token is None else Stored(log=METADATA_LOG, token=token)
            if event is not None:
                self.cores[node_id].receive(event, self.now_ms)  # type: ignore[attr-defined]
                self._carry_out(node_id)
        for node_id, core in list(self.cores.items()):
            deadline_ms = core.deadline_ms()  # type: ignore[attr-defined]
            if deadline_ms is not None and deadline_ms <= self.now_ms:
                core.tick(self.now_ms)  # type: ignore[attr-defined]
                self._carry_out(node_id)
                after = core.deadline_ms()  # type: ignore[attr-defined]
                assert after is None or after > self.now_ms, f"busy loop at {after}: {core}"

    def deliver(self, node_id: int, event: Event) -> list[Effect]:
        """Hand an event to a replica and return its effects, without carrying them out."""
        self.cores[node_id].receive(event, self.now_ms)  # type: ignore[attr-defined]
        effects: list[Effect] = self.cores[node_id].take_effects()  # type: ignore[attr-defined]
        return effects

    # --- effects ------------------------------------------------------------------------------

    def settle(self, node_id: int) -> None:
        """Carry out what a replica wants after it was called directly."""
        self._carry_out(node_id)

    def sync(self, node_id: int) -> None:
        """Let go of a held disk."""
        self.disks[node_id].is_held = False
        self._later(SYNC_MS, node_id, None)

    def _carry_out(self, node_id: int) -> None:
        for effect in self.cores[node_id].take_effects():  # type: ignore[attr-defined]
            match effect:
                case Append() | Truncate() | SaveElection():
                    if self.disks[node_id].write(effect):
                        self._later(SYNC_MS, node_id, None)
                case Read():
                    records = self.disks[node_id].read(effect)
                    done = ReadDone(token=effect.token, log=effect.log, records=records)
                    self._later(0, node_id, done)
                case Send():
                    self._send(node_id, effect)
                case Reply():
                    self._reply(node_id, effect)
                case Stop():
                    self.stopped[node_id] = effect
                case Trace():
                    self.traces.append((node_id, effect))
                case _:
                    raise AssertionError(effect)
        if node_id in self.stopped and node_id in self.nodes:
            del self.nodes[node_id], self.cores[node_id]

    def _later(self, delay_ms: int, node_id: int, event: Event | None) -> None:
        self._sequence += 1
        heapq.heappush(
            self._events,
            (self.now_ms + delay_ms, self._sequence, node_id, self.lives[node_id], event),
        )

    def _send(self, source: int, send: Send) -> None:
        self.sent.append((source, send))
        target = send.to.port - 9000
        if target not in self.cores:
            failed = RequestFailed(token=send.token, failure=Failure.DISCONNECTED)
            self._later(LATENCY_MS, source, failed)
            return
        failed = RequestFailed(token=send.token, failure=Failure.TIMED_OUT)
        self._sequence += 1
        self._requests[self._sequence] = (source, target, send.token)
        request = Request(token=self._sequence, body=send.body, listener="CONTROLLER")
        if (source, target) not in self.cut:
            self._later(LATENCY_MS, target, request)
        self._later(send.timeout_ms, source, failed)  # unknown by then unless it is needed

    def _reply(self, source: int, reply: Reply) -> None:
        if reply.token not in self._requests:
            self._asked[reply.token] = reply.body
            return
        asker, target, token = self._requests.pop(reply.token)
        assert target == source, (target, source)
        if (source, asker) not in self.cut and asker in self.cores:
            self._later(LATENCY_MS, asker, Response(token=token, body=reply.body))

    # --- questions ----------------------------------------------------------------------------

    def ask(self, node_id: int, body: object) -> object:
        """Ask a replica something from outside and wait for the answer."""
        self._sequence += 1
        token = self._sequence
        self._later(0, node_id, Request(token=token, body=body, listener="CONTROLLER"))
        assert self.run_until(lambda: token in self._asked), f"no answer to {body}"
        return self._asked.pop(token)

    def leaders(self) -> list[int]:
        return [n for n, node in self.nodes.items() if isinstance(node.role, Leader)]

    def leader(self) -> RaftNode | None:
        """Whom all live replicas follow, once it has committed in its epoch."""
        views = {node.leader for node in self.nodes.values()}
        if len(views) != 1:
            return None
        node = self.nodes.get(views.pop().leader_id or 0)
        return node if node is not None and node.high_watermark is not None else None

    def elect(self) -> RaftNode:
        assert self.run_until(lambda: self.leader() is not None), self.describe()
        node = self.leader()
        assert node is not None
        return node

    def append(self, node: RaftNode, batch: bytes) -> int:
        offset = node.append(batch, self.now_ms)
        self._carry_out(node.node_id)
        return offset

    def records(self, node_id: int) -> bytes:
        return b"".join(self.disks[node_id].batches)

    def describe(self) -> str:
        return "\n".join(node.describe() for node in self.nodes.values())


__all__ = ["CLUSTER_ID", "Disk", "Replicas", "config", "endpoint", "voter_set"]
