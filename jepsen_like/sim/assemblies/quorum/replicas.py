"""One replica of the simulated quorum: the shipped member with its Raft, and the counter on top."""

from typing import TypeVar

from jepsen_like.sim.assemblies.quorum.counting import CountingApplication
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host, directory_of
from quorum.core.storage import METADATA_LOG
from quorum.core.types import Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.log.snapshots import snapshot_content, snapshot_head
from quorum.node.member import Member
from quorum.raft.config import QuorumConfig
from quorum.raft.raft_node import RaftNode
from quorum.raft.voter_history import Membership
from quorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Voter, VoterSet
from wire.control_records import VoterEndpoint
from wire.primitives import METADATA_TOPIC_ID

__all__ = [
    "CLUSTER_ID",
    "SimulatedReplica",
    "format_disk",
    "listener_of",
    "start_raft",
    "voters_at_start",
]

CLUSTER_ID = "simulated-cluster-0000"
_PORT = 9093

Engine = TypeVar("Engine", bound=RaftNode)


class SimulatedReplica(RunningReplica):
    """A running process, as the simulation looks at it."""

    def __init__(self, raft: RaftNode, member: Member, application: CountingApplication) -> None:
        self.raft = raft
        self.member = member
        self.application = application

    def resign(self, now_ms: int) -> None:
        self.raft.resign(now_ms)

    def shut_down(self, now_ms: int) -> None:
        self.member.shut_down(now_ms)

    def propose(self, now_ms: int) -> None:
        """Unless it has given up leading since it was asked: what came before may do that.

        The application learns of that only when the turn is settled.
        """
        if self.leads and self.application.leads_epoch is not None:
            self.application.propose(now_ms)


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
    """With their disks only where the log will name them."""
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
