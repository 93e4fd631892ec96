"""Several nodes of one quorum in one world, with invariants that look on.

Nothing happens here by itself: simulation.py injects faults drawn from a seed, and scenario tests
do what they say.
"""

from dataclasses import dataclass
from typing import TypeVar

from jepsen_like.sim.assemblies.quorum.counting import (
    Answer,
    ApplicationListener,
    CountingApplication,
)
from jepsen_like.sim.assemblies.quorum.invariants.log_invariants import SaysState, says_digest
from jepsen_like.sim.assemblies.quorum.invariants.quorum_invariants import Invariants
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.quorum_view import written
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.time.deadline_timer import Clock
from jepsen_like.sim.time.virtual_time import Streams, VirtualTime
from jepsen_like.sim.world.assembly import Assembly
from jepsen_like.sim.world.codec import Codec
from jepsen_like.sim.world.host import Host, directory_of
from jepsen_like.sim.world.observer import Observer, ReplicaOf
from jepsen_like.sim.world.turn_invariants import TurnInvariants
from jepsen_like.sim.world.world import World
from quorum.core.effects import Core
from quorum.core.storage import METADATA_LOG
from quorum.core.types import (
    EPOCH_MAX,
    NO_EPOCH,
    Endpoint,
    LeaderAndEpoch,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorum.log.snapshots import snapshot_content, snapshot_head
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.raft.config import QuorumConfig
from quorum.raft.raft_node import RaftNode
from quorum.raft.voter_history import Membership
from quorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Voter, VoterSet
from wire.control_records import VoterEndpoint
from wire.primitives import METADATA_TOPIC_ID

__all__ = [
    "CLUSTER_ID",
    "SimulatedQuorum",
    "SimulatedReplica",
    "format_disk",
    "invariants_of",
    "listener_of",
    "start_raft",
    "voters_at_start",
    "world_of",
]

CLUSTER_ID = "simulated-cluster-0000"
_PORT = 9093
Engine = TypeVar("Engine", bound=RaftNode)
_FETCH_MS = 2  # a round trip and a sync of a healthy quorum: the least that a batch may take


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedReplica(RunningReplica):
    """A running process, as the simulation looks at it."""

    application: CountingApplication

    def propose(self, now_ms: int) -> None:
        """Unless it has given up leading since it was asked: what came before may do that.

        The application learns of that only when the turn is settled.
        """
        if self.leads and self.application.leads_epoch is not None:
            self.application.propose(now_ms)


class SimulatedQuorum(Assembly[SimulatedReplica], ApplicationListener):
    """Its observers are its brokers."""

    def __init__(
        self,
        seed: int,
        options: Options,
        tracer: Observer | None = None,
        *,
        is_judged: bool = True,
        streams: Streams | None = None,
    ) -> None:
        """Not judged: invariants are looked at, and may break."""
        self.options = options
        world = world_of(seed, options, is_judged=is_judged, streams=streams)
        super().__init__(world, lambda host: self.nodes[host.node_id].state)
        self.controllers, self.brokers = options.controllers, options.brokers
        self.clients = ApplicationListener()
        self._lets_propose = True
        self.invariants = invariants_of(world, options, self.node_of)
        if tracer is not None:
            tracer.attach(world, self.node_of)
            world.observe(tracer)
        world.judge(TurnInvariants())
        world.judge(self.invariants)
        for node_id in (*self.controllers, *self.brokers):
            world.add(node_id, self._start_core, clock=self._clock(node_id))
        self.hosts = [*world.nodes.values()]
        for host in self.hosts:
            host.must_not_stop = is_judged

    def _clock(self, node_id: int) -> Clock:
        random = self.world.fork(f"clock/{node_id}")
        drift_ppm = random.randint(-self.options.drift_ppm_max, self.options.drift_ppm_max)
        if drift_ppm:
            self.counts.fired("skewed")
        return Clock(offset_ms=random.randrange(600_000), drift_ppm=drift_ppm)

    def _start_core(self, host: Host) -> Core:
        raft = start_raft(host, self.options, self.world, ConfirmingRaftNode)
        application = CountingApplication(raft, host, self.options, self.world, self)
        application.proposes = self._lets_propose
        member = ConfirmingMember(raft, {"counter": application}, snapshots=self.options.snapshots)
        self.nodes[host.node_id] = SimulatedReplica(
            raft=raft, member=member, application=application
        )
        return member

    # --- what applications tell -----------------------------------------------------------

    def proposes(self, host: Host, values: list[bytes], last_offset: int) -> None:
        self.clients.proposes(host, values, last_offset)

    def applies(self, host: Host, batches: bytes, next_offset: int) -> None:
        self.clients.applies(host, batches, next_offset)
        with self.world.judging:
            self.invariants.applies(host, batches, next_offset)

    def loads(self, host: Host, end: OffsetAndEpoch, digest: bytes) -> None:
        self.counts.fired("snapshot_loaded")
        self.clients.loads(host, end, digest)
        with self.world.judging:
            self.invariants.loads(host, end, digest)

    def asks(self, host: Host) -> Answer:
        asked_offset = self.invariants.committed_offset
        answer = self.clients.asks(host)

        def answered(applied_offset: int) -> None:
            answer(applied_offset)
            with self.world.judging:
                self.invariants.answers_read(host, asked_offset, applied_offset)

        return answered

    # --- doing --------------------------------------------------------------------------

    def start(self) -> None:
        """Format the disks and run a process on each."""
        for host in self.hosts:
            format_disk(host, self.options)
            host.start()

    def let_propose(self, lets_propose: bool) -> None:
        """From now on, by applications on their own."""
        self._lets_propose = lets_propose
        for replica in self.nodes.values():
            replica.application.proposes = lets_propose

    def propose(self) -> None:
        """One batch, by the leader that everybody knows."""
        host = self.leading_host()
        host.command(self.nodes[host.node_id].propose)

    def leads(self, node: int) -> bool:
        return self.nodes[node].leads

    # --- looking ------------------------------------------------------------------------

    def leader(self) -> LeaderAndEpoch | None:
        """The leader whom every node knows, and who is ready to append; None if there is none."""
        up = self.up()
        first = self.nodes[up[0].node_id].leader
        if first.leader_id is None or not self.hosts[first.leader_id - 1].is_up:
            return None
        if any(self.nodes[host.node_id].leader != first for host in up):
            return None
        application = self.nodes[first.leader_id].application
        return first if application.leads_epoch == first.epoch else None

    def leading_host(self) -> Host:
        """The node of that leader, who must be there."""
        leader = self.leader()
        assert leader is not None, self.summary()
        assert leader.leader_id is not None, leader
        return self.hosts[leader.leader_id - 1]

    def up(self) -> list[Host]:
        """All but those whose damaged disk nobody could replace, and those led astray."""
        astray = self.astray()
        return [host for host in self.hosts if host.is_up and host not in astray]

    def astray(self) -> list[Host]:
        """Nodes that do not vote, and whose epoch is later than any that the voters know of.

        A voter that does not know that it was removed campaigns on, without pre-votes where those
        whom it asks are of the release before. They take its epoch, though they may not vote any
        more either. No voter hears of it, and nobody follows a leader of an earlier epoch.
        """
        if not self.counts.by_kind["older_release"]:
            return []
        voters = list(self.invariants.view.present(self.invariants.view.committed_voters))
        latest = max((self._epoch_of(host) for host in voters), default=EPOCH_MAX)
        return [each for each in self.hosts if each not in voters and self._epoch_of(each) > latest]

    def _epoch_of(self, host: Host) -> int:
        replica = self.nodes.get(host.node_id)
        return NO_EPOCH if replica is None else replica.leader.epoch

    def has_converged(self, *, above: int) -> bool:
        """Is the same committed everywhere, and more than `above`, an offset?"""
        last = self.invariants.committed[-1]
        return last.next_offset > above and all(self._has_all(host, last) for host in self.up())

    def _has_all(self, host: Host, last: Entry) -> bool:
        log, replica = host.disk.log(METADATA_LOG), self.nodes[host.node_id]
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
            for node, replica in sorted(self.nodes.items())
        )


