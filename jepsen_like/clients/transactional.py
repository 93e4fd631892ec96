"""A transactional producer of one process: records of several partitions, all or none.

It initializes when it has to, so that a transaction which was left open ends; it repeats each batch
under its sequence number, and the end of the transaction, until the time is up. `fail` is said of
what nobody has asked to be committed: it is aborted, if not by us then by a time-out. What became
of its records does not matter, so why it was aborted is not its error, but its cause. `info` is
said where a commit was asked for, and nobody knows what came of it; then this producer is not used
any more.

Partitions join a transaction with their first batch (transaction.version 2).

Source: KIP-98, KIP-360, KIP-890; Kafka's TransactionManager.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from jepsen_like.clients.steps import Ask, Clock, Leaders, Steps
from jepsen_like.histories.history import Kind, Value
from jepsen_like.workloads.workload import Done
from wire.batch import Record, build_batch
from wire.errors import ErrorCode
from wire.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from wire.messages.producing import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.messages.transactions import EndTxnRequest, EndTxnResponse

__all__ = [
    "COORDINATOR_ELSEWHERE",
    "COORDINATOR_RETRIABLE",
    "Identity",
    "TransactionalProducer",
    "find_coordinator",
]

_TRANSACTION = 1  # FindCoordinator's key type
_ALL = -1
# To ask again, the first two of another broker. A request that had no answer counts as timed out.
COORDINATOR_ELSEWHERE = (ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT)
COORDINATOR_RETRIABLE = (
    *COORDINATOR_ELSEWHERE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
# Nothing will ever come of it under this identity: the transaction has to be aborted, or has been.
_FATAL = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)


@dataclass(slots=True)
class Identity:
    """What a producer goes by from one InitProducerId, or EndTxn, to the next."""

    transactional_id: str
    producer_id: int
    epoch: int
    sequences: dict[object, int] = field(default_factory=dict)  # the next, by partition

    def produce(
        self,
        key: object,
        values: Sequence[bytes],
        topic: tuple[str, UUID, int],
        *,
        now_ms: int,
        timeout_ms: int,
    ) -> ProduceRequest:
        """One batch for a partition: `topic` is its name, id and the partition's index."""
        name, topic_id, index = topic
        batch = build_batch(
            [Record(value=value) for value in values],
            timestamp_ms=now_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get(key, 0),
            is_transactional=True,
        )
        data = PartitionProduceData(index=index, records=batch)
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=_ALL,
            timeout_ms=timeout_ms,
            topic_data=(TopicProduceData(name=name, topic_id=topic_id, partition_data=(data,)),),
        )

    def appended(self, key: object, count: int) -> None:
        self.sequences[key] = self.sequences.get(key, 0) + count

    def end(self, *, is_commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )

    def next(self, answer: EndTxnResponse) -> "Identity":
        return Identity(self.transactional_id, answer.producer_id, answer.producer_epoch)


def find_coordinator(transactional_id: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=(transactional_id,))


@dataclass(slots=True, kw_only=True)
class TransactionalProducer:
    transactional_id: str
    leaders: Leaders
    clock: Clock
    timeout_ms: int  # of a transaction, all in all
    request_timeout_ms: int
    _coordinator: int | None = None
    _identity: Identity | None = None

    def perform(self, sends: Sequence[tuple[str, bytes]], *, commits: bool) -> Steps[Done]:
        """The value of an ok is the offset of each record, in the order of `sends`."""
        until_ms = self.clock() + self.timeout_ms
        identity = self._identity or (yield from self._initialized(until_ms))
        if identity is None:
            return Done(kind=Kind.FAIL, error="not initialized")
        self._identity = None  # until it is known how this ends
        offsets: list[Value] = []
        error = ""
        for key, value in sends:
            offset, error = yield from self._produced(identity, key, value, until_ms)
            if error:
                break
            offsets.append(offset)
        is_commit = commits and not error
        ended = yield from self._ended(identity, until_ms, is_commit=is_commit)
        if not is_commit:
            return Done(kind=Kind.FAIL, error="aborted", extra={"cause": error} if error else {})
        if ended:
            return Done(kind=Kind.INFO, error=ended)
        return Done(kind=Kind.OK, value=offsets)

    # --- the coordinator --------------------------------------------------------------------

    def _ask_coordinator(self, body: object, until_ms: int) -> Steps[object]:
        if self._coordinator is None:
            finds = find_coordinator(self.transactional_id)
            told = yield self._ask(self.leaders.any_broker(), finds, until_ms)
            if isinstance(told, FindCoordinatorResponse):
                found = told.coordinators[0]
                if found.error_code is ErrorCode.NONE:
                    self._coordinator = found.node_id
        if self._coordinator is None:
            return None
        answer = yield self._ask(self._coordinator, body, until_ms)
        return answer

    def _ask(self, node: int, body: object, until_ms: int) -> Ask:
        timeout_ms = max(1, min(self.request_timeout_ms, until_ms - self.clock()))
        return Ask(node=node, body=body, timeout_ms=timeout_ms)

    def _initialized(self, until_ms: int) -> Steps[Identity | None]:
        body = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=2 * self.timeout_ms
        )
        while self.clock() < until_ms:
            told = yield from self._ask_coordinator(body, until_ms)
            if isinstance(told, InitProducerIdResponse) and told.error_code is ErrorCode.NONE:
                return Identity(self.transactional_id, told.producer_id, told.producer_epoch)
            self._coordinator = None
            yield self.leaders.pause()
        return None

    def _ended(self, identity: Identity, until_ms: int, *, is_commit: bool) -> Steps[str]:
        """Returns why it is not known to have ended so; empty if it is."""
        body = identity.end(is_commit=is_commit)
        error = "no time is left"
        while self.clock() < until_ms:
            told = yield from self._ask_coordinator(body, until_ms)
            if isinstance(told, EndTxnResponse):
                error = ErrorCode(told.error_code).name
                if told.error_code is ErrorCode.NONE:
                    self._identity = identity.next(told)
                    return ""
                if told.error_code in _FATAL:
                    return error
            if not isinstance(told, EndTxnResponse) or error == "NOT_COORDINATOR":
                error, self._coordinator = "no answer", None
            yield self.leaders.pause()
        return error

    # --- records ----------------------------------------------------------------------------

    def _produced(
        self, identity: Identity, key: str, value: bytes, until_ms: int
    ) -> Steps[tuple[int, str]]:
        """The offset of the record, or why there is none."""
        error = "no leader is known"
        while self.clock() < until_ms:
            place = self.leaders.known(key)
            if place is None:
                yield from self.leaders.refresh()
                continue
            body = identity.produce(
                key,
                (value,),
                (place.topic, place.topic_id, place.partition),
                now_ms=self.clock(),
                timeout_ms=self.request_timeout_ms,
            )
            told = yield self._ask(place.leader, body, until_ms)
            error = "no answer"
            if isinstance(told, ProduceResponse):
                partition = told.responses[0].partition_responses[0]
                if partition.error_code is ErrorCode.NONE:
                    identity.appended(key, 1)
                    return partition.base_offset, ""
                error = ErrorCode(partition.error_code).name
                if partition.error_code in _FATAL:
                    return -1, error
            self.leaders.lose(key)
            yield self.leaders.pause()
        return -1, error
