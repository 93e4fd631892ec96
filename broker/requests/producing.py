"""A Produce request is appended, may have to wait, and gets its one answer.

Nothing is decided here about batches (appends.py) or replicas (partition.py). With acks=all a
request waits until each partition's high watermark has passed its batch, until leadership is lost,
or until the time it gave has passed; the batches stay in the log all the same.

A batch that would begin a transaction waits before it is appended, until the coordinator has said
that the transaction is going on (produced_transactions.py). Whatever happens to the partition
meanwhile is seen when the batch is taken: the guard that it got before is then no longer there.

Source: KIP-890; Kafka's KafkaApis.handleProduceRequest and DelayedProduce.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import NamedTuple
from uuid import UUID

from broker.cluster import Cluster
from broker.partition import appends
from broker.partition.appends import ACKS, Appended
from broker.partition.batch_checks import Refused
from broker.partition.partition import LeaderOf, Partition
from broker.partition.transactional import Guard, is_under_way
from broker.replicas import Replicas
from broker.requests.batch_lines import BatchLines, Turn
from broker.requests.produced_transactions import (
    PatientVerifier,
    ProducedPlace,
    refusal_of,
    transactional_header,
    unverified,
)
from broker.verifying import Place, TransactionAsked, Verifier
from broker.waiting import WAIT_MAX_MS, Answers, Deadlines, OffsetWaiters
from controller.metadata.partitions import NO_LEADER
from controller.metadata.topics import INTERNAL_TOPICS
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from quorum.core.types import NO_EPOCH
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.endpoints import LeaderIdAndEpoch, NodeEndpoint
from wire.messages.producing import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

__all__ = ["Producing", "waits_for_isr"]

_NOT_FOR_CLIENTS = Refused(
    error=ErrorCode.INVALID_TOPIC_EXCEPTION, reason="brokers keep this topic for themselves"
)


class Asked(NamedTuple):
    """A topic of a request is kept without the records, which are not needed while it waits."""

    name: str
    topic_id: UUID
    indexes: tuple[int, ...]


@dataclass(slots=True, eq=False)
class PendingProduce:
    """A request is kept with its answers so far, in the order of the request."""

    token: int
    acks: int
    lacking: Lacking
    listener: str
    topics: tuple[Asked, ...]
    answers: Answers[PartitionProduceResponse]

    @property
    def is_done(self) -> bool:
        return self.answers.is_done


@dataclass(slots=True, eq=False)
class Waiter:
    """The batch of this partition of a pending request is in the log."""

    pending: PendingProduce
    slot: int
    index: int
    appended: Appended

    @property
    def is_done(self) -> bool:
        return self.pending.answers.is_done


class Unverified(NamedTuple):
    """The coordinator is asked about the transaction of this batch."""

    slot: int
    topic: TopicProduceData
    data: PartitionProduceData
    place: Place
    guard: Guard
    producer_id: int

    @property
    def line(self) -> tuple[str, int, int]:
        return (*self.place, self.producer_id)


class Producing:
    def __init__(
        self,
        *,
        replicas: Replicas,
        cluster: Cluster,
        outbox: Outbox,
        deadlines: Deadlines,
        verifier: Verifier,
    ) -> None:
        self._replicas = replicas
        self._cluster = cluster
        self._outbox = outbox
        self._deadlines = deadlines
        self._verifier = PatientVerifier(verifier, deadlines)
        self._waiting: OffsetWaiters[Waiter] = OffsetWaiters()  # for the high watermark
        self._lines = BatchLines()

    def handle(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, ProduceRequest), body
        indexes = [data.index for topic in body.topic_data for data in topic.partition_data]
        pending = PendingProduce(
            token=request.token,
            acks=body.acks,
            lacking=request.lacking,
            listener=request.listener,
            topics=tuple(map(asked_topic, body.topic_data)),
            answers=Answers(len(indexes)),
        )
        self._take_all(pending, body, now_ms)
        if not indexes:
            self._reply(pending)
        elif not pending.is_done:
            deadline_ms = now_ms + min(max(body.timeout_ms, 0), WAIT_MAX_MS)
            if not self._deadlines.add(pending, deadline_ms, partial(self._expire, pending)):
                self._expire(pending, now_ms)

    def _take_all(self, pending: PendingProduce, body: ProduceRequest, now_ms: int) -> None:
        refusal = request_refusal(body, pending.lacking, self._is_known)
        waiting: list[Unverified] = []
        slots = count()
        for topic in body.topic_data:
            for data in topic.partition_data:
                slot = next(slots)
                if refusal is not None:
                    self._settle(pending, slot, failure(data.index, refusal))
                elif body.transactional_id is None:  # none of its batches is of a transaction
                    self._take(pending, slot, topic, data, now_ms)
                elif (first := self._unverified(pending, slot, topic, data)) is not None:
                    waiting.append(first)
                else:
                    self._take_in_turn(pending, slot, topic, data, now_ms)
        if waiting:
            self._verify(pending, body.transactional_id or "", waiting, now_ms)

    # --- transactions -----------------------------------------------------------------------

    def _is_known(self, place: ProducedPlace) -> bool:
        return not isinstance(self._cluster.find(*place), ErrorCode)

    def _unverified(
        self,
        pending: PendingProduce,
        slot: int,
        topic: TopicProduceData,
        data: PartitionProduceData,
    ) -> Unverified | None:
        """The batch if its coordinator has to be asked first."""
        header = transactional_header(data.records)
        if header is None:
            return None
        partition = self._replicas.find(topic.name, topic.topic_id, data.index)
        if isinstance(partition, ErrorCode) or partition.topic in INTERNAL_TOPICS:
            return None
        role = partition.role
        if not isinstance(role, LeaderOf):
            return None
        entry = partition.open_log.producers.entry(header.producer_id)
        if is_under_way(entry, header.producer_epoch):
            return None
        adds = Capability.ADDS_TO_TRANSACTION not in pending.lacking
        guard = role.guards.start(
            header.producer_id, header.producer_epoch, header.base_sequence, begins_at_zero=adds
        )
        place = (partition.topic, partition.index)
        return Unverified(slot, topic, data, place, guard, header.producer_id)

    def _verify(
        self,
        pending: PendingProduce,
        transactional_id: str,
        waiting: list[Unverified],
        now_ms: int,
    ) -> None:
        header = transactional_header(waiting[0].data.records)
        assert header is not None, waiting[0]
        asked = TransactionAsked(
            transactional_id=transactional_id,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            places=tuple(each.place for each in waiting),
            adds=Capability.ADDS_TO_TRANSACTION not in pending.lacking,
        )

        def asked_again() -> None:
            """The marker of the transaction before may have voided the guards by now."""
            for place, each in enumerate(waiting):
                waiting[place] = self._unverified(pending, each.slot, each.topic, each.data) or each

        turns = [self._lines.wait(each.line) for each in waiting]
        concluded = partial(self._verified, pending, waiting, turns)
        self._verifier.verify(asked, concluded, now_ms, asked_again=asked_again)

    def _verified(
        self,
        pending: PendingProduce,
        waiting: list[Unverified],
        turns: list[Turn],
        errors: Mapping[Place, ErrorCode],
        now_ms: int,
    ) -> None:
        for each, turn in zip(waiting, turns, strict=True):
            error = errors.get(each.place, ErrorCode.INVALID_TXN_STATE)
            act = partial(self._conclude, pending, each, error)
            self._lines.ready(each.line, turn, act, now_ms)

    def _conclude(
        self, pending: PendingProduce, each: Unverified, error: ErrorCode, now_ms: int
    ) -> None:
        if error is ErrorCode.NONE:
            self._take_late(pending, each.slot, each.topic, each.data, now_ms, each.guard)
        elif not pending.is_done:
            refused = unverified(error, pending.lacking)
            self._settle(pending, each.slot, failure(each.data.index, refused))

    def _take_in_turn(
        self,
        pending: PendingProduce,
        slot: int,
        topic: TopicProduceData,
        data: PartitionProduceData,
        now_ms: int,
    ) -> None:
        header = transactional_header(data.records)
        partition = self._replicas.find(topic.name, topic.topic_id, data.index)
        if header is not None and not isinstance(partition, ErrorCode):
            line = (partition.topic, partition.index, header.producer_id)
            if self._lines.has(line):
                self._lines.follow(line, partial(self._take_late, pending, slot, topic, data))
                return
        self._take(pending, slot, topic, data, now_ms)

    def _take_late(
        self,
        pending: PendingProduce,
        slot: int,
        topic: TopicProduceData,
        data: PartitionProduceData,
        now_ms: int,
        guard: Guard | None = None,
    ) -> None:
        if not pending.is_done:  # else it has been told that its time was up
            self._take(pending, slot, topic, data, now_ms, guard)

    # --- appending --------------------------------------------------------------------------

    def _take(
        self,
        pending: PendingProduce,
        slot: int,
        topic: TopicProduceData,
        data: PartitionProduceData,
        now_ms: int,
        guard: Guard | None = None,
    ) -> None:
        partition = self._replicas.find(topic.name, topic.topic_id, data.index)
        if isinstance(partition, ErrorCode):
            self._settle(pending, slot, self._elsewhere(topic, data.index, partition))
            return
        if partition.topic in INTERNAL_TOPICS:
            self._settle(pending, slot, failure(data.index, _NOT_FOR_CLIENTS))
            return
        if not isinstance(partition.role, LeaderOf):
            error = partition.check_epoch(NO_EPOCH)
            self._settle(pending, slot, self._elsewhere(topic, data.index, error))
            return
        taken = appends.take(
            partition,
            data.records,
            acks=pending.acks,
            now_ms=now_ms,
            lacking=pending.lacking,
            guard=guard,
        )
        if isinstance(taken, Refused):
            self._settle(pending, slot, failure(data.index, taken))
            return
        if waits_for_isr(pending.acks):
            waiter = Waiter(pending, slot, data.index, taken)
            self._waiting.add(partition, taken.last_offset + 1, waiter)
        else:
            self._settle(pending, slot, success(data.index, taken, partition))
        if not taken.is_duplicate:
            partition.advance(now_ms)
        self.progressed(partition)

    def _elsewhere(
        self, topic: TopicProduceData, index: int, error: ErrorCode
    ) -> PartitionProduceResponse:
        leader = self._cluster.leader_of(topic.name, topic.topic_id, index)
        return failure(index, Refused(error=error), leader)

    # --- waiting ----------------------------------------------------------------------------

    def progressed(self, partition: Partition) -> None:
        """The high watermark of a led partition may have passed what somebody waits for."""
        if not self._waiting.has(partition):
            return
        for waiter in self._waiting.reached(partition, partition.open_log.high_watermark):
            error = appends.wait_result(partition)
            if error is ErrorCode.NONE:
                result = success(waiter.index, waiter.appended, partition)
            else:
                result = failure(waiter.index, Refused(error=error))
            self._settle(waiter.pending, waiter.slot, result)

    def lost(self, partition: Partition, error: ErrorCode) -> None:
        """The leader epoch has ended: the log may be cut, so nothing can be promised.

        Even if this broker leads again, at once or one day, and the high watermark then passes the
        offset that somebody waits for, it may be another record that lies there.
        """
        waiters = self._waiting.lost(partition)
        if not waiters:
            return
        leader = self._cluster.leader_of(partition.topic, partition.topic_id, partition.index)
        for waiter in waiters:
            refused = failure(waiter.index, Refused(error=error), leader)
            self._settle(waiter.pending, waiter.slot, refused)

    def _expire(self, pending: PendingProduce, _now_ms: int) -> None:
        """The request's time is up: what is still waiting is answered as timed out."""
        indexes = [index for topic in pending.topics for index in topic.indexes]
        for slot in pending.answers.missing:
            late = Refused(error=ErrorCode.REQUEST_TIMED_OUT)
            self._settle(pending, slot, failure(indexes[slot], late))

    # --- answering --------------------------------------------------------------------------

    def _settle(self, pending: PendingProduce, slot: int, result: PartitionProduceResponse) -> None:
        if pending.answers.put(slot, result):
            self._reply(pending)

    def _reply(self, pending: PendingProduce) -> None:
        results = iter(pending.answers.take())
        if pending.acks == 0:
            self._outbox.emit(Reply(token=pending.token, body=None))
            return
        responses = []
        leaders: dict[int, None] = {}
        for topic in pending.topics:
            answers = tuple(islice(results, len(topic.indexes)))
            leaders.update((answer.current_leader.leader_id, None) for answer in answers)
            responses.append(
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        body = ProduceResponse(
            responses=tuple(responses),
            node_endpoints=tuple(
                NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port)
                for node in self._cluster.endpoints(leaders, pending.listener)
            ),
        )
        self._outbox.emit(Reply(token=pending.token, body=body))


