"""A producer of one process: one record at a time, acks=all, idempotent or not.

An idempotent one repeats a record under its sequence number until the time is up, to whoever leads.
One that is not never repeats what was sent. A send that has ended as `info` leaves the producer
without use: its next sequence number is not known.

The end of a send tells its sequence number. Before it, the next epoch may be wanted: it is taken
without asking, as by a producer that has lost track of its numbers, and they begin at zero.

`fail` is said only of what was refused before anything was appended. NOT_LEADER_OR_FOLLOWER and
UNKNOWN_TOPIC_OR_PARTITION are no such refusals: a broker also answers so when it has appended, and
lost its leadership, or the whole replica, while it waited for the others.

Source: KIP-98 (idempotence), KIP-360; Kafka's producer.
"""

from dataclasses import dataclass, field, replace

from jepsen_like.clients.steps import Ask, Clock, Leaders, Place, Steps
from jepsen_like.histories.history import Kind
from jepsen_like.workloads.workload import Done
from wire.batch import Record, build_batch
from wire.errors import ErrorCode
from wire.messages.producing import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["Producer"]

_NO_ID = -1
_ALL = -1
_NEVER_APPENDED = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.INVALID_RECORD,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
# The cluster has lost track of our sequence, or we of it.
_FATAL = (
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)


@dataclass(slots=True, kw_only=True)
class Producer:
    leaders: Leaders
    clock: Clock
    is_idempotent: bool
    timeout_ms: int  # of a send, all in all
    request_timeout_ms: int
    _id: int = _NO_ID
    _epoch: int = 0
    _sequences: dict[str, int] = field(default_factory=dict)  # by key, of the next record

    def send(self, key: str, value: bytes, *, in_next_epoch: bool = False) -> Steps[Done]:
        """The value of an ok is the record's offset."""
        if in_next_epoch and self._id != _NO_ID:
            self._epoch += 1
            self._sequences.clear()
        done = yield from self._send(key, value)
        if self._id != _NO_ID:
            number = self._sequences.get(key, 0)
            done = replace(done, extra={"producer": [self._id, self._epoch], "sequence": number})
        if done.kind is Kind.OK:
            self._sequences[key] = self._sequences.get(key, 0) + 1
        return done

    def _send(self, key: str, value: bytes) -> Steps[Done]:
        until_ms = self.clock() + self.timeout_ms
        doubt: str | None = None  # why it may have been appended
        error = "no leader is known"
        while self.clock() < until_ms:
            place = self.leaders.known(key)
            if place is None:
                yield from self.leaders.refresh()
                continue
            if self.is_idempotent and self._id == _NO_ID:
                yield from self._want_id()
                continue
            told = yield from self._produce(place, value, until_ms)
            if told is not None and told.error_code is ErrorCode.NONE:
                return Done(kind=Kind.OK, value=told.base_offset)
            error = "no answer" if told is None else ErrorCode(told.error_code).name
            if told is None or told.error_code not in _NEVER_APPENDED:
                doubt = error
            if not self.is_idempotent or (told is not None and told.error_code in _FATAL):
                break
            self.leaders.lose(key)
            yield self.leaders.pause()
        self.leaders.lose(key)
        return Done(kind=Kind.FAIL if doubt is None else Kind.INFO, error=doubt or error)

    def _want_id(self) -> Steps[None]:
        told = yield Ask(
            node=self.leaders.any_broker(),
            body=InitProducerIdRequest(),
            timeout_ms=self.request_timeout_ms,
        )
        if isinstance(told, InitProducerIdResponse) and told.error_code is ErrorCode.NONE:
            self._id, self._epoch = told.producer_id, told.producer_epoch
        else:
            yield self.leaders.pause()

    def _produce(
        self, place: Place, value: bytes, until_ms: int
    ) -> Steps[PartitionProduceResponse | None]:
        timeout_ms = max(1, min(self.request_timeout_ms, until_ms - self.clock()))
        data = PartitionProduceData(index=place.partition, records=self._batch(place.key, value))
        topic = TopicProduceData(name=place.topic, topic_id=place.topic_id, partition_data=(data,))
        body = ProduceRequest(acks=_ALL, timeout_ms=timeout_ms, topic_data=(topic,))
        told = yield Ask(node=place.leader, body=body, timeout_ms=timeout_ms)
        if not isinstance(told, ProduceResponse):
            return None
        return told.responses[0].partition_responses[0]

    def _batch(self, key: str, value: bytes) -> bytes:
        record, now_ms = Record(value=value), self.clock()
        if not self.is_idempotent:
            return build_batch([record], timestamp_ms=now_ms)
        return build_batch(
            [record],
            timestamp_ms=now_ms,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(key, 0),
        )
