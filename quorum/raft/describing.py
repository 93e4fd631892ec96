"""A replica in words for people, in plain values for HTTP, and its quorum for DescribeQuorum.

Source of the last: KIP-595; KIP-836 (caught-up times).
"""

from collections.abc import Iterator

from quorum.raft.leading import progress_of_voters
from quorum.raft.replica import Replica
from quorum.raft.roles import (
    Candidate,
    Leader,
    Progress,
    Prospective,
    Role,
    leader_of,
    name_of,
)
from quorum.raft.voters import Voter
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumNode,
    QuorumPartitionResult,
    QuorumReplica,
    QuorumTopicResult,
)
from wire.primitives import METADATA_TOPIC, uuid_text

__all__ = ["describe_node", "describe_quorum", "node_facts"]


def node_facts(replica: Replica, role: Role) -> dict[str, object]:
    """Values that JSON knows; keys are added, never changed."""
    log = replica.log
    snapshot = log.latest_snapshot
    return {
        "node_id": replica.node_id,
        "role": name_of(role),
        "is_voter": replica.is_voter,
        "epoch": role.epoch,
        "leader_id": leader_of(role, replica.node_id),
        "voted_id": None if role.voted is None else role.voted.id,
        "voters": list(replica.voters.ids),
        "kraft_version": replica.kraft_version,
        "directory_id": uuid_text(replica.key.directory_id),
        "log_start_offset": log.start_offset,
        "log_end_offset": log.end_offset,
        "log_last_epoch": log.last_epoch,
        "log_synced_offset": log.synced_offset,
        "log_size_bytes": log.size_bytes,
        "snapshot_offset": None if snapshot is None else snapshot.id.offset,
        "snapshot_epoch": None if snapshot is None else snapshot.id.epoch,
        "snapshot_size_bytes": None if snapshot is None else snapshot.size_bytes,
        "high_watermark": role.high_watermark if isinstance(role, Leader) else log.high_watermark,
    }


def describe_node(replica: Replica, role: Role) -> str:
    """Several lines: who it is, where its log stands, and what its role knows of others."""
    facts = node_facts(replica, role)
    log = replica.log
    lines = [
        f"node {replica.node_id} {facts['role']} epoch={role.epoch} leader={facts['leader_id']}"
        f" voted={facts['voted_id']}",
        f"  log {log.start_offset}..{log.end_offset} last_epoch={log.last_epoch}"
        f" synced={log.synced_offset} high_watermark={facts['high_watermark']}",
    ]
    match role:
        case Leader():
            lines.append(replica.voters.describe(progress_of_voters(replica, role)))
            lines += [
                f"  observer {progress.key.id} at {progress.log_end_offset}"
                for progress in role.observers.values()
            ]
        case Prospective() | Candidate():
            lines.append(f"  votes {role.votes}")
        case _:
            pass
    return "\n".join(lines)


# --- DescribeQuorum -------------------------------------------------------------------------


def describe_quorum(
    replica: Replica, role: Role, request: DescribeQuorumRequest, now_ms: int
) -> DescribeQuorumResponse:
    """The answer of the leader; another replica does not know, and says so."""
    if not isinstance(role, Leader):
        return _undescribed(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum")
    asked = [(t.topic_name, p.partition_index) for t in request.topics for p in t.partitions]
    if asked != [(METADATA_TOPIC, 0)]:
        return _unknown(request)
    return _described(replica, role, now_ms)


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Refuse each partition: only the metadata log has a quorum."""
    topics = tuple(
        QuorumTopicResult(
            topic_name=topic.topic_name,
            partitions=tuple(
                QuorumPartitionResult(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message="only the metadata log has a quorum",
                    leader_id=0,
                    leader_epoch=0,
                )
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=())


def _undescribed(error: ErrorCode, reason: str) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error, error_message=reason, topics=(), nodes=())


def _described(replica: Replica, role: Leader, now_ms: int) -> DescribeQuorumResponse:
    """Each replica's log end, and when it last fetched and was last caught up."""
    own = QuorumReplica(
        replica_id=replica.node_id,
        replica_directory_id=replica.key.directory_id,
        log_end_offset=replica.log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    voters = list(map(_state, role.progress.values()))
    oldest_ms = now_ms - replica.config.observer_session_ms
    observers = [
        _state(progress)
        for progress in role.observers.values()
        if progress.last_fetch_ms >= oldest_ms
    ]
    (voters if replica.is_voter else observers).append(own)  # it may be on its way out
    partition = QuorumPartitionResult(
        partition_index=0,
        error_message=None,
        leader_id=replica.node_id,
        leader_epoch=role.epoch,
        high_watermark=-1 if role.high_watermark is None else role.high_watermark,
        current_voters=tuple(sorted(voters, key=lambda state: state.replica_id)),
        observers=tuple(sorted(observers, key=lambda state: state.replica_id)),
    )
    topic = QuorumTopicResult(topic_name=METADATA_TOPIC, partitions=(partition,))
    return DescribeQuorumResponse(error_message=None, topics=(topic,), nodes=_nodes(replica))


def _state(progress: Progress) -> QuorumReplica:
    has_fetched = progress.last_fetch_ms >= 0
    return QuorumReplica(
        replica_id=progress.key.id,
        replica_directory_id=progress.key.directory_id,
        log_end_offset=progress.log_end_offset if has_fetched else -1,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def _nodes(replica: Replica) -> tuple[QuorumNode, ...]:
    return tuple(
        QuorumNode(node_id=voter.key.id, listeners=tuple(_listeners(replica, voter)))
        for voter in replica.voters
    )


def _listeners(replica: Replica, voter: Voter) -> Iterator[Listener]:
    """All that the voters' record names; the only one that is known of a static voter."""
    for known in voter.listeners:
        yield Listener(name=known.name, host=known.host, port=known.port)
    if not voter.listeners:
        at = voter.endpoint
        yield Listener(name=replica.config.listener_name, host=at.host, port=at.port)
