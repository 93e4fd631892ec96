"""Planted bugs in replication, durability and commitment, and of the turn."""

from bisect import bisect_right
from collections.abc import Iterable

from jepsen_like.planted.planting import plant_in
from quorum.core.effects import Truncate
from quorum.core.types import ReplicaKey
from quorum.log import fetch
from quorum.log.epochs import EpochCache
from quorum.log.fetch import Diverging, FetchPosition, Valid
from quorum.raft import leading, serving
from quorum.raft.log import QuorumLog
from quorum.raft.replica import Replica
from quorum.raft.roles import Leader
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.messages.fetching import FetchRequest

_progress_of_voters = leading.progress_of_voters
_truncation_point = fetch.truncation_point
_check_fetch_position = fetch.check_fetch_position
_truncate = QuorumLog.truncate
_fetch = serving.fetch
_append = Replica.append
_append_to_log = QuorumLog.append


# --- counting -------------------------------------------------------------------------------


@plant_in("log", leading, "progress_of_voters", seeds_max=15, found_at=0)
def counts_itself_twice(replica: Replica, role: Leader) -> dict[int, int]:
    """Breaks: the leader counts itself once."""
    ends = _progress_of_voters(replica, role)
    return {**ends, -1: ends[replica.node_id]}


@plant_in("log", leading, "progress_of_voters", seeds_max=25, found_at=3)
def counts_observers(replica: Replica, role: Leader) -> dict[int, int]:
    """Breaks: observers do not count."""
    observers = {key.id: progress.log_end_offset for key, progress in role.observers.items()}
    return {**_progress_of_voters(replica, role), **observers}


@plant_in("log", leading, "own_progress", seeds_max=20, found_at=8)
def counts_before_own_sync(log: QuorumLog) -> int:
    """Breaks: the leader counts itself only after its own sync."""
    return log.end_offset


@plant_in("log", QuorumLog, "stored", seeds_max=40, found_at=31)
def counts_what_was_written_during_a_sync(self: QuorumLog, number: int) -> None:
    """Breaks: a sync covers what was written when it began, not what has been since."""
    while self._syncing and self._syncing[0][0] <= number:
        self._syncing.popleft()
    self.synced_offset = self.end_offset


@plant_in("log", leading, "may_commit", seeds_max=10, found_at=1)
def commits_earlier_epochs(offset: int, epoch_start_offset: int) -> bool:
    """Breaks: only records of its own epoch are committed by counting (thesis 3.6.2)."""
    return offset > 0


# --- replication ----------------------------------------------------------------------------


@plant_in("log", fetch, "truncation_point", seeds_max=20, found_at=2)
def truncates_too_far(epochs: EpochCache, *, end_offset: int, diverging: Diverging) -> int:
    """Breaks: truncation keeps what the logs have in common."""
    return max(0, _truncation_point(epochs, end_offset=end_offset, diverging=diverging) - 1)


@plant_in("log", fetch, "truncation_point", seeds_max=80, found_at=25)
def truncates_to_the_leaders_offset(
    epochs: EpochCache, *, end_offset: int, diverging: Diverging
) -> int:
    """Breaks: an epoch that never wrote here says nothing of our offsets (KIP-279)."""
    return min(diverging.end_offset, end_offset)


@plant_in("log", EpochCache, "truncate", seeds_max=60, found_at=30)
def keeps_the_epoch_at_the_cut(self: EpochCache, end_offset: int) -> None:
    """Breaks: an epoch that began where the log is truncated is forgotten with it."""
    self._keep(bisect_right(self._starts, end_offset))


@plant_in("log", QuorumLog, "truncate", seeds_max=60, found_at=25)
def keeps_last_epoch(self: QuorumLog, end_offset: int, *, syncing: int | None) -> None:
    """Breaks: truncation takes back the epoch of the last record."""
    last_epoch = self.last_epoch
    _truncate(self, end_offset, syncing=syncing)
    self.last_epoch = last_epoch


@plant_in("log", fetch, "check_fetch_position", seeds_max=80, found_at=40)
def compares_offsets_only(
    epochs: EpochCache, *, end_offset: int, fetch_offset: int, last_fetched_epoch: int
) -> FetchPosition:
    """Breaks: a fetcher whose last epoch did not write here diverges, wherever it is."""
    end = epochs.end_offset_for(last_fetched_epoch, end_offset)
    if end is not None and end.offset >= fetch_offset:
        return Valid()
    return _check_fetch_position(
        epochs,
        end_offset=end_offset,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
    )


@plant_in("log", serving, "fetch", seeds_max=50, found_at=6)
def counts_diverging_fetches(
    replica: Replica, role: Leader, token: int, request: FetchRequest, *, host: str, now_ms: int
) -> None:
    """Breaks: a diverging Fetch acknowledges nothing."""
    ask = request.topics[0].partitions[0]
    if ask.fetch_offset <= replica.log.end_offset and request.replica_state.replica_id >= 0:
        key = ReplicaKey(request.replica_state.replica_id, ask.replica_directory_id)
        leading.track(replica, role, key, ask.fetch_offset, now_ms)
    _fetch(replica, role, token, request, host=host, now_ms=now_ms)


@plant_in("log", Replica, "append", seeds_max=50, found_at=31)
def waits_for_the_sync_before(self: Replica, records: bytes) -> int | None:
    """Breaks: an append is safe when its own token is stored."""
    number = _append(self, records)
    return None if number is None else number - 1


@plant_in("log", QuorumLog, "append", seeds_max=100, found_at=36)
def learns_one_epoch_a_fetch(
    self: QuorumLog, records: bytes, headers: Iterable[BatchHeader], *, syncing: int | None
) -> None:
    """Breaks: one fetch may bring records of several epochs."""
    start_offset = self.end_offset
    _append_to_log(self, records, headers, syncing=syncing)
    self.epochs.assign(self.last_epoch, start_offset)


@plant_in("log", serving, "refuse_all", seeds_max=30, found_at=8)
def forgets_waiting_fetches(role: Leader) -> list[int]:
    """Breaks: who resigns answers the fetches that wait."""
    role.parked.clear()
    return []


# --- changes that break nothing by themselves -----------------------------------------------


@plant_in("log", fetch, "check_leader_epoch")
def serves_fetches_of_any_epoch(requested: int, current: int, *, is_leader: bool) -> ErrorCode:
    """Breaks: fetches of another epoch are fenced."""
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


@plant_in("log", Replica, "truncate")
def does_not_wait_for_truncation(self: Replica, end_offset: int) -> None:
    """Breaks: truncation is synced before the next Fetch."""
    self.outbox.on_log(Truncate, end_offset=end_offset, durability=self.durability)
    self.log.truncate(end_offset, syncing=None)
