"""One replica of the simulated quorum: the shipped member with its Raft, and the counter on top."""

from collections.abc import Callable

from jepsen_like.sim.counting import CountingApplication
from jepsen_like.sim.host import Host
from jepsen_like.sim.options import Options
from jepsen_like.sim.world import World
from quorum.config import QuorumConfig
from quorum.member import Member
from quorum.raft import RaftNode
from quorum.roles import Follower, Leader, name_of
from quorum.storage import METADATA_LOG
from quorum.types import Endpoint, LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from quorum.voters import Voter, VoterSet
from wire.primitives import METADATA_TOPIC_ID

__all__ = ["CLUSTER_ID", "SimulatedReplica", "start_raft", "start_replica"]

CLUSTER_ID = "simulated-cluster-0000"
_PORT = 9093


class SimulatedReplica:
    """A running process, as the simulation looks at it."""

    def __init__(self, raft: RaftNode, member: Member, application: CountingApplication) -> None:
        self.raft = raft
        self.member = member
        self.application = application

    @property
    def leader(self) -> LeaderAndEpoch:
        return self.raft.leader

    @property
    def high_watermark(self) -> int | None:
        return self.raft.high_watermark

    @property
    def end_offset(self) -> int:
        return self.raft.end_offset

    @property
    def leads(self) -> bool:
        return isinstance(self.raft.role, Leader)

    @property
    def hears_leader(self) -> bool:
        return isinstance(self.raft.role, Follower) and self.raft.role.has_fetched

    @property
    def role_name(self) -> str:
        return name_of(self.raft.role)

    def resign(self, now_ms: int) -> None:
        self.raft.resign(now_ms)

    def shut_down(self, now_ms: int) -> None:
        self.member.shut_down(now_ms)

    def propose(self, now_ms: int) -> None:
        self.application.propose(now_ms)


def start_replica(
    *,
    host: Host,
    options: Options,
    world: World,
    applies: Callable[[Host, bytes, int], None],
    loads: Callable[[Host, OffsetAndEpoch, bytes], None],
) -> SimulatedReplica:
    """A new process of `host` on what its disk holds."""
    raft = start_raft(host, options, world)
    life = f"{host.node_id}/{host.incarnation}"
    application = CountingApplication(
        log=raft,
        random=world.fork(f"application/{life}"),
        interval_ms=options.propose_interval_ms,
        burst_max=options.burst_max,
        next_serial=world.sequence,
        on_committed=lambda batches, next_offset: applies(host, batches, next_offset),
        on_loaded=lambda end, digest: loads(host, end, digest),
    )
    return SimulatedReplica(raft, Member(raft, {"counter": application}), application)


def start_raft(host: Host, options: Options, world: World) -> RaftNode:
    """The engine of a new process of `host`, on what its disk holds."""
    state, election = host.disk.recover(METADATA_LOG, METADATA_TOPIC_ID)
    return RaftNode(
        config=_config(host, options),
        log_state=state,
        election=election,
        random=world.fork(f"raft/{host.node_id}/{host.incarnation}"),
        now_ms=host.now_ms,
    )


def _config(host: Host, options: Options) -> QuorumConfig:
    voters = range(1, options.voters + 1)
    return QuorumConfig(
        node_id=host.node_id,
        directory_id=host.directory_id,
        cluster_id=CLUSTER_ID,
        voters=VoterSet.of(
            Voter(key=ReplicaKey(voter), endpoint=Endpoint(voter, f"node-{voter}", _PORT))
            for voter in voters
        ),
        election_timeout_ms=options.election_timeout_ms,
        fetch_timeout_ms=options.fetch_timeout_ms,
        election_backoff_max_ms=options.election_backoff_max_ms,
        request_timeout_ms=options.request_timeout_ms,
        retry_backoff_ms=options.retry_backoff_ms,
        fetch_max_wait_ms=options.fetch_max_wait_ms,
        fetch_max_bytes=options.bytes_max,
        shutdown_timeout_ms=options.shutdown_timeout_ms,
        syncs=host.node_id in voters or options.observers_sync,
    )
