"""Leading an epoch: beginning it, counting what is committed, resigning if no majority follows.

How fetches are answered is in `serving`; how an epoch is won, in `electing`.

Source: Raft thesis 3.5, 3.6.2 and 6.2; KIP-595; Kafka's LeaderState.
"""

from collections.abc import Mapping, Sequence

from quorum.core.effects import earliest
from quorum.core.types import ReplicaKey
from quorum.raft import voters
from quorum.raft.log import QuorumLog
from quorum.raft.messages import begin_request
from quorum.raft.replica import VOTE_CHANNEL, Replica
from quorum.raft.roles import Candidate, Leader, Progress, Resigned, Role
from quorum.raft.voter_history import NOT_IN_THE_LOG, control_records, record_of
from wire.batch import placed
from wire.control_records import (
    ControlRecord,
    KRaftVersion,
    LeaderChange,
    LeaderChangeVoter,
    encode_control_batch,
)

__all__ = [
    "OBSERVERS_MAX",
    "advance_high_watermark",
    "append",
    "append_control",
    "deadline_ms",
    "enter",
    "hear",
    "hears_majority",
    "leader",
    "may_commit",
    "own_progress",
    "poll",
    "preferred_successors",
    "progress_of_voters",
    "resigned",
    "track",
]

OBSERVERS_MAX = 1000  # more than the brokers of any cluster


# --- beginning ------------------------------------------------------------------------------


def leader(replica: Replica, previous: Candidate, now_ms: int) -> Leader:
    granting = [key for key in replica.voters.keys if previous.votes.get(key.id) is True]
    own = replica.config.as_voter if replica.is_voter else None
    return Leader(
        epoch=previous.epoch,
        voted=replica.key,
        epoch_start_offset=replica.log.end_offset,
        granting=tuple(granting),
        progress={
            voter.key.id: Progress(key=voter.key)
            for voter in replica.voters.others(replica.node_id)
        },
        check_quorum_deadline_ms=now_ms + replica.config.check_quorum_timeout_ms,
        begin_epoch_due_ms=now_ms,
        updated_voters=replica.voters if own is None else replica.voters.with_voter(own),
    )


def enter(replica: Replica, role: Leader, now_ms: int) -> None:
    """Write LeaderChange, the first record of the epoch: committing it commits all before it.

    In version 0, without directories, as Kafka does whatever the kraft.version.
    """
    change = LeaderChange(
        leader_id=replica.node_id,
        voters=_ids(replica.voters.keys),
        granting_voters=_ids(role.granting),
    )
    append_control(replica, role, [change, *_records_at_start(replica, role)], now_ms)


def _ids(keys: Sequence[ReplicaKey]) -> tuple[LeaderChangeVoter, ...]:
    return tuple(LeaderChangeVoter(voter_id=key.id) for key in keys)


def _records_at_start(replica: Replica, role: Leader) -> tuple[ControlRecord, ...]:
    """The voters, if the log does not name them, or has another address of this node (KIP-853)."""
    latest = replica.history.latest
    is_known = latest.voters_offset != NOT_IN_THE_LOG and latest.voters == role.updated_voters
    if latest.kraft_version == 0 or is_known:
        return ()
    return KRaftVersion(kraft_version=latest.kraft_version), record_of(role.updated_voters)


def append(replica: Replica, role: Leader, batches: bytes) -> int:
    """Give the batches their offsets and write them; returns the last offset."""
    _write(replica, role, batches)
    return replica.log.end_offset - 1


def append_control(
    replica: Replica, role: Leader, records: Sequence[ControlRecord], now_ms: int
) -> int:
    """Append one batch; returns its last offset. New voters count at once, committed or not."""
    written = _write(replica, role, encode_control_batch(records, timestamp_ms=now_ms))
    if replica.history.observe(control_records(written)):
        replica.voters_changed()
        _adopt_voters(replica, role, now_ms)
    return replica.log.end_offset - 1


def _write(replica: Replica, role: Leader, batches: bytes) -> bytes:
    log = replica.log
    records, found = placed(batches, base_offset=log.end_offset, leader_epoch=role.epoch)
    log.append(records, found, syncing=replica.append(records))
    return records


def _adopt_voters(replica: Replica, role: Leader, now_ms: int) -> None:
    """Keep the progress of replicas that become voters, or cease to be.

    The check of the quorum begins anew: a sole voter has never waited for a majority.
    """
    known = {progress.key: progress for progress in role.progress.values()} | role.observers
    voters = replica.voters.others(replica.node_id)
    role.progress = {
        voter.key.id: next(
            (progress for key, progress in known.items() if voter.key.matches(key)),
            Progress(key=voter.key),
        )
        for voter in voters
    }
    counted = {progress.key for progress in role.progress.values()}
    role.observers = {
        key: progress
        for key, progress in known.items()
        if key not in counted and progress.last_fetch_ms >= 0
    }
    role.heard &= set(role.progress)
    role.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms


# --- counting -------------------------------------------------------------------------------


def own_progress(log: QuorumLog) -> int:
    """What the leader counts for itself: what it would still have after a power failure.

    Thesis 10.2.1 lets a leader write in parallel with its followers, on the condition that it
    counts itself only once its own write is durable. (Kafka counts it before: unsafe for a
    single voter.)
    """
    return log.synced_offset


def may_commit(offset: int, epoch_start_offset: int) -> bool:
    """Only records of the leader's own epoch are committed by counting replicas (thesis 3.6.2).

    Earlier ones are committed with them. Else a record on a majority could still be replaced by
    a leader that never had it (figure 3.7 there).
    """
    return offset > epoch_start_offset


