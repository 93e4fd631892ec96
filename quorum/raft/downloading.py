"""A follower far behind: the leader's snapshot first, then the records after it.

The pieces are asked for one at a time and go straight to the disk. A piece that is lost is asked
for again where the ones before it ended; another leader's snapshot is begun anew, since only the
node that wrote it is sure to have the same bytes. When all of it is on the disk, it replaces the
log. That keeps what was committed, for a snapshot holds nothing else. Whoever leads has all of it,
and never loads one.

A leader that sends nonsense is asked again after a while, as if nothing had come.

Source: KIP-630; Kafka's handleFetchSnapshotResponse.
"""

from quorum.core.effects import ReceiveSnapshot, SnapshotFile, SnapshotRead, SnapshotSaved
from quorum.core.types import Endpoint, OffsetAndEpoch
from quorum.raft import following
from quorum.raft.replica import Replica
from quorum.raft.roles import Download, Follower, Role
from wire.errors import ErrorCode
from wire.messages.fetching import FetchedPartition, PartitionSnapshotResult, SnapshotId

__all__ = [
    "LEADER_LACKS_IT",
    "abandon",
    "broken",
    "fetched",
    "goes_on",
    "is_plausible",
    "received",
    "saved",
]

# The leader has let go of it since it told of it, for a newer one.
LEADER_LACKS_IT = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)


def fetched(
    replica: Replica, role: Follower, answer: FetchedPartition, *, source: Endpoint, now_ms: int
) -> str | None:
    """Obey an answer without error to a Fetch. Returns why this replica must stop, if it must."""
    role.snapshot_id = None
    if answer.diverging_epoch.end_offset < 0 <= answer.snapshot_id.end_offset:
        _begin(replica, role, answer.snapshot_id, source, now_ms)
        return None
    return following.fetched(replica, role, answer, source=source, now_ms=now_ms)


def _begin(
    replica: Replica, role: Follower, wanted: SnapshotId, source: Endpoint, now_ms: int
) -> None:
    """We are too far behind for the log of the leader."""
    snapshot_id = OffsetAndEpoch(offset=wanted.end_offset, epoch=wanted.epoch)
    if not is_plausible(replica, role, snapshot_id):
        replica.outbox.trace("snapshot_refused", id=snapshot_id, ours=replica.log.end)
        replica.peers.back_off(source.node_id, now_ms + replica.config.fetch_max_wait_ms)
        return
    following.leader_was_there(replica, role, now_ms)
    download = replica.download
    if download is not None and download.finishing is not None and download.id != snapshot_id:
        # The disk is still busy with another; that one may do as well.
        replica.peers.back_off(source.node_id, now_ms + replica.config.retry_backoff_ms)
        return
    role.snapshot_id = snapshot_id
    if download is None or not goes_on(download, snapshot_id, role.leader_id):
        download = replica.download = Download(id=snapshot_id, source_id=role.leader_id)
        replica.outbox.trace(
            "snapshot_begun", offset=snapshot_id.offset, epoch=snapshot_id.epoch, by=role.leader_id
        )
    file = download.file or replica.log.snapshot(snapshot_id)
    if file is not None:
        _adopt(replica, role, file, now_ms)


def is_plausible(replica: Replica, role: Follower, snapshot_id: OffsetAndEpoch) -> bool:
    """It must hold all that is committed here, and something that we lack."""
    log = replica.log
    return (
        snapshot_id.offset >= max(1, log.committed_offset)
        and 0 <= snapshot_id.epoch <= role.epoch
        and not log.holds(snapshot_id)
    )


def goes_on(download: Download, snapshot_id: OffsetAndEpoch, leader_id: int) -> bool:
    """Only the leader answers, whatever it was called when it was asked (a bootstrap server)."""
    is_whole = download.finishing is not None or download.file is not None
    return download.id == snapshot_id and (is_whole or download.source_id == leader_id)


def received(
    replica: Replica,
    role: Follower,
    answer: PartitionSnapshotResult,
    *,
    now_ms: int,
) -> None:
    """A piece of what we asked for, or nonsense."""
    download = replica.download
    assert download is not None, answer
    assert download.id == role.snapshot_id, (download.id, role.snapshot_id)
    mistake = _mistake(download, answer)
    if mistake is not None:
        abandon(replica, role, mistake, now_ms)
        return
    following.leader_was_there(replica, role, now_ms)
    position = download.position
    download.size_bytes = answer.size
    download.position += len(answer.unaligned_records)
    is_last = download.position == answer.size
    number = replica.outbox.on_log(
        ReceiveSnapshot,
        id=download.id,
        position=position,
        records=answer.unaligned_records,
        is_last=is_last,
    )
    if is_last:
        download.finishing = number


def _mistake(download: Download, answer: PartitionSnapshotResult) -> str | None:
    snapshot_id = OffsetAndEpoch(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
    if snapshot_id != download.id:
        return f"a piece of {snapshot_id}"
    if answer.position != download.position:
        return f"a piece from {answer.position} on, not from {download.position}"
    if download.position and answer.size != download.size_bytes:
        return f"{answer.size} bytes in all, which were {download.size_bytes}"
    if not 0 < len(answer.unaligned_records) <= answer.size - download.position:
        return f"{len(answer.unaligned_records)} of {answer.size} bytes at {download.position}"
    return None


def abandon(replica: Replica, role: Role, reason: str, now_ms: int) -> None:
    """Fetch again, but not at once, and see what the leader says."""
    download = replica.download
    assert download is not None, reason
    replica.outbox.trace("snapshot_abandoned", id=download.id, reason=reason)
    replica.peers.back_off(download.source_id, now_ms + replica.config.fetch_max_wait_ms)
    replica.download = None
    if isinstance(role, Follower):
        role.snapshot_id = None


# --- what the disk says ------------------------------------------------------------------------


def saved(replica: Replica, role: Role, event: SnapshotSaved, now_ms: int) -> None:
    """All of it is durable. Whoever follows another leader by now asks that one first."""
    download = replica.download
    if download is None or download.finishing != event.token.number:
        return
    file = event.file
    download.finishing, download.file = None, file
    if isinstance(role, Follower) and role.snapshot_id == file.id:
        _adopt(replica, role, file, now_ms)


def broken(replica: Replica, role: Role, event: SnapshotRead, now_ms: int) -> None:
    """The bytes that came are no snapshot."""
    download = replica.download
    if download is not None and download.finishing == event.token.number:
        abandon(replica, role, "not a whole snapshot", now_ms)


def _adopt(replica: Replica, role: Follower, file: SnapshotFile, now_ms: int) -> None:
    """Kafka, too, lets the fetch timeout begin anew: the disk may have taken long."""
    assert is_plausible(replica, role, file.id), (file.id, replica.log.end)
    replica.download = None
    role.snapshot_id = None
    replica.reset(file)
    following.leader_was_there(replica, role, now_ms)