def world_of(
    seed: int,
    options: Options,
    *,
    is_judged: bool = True,
    streams: Streams | None = None,
) -> World:
    """The world of nodes that have these options, as yet without them."""
    world = World(
        seed,
        links=options.links,
        disks=options.disks,
        files=options.files,
        turns_us=options.turns_us,
        is_judged=is_judged,
        streams=streams,
    )
    if options.codecs:
        version = options.kraft_version
        nodes = (*options.controllers, *options.brokers)
        world.speak(Codec(world.fork("codec"), version), nodes=nodes, kraft_version=version)
    return world


def _snapshot_pieces(options: Options) -> int:
    """In how many pieces who is too far behind gets a snapshot, which has a few hundred bytes."""
    return 2_000 // options.snapshots.fetch_max_bytes


def invariants_of(
    world: World, options: Options, replica_of: ReplicaOf, says_state: SaysState = says_digest
) -> Invariants:
    """Those of a quorum with these options."""
    # R-CQ: twice the timer, since its window may begin just after a majority was heard. A slow
    # clock stretches it; busy processes are late with timers.
    timers_us = 2 * options.fetch_timeout_ms * 1500 * 1_000_000
    return Invariants(
        world=world,
        voters=voters_at_start(options).keys,
        check_quorum_us=timers_us // (1_000_000 - options.drift_ppm_max) + 10_000,
        backoff_max_ms=options.election_backoff_max_ms,
        replica_of=replica_of,
        says_state=says_state,
    )


