"""Leading an epoch: beginning it, counting what is committed, noticing that nobody follows.

How fetches are answered is in `serving`; how an epoch is won, in `electing`.

Source: Raft thesis 3.5, 3.6.2 and 6.2; KIP-595; Kafka's LeaderState.
"""

from collections.abc import Mapping, Sequence

from quorum import voters
from quorum.effects import earliest
from quorum.log import ReplicaLog
from quorum.messages import begin_request
from quorum.replica import VOTE_CHANNEL, Replica
from quorum.roles import Candidate, Leader, Progress, Resigned, Role
from quorum.types import ReplicaKey
from wire.batch import assign, headers
from wire.control_records import LeaderChange, LeaderChangeVoter, encode_control_batch

__all__ = [
    "OBSERVERS_MAX",
    "advance_high_watermark",
    "append",
    "deadline_ms",
    "enter",
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
    )


def enter(replica: Replica, role: Leader, now_ms: int) -> None:
    """Write LeaderChange, the first record of the epoch: committing it commits all before it."""
    version = min(1, replica.config.kraft_version)
    change = LeaderChange(
        version=version,
        leader_id=replica.node_id,
        voters=_as_recorded(replica.voters.keys, version),
        granting_voters=_as_recorded(role.granting, version),
    )
    append(replica, role, encode_control_batch([change], timestamp_ms=now_ms))


def _as_recorded(keys: Sequence[ReplicaKey], version: int) -> tuple[LeaderChangeVoter, ...]:
    if version == 0:
        return tuple(LeaderChangeVoter(voter_id=key.id) for key in keys)
    return tuple(
        LeaderChangeVoter(voter_id=key.id, voter_directory_id=key.directory_id) for key in keys
    )


def append(replica: Replica, role: Leader, batches: bytes) -> int:
    """Give the batches their place in the log and write them; returns the last offset."""
    log = replica.log
    placed = assign(batches, base_offset=log.end_offset, leader_epoch=role.epoch)
    log.append([header for _, header in headers(placed)], syncing=replica.append(placed))
    return log.end_offset - 1


# --- counting -------------------------------------------------------------------------------


def own_progress(log: ReplicaLog) -> int:
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
    ends = {voter_id: progress.end_offset for voter_id, progress in role.progress.items()}
    if replica.is_voter:
        ends[replica.node_id] = own_progress(replica.log)
    return ends


def advance_high_watermark(replica: Replica, role: Leader) -> bool:
    """Recompute after a sync of ours or a fetch of a voter. It never goes back."""
    offset = voters.majority_offset(progress_of_voters(replica, role))
    if not may_commit(offset, role.epoch_start_offset):
        return False
    if role.high_watermark is not None and offset <= role.high_watermark:
        return False
    role.high_watermark = offset
    replica.log.advance_high_watermark(offset)
    return True


# --- hearing --------------------------------------------------------------------------------


def track(replica: Replica, role: Leader, key: ReplicaKey, fetch_offset: int, now_ms: int) -> None:
    """A valid Fetch: `key` holds all before `fetch_offset`, durably, and hears us."""
    if key.id == replica.node_id:
        return  # an impostor, or ourselves
    if replica.voters.contains(key):
        progress = role.progress[key.id]
        role.heard.add(key.id)
        if hears_majority(len(role.heard), len(replica.voters)):
            role.heard.clear()
            role.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
    else:
        progress = _observer(replica, role, key, now_ms)
    _update(progress, key, fetch_offset, leader_end_offset=replica.log.end_offset, now_ms=now_ms)
    advance_high_watermark(replica, role)


def _update(
    progress: Progress, key: ReplicaKey, fetch_offset: int, *, leader_end_offset: int, now_ms: int
) -> None:
    """Caught up now, or at its previous fetch if it has since reached where we ended then."""
    progress.key = key
    if fetch_offset >= leader_end_offset:
        progress.last_caught_up_ms = now_ms
    elif progress.last_fetch_ms >= 0 and fetch_offset >= progress.leader_end_offset:
        progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
    progress.end_offset = fetch_offset
    progress.last_fetch_ms = now_ms
    progress.leader_end_offset = leader_end_offset


def _observer(replica: Replica, role: Leader, key: ReplicaKey, now_ms: int) -> Progress:
    """The observer's progress. Those not heard of for long are dropped when a new one comes."""
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


def hears_majority(heard_count: int, voter_count: int) -> bool:
    """Have enough other voters fetched that, with the leader, they are a majority?

    Thesis 6.2: a leader that cannot reach one steps down, so that nobody waits for it in vain
    (KAFKA-15489).
    """
    return heard_count >= voters.majority_count(voter_count) - 1


# --- by itself ------------------------------------------------------------------------------


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
    own = replica.voters.endpoint_of(replica.node_id)
    assert own is not None, "a leader is a voter"
    for voter in replica.voters.others(replica.node_id):
        if replica.peers.is_free(voter.key.id, now_ms):
            body = begin_request(replica.config, voter.key, epoch=role.epoch, leader=own)
            replica.ask(voter.endpoint, VOTE_CHANNEL, body)


def resigned(replica: Replica, role: Leader, now_ms: int) -> Resigned:
    ends = {progress.key: progress.end_offset for progress in role.progress.values()}
    return Resigned(
        epoch=role.epoch,
        voted=role.voted,
        election_deadline_ms=now_ms + replica.election_timeout_ms(),
        unacknowledged={endpoint.node_id: endpoint for endpoint in replica.other_voters()},
        preferred=preferred_successors(ends),
    )


def preferred_successors(ends: Mapping[ReplicaKey, int]) -> tuple[ReplicaKey, ...]:
    """The most up to date voter first; it need not wait before it stands (KIP-595)."""
    return tuple(sorted(ends, key=lambda key: (-ends[key], key.id)))


def deadline_ms(role: Leader) -> int | None:
    due = [role.parked.deadline_ms(), role.watermark_due_ms]
    if role.progress:
        due += [role.check_quorum_deadline_ms, role.begin_epoch_due_ms]
    return earliest(*due)
