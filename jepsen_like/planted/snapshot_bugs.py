"""Planted bugs in snapshots: taking, serving, loading them, and cleaning the log after them."""

from collections.abc import Sequence
from dataclasses import replace

from jepsen_like.planted.planting import plant_in
from quorum.core.application import State
from quorum.core.types import OffsetAndEpoch
from quorum.log import fetch
from quorum.log.fetch import Diverging, TooFarBehind
from quorum.node import delivery
from quorum.raft import compaction, downloading
from quorum.raft.compaction import Compaction
from quorum.raft.replica import Replica
from quorum.raft.roles import Download
from quorum.raft.voter_history import Membership, VoterHistory

_save = Compaction.save
_too_far_behind = fetch.too_far_behind


# --- taking them ----------------------------------------------------------------------------


@plant_in("snapshot", Compaction, "save", seeds_max=10, found_at=1)
def names_snapshots_one_off(
    self: Compaction, replica: Replica, state: State, last_timestamp_ms: int
) -> None:
    """Breaks: a snapshot is named by the end of what it holds (KAFKA-14618)."""
    if state.end_offset - 1 > replica.log.start_offset:
        state = replace(state, end_offset=state.end_offset - 1)
    _save(self, replica, state, last_timestamp_ms)


@plant_in("snapshot", VoterHistory, "at", seeds_max=40, found_at=8)
def says_the_latest_voters(self: VoterHistory, end_offset: int) -> Membership:
    """Breaks: a snapshot says who voted where it ends, not who votes now."""
    return self.latest


# --- cleaning -------------------------------------------------------------------------------


@plant_in("snapshot", compaction, "start_after_cleaning", seeds_max=20, found_at=1)
def cleans_beyond_the_newest(replica: Replica, now_ms: int) -> int | None:
    """Breaks: a log is cleaned up to a snapshot, not beyond the newest (KAFKA-14238)."""
    own = replica.log
    if not own.snapshots or own.committed_offset <= own.start_offset:
        return None
    return own.committed_offset


# --- serving --------------------------------------------------------------------------------


@plant_in("snapshot", fetch, "too_far_behind", seeds_max=80, found_at=22)
def judges_the_far_behind_by_offset(
    end: OffsetAndEpoch, *, start_offset: int, snapshots: Sequence[OffsetAndEpoch]
) -> TooFarBehind | None:
    """Breaks: who ended where our log starts must have ended in its epoch."""
    if end.offset > 0 and end.offset >= start_offset:
        return None
    return _too_far_behind(end, start_offset=start_offset, snapshots=snapshots)


# --- loading --------------------------------------------------------------------------------


@plant_in("snapshot", delivery, "next_after", seeds_max=30, found_at=12)
def delivers_on_from_the_record_after(snapshot_id: OffsetAndEpoch) -> int:
    """Breaks: what is loaded is not delivered again."""
    return snapshot_id.offset + 1


# --- changes that break nothing by themselves -----------------------------------------------


@plant_in("snapshot", fetch, "diverging_at_start")
def forgets_the_epoch_of_the_snapshot(
    diverging: Diverging, *, start_offset: int, snapshots: Sequence[OffsetAndEpoch]
) -> Diverging:
    """Breaks: the epoch before the start of the log is that of the snapshot there."""
    return diverging


@plant_in("snapshot", downloading, "goes_on")
def goes_on_with_another_leaders_bytes(
    download: Download, snapshot_id: OffsetAndEpoch, leader_id: int
) -> bool:
    """Breaks: a download begins anew with another leader: its bytes are its own."""
    return download.id == snapshot_id
