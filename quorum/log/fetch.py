"""The rules of fetching between replicas, for the metadata log and for partition logs alike.

Leader side: is the fetcher's epoch ours, and is its log a prefix of ours? Follower side: how far
back must we go? Nothing here reads, sends or truncates.

Source: KIP-320 (epoch fencing), KIP-279 and KIP-595 (truncation while fetching).
"""

from collections.abc import Sequence

from quorum.core.types import OffsetAndEpoch
from quorum.log.epochs import EpochCache
from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "Diverging",
    "FetchPosition",
    "TooFarBehind",
    "UnknownEpoch",
    "Valid",
    "check_fetch_position",
    "check_known_epoch",
    "check_leader_epoch",
    "diverging_at_start",
    "too_far_behind",
    "truncation_point",
]


class Valid(Message):
    """The fetcher's log is a prefix of ours, as far as its last epoch can tell."""


class Diverging(Message):
    """The fetcher holds records that we do not: `epoch` ended at `end_offset` here."""

    epoch: int
    end_offset: int


class TooFarBehind(Message):
    """Our log no longer holds what the fetcher lacks: the snapshot that ends at `snapshot` does."""

    snapshot: OffsetAndEpoch


class UnknownEpoch(Message):
    """The fetcher's last epoch is later than any that wrote to our log.

    The metadata log answers where its own log ends, a partition log OFFSET_OUT_OF_RANGE.
    """


FetchPosition = Valid | Diverging | UnknownEpoch


def check_leader_epoch(requested: int, current: int, *, is_leader: bool) -> ErrorCode:
    """May a request that was meant for the leader of epoch `requested` be served? (KIP-320)

    Clients that know no epoch send -1. What is negative is compared with nothing.
    """
    if 0 <= requested < current:
        return ErrorCode.FENCED_LEADER_EPOCH
    if requested > current:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def check_known_epoch(requested: int, current: int, *, is_leader: bool) -> ErrorCode:
    """The same between the nodes of a quorum, who all know one: what is negative is old."""
    if requested < 0:
        return ErrorCode.FENCED_LEADER_EPOCH
    return check_leader_epoch(requested, current, is_leader=is_leader)


def check_fetch_position(
    epochs: EpochCache, *, end_offset: int, fetch_offset: int, last_fetched_epoch: int
) -> FetchPosition:
    """Leader side: does the fetcher's last record, of `last_fetched_epoch`, stand in our log?

    By log matching (thesis 3.5) it does if its epoch wrote here up to that offset or further.
    """
    end = epochs.end_offset_for(last_fetched_epoch, end_offset)
    if end is None:
        return UnknownEpoch()
    if end.epoch != last_fetched_epoch or end.offset < fetch_offset:
        return Diverging(epoch=end.epoch, end_offset=end.offset)
    return Valid()


def too_far_behind(
    end: OffsetAndEpoch, *, start_offset: int, snapshots: Sequence[OffsetAndEpoch]
) -> TooFarBehind | None:
    """Leader side: must a fetcher whose log ends at `end` begin with a snapshot, and with which?

    It must if its log is empty, or ended before ours starts. It must, too, if it ended in an epoch
    before that of our first snapshot: where it leaves our history, the log may not tell.
    `snapshots` are those that may be served, ascending.
    """
    if not snapshots:
        return None
    earliest = snapshots[0]
    is_behind = (
        end.offset == 0
        or end.offset < start_offset
        or (end.offset == start_offset and end.epoch != earliest.epoch)
        or end.epoch < earliest.epoch
    )
    return TooFarBehind(snapshot=snapshots[-1]) if is_behind else None


def diverging_at_start(
    diverging: Diverging, *, start_offset: int, snapshots: Sequence[OffsetAndEpoch]
) -> Diverging:
    """The cache knows no epoch before the start of the log: there, the snapshot has it."""
    for snapshot in snapshots:
        if snapshot.offset == diverging.end_offset == start_offset:
            return Diverging(epoch=snapshot.epoch, end_offset=diverging.end_offset)
    return diverging


def truncation_point(epochs: EpochCache, *, end_offset: int, diverging: Diverging) -> int:
    """Follower side: where our log must end, given where the leader's epoch ended.

    If that epoch never wrote here, the leader's offset says nothing about our records: go back
    to the end of the last epoch before it and fetch again (KIP-279).
    """
    own = epochs.end_offset_for(diverging.epoch, end_offset)
    if own is None:
        return min(diverging.end_offset, end_offset)
    if own.epoch == diverging.epoch:
        return min(own.offset, diverging.end_offset, end_offset)
    return min(own.offset, end_offset)
