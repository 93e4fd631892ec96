"""A follower applies one partition of its leader's answer: it appends, truncates, or asks again.

Requests and timing are in replication.py. A follower appends exactly what its leader has at or
behind the end of its own log, and nothing of a later epoch than the one that it follows. Where the
leader's log is compacted, offsets are missing there, and so they are here.

Source: KIP-101, KIP-279, KIP-595; Kafka's AbstractFetcherThread and ReplicaFetcherThread.
"""

from dataclasses import dataclass
from typing import assert_never

from broker.partition.local_log import LocalLog
from broker.partition.partition import FollowerOf, Partition
from quorum.core.types import NO_EPOCH
from quorum.log.fetch import Diverging, truncation_point
from wire.batch import BatchHeader, CorruptBatch, headers, is_intact
from wire.errors import ErrorCode
from wire.message import Value
from wire.messages.fetching import FetchedPartition, FetchPartition, diverges
from wire.transaction_markers import read_marker
from wire.varint import Malformed

__all__ = [
    "Batches",
    "Fenced",
    "FetchOn",
    "Mismatch",
    "OutOfRange",
    "Outcome",
    "TryLater",
    "fetch_partition",
    "fetched_batches",
    "follow",
    "follower_high_watermark",
    "is_stale",
    "last_fetched_epoch",
]


@dataclass(frozen=True, slots=True)
class FetchOn:
    """Fetch on."""


@dataclass(frozen=True, slots=True)
class TryLater:
    """There is nothing to do but wait a little."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """The leader knows a later epoch than we do: wait for the metadata."""


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """The leader has no such offset: ask where its log begins and ends."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The leader sent what does not continue our log: we or it are wrong. Stop following."""

    reason: str


Outcome = FetchOn | TryLater | Fenced | OutOfRange | Mismatch


def last_fetched_epoch(log: LocalLog) -> int:
    """The epoch of our last record, by which the leader sees whether our log is a prefix.

    Also of one that retention has removed since: a log that is empty may stand behind records that
    the leader never had, and must then begin anew where the leader's begins.
    """
    return log.last_epoch


def fetch_partition(
    partition: Partition, role: FollowerOf, *, bytes_max: int, by_epoch: bool = True
) -> FetchPartition:
    log = partition.open_log
    return FetchPartition(
        partition=partition.index,
        current_leader_epoch=role.leader_epoch if by_epoch else NO_EPOCH,
        fetch_offset=log.end_offset,
        last_fetched_epoch=last_fetched_epoch(log) if by_epoch else NO_EPOCH,
        log_start_offset=log.start_offset,
        partition_max_bytes=bytes_max,
    )


def is_stale(partition: Partition, asked: FetchPartition) -> bool:
    """Has the replica moved on since it asked?"""
    role = partition.role
    return (
        not isinstance(role, FollowerOf)
        or asked.current_leader_epoch not in (role.leader_epoch, NO_EPOCH)
        or partition.open_log.end_offset != asked.fetch_offset
    )


def follow(partition: Partition, data: FetchedPartition) -> Outcome:
    """Obey the leader's answer about one partition. It must not be stale."""
    match data.error_code:
        case ErrorCode.NONE:
            return _take(partition, data)
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            return OutOfRange()
        case ErrorCode.FENCED_LEADER_EPOCH:
            return Fenced()
        case error:
            return TryLater(error.name)


def _take(partition: Partition, data: FetchedPartition) -> Outcome:
    log, role = partition.open_log, partition.role
    assert isinstance(role, FollowerOf), role
    if diverges(data):
        diverging = Diverging(
            epoch=data.diverging_epoch.epoch, end_offset=data.diverging_epoch.end_offset
        )
        end_offset = truncation_point(log.epochs, end_offset=log.end_offset, diverging=diverging)
        if log.start_offset == log.end_offset:
            log.reset(max(0, data.log_start_offset))  # no record of ours tells where we parted
        elif end_offset <= data.log_start_offset and log.start_offset < data.log_start_offset:
            log.reset(data.log_start_offset)  # it has let go of all that we share
        else:
            log.truncate(end_offset)
        return FetchOn()
    records = data.records or b""
    end_offset = _next_batch_at(log, records)
    batches = fetched_batches(records, end_offset=end_offset, leader_epoch=role.leader_epoch)
    match batches:
        case Batches(records=records, headers=found):
            if found and end_offset < log.end_offset:
                log.reset(end_offset)
            if found:
                log.append(records, found)
        case Mismatch() | TryLater():
            return batches
        case other:
            assert_never(other)
    log.high_watermark = follower_high_watermark(
        data.high_watermark, start_offset=log.start_offset, end_offset=log.end_offset
    )
    log.trim(min(data.log_start_offset, log.high_watermark))
    return FetchOn()


def _next_batch_at(log: LocalLog, records: bytes) -> int:
    """Where the next batch begins: at our end, but for an empty log.

    Records may be deleted up to an offset within a batch, and a log that begins there has to have
    the batch whole (KIP-107).
    """
    if log.start_offset < log.end_offset:
        return log.end_offset
    try:
        _, first = next(headers(records), (0, None))
    except CorruptBatch:
        return log.end_offset
    if first is None or not first.base_offset < log.end_offset < first.next_offset:
        return log.end_offset
    return first.base_offset


def follower_high_watermark(
    leader_high_watermark: int, *, start_offset: int, end_offset: int
) -> int:
    """The leader's high watermark, as far as our log reaches.

    It may be lower than before: a new leader starts with the value that it last learnt.
    """
    return min(max(leader_high_watermark, start_offset), end_offset)


class Batches(Value, kw_only=False):
    """The batches are whole and intact, and continue the log."""

    records: bytes
    headers: tuple[BatchHeader, ...]


def fetched_batches(
    records: bytes, *, end_offset: int, leader_epoch: int
) -> Batches | Mismatch | TryLater:
    """The part of an answer that may be appended at `end_offset`.

    A batch that is cut short by the size limit ends it, and so does one of a later epoch than
    `leader_epoch`: it was written after the log we think we follow (KAFKA-18723). A marker has to
    say how it ends its transaction.
    """
    found: list[BatchHeader] = []
    end = 0
    try:
        for position, header in headers(records):
            if header.leader_epoch > leader_epoch:
                break
            if not is_intact(records, position, header):
                return TryLater(f"checksum of the batch at offset {header.base_offset}")
            expected = found[-1].next_offset if found else end_offset
            if header.base_offset < expected:
                return Mismatch(f"a batch at offset {header.base_offset}, not at {expected}")
            if header.is_control:
                read_marker(memoryview(records)[position:], header)
            found.append(header)
            end = position + header.size_bytes
    except Malformed as error:
        return TryLater(str(error))
    return Batches(records if end == len(records) else records[:end], tuple(found))
