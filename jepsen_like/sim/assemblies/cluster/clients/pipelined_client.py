"""A client that has several idempotent batches of a partition in flight, as Kafka's producer has.

They are sent in the order of their sequences. When one of them fails it waits for the answers to
all others, and sends those that were not acknowledged again, in order, each under its own sequence.
A batch that is out of order behind another that failed is one of those. If all before it were
acknowledged, the cluster has lost track (H-SEQ): the client begins with another producer id, and
repeats nothing.
"""

from functools import partial

from jepsen_like.sim.assemblies.cluster.clients.client import (
    LOST_SEQUENCE,
    Client,
    InFlight,
    ProducedPartition,
    batch_of,
    produced_in,
)
from jepsen_like.sim.assemblies.cluster.invariants.watched import Acknowledged, Key
from wire.errors import ErrorCode

__all__ = ["PipelinedClient"]


class PipelinedClient(Client):
    def _produce(self, key: Key, partition: ProducedPartition, now_ms: int) -> None:
        """`sent` is the first batch without an answer for good, and says that there is one."""
        flight = partition.flight
        partition.due_ms = now_ms + self._random.randint(1, max(1, self.settings.interval_ms // 2))
        if partition.is_repeating:
            if not any(each.is_sent for each in flight):
                partition.is_repeating = False
                for each in flight:
                    if not each.is_acknowledged:
                        self._send_one(key, partition, each, now_ms)
        elif self.produces and len(flight) < self._window(partition):
            batch = InFlight(self._new_values(), partition.sequence)
            partition.sequence += len(batch.values)
            flight.append(batch)
            partition.sent = flight[0].values
            self._send_one(key, partition, batch, now_ms)

    def _window(self, partition: ProducedPartition) -> int:
        """The first batch goes alone: a leader takes whatever sequence comes first of a producer
        that it does not know (KIP-360), and here the network may bring the second one first."""
        return self.settings.in_flight_max if partition.has_acknowledged else 1

    def _send_one(
        self, key: Key, partition: ProducedPartition, batch: InFlight, now_ms: int
    ) -> None:
        batch.is_sent, batch.was_first = True, batch is partition.flight[0]
        if not batch.was_first:
            self._fired("pipelined")
        records = batch_of(partition, batch.values, batch.sequence, now_ms)
        self._send(key, partition, records, partial(self._has_answer, key, partition, batch))

    def _has_answer(
        self, key: Key, partition: ProducedPartition, batch: InFlight, body: object, now_ms: int
    ) -> None:
        batch.is_sent = False
        told, error = produced_in(body)
        is_known = batch in partition.flight  # else it was given up
        if told is not None and error is ErrorCode.NONE:
            promise = Acknowledged(base_offset=told.base_offset, values=batch.values)
            self._judge.acknowledged(key, promise)
            batch.is_acknowledged = True
            partition.has_acknowledged |= is_known
            while partition.flight and partition.flight[0].is_acknowledged:
                del partition.flight[0]
        elif is_known:
            self._failed(key, partition, batch, error)
        partition.sent = partition.flight[0].values if partition.flight else ()
        if error is not ErrorCode.NONE:
            self._lose_leader(key, partition, error, now_ms)

    def _failed(
        self, key: Key, partition: ProducedPartition, batch: InFlight, error: ErrorCode
    ) -> None:
        is_lost = error in LOST_SEQUENCE and batch.was_first
        if is_lost and partition.has_acknowledged:
            self._judge.refused_sequence(key, batch.sequence)
        if is_lost or error is ErrorCode.MESSAGE_TOO_LARGE:
            partition.flight.clear()
            partition.is_repeating = partition.has_acknowledged = False
            partition.producer_id = -1
        else:
            partition.is_repeating = True
