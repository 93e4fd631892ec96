"""Following a leader by fetching from it.

Fetched batches are appended exactly at the end of our log, or not at all. A fetch offset
acknowledges everything before it, so the next Fetch waits until our log is synced.

Source: KIP-595, sections on Fetch; Raft thesis 3.5; Kafka's KafkaRaftClient.
"""

from collections.abc import Sequence

from quorum.core.effects import earliest
from quorum.core.types import Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.log.fetch import Diverging
from quorum.raft import discovering, reporting
from quorum.raft.log import QuorumLog
from quorum.raft.messages import snapshot_request
from quorum.raft.replica import FETCH_CHANNEL, Replica
from quorum.raft.roles import Follower
from quorum.raft.voter_history import control_records
from wire.batch import BatchHeader, CorruptBatch, intact_headers
from wire.messages.fetching import FetchedPartition
from wire.record_schema import UnknownRecord
from wire.varint import Malformed

__all__ = [
    "continues",
    "deadline_ms",
    "end_epoch_backoff_ms",
    "fetch_failed",
    "fetched",
    "is_committed",
    "leader_ended",
    "leader_was_there",
    "poll",
    "timed_out",
]


# --- asking ---------------------------------------------------------------------------------


def timed_out(replica: Replica, role: Follower) -> bool:
    """The leader was silent for the fetch timeout. Returns whether this replica campaigns.

    An observer never does, but from now on it refuses no pre-vote for the leader's sake.
    """
    if replica.may_campaign:
        return True
    role.has_fetched = False
    return False


def poll(replica: Replica, role: Follower, now_ms: int) -> None:
    """Nothing is in flight: ask for more, unless the disk owes us something."""
    if not discovering.acknowledges(replica.log):
        return
    if role.snapshot_id is not None and _is_finishing(replica):
        return
    if role.report_due_ms <= now_ms and reporting.report(replica, role, now_ms):
        return
    target = _target(replica, role, now_ms)
    if target is None:
        return
    if role.snapshot_id is not None and target.node_id == role.leader_id:
        _fetch_snapshot(replica, role, role.snapshot_id)
    else:
        discovering.fetch_from(replica, target, role.epoch)


def _is_finishing(replica: Replica) -> bool:
    """Does the disk still owe us a snapshot that is whole?"""
    return replica.download is not None and replica.download.finishing is not None


def _fetch_snapshot(replica: Replica, role: Follower, snapshot_id: OffsetAndEpoch) -> None:
    download = replica.download
    assert download is not None, snapshot_id
    body = snapshot_request(
        replica.config, epoch=role.epoch, snapshot_id=snapshot_id, position=download.position
    )
    replica.ask(role.leader_endpoint, FETCH_CHANNEL, body)


def _target(replica: Replica, role: Follower, now_ms: int) -> Endpoint | None:
    """The leader; while it is silent, somebody who may know another (KIP-853, discovery)."""
    if role.is_leader_silent:
        others = [
            server
            for server in discovering.free_servers(replica, now_ms)
            if server.node_id != role.leader_id
        ]
        if others:
            return replica.random.choice(others)
    is_free = replica.peers.is_free(role.leader_endpoint.node_id, now_ms)
    return role.leader_endpoint if is_free else None


def leader_ended(role: Follower, deadline_ms: int) -> None:
    """The leader has resigned: wait no longer, and refuse no pre-vote for its sake."""
    role.fetch_deadline_ms = min(role.fetch_deadline_ms, deadline_ms)
    role.has_fetched = False


def fetch_failed(role: Follower, target: Endpoint) -> None:
    """No usable answer came: ask the leader next if this was another server, and the reverse."""
    role.is_leader_silent = target.node_id == role.leader_id


# --- what the leader sends -------------------------------------------------------------------


def fetched(
    replica: Replica, role: Follower, answer: FetchedPartition, *, source: Endpoint, now_ms: int
) -> str | None:
    """Apply an answer without error. Returns why this replica must stop, if it must."""
    if answer.diverging_epoch.end_offset >= 0:
        diverging = Diverging(
            epoch=answer.diverging_epoch.epoch, end_offset=answer.diverging_epoch.end_offset
        )
        leader_was_there(replica, role, now_ms)
        return _truncate(replica, diverging, source, now_ms)
    try:
        if answer.records and not _append(replica, role, answer.records):
            replica.peers.back_off(source.node_id, now_ms + replica.config.retry_backoff_ms)
            return None
    except UnknownRecord as unknown:
        return (
            f"the leader, node {role.leader_id}, wrote what this release does not know: {unknown}."
            " Start a release as new as the leader's"
        )
    leader_was_there(replica, role, now_ms)
    _learn_high_watermark(replica.log, answer.high_watermark)
    return None


