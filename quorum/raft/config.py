"""What a replica of the metadata log is told at its start. Defaults are Kafka's.

Source: Kafka's QuorumConfig (`controller.quorum.*`), MetadataLogConfig (`metadata.*`) and
KafkaRaftClient's constants.
"""

from dataclasses import dataclass, field
from uuid import UUID

from quorum.core.types import Endpoint, ReplicaKey
from quorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Voter, VoterSet
from wire.control_records import VoterEndpoint

__all__ = ["QuorumConfig", "SnapshotSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """When a snapshot is taken, and how long it and the log before it are kept (KIP-630)."""

    bytes_between: int = 20 << 20  # of committed records
    interval_ms: int = 3_600_000  # and if there are any records; 0: only by bytes
    retention_bytes: int = 100 << 20  # log and snapshots together; negative: no limit
    retention_ms: int = 7 * 24 * 3_600_000  # negative: no limit
    fetch_max_bytes: int = 1 << 20  # a piece of one on its way to another node


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """`voters` are those of the configuration, which hold until the log names others.

    Empty on a node that learns them; it then needs `bootstrap_servers`. `listeners` are this node's
    own, as others reach them; without any it cannot be a voter that the log names.

    `syncs`: appends are synced before they are acknowledged. Controllers must; a node that is
    only a broker need not, since no majority counts it (Kafka does the same).
    """

    node_id: int
    directory_id: UUID
    cluster_id: str
    voters: VoterSet
    bootstrap_servers: tuple[Endpoint, ...] = ()  # ids -2, -3, ...: not known yet
    listener_name: str = "CONTROLLER"
    listeners: tuple[VoterEndpoint, ...] = ()
    syncs: bool = True
    auto_join: bool = False  # an observer asks to be a voter by itself (KIP-1186)

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    discovery_backoff_ms: int = 50  # before a node that knows no leader is asked again
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 << 20
    caught_up_within_ms: int = 3_600_000  # a new voter must have fetched by then
    observer_session_ms: int = 300_000  # a silent observer is described no longer
    shutdown_timeout_ms: int = 5000
    snapshots: SnapshotSettings = SnapshotSettings()
    key: ReplicaKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", ReplicaKey(self.node_id, self.directory_id))
        if self.node_id < 0:
            raise ValueError(f"node.id must not be negative: {self.node_id}")
        if not self.voters and not self.bootstrap_servers:
            raise ValueError("neither controller.quorum.voters nor .bootstrap.servers is set")
        known = [server.node_id for server in self.bootstrap_servers if server.node_id >= 0]
        if known:
            raise ValueError(f"bootstrap servers have negative ids until they answer: {known}")
        if self.voters.contains(self.key) and not self.syncs:
            raise ValueError(f"node {self.node_id} is a voter: its appends must be synced")
        for name in ("election_timeout_ms", "fetch_timeout_ms", "request_timeout_ms"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive: {getattr(self, name)}")

    @property
    def endpoint(self) -> Endpoint | None:
        """Where this node says that it listens."""
        for listener in self.listeners:
            if listener.name == self.listener_name:
                return Endpoint(self.node_id, listener.host, listener.port)
        return None

    @property
    def as_voter(self) -> Voter | None:
        """What a voters record says of this node; None if it cannot be in one."""
        if self.endpoint is None:
            return None
        return Voter(self.key, self.endpoint, self.listeners, SUPPORTED_KRAFT_VERSIONS)

    @property
    def check_quorum_timeout_ms(self) -> int:
        """A leader that heard no majority for this long resigns (Raft thesis 6.2).

        Half as long again as followers wait, so that theirs runs out first.
        """
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader announces itself: twice per fetch timeout."""
        return max(1, self.fetch_timeout_ms // 2)

    @property
    def report_interval_ms(self) -> int:
        """How often a voter looks whether the log says of it what it should (UpdateRaftVoter)."""
        return self.fetch_timeout_ms * 3