def start_raft(host: Host, options: Options, world: VirtualTime, engine: type[Engine]) -> Engine:
    """The engine of a new process of `host`, on what its disk holds."""
    state, election = host.disk.recover(METADATA_LOG, METADATA_TOPIC_ID)
    return engine(
        config=_config(host, options),
        log_state=state,
        election=election,
        random=world.fork(f"raft/{host.node_id}/{host.incarnation}"),
        now_ms=host.now_ms,
    )


def format_disk(host: Host, options: Options) -> None:
    """What `format` leaves where the log names the voters: a snapshot of nothing but them."""
    if options.kraft_version > 0 and host.node_id <= options.voters:
        membership = Membership(voters=voters_at_start(options), kraft_version=1)
        head = snapshot_head(0, membership.head_records())
        content = b"".join(snapshot_content(head, (), epoch=0, last_timestamp_ms=0))
        host.disk.format(OffsetAndEpoch(0, 0), content)


def voters_at_start(options: Options) -> VoterSet:
    """The first voters; with their disks only where the log will name them."""
    ids = range(1, options.voters + 1)
    if options.kraft_version == 0:
        return VoterSet.of(Voter(ReplicaKey(each), _endpoint_of(each)) for each in ids)
    return VoterSet.of(
        Voter(
            ReplicaKey(each, directory_of(each)),
            _endpoint_of(each),
            (listener_of(each),),
            SUPPORTED_KRAFT_VERSIONS,
        )
        for each in ids
    )


def listener_of(node_id: int) -> VoterEndpoint:
    return VoterEndpoint(name="CONTROLLER", host=f"node-{node_id}", port=_PORT)


def _endpoint_of(node_id: int) -> Endpoint:
    return Endpoint(node_id, f"node-{node_id}", _PORT)


def _config(host: Host, options: Options) -> QuorumConfig:
    """Where the log names the voters, every node may come to be one: all sync, all are asked."""
    is_dynamic = options.kraft_version > 0
    nodes = range(1, options.voters + options.observers + 1)
    bootstrap = [Endpoint(-1 - node, f"node-{node}", _PORT) for node in nodes]
    is_voter = host.node_id <= options.voters
    return QuorumConfig(
        node_id=host.node_id,
        directory_id=host.directory_id,
        cluster_id=CLUSTER_ID,
        voters=VoterSet() if is_dynamic else voters_at_start(options),
        bootstrap_servers=tuple(bootstrap) if is_dynamic else (),
        listeners=(listener_of(host.node_id),) if is_dynamic else (),
        election_timeout_ms=options.election_timeout_ms,
        fetch_timeout_ms=options.fetch_timeout_ms,
        election_backoff_max_ms=options.election_backoff_max_ms,
        request_timeout_ms=options.request_timeout_ms,
        retry_backoff_ms=options.retry_backoff_ms,
        fetch_max_wait_ms=options.fetch_max_wait_ms,
        fetch_max_bytes=options.bytes_max,
        shutdown_timeout_ms=options.shutdown_timeout_ms,
        snapshots=options.snapshots,
        syncs=is_voter or is_dynamic or options.observers_sync,
    )