def leader_was_there(replica: Replica, role: Follower, now_ms: int) -> None:
    role.has_fetched = True
    role.is_leader_silent = False
    role.fetch_deadline_ms = now_ms + replica.fetch_timeout_ms()


def _append(replica: Replica, role: Follower, records: bytes) -> bool:
    """Append intact batches that continue our log; refuse all others, to fetch them again.

    Kafka's leaders cut an answer at the limit of bytes, within a batch if need be: the rest of
    that batch comes with the next Fetch, which asks for all of it again.

    Raises UnknownRecord for what no fetch will bring in another form.
    """
    try:
        found, end = intact_headers(records)
        if not found:
            raise CorruptBatch(f"no whole batch in {len(records)} bytes")
        whole = records[:end]
        control = control_records(whole) if any(h.is_control for h in found) else ()
    except UnknownRecord:
        raise
    except Malformed as corrupt:
        replica.outbox.trace("corrupt_fetch", offset=replica.log.end_offset, reason=str(corrupt))
        return False
    if not continues(replica.log, found, role.epoch):
        places = [(header.base_offset, header.leader_epoch) for header in found[:3]]
        replica.outbox.trace("misplaced_fetch", offset=replica.log.end_offset, found=places)
        return False
    replica.log.append(whole, found, syncing=replica.append(whole))
    if control and replica.history.observe(control):
        replica.voters_changed()
    return True


def continues(log: QuorumLog, found: Sequence[BatchHeader], leader_epoch: int) -> bool:
    """Do these batches begin at our log end, without a gap, in epochs that do not go back?"""
    offset, epoch = log.end_offset, log.last_epoch
    for header in found:
        if header.base_offset != offset or not epoch <= header.leader_epoch <= leader_epoch:
            return False
        offset, epoch = header.next_offset, header.leader_epoch
    return True


def _truncate(replica: Replica, diverging: Diverging, source: Endpoint, now_ms: int) -> str | None:
    log = replica.log
    point = log.truncation_point(diverging)
    if is_committed(log, min(point, diverging.end_offset)):
        return (
            f"the leader's log ends epoch {diverging.epoch} at {diverging.end_offset}, but"
            f" records up to {log.high_watermark} are committed here: refusing to truncate"
        )
    if point >= log.end_offset:  # no honest leader says so; do not ask it again at once
        replica.peers.back_off(source.node_id, now_ms + replica.config.retry_backoff_ms)
        return None
    replica.outbox.trace("truncated", to=point, from_=log.end_offset, epoch=diverging.epoch)
    replica.truncate(point)
    return None


def is_committed(log: QuorumLog, offset: int) -> bool:
    """Would truncating to `offset` lose what is committed? Then stop instead (KAFKA-12460)."""
    return log.high_watermark is not None and offset < log.high_watermark


def _learn_high_watermark(log: QuorumLog, leaders: int) -> None:
    """Ours is what the leader has committed, as far as we hold it. -1: it does not know yet."""
    if leaders >= 0:
        known = log.tail.whole_batches(min(leaders, log.end_offset))
        log.advance_high_watermark(max(log.start_offset, known))


def end_epoch_backoff_ms(own: ReplicaKey, preferred: Sequence[int], backoff_max_ms: int) -> int:
    """Return how long to wait after the leader resigned; the most up-to-date voter does not wait.

    The others wait longer the later they are in `preferred`; a voter that is not in it waits for
    the maximum.
    """
    if own.id not in preferred:
        return backoff_max_ms
    position = preferred.index(own.id)
    if position == 0:
        return 0
    return min(backoff_max_ms, (backoff_max_ms >> (len(preferred) - 1)) << (position - 1))


def deadline_ms(replica: Replica, role: Follower) -> int | None:
    due_ms = role.fetch_deadline_ms if replica.may_campaign else None
    if replica.peers.busy or not discovering.acknowledges(replica.log):
        return due_ms
    if role.snapshot_id is not None and _is_finishing(replica):
        return due_ms
    free_at_ms = replica.peers.free_at_ms(role.leader_endpoint.node_id)
    discovery_ms = discovering.discovery_due_ms(replica) if role.is_leader_silent else None
    return earliest(due_ms, free_at_ms, discovery_ms)
