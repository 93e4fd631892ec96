"""What is seen of a replica from outside: by applications beside it, by its member, by people.

Reads only; `quorum.raft.raft_node` changes what is seen here.
"""

from quorum.core.effects import EpochStart
from quorum.core.storage import METADATA_LOG
from quorum.core.types import Endpoint, LeaderAndEpoch, OffsetAndEpoch
from quorum.raft import membership
from quorum.raft.describing import describe_node, node_facts
from quorum.raft.messages import is_metadata_topic
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Follower, Leader, Prospective, Resigned, Role, leader_of
from wire.messages.fetching import FetchRequest, FetchSnapshotRequest
from wire.messages.quorum_epochs import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from wire.messages.voters import DescribeQuorumRequest

__all__ = ["RaftView", "leader_and_epoch"]


def leader_and_epoch(role: Role, node_id: int) -> LeaderAndEpoch:
    """Who leads, for whoever has this role. A resigned leader does not any more."""
    leader_id = None if isinstance(role, Resigned) else leader_of(role, node_id)
    return LeaderAndEpoch(leader_id, role.epoch)


class RaftView:
    """The reading half of `MetadataLog` and `Engine`."""

    replica: Replica
    role: Role
    leader: LeaderAndEpoch  # as the role has it
    leading_since: EpochStart | None  # the epoch that this replica leads, and where it began

    @property
    def node_id(self) -> int:
        return self.replica.node_id

    @property
    def high_watermark(self) -> int | None:
        if isinstance(self.role, Leader):
            return self.role.high_watermark
        return self.replica.log.high_watermark

    @property
    def end_offset(self) -> int:
        return self.replica.log.end_offset

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """A voter's listener, or that of the leader, which need not be known as a voter yet."""
        if isinstance(self.role, Follower | Prospective) and self.role.leader_id == node_id:
            return self.role.leader_endpoint or self.replica.voters.endpoint_of(node_id)
        if node_id == self.node_id:
            return self.replica.endpoint
        return self.replica.voters.endpoint_of(node_id)

    def known(self) -> KnownLeader:
        """A leader that nobody could find is not named: Kafka's replicas fail on that."""
        leader_id = leader_of(self.role, self.node_id)
        endpoint = None if leader_id is None else self.endpoint_of(leader_id)
        if leader_id is None or endpoint is None:
            return KnownLeader(leader_id=-1, epoch=self.role.epoch)
        return KnownLeader(leader_id=leader_id, epoch=self.role.epoch, endpoint=endpoint)

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return self.replica.voters.ids

    @property
    def kraft_version(self) -> int:
        return self.replica.kraft_version

    @property
    def log_name(self) -> str:
        return METADATA_LOG

    @property
    def start_offset(self) -> int:
        return self.replica.log.start_offset

    @property
    def committed_through(self) -> int:
        """All before it may be delivered. It never goes back, whoever leads."""
        return self.replica.log.committed_offset

    def newest(self, *, start_offset: int, end_offset: int, bytes_max: int) -> bytes | None:
        return self.replica.log.tail.read(
            start_offset=start_offset, end_offset=end_offset, bytes_max=bytes_max
        )

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        latest = self.replica.log.latest_snapshot
        return None if latest is None else latest.id

    def serves(self, body: object) -> bool:
        match body:
            case FetchRequest():
                return any(map(is_metadata_topic, body.topics))
            case (
                VoteRequest()
                | BeginQuorumEpochRequest()
                | EndQuorumEpochRequest()
                | DescribeQuorumRequest()
                | FetchSnapshotRequest()
            ):
                return True
            case _:
                return isinstance(body, membership.Ask)

    def is_in_quorum(self, now_ms: int) -> bool:
        """Does it lead, or hear from who leads? An observer follows a silent leader for ever."""
        match self.role:
            case Leader():
                return True
            case Follower(fetch_deadline_ms=deadline_ms):
                return now_ms < deadline_ms
            case _:
                return False

    def describe(self) -> str:
        return describe_node(self.replica, self.role)

    def facts(self) -> dict[str, object]:
        return node_facts(self.replica, self.role)