def progress_of_voters(replica: Replica, role: Leader) -> dict[int, int]:
    """The log end of every voter, as far as it counts."""
    ends: dict[int, int] = {}
    for voter_id, progress in role.progress.items():
        ends[voter_id] = progress.log_end_offset
    if replica.is_voter:
        ends[replica.node_id] = own_progress(replica.log)
    return ends


def advance_high_watermark(replica: Replica, role: Leader) -> bool:
    """Count, once a turn, what our syncs and the voters' fetches have brought; has it advanced?

    It never goes back, and is the end of a batch, whatever offset a voter has asked for.
    """
    if role.high_watermark == replica.log.end_offset:
        return False  # all there is
    counted = voters.majority_offset(progress_of_voters(replica, role))
    if role.high_watermark is not None and counted <= role.high_watermark:
        return False
    offset = replica.log.tail.whole_batches(counted)
    if not may_commit(offset, role.epoch_start_offset):
        return False
    if role.high_watermark is not None and offset <= role.high_watermark:
        return False
    role.high_watermark = offset
    replica.log.advance_high_watermark(offset)
    return True


# --- followers ------------------------------------------------------------------------------


def track(replica: Replica, role: Leader, key: ReplicaKey, fetch_offset: int, now_ms: int) -> bool:
    """Note a valid Fetch: `key` holds all before `fetch_offset`, durably. Is it another voter?"""
    if key.id == replica.node_id:
        return False  # an impostor, or ourselves
    is_voter = hear(replica, role, key, now_ms)
    progress = role.progress[key.id] if is_voter else _observer(replica, role, key, now_ms)
    progress.key = key
    progress.note_fetch(
        fetch_offset=fetch_offset, leader_end_offset=replica.log.end_offset, now_ms=now_ms
    )
    return is_voter


def _observer(replica: Replica, role: Leader, key: ReplicaKey, now_ms: int) -> Progress:
    """The progress of an observer. A new one takes the place of those that no longer fetch."""
    if key not in role.observers:
        oldest_ms = now_ms - replica.config.observer_session_ms
        known = sorted(role.observers.values(), key=lambda progress: progress.last_fetch_ms)
        role.observers = {
            progress.key: progress
            for progress in known[-(OBSERVERS_MAX - 1) :]
            if progress.last_fetch_ms >= oldest_ms
        }
        role.observers[key] = Progress(key=key)
    return role.observers[key]


def hear(replica: Replica, role: Leader, key: ReplicaKey, now_ms: int) -> bool:
    """Note that `key` follows us: it asks for what only a leader gives. Is it another voter?"""
    voters = replica.voters
    if key.id == replica.node_id or not voters.contains(key):
        return False
    role.heard.add(key.id)
    if hears_majority(len(role.heard), len(voters.ids), is_voter=replica.is_voter):
        role.heard.clear()
        role.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
    return True


def hears_majority(heard_count: int, voter_count: int, *, is_voter: bool = True) -> bool:
    """Have enough other voters fetched that they are a majority, with the leader if it votes?

    Thesis 6.2: a leader that cannot reach one steps down, so that nobody waits for it in vain
    (KAFKA-15489). One that is being removed does not count itself (thesis 4.2.2).
    """
    return heard_count + is_voter >= voters.majority_count(voter_count)


# --- timers ---------------------------------------------------------------------------------


def poll(replica: Replica, role: Leader, now_ms: int) -> Role | None:
    if not role.progress:  # a sole voter is its own majority (KAFKA-16144)
        return None
    if role.check_quorum_deadline_ms <= now_ms:
        replica.outbox.trace("check_quorum_failed", epoch=role.epoch, heard=sorted(role.heard))
        return resigned(replica, role, now_ms)
    if role.begin_epoch_due_ms <= now_ms:
        _announce(replica, role, now_ms)
        role.begin_epoch_due_ms = now_ms + replica.config.begin_epoch_interval_ms
    return None


def _announce(replica: Replica, role: Leader, now_ms: int) -> None:
    own = replica.endpoint
    assert own is not None, "a leader is a voter, or was"
    for voter in replica.voters.others(replica.node_id):
        if replica.peers.is_free(voter.key.id, now_ms):
            body = begin_request(replica.config, voter.key, epoch=role.epoch, leader=own)
            replica.ask(voter.endpoint, VOTE_CHANNEL, body)


def resigned(replica: Replica, role: Leader, now_ms: int) -> Resigned:
    ends = {progress.key: progress.log_end_offset for progress in role.progress.values()}
    return Resigned(
        epoch=role.epoch,
        voted=role.voted,
        election_deadline_ms=now_ms + replica.election_timeout_ms(),
        unacknowledged={endpoint.node_id: endpoint for endpoint in replica.other_voters()},
        preferred=preferred_successors(ends),
    )


def preferred_successors(ends: Mapping[ReplicaKey, int]) -> tuple[ReplicaKey, ...]:
    """The most up-to-date voter first; it need not wait before it campaigns (KIP-595)."""
    return tuple(sorted(ends, key=lambda key: (-ends[key], key.id)))


def deadline_ms(role: Leader) -> int | None:
    due_ms = earliest(role.parked.due_ms, role.watermark_due_ms)
    if role.progress:
        due_ms = earliest(due_ms, role.check_quorum_deadline_ms, role.begin_epoch_due_ms)
    return due_ms if role.change is None else earliest(due_ms, role.change.deadline_ms)