def asked_topic(topic: TopicProduceData) -> Asked:
    indexes = tuple(data.index for data in topic.partition_data)
    return Asked(topic.name, topic.topic_id, indexes)


def waits_for_isr(acks: int) -> bool:
    """Is the answer to wait until all that are in sync have the batch?"""
    return acks == -1


def request_refusal(
    body: ProduceRequest, lacking: Lacking, is_known: Callable[[ProducedPlace], bool]
) -> Refused | None:
    """Why nothing of this request is taken."""
    if Capability.WRITES_MAGIC_2 in lacking:
        return Refused(
            error=ErrorCode.UNSUPPORTED_VERSION,
            reason="versions of Produce before batches of magic 2 are not served",
        )
    if body.acks not in ACKS:
        return Refused(
            error=ErrorCode.INVALID_REQUIRED_ACKS, reason=f"acks={body.acks} is not 0, 1 or -1"
        )
    return refusal_of(body, is_known)


def success(index: int, taken: Appended, partition: Partition) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=taken.base_offset,
        log_append_time_ms=taken.log_append_time_ms,
        log_start_offset=partition.open_log.start_offset,
        record_errors=(),
    )


def failure(
    index: int, refused: Refused, leader: tuple[int, int] = (NO_LEADER, NO_EPOCH)
) -> PartitionProduceResponse:
    leader_id, leader_epoch = leader
    return PartitionProduceResponse(
        index=index,
        error_code=refused.error,
        base_offset=-1,
        record_errors=refused.record_errors,
        error_message=refused.reason,
        current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
    )
