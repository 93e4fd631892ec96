"""What a replica of the metadata log is told at its start. Defaults are Kafka's.

Source: Kafka's QuorumConfig (`controller.quorum.*`) and KafkaRaftClient's constants.
"""

from dataclasses import dataclass
from uuid import UUID

from quorum.types import Endpoint, ReplicaKey
from quorum.voters import VoterSet

__all__ = ["QuorumConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """`voters` is empty on a node that learns them; it then needs `bootstrap_servers`.

    `syncs`: appends are synced before they are acknowledged. Controllers must; a node that is
    only a broker need not, since no majority counts it (Kafka does the same).
    """

    node_id: int
    directory_id: UUID
    cluster_id: str
    voters: VoterSet
    bootstrap_servers: tuple[Endpoint, ...] = ()  # ids -2, -3, ...: not known yet
    listener_name: str = "CONTROLLER"
    kraft_version: int = 0  # 0: static voters; 1: voters live in the log (KIP-853)
    syncs: bool = True

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    discovery_backoff_ms: int = 50  # before a node that knows no leader is asked again
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 << 20
    observer_session_ms: int = 300_000  # a silent observer is described no longer
    shutdown_timeout_ms: int = 5000

    def __post_init__(self) -> None:
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
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

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
    def discovery_servers(self) -> tuple[Endpoint, ...]:
        """Whom to ask for the leader: the bootstrap servers, else the other voters."""
        if self.bootstrap_servers:
            return self.bootstrap_servers
        return tuple(voter.endpoint for voter in self.voters.others(self.node_id))
