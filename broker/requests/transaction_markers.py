"""A transaction coordinator has its markers written into the partitions that this broker leads.

A marker is appended like a batch with acks=all, and its place is answered when the high watermark
has passed it: only then is the transaction over there for certain. What is not answered in time, or
answered with an error, the coordinator asks again; a marker that is there already is written once
more, which changes nothing.

Markers in `__consumer_offsets` decide about offsets that consumers have committed in transactions:
the group coordinators are told of each as soon as it is in the log.

Source: KIP-98, KIP-890; Kafka's KafkaApis.handleWriteTxnMarkersRequest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice

from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.partition import appends
from broker.partition.partition import LeaderOf, Partition
from broker.partition.transactional import check_marker
from broker.replicas import Replicas
from broker.waiting import Answers, Deadlines, OffsetWaiters
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from quorum.core.types import NO_EPOCH
from wire.batch import BatchHeader, read_header, write_header
from wire.errors import ErrorCode
from wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from wire.primitives import ZERO_UUID
from wire.transaction_markers import Marker, build_marker

__all__ = ["TransactionEnded", "TransactionMarkers"]

TransactionEnded = Callable[[Partition, Marker, int], None]
"""(partition, marker, now_ms): the marker has been appended, and is not committed yet."""


@dataclass(slots=True, eq=False)
class Pending:
    """A request waits for its places: for each marker, those of its topics."""

    token: int
    markers: tuple[WritableTxnMarker, ...]
    indexes: tuple[int, ...]
    answers: Answers[WritableTxnMarkerPartitionResult]

    @property
    def is_done(self) -> bool:
        return self.answers.is_done


@dataclass(frozen=True, slots=True)
class Waiter:
    pending: Pending
    slot: int

    @property
    def is_done(self) -> bool:
        return self.pending.is_done


class TransactionMarkers:
    def __init__(
        self,
        *,
        replicas: Replicas,
        outbox: Outbox,
        deadlines: Deadlines,
        timeout_ms: int,
        transaction_ended: TransactionEnded,
    ) -> None:
        """`timeout_ms`: how long a request may wait, as it gives no time itself."""
        self._replicas = replicas
        self._outbox = outbox
        self._deadlines = deadlines
        self._timeout_ms = timeout_ms
        self._transaction_ended = transaction_ended
        self._waiting: OffsetWaiters[Waiter] = OffsetWaiters()  # for the high watermark

    def handle(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, WriteTxnMarkersRequest), body
        places = [
            (each, index, self._replicas.find(topic.name, ZERO_UUID, index))
            for each in body.markers
            for topic in each.topics
            for index in topic.partition_indexes
        ]
        indexes = tuple(index for _, index, _ in places)
        pending = Pending(request.token, body.markers, indexes, Answers(len(places)))
        is_broken = any(
            isinstance(found, Partition) and is_of_nobody(marker) for marker, _, found in places
        )
        for slot, (marker, _, found) in enumerate(places):
            if is_broken:
                self._settle(pending, slot, ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                self._write(pending, slot, marker, found, now_ms)
        if not places:
            self._reply(pending)
        elif not pending.is_done:
            deadline_ms = now_ms + self._timeout_ms
            if not self._deadlines.add(pending, deadline_ms, partial(self._expire, pending)):
                self._expire(pending, now_ms)

    def _write(
        self,
        pending: Pending,
        slot: int,
        asked: WritableTxnMarker,
        partition: Partition | ErrorCode,
        now_ms: int,
    ) -> None:
        if isinstance(partition, ErrorCode):
            self._settle(pending, slot, partition)
            return
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.transaction_result,
            asked.coordinator_epoch,
        )
        error = refusal(partition, marker, asked.transaction_version)
        if error is not ErrorCode.NONE:
            self._settle(pending, slot, error)
            return
        offset = partition.append(*marker_batch(partition, marker, now_ms))
        self._waiting.add(partition, offset + 1, Waiter(pending, slot))
        if partition.topic == OFFSETS_TOPIC:
            self._transaction_ended(partition, marker, now_ms)
        partition.advance(now_ms)
        self.progressed(partition)

    # --- waiting ----------------------------------------------------------------------------

    def progressed(self, partition: Partition) -> None:
        """The high watermark of a led partition may have passed a marker."""
        if self._waiting.has(partition):
            for waiter in self._waiting.reached(partition, partition.open_log.high_watermark):
                self._settle(waiter.pending, waiter.slot, appends.wait_result(partition))

    def lost(self, partition: Partition, error: ErrorCode) -> None:
        """The leader epoch has ended: the markers may be cut off."""
        for waiter in self._waiting.lost(partition):
            self._settle(waiter.pending, waiter.slot, error)

    def _expire(self, pending: Pending, _now_ms: int) -> None:
        for slot in pending.answers.missing:
            self._settle(pending, slot, ErrorCode.REQUEST_TIMED_OUT)

    # --- answering --------------------------------------------------------------------------

    def _settle(self, pending: Pending, slot: int, error: ErrorCode) -> None:
        index = pending.indexes[slot]
        result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
        if pending.answers.put(slot, result):
            self._reply(pending)

    def _reply(self, pending: Pending) -> None:
        results = iter(pending.answers.take())
        markers = tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(islice(results, len(topic.partition_indexes))),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in pending.markers
        )
        self._outbox.emit(Reply(token=pending.token, body=WriteTxnMarkersResponse(markers=markers)))


def is_of_nobody(marker: WritableTxnMarker) -> bool:
    """Kafka's broker fails on such a marker, and with it on all of the request."""
    return marker.producer_id < 0 or marker.producer_epoch < 0


def marker_batch(partition: Partition, marker: Marker, now_ms: int) -> tuple[bytes, BatchHeader]:
    """The marker in the form in which the topic keeps its batches; it is never compressed."""
    batch = bytearray(build_marker(marker, timestamp_ms=now_ms))
    write_header(batch, appends.stamped(read_header(batch), partition.settings, now_ms))
    return bytes(batch), read_header(batch)


def refusal(partition: Partition, marker: Marker, transaction_version: int) -> ErrorCode:
    """Why this marker is not written."""
    error = partition.check_epoch(NO_EPOCH)
    if error is not ErrorCode.NONE:
        return error
    assert isinstance(partition.role, LeaderOf), partition.role
    error = appends.required_replicas_error(partition)
    if error is not ErrorCode.NONE:
        return error
    entry = partition.open_log.producers.entry(marker.producer_id)
    return check_marker(entry, marker, transaction_version)
