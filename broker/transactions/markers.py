"""The end of a transaction is told to the leader of each of its partitions, until all have it.

A transaction whose end is decided has `Unwritten`: the partitions without one. Those of many
transactions go to a leader in one WriteTxnMarkers. Who leads is looked up each time,
so that a marker follows its partition; a partition that is deleted meanwhile needs none. A leader
that has seen a marker of a newer coordinator refuses ours: then this coordinator is not the one any
more, and says nothing.

A leader answers when the marker is committed, which may take long; so a few requests may be with a
leader at once, each on a connection of its own.

Source: KIP-98; Kafka's TransactionMarkerChannelManager.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import islice

from broker.cluster import Cluster
from broker.transactions.transaction import Transaction, TransactionState, places_by_topic
from broker.verifying import Place
from quorum.core.effects import Event, body_of
from quorum.core.outbox import Outbox
from wire.errors import ErrorCode
from wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from wire.primitives import ZERO_UUID

__all__ = ["Markers", "Unwritten"]

_RETRY_BACKOFF_MS = 50
_IN_FLIGHT_MAX = 4  # requests with one leader
_MARKERS_MAX = 1000  # places in one request
# A newer coordinator, or a newer epoch of the producer, is known there.
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


@dataclass(slots=True, eq=False)
class Unwritten:
    transaction: Transaction
    index: int  # of the coordinator's partition
    coordinator_epoch: int
    written: Callable[[int], None]  # (now_ms), once all have theirs
    missing: set[Place] = field(default_factory=set)
    is_over: bool = False

    def __post_init__(self) -> None:
        self.missing = set(self.transaction.places)

    def has(self, place: Place, now_ms: int) -> None:
        self.missing.discard(place)
        if not self.missing and not self.is_over:
            self.is_over = True
            self.written(now_ms)


@dataclass(slots=True)
class Leader:
    queue: dict[tuple[Unwritten, Place], None] = field(default_factory=dict)  # in turn
    free: list[int] = field(default_factory=lambda: list(range(_IN_FLIGHT_MAX)))


Asked = list[tuple[Unwritten, Place]]


class Markers:
    def __init__(self, *, cluster: Cluster, outbox: Outbox, timeout_ms: int) -> None:
        """`timeout_ms` is for an answer of a leader; then it is asked again."""
        self._cluster = cluster
        self._outbox = outbox
        self._timeout_ms = timeout_ms
        self._leaders: dict[int, Leader] = {}
        self._later: list[tuple[int, int, Unwritten, Place]] = []  # a heap: when to look again
        self._count = 0
        self._unwritten: dict[int, dict[Unwritten, None]] = {}  # by partition of the coordinator

    def start(self, unwritten: Unwritten, now_ms: int) -> None:
        if not unwritten.missing:
            unwritten.is_over = True
            unwritten.written(now_ms)
            return
        self._unwritten.setdefault(unwritten.index, {})[unwritten] = None
        for place in sorted(unwritten.missing):
            self._dispatch(unwritten, place, now_ms)
        self._send(now_ms)

    def stop(self, index: int) -> None:
        """The coordinator of this partition is not here any more."""
        for unwritten in self._unwritten.pop(index, {}):
            unwritten.is_over = True

    def tick(self, now_ms: int) -> None:
        while self._later and self._later[0][0] <= now_ms:
            _, _, unwritten, place = heappop(self._later)
            self._dispatch(unwritten, place, now_ms)
        self._send(now_ms)

    def deadline_ms(self) -> int | None:
        return self._later[0][0] if self._later else None

    # --- asking -----------------------------------------------------------------------------

    def _dispatch(self, unwritten: Unwritten, place: Place, now_ms: int) -> None:
        """Queue it for the leader that the partition has now."""
        if unwritten.is_over:
            return
        topic, index = place
        if self._cluster.topic_with(topic, index) is None:
            self._has(unwritten, place, now_ms)
            return
        leader_id, _ = self._cluster.leader_of(topic, ZERO_UUID, index)
        if leader_id < 0:
            self._look_later(unwritten, place, now_ms)
        else:
            self._leaders.setdefault(leader_id, Leader()).queue[(unwritten, place)] = None

    def _look_later(self, unwritten: Unwritten, place: Place, now_ms: int) -> None:
        self._count += 1
        heappush(self._later, (now_ms + _RETRY_BACKOFF_MS, self._count, unwritten, place))

    def _send(self, now_ms: int) -> None:
        listener = self._cluster.config.inter_broker_listener_name
        for leader_id, leader in self._leaders.items():
            while leader.queue and leader.free:
                asked = list(_take(leader))
                if not asked:
                    continue  # those were over; others may be behind them
                endpoint = self._cluster.endpoint(leader_id, listener)
                if endpoint is None:
                    for unwritten, place in asked:
                        self._look_later(unwritten, place, now_ms)
                    continue
                slot = leader.free.pop()
                self._outbox.ask(
                    endpoint,
                    WriteTxnMarkersRequest(markers=tuple(_markers(asked))),
                    channel=f"transaction-markers-{slot}",
                    timeout_ms=self._timeout_ms,
                    answered=partial(self._answered, leader_id, slot, asked),
                )

    # --- answers ----------------------------------------------------------------------------

    def _answered(self, leader_id: int, slot: int, asked: Asked, event: Event, now_ms: int) -> None:
        self._leaders[leader_id].free.append(slot)
        body = body_of(event)
        results = _results(body) if isinstance(body, WriteTxnMarkersResponse) else {}
        for unwritten, place in asked:
            error = results.get((unwritten.transaction.producer_id, place))
            if unwritten.is_over:
                continue
            if error is ErrorCode.NONE:
                self._has(unwritten, place, now_ms)
            elif error in _FENCED:
                self._fenced(unwritten, place, error)
            else:
                self._look_later(unwritten, place, now_ms)
        self._send(now_ms)

    def _has(self, unwritten: Unwritten, place: Place, now_ms: int) -> None:
        unwritten.has(place, now_ms)
        if unwritten.is_over:
            self._unwritten.get(unwritten.index, {}).pop(unwritten, None)

    def _fenced(self, unwritten: Unwritten, place: Place, error: ErrorCode) -> None:
        unwritten.is_over = True
        self._unwritten.get(unwritten.index, {}).pop(unwritten, None)
        self._outbox.trace(
            "marker-fenced",
            transactional_id=unwritten.transaction.id,
            partition=f"{place[0]}-{place[1]}",
            error=error.name,
        )


def _take(leader: Leader) -> Iterator[tuple[Unwritten, Place]]:
    """What goes into one request; one transaction of a producer, as results tell no more."""
    producers: dict[int, Unwritten] = {}
    for unwritten, place in list(islice(leader.queue, _MARKERS_MAX)):
        if producers.setdefault(unwritten.transaction.producer_id, unwritten) is unwritten:
            del leader.queue[(unwritten, place)]
            if not unwritten.is_over:
                yield unwritten, place


def _markers(asked: Asked) -> Iterator[WritableTxnMarker]:
    by_transaction: dict[Unwritten, list[Place]] = {}
    for unwritten, place in asked:
        by_transaction.setdefault(unwritten, []).append(place)
    for unwritten, places in by_transaction.items():
        transaction = unwritten.transaction
        yield WritableTxnMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=transaction.state is TransactionState.PREPARE_COMMIT,
            topics=tuple(
                WritableTxnMarkerTopic(name=name, partition_indexes=tuple(indexes))
                for name, indexes in places_by_topic(places).items()
            ),
            coordinator_epoch=unwritten.coordinator_epoch,
            transaction_version=transaction.client_version,
        )


def _results(body: WriteTxnMarkersResponse) -> Mapping[tuple[int, Place], ErrorCode]:
    return {
        (marker.producer_id, (topic.name, partition.partition_index)): partition.error_code
        for marker in body.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
