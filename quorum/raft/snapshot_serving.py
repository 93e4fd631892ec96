"""How a leader hands out its snapshots, in the pieces that its followers ask for.

A snapshot may be removed between two pieces, since another is newer: then it is not found, and who
asked begins again with a Fetch.

Source: KIP-630; the order of checks is Kafka's (handleFetchSnapshotRequest).
"""

from quorum.core.effects import ReadSnapshot, Reply, SnapshotRead
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.log import fetch as fetch_rules
from quorum.raft.leading import hear
from quorum.raft.messages import snapshot_partition, snapshot_response
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import AskedSnapshot, Leader, Role
from wire.errors import ErrorCode
from wire.messages.fetching import FetchSnapshotRequest, FetchSnapshotResponse, PartitionSnapshot

__all__ = ["fetch_snapshot", "refuse_snapshots", "snapshot_read", "snapshot_refusal"]


def snapshot_refusal(
    replica: Replica, role: Role, request: FetchSnapshotRequest, known: KnownLeader
) -> FetchSnapshotResponse | None:
    """Why this request is not served; None if it is."""
    top_level = replica.check_cluster(request.cluster_id)
    ask = snapshot_partition(request.topics)
    if top_level is not ErrorCode.NONE or ask is None:
        error = top_level or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return FetchSnapshotResponse(error_code=error, topics=())
    error = fetch_rules.check_known_epoch(
        ask.current_leader_epoch, role.epoch, is_leader=isinstance(role, Leader)
    )
    error = error or _check_position(replica, ask)
    return None if error is ErrorCode.NONE else snapshot_response(known, ask, error=error)


def _check_position(replica: Replica, ask: PartitionSnapshot) -> ErrorCode:
    file = replica.log.snapshot(_id_of(ask))
    if file is None:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if not 0 <= ask.position < file.size_bytes:
        return ErrorCode.POSITION_OUT_OF_RANGE
    return ErrorCode.NONE


def _id_of(ask: PartitionSnapshot) -> OffsetAndEpoch:
    return OffsetAndEpoch(offset=ask.snapshot_id.end_offset, epoch=ask.snapshot_id.epoch)


def fetch_snapshot(
    replica: Replica, role: Leader, token: int, request: FetchSnapshotRequest, *, now_ms: int
) -> None:
    """The answer comes with the bytes. Whoever loads a snapshot follows us all the while."""
    ask = request.topics[0].partitions[0]
    hear(replica, role, ReplicaKey(request.replica_id, ask.replica_directory_id), now_ms)
    number = replica.outbox.on_log(
        ReadSnapshot,
        id=_id_of(ask),
        position=ask.position,
        bytes_max=max(0, min(request.max_bytes, replica.config.snapshots.fetch_max_bytes)),
    )
    role.reading_snapshots[number] = AskedSnapshot(token=token, partition=ask)


def snapshot_read(replica: Replica, role: Leader, event: SnapshotRead, known: KnownLeader) -> None:
    asked = role.reading_snapshots.pop(event.token.number, None)
    if asked is None:
        return
    if event.size_bytes < 0:
        body = snapshot_response(known, asked.partition, error=ErrorCode.SNAPSHOT_NOT_FOUND)
    else:
        body = snapshot_response(
            known, asked.partition, size_bytes=event.size_bytes, records=event.records
        )
    replica.outbox.send(Reply(token=asked.token, body=body))


def refuse_snapshots(replica: Replica, role: Leader, known: KnownLeader) -> None:
    """Leadership is lost, and with it the right to answer."""
    for asked in role.reading_snapshots.values():
        body = snapshot_response(known, asked.partition, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        replica.outbox.send(Reply(token=asked.token, body=body))
    role.reading_snapshots.clear()
