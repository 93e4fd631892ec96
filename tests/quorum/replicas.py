"""Replicas back to back on virtual time: a small deterministic stand-in for network and disk.

Messages take 1 ms, syncs take 1 ms, nothing is random but what the replicas draw from their own
seeded generators. Tests cut links, hold disks and crash replicas by hand. The simulator proper is
`jepsen_like.sim`; this one is small enough to read beside a test.
"""

import heapq
from collections.abc import Callable, Iterable
from random import Random
from uuid import UUID

from quorum.core.effects import (
    Append,
    Effect,
    Event,
    Failure,
    Read,
    ReadDone,
    ReadSnapshot,
    ReceiveSnapshot,
    Reply,
    Request,
    RequestFailed,
    ResetLog,
    Response,
    SaveElection,
    SaveSnapshot,
    Send,
    SnapshotFile,
    Stop,
    Stored,
    Token,
    Trace,
    Trim,
    Truncate,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.log.snapshots import snapshot_head
from quorum.raft.config import QuorumConfig
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader
from quorum.raft.voter_history import Membership
from quorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Voter, VoterSet
from tests.quorum.disks import Disk
from wire.batch import assign
from wire.control_records import VoterEndpoint

CLUSTER_ID = "clusterclustercluster1"
LATENCY_MS = 1
SYNC_MS = 1
TICKS_MAX = 8  # in a row, without time: a core may deliver much in pieces


def endpoint(node_id: int) -> Endpoint:
    return Endpoint(node_id, f"node-{node_id}", 9000 + node_id)


def voter_set(ids: Iterable[int]) -> VoterSet:
    return VoterSet.of(Voter(ReplicaKey(node_id), endpoint(node_id)) for node_id in ids)


def listeners(node_id: int) -> tuple[VoterEndpoint, ...]:
    at = endpoint(node_id)
    return (VoterEndpoint(name="CONTROLLER", host=at.host, port=at.port),)


def replica_key(node_id: int, disk: int = 0) -> ReplicaKey:
    """The key of a replica on its first disk, or on a later one."""
    return ReplicaKey(node_id, UUID(int=1000 + node_id + 100 * disk))


def dynamic_voter(node_id: int) -> Voter:
    """As a voters' record has it."""
    at = endpoint(node_id)
    return Voter(replica_key(node_id), at, listeners(node_id), SUPPORTED_KRAFT_VERSIONS)


def bootstrap_snapshot(voter_ids: Iterable[int]) -> SnapshotFile:
    """What `format --initial-controllers` leaves."""
    voters = VoterSet.of(map(dynamic_voter, voter_ids))
    head = snapshot_head(0, Membership(voters=voters, kraft_version=1).head_records())
    placed = assign(head, base_offset=0, leader_epoch=0)
    return SnapshotFile(id=OffsetAndEpoch(0, 0), size_bytes=len(placed), head=placed)


def config(node_id: int, voters: Iterable[int] = (1, 2, 3), **settings: object) -> QuorumConfig:
    plain = {"directory_id": UUID(int=1000 + node_id), "cluster_id": CLUSTER_ID}
    return QuorumConfig(
        node_id=node_id,
        voters=voter_set(voters),
        **(plain | settings),  # type: ignore[arg-type] # named by the test
    )


class Replicas:
    """A cluster of replicas, which all vote unless `voters` says otherwise.

    With `initial` the voters are in the log (kraft.version 1), and these are the first: their disks
    were formatted with them, the others' were not.
    """

    def __init__(
        self,
        ids: Iterable[int] = (1, 2, 3),
        *,
        voters: Iterable[int] | None = None,
        initial: Iterable[int] = (),
        seed: int = 0,
        engine: type[RaftNode] = RaftNode,
        build: Callable[[RaftNode], object] = lambda node: node,
        now_ms: int = 0,
        **settings: object,
    ) -> None:
        self.ids = tuple(ids)
        self.voters = tuple(voters) if voters is not None else self.ids
        self.initial = tuple(initial)
        self.seed = seed
        self.settings = settings
        self.engine = engine
        self.build = build
        self.now_ms = now_ms
        self.disks = {node_id: Disk() for node_id in self.ids}
        self.nodes: dict[int, RaftNode] = {}
        self.cores: dict[int, object] = {}
        self.cut: set[tuple[int, int]] = set()  # (from, to)
        self.stopped: dict[int, Stop] = {}
        self.traces: list[tuple[int, Trace]] = []
        self.sent: list[tuple[int, Send]] = []
        self.reads: list[tuple[int, Read]] = []
        self.lives = dict.fromkeys(self.ids, 0)
        self._events: list[tuple[int, int, int, int, Event | None]] = []
        self._sequence = 0
        self._requests: dict[int, tuple[int, int, Token]] = {}  # server's token: who asked
        self._asked: dict[int, Callable[[object], None]] = {}
        for node_id in self.initial:
            self.disks[node_id].snapshots = (bootstrap_snapshot(self.initial),)
        for node_id in self.ids:
            self.start(node_id)

    # --- life ---------------------------------------------------------------------------------

    def start(self, node_id: int) -> RaftNode:
        disk = self.disks[node_id]
        self.lives[node_id] += 1
        random = Random(f"{self.seed} {node_id} {self.lives[node_id]}")
        node = self.engine(
            self._config(node_id),
            disk.recovered(),
            disk.election,
            random,
            self.now_ms,
        )
        self.nodes[node_id] = node
        self.cores[node_id] = self.build(node)
        self._carry_out(node_id)
        return node

    def _config(self, node_id: int) -> QuorumConfig:
        if not self.initial:
            return config(node_id, self.voters, **self.settings)
        known = {
            "directory_id": replica_key(node_id, self.disks[node_id].number).directory_id,
            "listeners": listeners(node_id),
            "bootstrap_servers": tuple(
                Endpoint(-2 - index, endpoint(other).host, endpoint(other).port)
                for index, other in enumerate(self.ids)
            ),
        }
        return config(node_id, (), **known, **self.settings)

    def wipe(self, node_id: int) -> None:
        """Lose the disk; the new one is formatted as that of a node that joins."""
        self.crash(node_id)
        self.disks[node_id] = Disk(number=self.disks[node_id].number + 1)
        self.start(node_id)

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
                self.cores[node_id].settle(self.now_ms)  # type: ignore[attr-defined]
                self._carry_out(node_id)
        for node_id, core in list(self.cores.items()):
            for _ in range(TICKS_MAX):
                deadline_ms = core.deadline_ms()  # type: ignore[attr-defined]
                if deadline_ms is None or deadline_ms > self.now_ms:
                    break
                core.settle(self.now_ms)  # type: ignore[attr-defined]
                self._carry_out(node_id)
            else:
                raise AssertionError(f"busy loop at {deadline_ms}: {core}")

    def deliver(self, node_id: int, event: Event) -> list[Effect]:
        """Hand an event to a replica and return its effects, without carrying them out."""
        self.cores[node_id].receive(event, self.now_ms)  # type: ignore[attr-defined]
        self.cores[node_id].settle(self.now_ms)  # type: ignore[attr-defined]
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
                case Send():
                    self._send(node_id, effect)
                case Reply():
                    self._reply(node_id, effect)
                case Stop():
                    self.stopped[node_id] = effect
                case Trace():
                    self.traces.append((node_id, effect))
                case _:
                    self._store(node_id, effect)
        if node_id in self.stopped and node_id in self.nodes:
            del self.nodes[node_id], self.cores[node_id]

    def _store(self, node_id: int, effect: Effect) -> None:
        disk = self.disks[node_id]
        match effect:
            case Append() | Truncate() | SaveElection() | ResetLog():
                if disk.write(effect):
                    self._later(SYNC_MS, node_id, None)
            case Read():
                self.reads.append((node_id, effect))
                done = ReadDone(token=effect.token, log=effect.log, records=disk.read(effect))
                self._later(0, node_id, done)
            case SaveSnapshot():
                self._later(SYNC_MS, node_id, disk.save(effect))
            case ReceiveSnapshot():
                event = disk.receive(effect)
                if event is not None:
                    self._later(SYNC_MS, node_id, event)
            case ReadSnapshot():
                self._later(0, node_id, disk.read_snapshot(effect))
            case Trim():
                self._later(0, node_id, disk.trim(effect))
            case _:
                raise AssertionError(effect)

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
        if reply.token in self._asked:
            self._asked.pop(reply.token)(reply.body)
            return
        asker, target, token = self._requests.pop(reply.token)
        assert target == source, (target, source)
        if (source, asker) not in self.cut and asker in self.cores:
            self._later(LATENCY_MS, asker, Response(token=token, body=reply.body))

    # --- questions ----------------------------------------------------------------------------

    def ask(self, node_id: int, body: object) -> object:
        """Ask a replica something from outside and wait for the answer."""
        answers: list[object] = []
        self.later_ask(node_id, body, answers.append)
        assert self.run_until(lambda: bool(answers)), f"no answer to {body}"
        return answers[0]

    def later_ask(self, node_id: int, body: object, answered: Callable[[object], None]) -> None:
        """Ask from outside; `answered` gets the answer, if one comes."""
        self._sequence += 1
        self._asked[self._sequence] = answered
        request = Request(token=self._sequence, body=body, listener="CONTROLLER")
        self._later(0, node_id, request)

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


__all__ = [
    "CLUSTER_ID",
    "Disk",
    "Replicas",
    "bootstrap_snapshot",
    "config",
    "dynamic_voter",
    "endpoint",
    "listeners",
    "replica_key",
    "voter_set",
]
