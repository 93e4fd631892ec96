"""A partition may be read by followers up to the end of its log, and by consumers up to the high
watermark, or to the last stable offset: see `Isolation`. Nobody may read if its log has diverged.

These are pure rules about positions. Requests, sessions and waiting are in fetching.py, other
questions about offsets in list_offsets.py.

Source: KIP-98, KIP-320, KIP-595 (truncation while fetching), KIP-74 (size limits); Kafka's
Partition.fetchRecords and FetchIsolation.
"""

from enum import Enum

from broker.partition.partition import LeaderOf, Partition
from quorum.core.types import NO_EPOCH
from quorum.log.fetch import Diverging, UnknownEpoch, Valid, check_fetch_position
from wire.errors import ErrorCode
from wire.message import Value
from wire.messages.fetching import FetchPartition

__all__ = [
    "READ_COMMITTED",
    "Denied",
    "Isolation",
    "Parted",
    "Position",
    "Readable",
    "is_still_led",
    "isolation_of",
    "position",
    "readable_end",
    "within_limits",
]


READ_COMMITTED = 1  # the isolation level of requests; 0: uncommitted records too


class Isolation(Enum):
    """How far may somebody read?"""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "high watermark"  # what no change of leader takes back
    LAST_STABLE = "last stable offset"  # and what is of no transaction that is going on


def isolation_of(*, is_follower: bool, level: int) -> Isolation:
    if is_follower:
        return Isolation.LOG_END
    return Isolation.LAST_STABLE if level == READ_COMMITTED else Isolation.HIGH_WATERMARK


class Readable(Value, kw_only=False):
    """Batches of [start_offset, end_offset) may be read; there are none if the two are equal."""

    start_offset: int
    end_offset: int


class Parted(Value, kw_only=False):
    """The reader's log has diverged: it must truncate."""

    diverging: Diverging


class Denied(Value, kw_only=False):
    error: ErrorCode


Position = Readable | Parted | Denied


def position(partition: Partition, asked: FetchPartition, isolation: Isolation) -> Position:
    """From where to where may this reader read?"""
    error = partition.check_epoch(asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return Denied(error)
    assert isinstance(partition.role, LeaderOf), partition.role
    log = partition.open_log
    if asked.last_fetched_epoch != NO_EPOCH:
        match check_fetch_position(
            log.epochs,
            end_offset=log.end_offset,
            fetch_offset=asked.fetch_offset,
            last_fetched_epoch=asked.last_fetched_epoch,
        ):
            case Diverging() as diverging:
                return Parted(diverging)
            case UnknownEpoch():
                return Denied(ErrorCode.OFFSET_OUT_OF_RANGE)
            case Valid():
                pass
    if not log.start_offset <= asked.fetch_offset <= log.end_offset:
        return Denied(ErrorCode.OFFSET_OUT_OF_RANGE)
    end_offset = readable_end(partition, isolation)
    return Readable(asked.fetch_offset, max(asked.fetch_offset, end_offset))


def readable_end(partition: Partition, isolation: Isolation) -> int:
    log = partition.open_log
    match isolation:
        case Isolation.LOG_END:
            return log.end_offset
        case Isolation.HIGH_WATERMARK:
            return log.high_watermark
        case Isolation.LAST_STABLE:
            return log.last_stable_offset


def is_still_led(partition: Partition, leader_epoch: int) -> bool:
    """May what was read under `leader_epoch` be told, now that the read is done?

    What was read may not have survived a change of leader, and the high watermark that would be
    told with it is that of the log as it is now.
    """
    role = partition.role
    return isinstance(role, LeaderOf) and role.leader_epoch == leader_epoch


def within_limits(records: bytes, *, remaining: int, partition_max: int, is_first: bool) -> bool:
    """May this part go into the answer? The first always, or a large batch blocks its reader."""
    return is_first or len(records) <= min(remaining, partition_max)
