"""Several nodes of one quorum, wired together on virtual time, and looked at after every event.

The shipped cores run on hosts with disks, clocks and a network between them; `invariants` watches.
Nothing happens here by itself: `jepsen_like.sim.quorum.simulation` injects faults drawn from a
seed, and scenario tests do what they say.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from struct import Struct

from jepsen_like.sim.codec import Codec
from jepsen_like.sim.counts import Counts
from jepsen_like.sim.disk import Disk
from jepsen_like.sim.host import Host, Watch
from jepsen_like.sim.logtree import Entry, LogTree
from jepsen_like.sim.network import Message, Network
from jepsen_like.sim.node_clock import Clock
from jepsen_like.sim.quorum.invariants import Invariants, Watcher
from jepsen_like.sim.quorum.options import Options
from jepsen_like.sim.quorum.quorum_view import written
from jepsen_like.sim.quorum.reader import Answer
from jepsen_like.sim.quorum.replicas import (
    SimulatedReplica,
    format_disk,
    start_replica,
    voters_at_start,
)
from jepsen_like.sim.unjudged import Tolerance, TolerantTree, Unjudged
from jepsen_like.sim.world import World
from quorum.core.effects import Core, Effect, Event
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, LeaderAndEpoch, OffsetAndEpoch

__all__ = ["SimulatedQuorum"]

_POLL_US = 2_000  # how often `reaches` looks
_FETCH_MS = 2  # a round trip and a sync of a healthy quorum: the least that a batch may take
_DIGEST = Struct(">qqqqqq")


class SimulatedQuorum:
    def __init__(
        self,
        world: World,
        options: Options,
        tracer: Watcher | None = None,
        *,
        is_judged: bool = True,
    ) -> None:
        """Not judged: invariants are looked at, and may break."""
        self.world = world
        self.options = options
        self.settled_too: Callable[[Host, list[Effect]], None] = lambda _host, _effects: None
        self.delivers_elsewhere: Callable[[Message], None] = lambda _message: None
        self.proposed: Callable[[Host, list[bytes], int], None] = lambda _host, _values, _end: None
        self.applied: Callable[[Host, bytes], None] = lambda _host, _batches: None
        self.loaded: Callable[[Host, bytes], None] = lambda _host, _digest: None
        self.asks: Callable[[Host], Answer] = lambda _host: lambda _applied_offset: None
        self.proposes = True
        self.counts = Counts()
        self.replicas: dict[int, SimulatedReplica] = {}
        self._tracer = tracer
        if tracer is not None:
            tracer.attach(self.world)
        self._digest = blake2b(digest_size=8)
        self.tolerance = tolerance = Tolerance()
        self._watch: Watch = self if is_judged else Unjudged(self, tolerance)
        self._judging: AbstractContextManager[object] = nullcontext() if is_judged else tolerance
        self._tree = LogTree() if is_judged else TolerantTree(tolerance)
        self.invariants = Invariants(
            world=self.world,
            voters=voters_at_start(self.options).keys,
            check_quorum_us=_unheard_us(self.options),
        )
        self.network = Network(
            world=self.world,
            random=self.world.fork("network"),
            counts=self.counts,
            faults=self.options.links,
            deliver=self._deliver,
        )
        codec = None
        if self.options.codecs:
            codec = Codec(self.world.fork("codec"), self.options.kraft_version)
        nodes = range(1, self.options.voters + self.options.observers + 1)
        self.hosts = [self._host(node_id, codec) for node_id in nodes]
        for host in self.hosts:
            host.must_not_stop = is_judged

    def _host(self, node_id: int, codec: Codec | None) -> Host:
        disk = Disk(
            world=self.world,
            random=self.world.fork(f"disk/{node_id}"),
            counts=self.counts,
            faults=self.options.disks,
            tree_of=lambda _log, _topic_id: self._tree,
        )
        disk.saved = lambda _log, election: self._saved(node_id, election)
        return Host(
            node_id=node_id,
            world=self.world,
            network=self.network,
            disk=disk,
            clock=self._clock(node_id),
            codec=codec,
            counts=self.counts,
            watch=self._watch,
            start_core=self._start_core,
            turns_us=self.options.turns_us,
        )

    def _clock(self, node_id: int) -> Clock:
        random = self.world.fork(f"clock/{node_id}")
        drift_ppm = random.randint(-self.options.drift_ppm_max, self.options.drift_ppm_max)
        if drift_ppm:
            self.counts.fired("skewed")
        return Clock(offset_ms=random.randrange(600_000), drift_ppm=drift_ppm)

    def _start_core(self, host: Host) -> Core:
        replica = start_replica(
            host=host,
            options=self.options,
            world=self.world,
            applies=self._applies,
            loads=self._loads,
            asks=self._asks,
            proposes=lambda host, values, last: self.proposed(host, values, last),
        )
        replica.application.proposes = self.proposes
        self.replicas[host.node_id] = replica
        with self._judging:
            self.invariants.started(host, replica)
        return replica.member

    def _saved(self, node_id: int, election: ElectionState) -> None:
        with self._judging:
            self.invariants.saved(node_id, election)

    def _applies(self, host: Host, batches: bytes, next_offset: int) -> None:
        self.applied(host, batches)
        with self._judging:
            self.invariants.applies(host, batches, next_offset)

    def _loads(self, host: Host, end: OffsetAndEpoch, digest: bytes) -> None:
        self.counts.fired("snapshot_loaded")
        self.loaded(host, digest)
        with self._judging:
            self.invariants.loads(host, end, digest)

    def _asks(self, host: Host) -> Answer:
        asked_offset = self.invariants.committed_offset
        answer = self.asks(host)

        def answered(applied_offset: int) -> None:
            answer(applied_offset)
            with self._judging:
                self.invariants.answers_read(host, asked_offset, applied_offset)

        return answered

    def _deliver(self, message: Message) -> None:
        if message.target > 0:
            self.hosts[message.target - 1].deliver(message)
        else:
            self.delivers_elsewhere(message)

    # --- Watch --------------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        self.invariants.received(host, event)
        if self._tracer is not None:
            self._tracer.received(host, event)

    def performing(self, host: Host, effect: Effect) -> None:
        if self._tracer is not None:
            self._tracer.performing(host, effect)
        self.invariants.performing(host, effect)

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        self.invariants.replying(host, token, request, response)

    def counted(self, host: Host) -> None:
        self.invariants.counted(host)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        replica = self.replicas[host.node_id]
        leader, high_watermark = replica.leader, replica.high_watermark
        self._digest.update(
            _DIGEST.pack(
                self.world.now_us,
                host.node_id << 32 | len(effects),
                leader.epoch,
                -1 if leader.leader_id is None else leader.leader_id,
                -1 if high_watermark is None else high_watermark,
                replica.end_offset,
            )
        )
        if self._tracer is not None:
            self._tracer.settled(host, replica)
        self.invariants.settled(host, effects)
        self.settled_too(host, effects)

    # --- doing --------------------------------------------------------------------------

    def start(self) -> None:
        """Format the disks and run a process on each."""
        for host in self.hosts:
            format_disk(host, self.options)
            host.start()

    def stop_proposing(self) -> None:
        self._let_propose(False)

    def resume_proposing(self) -> None:
        self._let_propose(True)

    def _let_propose(self, proposes: bool) -> None:
        self.proposes = proposes
        for replica in self.replicas.values():
            replica.application.proposes = proposes

    def propose(self) -> None:
        """One batch, by the leader that everybody knows."""
        leader = self.leader()
        assert leader is not None, self.summary()
        assert leader.leader_id is not None, leader
        self.hosts[leader.leader_id - 1].command(self.replicas[leader.leader_id].propose)

    @property
    def digest(self) -> str:
        """Of all that has happened."""
        return self._digest.hexdigest()

    # --- looking ------------------------------------------------------------------------

    def reaches(self, condition: Callable[[], bool], bound_ms: int, events_max: int) -> bool:
        """Does it come to hold within the bound?"""
        end_us = self.world.now_us + bound_ms * 1000
        while not condition():
            if self.world.now_us >= end_us:
                return False
            self.world.run_until(min(end_us, self.world.now_us + _POLL_US), events_max=events_max)
        return True

    def leader(self) -> LeaderAndEpoch | None:
        """The leader whom every node knows, and who is ready to append; None if there is none."""
        up = self.up()
        first = self.replicas[up[0].node_id].leader
        if first.leader_id is None or not self.hosts[first.leader_id - 1].is_up:
            return None
        if any(self.replicas[host.node_id].leader != first for host in up):
            return None
        application = self.replicas[first.leader_id].application
        return first if application.leads_epoch == first.epoch else None

    def up(self) -> list[Host]:
        """All but those whose damaged disk nobody could replace."""
        return [host for host in self.hosts if host.is_up]

    def has_converged(self, *, above: int) -> bool:
        """Is the same committed everywhere, and more than `above`, an offset?"""
        last = self.invariants.committed[-1]
        return last.next_offset > above and all(self._has_all(host, last) for host in self.up())

    def _has_all(self, host: Host, last: Entry) -> bool:
        log, replica = host.disk.log(METADATA_LOG), self.replicas[host.node_id]
        content = log.durable if self.invariants.view.is_voter(host) else log.written
        return (
            content.last is last
            and replica.high_watermark == last.next_offset
            and replica.application.end_offset == last.next_offset
        )

    def catch_up_ms(self) -> int:
        """For who is furthest behind: small fetches take one round trip a batch."""
        ends = [written(host).last for host in self.up()]
        counts = [-1 if last is None else last.index for last in ends]
        return (max(counts) - min(counts) + _snapshot_pieces(self.options)) * _FETCH_MS

    def summary(self) -> str:
        return "; ".join(
            f"{node} {replica.role_name} {replica.leader} hw={replica.high_watermark}"
            f" end={replica.end_offset}"
            for node, replica in sorted(self.replicas.items())
        )


def _snapshot_pieces(options: Options) -> int:
    """In how many pieces who is too far behind gets a snapshot, which has a few hundred bytes."""
    return 2_000 // options.snapshots.fetch_max_bytes


def _unheard_us(options: Options) -> int:
    """R-CQ: twice the timer, since its window may begin just after a majority was heard.

    A slow clock stretches it; busy processes are late with timers.
    """
    timeout_us = options.fetch_timeout_ms * 1500
    return 2 * timeout_us * 1_000_000 // (1_000_000 - options.drift_ppm_max) + 10_000
