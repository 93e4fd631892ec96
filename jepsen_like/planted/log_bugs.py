"""Planted bugs in replication, durability and commitment. What each breaks stands beside it."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from jepsen_like.planted.planting import Plants, plant_in
from quorum.core.effects import Truncate
from quorum.core.types import ReplicaKey
from quorum.log import fetch
from quorum.log.epochs import EpochCache
from quorum.log.fetch import Diverging, FetchPosition, Valid
from quorum.log.tail import Tail
from quorum.raft import discovering, following, leading, serving
from quorum.raft.log import QuorumLog
from quorum.raft.replica import Replica
from quorum.raft.roles import Leader
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.messages.fetching import FetchRequest

__all__ = ["LOG_PLANTS", "LOG_SURVIVORS"]

LOG_PLANTS: Plants = {}
LOG_SURVIVORS: Plants = {}

# What a plant calls of the rule that it replaces.
_progress_of_voters = leading.progress_of_voters
_truncation_point = fetch.truncation_point
_check_fetch_position = fetch.check_fetch_position
_check = QuorumLog.check
_truncate = QuorumLog.truncate
_fetch = serving.fetch
_append = Replica.append
_append_to_log = QuorumLog.append


# --- counting -------------------------------------------------------------------------------


@plant_in(
    LOG_PLANTS,
    "the leader counts itself once",
    holder=leading,
    name="progress_of_voters",
    seeds_max=15,
)
def counts_itself_twice(replica: Replica, role: Leader) -> dict[int, int]:
    ends = _progress_of_voters(replica, role)
    return {**ends, -1: ends[replica.node_id]}


@plant_in(
    LOG_PLANTS,
    "observers do not count",
    holder=leading,
    name="progress_of_voters",
    seeds_max=25,
)
def counts_observers(replica: Replica, role: Leader) -> dict[int, int]:
    observers = {key.id: progress.log_end_offset for key, progress in role.observers.items()}
    return {**_progress_of_voters(replica, role), **observers}


@plant_in(
    LOG_PLANTS,
    "the leader counts itself only after its own sync",
    holder=leading,
    name="own_progress",
    seeds_max=20,
)
def counts_before_own_sync(log: QuorumLog) -> int:
    return log.end_offset


@plant_in(
    LOG_PLANTS,
    "a sync covers what was written when it began, not what has been since",
    holder=QuorumLog,
    name="stored",
    seeds_max=40,
)
def counts_what_was_written_during_a_sync(self: QuorumLog, number: int) -> None:
    while self._syncing and self._syncing[0][0] <= number:
        self._syncing.popleft()
    self.synced_offset = self.end_offset


@plant_in(
    LOG_PLANTS,
    "only records of its own epoch are committed by counting (thesis 3.6.2)",
    holder=leading,
    name="may_commit",
    seeds_max=10,
)
def commits_earlier_epochs(offset: int, epoch_start_offset: int) -> bool:
    return offset > 0


# --- replication ----------------------------------------------------------------------------


@plant_in(
    LOG_PLANTS,
    "a follower syncs before its next Fetch",
    holder=discovering,
    name="acknowledges",
    seeds_max=10,
)
def acknowledges_before_sync(log: QuorumLog) -> bool:
    return True


@plant_in(
    LOG_PLANTS,
    "truncation keeps what the logs have in common",
    holder=fetch,
    name="truncation_point",
    seeds_max=20,
)
def truncates_too_far(epochs: EpochCache, *, end_offset: int, diverging: Diverging) -> int:
    return max(0, _truncation_point(epochs, end_offset=end_offset, diverging=diverging) - 1)


@plant_in(
    LOG_PLANTS,
    "an epoch that never wrote here says nothing of our offsets (KIP-279)",
    holder=fetch,
    name="truncation_point",
    seeds_max=80,
)
def truncates_to_the_leaders_offset(
    epochs: EpochCache, *, end_offset: int, diverging: Diverging
) -> int:
    return min(diverging.end_offset, end_offset)


@plant_in(
    LOG_PLANTS,
    "what is truncated is forgotten by the epoch cache",
    holder=EpochCache,
    name="truncate",
    seeds_max=60,
)
def keeps_truncated_epochs(self: EpochCache, end_offset: int) -> None:
    pass


@plant_in(
    LOG_PLANTS,
    "an epoch that began where the log is truncated is forgotten with it",
    holder=EpochCache,
    name="truncate",
    seeds_max=60,
)
def keeps_the_epoch_at_the_cut(self: EpochCache, end_offset: int) -> None:
    self._keep(bisect_right(self._starts, end_offset))


@plant_in(
    LOG_PLANTS,
    "truncation takes back the epoch of the last record",
    holder=QuorumLog,
    name="truncate",
    seeds_max=60,
)
def keeps_last_epoch(self: QuorumLog, end_offset: int, *, syncing: int | None) -> None:
    last_epoch = self.last_epoch
    _truncate(self, end_offset, syncing=syncing)
    self.last_epoch = last_epoch


@plant_in(
    LOG_PLANTS,
    "what was cut off is not shown again out of memory",
    holder=Tail,
    name="clear",
    seeds_max=60,
)
def keeps_what_was_cut_off(self: Tail) -> None:
    return


@plant_in(
    LOG_PLANTS,
    "a fetcher whose last epoch did not write here diverges, wherever it is",
    holder=fetch,
    name="check_fetch_position",
    seeds_max=80,
)
def compares_offsets_only(
    epochs: EpochCache, *, end_offset: int, fetch_offset: int, last_fetched_epoch: int
) -> FetchPosition:
    end = epochs.end_offset_for(last_fetched_epoch, end_offset)
    if end is not None and end.offset >= fetch_offset:
        return Valid()
    return _check_fetch_position(
        epochs,
        end_offset=end_offset,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
    )


@plant_in(
    LOG_PLANTS,
    "a diverging Fetch acknowledges nothing",
    holder=serving,
    name="fetch",
    seeds_max=50,
)
def counts_diverging_fetches(
    replica: Replica, role: Leader, token: int, request: FetchRequest, *, now_ms: int
) -> None:
    ask = request.topics[0].partitions[0]
    if ask.fetch_offset <= replica.log.end_offset and request.replica_state.replica_id >= 0:
        key = ReplicaKey(request.replica_state.replica_id, ask.replica_directory_id)
        leading.track(replica, role, key, ask.fetch_offset, now_ms)
    _fetch(replica, role, token, request, now_ms=now_ms)


@plant_in(
    LOG_PLANTS,
    "an append is safe when its own token is stored",
    holder=Replica,
    name="append",
    seeds_max=50,
)
def waits_for_the_sync_before(self: Replica, records: bytes) -> int | None:
    number = _append(self, records)
    return None if number is None else number - 1


@plant_in(
    LOG_PLANTS,
    "one fetch may bring records of several epochs",
    holder=QuorumLog,
    name="append",
    seeds_max=100,
)
def learns_one_epoch_a_fetch(
    self: QuorumLog, records: bytes, headers: Iterable[BatchHeader], *, syncing: int | None
) -> None:
    start_offset = self.end_offset
    _append_to_log(self, records, headers, syncing=syncing)
    self.epochs.assign(self.last_epoch, start_offset)


@plant_in(
    LOG_PLANTS,
    "who resigns answers the fetches that wait",
    holder=serving,
    name="refuse_all",
    seeds_max=30,
)
def forgets_waiting_fetches(role: Leader) -> list[int]:
    role.parked.clear()
    return []


# --- changes that break nothing by themselves -----------------------------------------------


@plant_in(
    LOG_SURVIVORS,
    "fetches of another epoch are fenced",
    holder=fetch,
    name="check_leader_epoch",
)
def serves_fetches_of_any_epoch(requested: int, current: int, *, is_leader: bool) -> ErrorCode:
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


@plant_in(
    LOG_SURVIVORS,
    "what is committed is never truncated",
    holder=following,
    name="is_committed",
)
def truncates_what_is_committed(log: QuorumLog, offset: int) -> bool:
    return False


@plant_in(
    LOG_SURVIVORS,
    "only what continues the log is appended",
    holder=following,
    name="continues",
)
def appends_whatever_comes(log: QuorumLog, found: Sequence[BatchHeader], leader_epoch: int) -> bool:
    return True


@plant_in(
    LOG_SURVIVORS,
    "truncation is synced before the next Fetch",
    holder=Replica,
    name="truncate",
)
def does_not_wait_for_truncation(self: Replica, end_offset: int) -> None:
    self.outbox.on_log(Truncate, end_offset=end_offset, durability=self.durability)
    self.log.truncate(end_offset, syncing=None)
