"""A client of the simulated cluster, as a core: produces to every partition, reads, remembers.

It creates its topic, then produces batches of unique values with acks=all, one at a time to a
partition, and reads every partition from the beginning on. It goes on to ask for topics that were
deleted, by their ids, when others have their names. What it was told goes to its `History`;
whether that came true is judged in `jepsen_like.sim.assemblies.cluster.partition_invariants` and
`jepsen_like.sim.assemblies.cluster.end`.

An idempotent client repeats a batch until it is acknowledged; the others never repeat one, so what
got no answer may or may not be in the log.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Protocol
from uuid import UUID

from broker.fetch_protocol import EARLIEST
from jepsen_like.sim.assemblies.quorum.asking import Answered, Asking
from quorum.core.effects import Effect, Event
from wire.batch import Record, build_batch, headers, records_of
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from wire.messages.producing import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

__all__ = [
    "LOST_SEQUENCE",
    "TOPIC",
    "WIDE",
    "Acknowledged",
    "Client",
    "ClientSettings",
    "InFlight",
    "Judge",
    "Key",
    "ProducedPartition",
    "batch_of",
    "produced_in",
]

Key = tuple[UUID, int]  # topic id, partition
TOPIC = "orders"
WIDE = "wide"
UNUSED = (WIDE, "__")  # how the names of topics begin that no client uses
_FETCH_BYTES = 1 << 20
# The cluster has lost track of our sequence: begin with a new producer id.
LOST_SEQUENCE = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    brokers: tuple[int, ...]
    topic: CreatableTopic
    timeout_ms: int
    interval_ms: int  # between two batches to a partition, on average; 0: it produces nothing
    is_idempotent: bool = False
    records_max: int = 3

    @property
    def short_ms(self) -> int:
        """For what any broker can answer at once: else another is asked."""
        return max(1, self.timeout_ms // 8)

    @classmethod
    def of(
        cls,
        *,
        brokers: tuple[int, ...],
        partitions: int,
        replication_factor: int,
        configs: dict[str, str],
        timeout_ms: int,
        interval_ms: int,
        is_idempotent: bool,
    ) -> "ClientSettings":
        topic = CreatableTopic(
            name=TOPIC,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=tuple(
                CreatableTopicConfig(name=name, value=value) for name, value in configs.items()
            ),
        )
        return cls(
            brokers=brokers,
            topic=topic,
            timeout_ms=timeout_ms,
            interval_ms=interval_ms,
            is_idempotent=is_idempotent,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    base_offset: int
    values: tuple[bytes, ...]


class Judge(Protocol):
    """Who looks at what a client is told, at once."""

    def acknowledged(self, key: Key, batch: Acknowledged) -> None: ...

    def has_read(self, key: Key, offset: int, value: bytes) -> None: ...

    def refused_position(self, key: Key, offset: int) -> None:
        """What was read up to is out of range now."""
        ...


@dataclass(slots=True, eq=False)
class InFlight:
    """One of the batches from the first on that has no answer for good, in their order."""

    values: tuple[bytes, ...]
    sequence: int
    is_sent: bool = False  # and waits for an answer
    is_acknowledged: bool = False  # before another that was sent before it
    was_first: bool = False  # when it was sent last: all before had been acknowledged


@dataclass(slots=True)
class ProducedPartition:
    name: str  # of the topic
    leader: int | None = None
    leader_epoch: int = -1
    due_ms: int = 0
    sent: tuple[bytes, ...] = ()  # not yet answered for good; one batch at a time
    is_sending: bool = False
    producer_id: int = -1  # one a partition, so that losing it concerns no other
    is_asking_id: bool = False
    sequence: int = 0
    flight: list[InFlight] = field(default_factory=list)  # of a client that has several
    is_repeating: bool = False  # some of these have failed: all are sent again, in order
    has_acknowledged: bool = False  # something of this producer id
    position: int = 0  # of the reader
    is_reading: bool = False
    is_before_start: bool = False  # what comes next has been deleted


@dataclass(slots=True)
class Client:
    settings: ClientSettings
    random: Random
    next_serial: Callable[[], int]
    judge: Judge
    fired: Callable[[str], None] = lambda _kind: None
    produces: bool = True
    asking: Asking = field(default_factory=Asking)
    _is_created: bool = False
    _partitions: dict[Key, ProducedPartition] = field(default_factory=dict)
    _ids: dict[tuple[str, int], list[UUID]] = field(default_factory=dict)  # ever, the last counts
    _is_asking_metadata: bool = False
    _due_ms: int = 0  # the next look at the metadata, or the next try to create the topic

    # --- Core ---------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        self.asking.receive(event, now_ms)

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        if now_ms >= self._due_ms and not self._is_asking_metadata:
            self._due_ms = now_ms + 2 * self.settings.timeout_ms
            self._ask_metadata() if self._is_created else self._create()
        for key, partition in self._partitions.items():
            if partition.leader is None:
                continue
            if self.settings.is_idempotent and partition.producer_id < 0:
                self._want_producer_id(partition)
            if (
                not partition.is_sending
                and now_ms >= partition.due_ms
                and self._may_send(partition)
            ):
                self._produce(key, partition, now_ms)
            if not partition.is_reading:
                find = self._find_start if partition.is_before_start else self._read
                find(key, partition)

    def deadline_ms(self) -> int | None:
        due = [] if self._is_asking_metadata else [self._due_ms]
        for partition in self._partitions.values():
            if partition.leader is None or partition.is_sending or not self._may_send(partition):
                continue
            due.append(partition.due_ms)
        return min(due, default=None)

    def take_effects(self) -> list[Effect]:
        return self.asking.take()

    @property
    def waits(self) -> tuple[Key, ...]:
        """The partitions with a batch that is not answered for good."""
        return tuple(key for key, partition in self._partitions.items() if partition.sent)

    @property
    def positions(self) -> dict[Key, int]:
        """How far each partition has been read."""
        return {key: partition.position for key, partition in self._partitions.items()}

    def led(self) -> dict[Key, tuple[int, int]]:
        """The partitions of its own topic that have a leader: that, and how far they were read."""
        return {
            key: (partition.leader, partition.position)
            for key, partition in self._partitions.items()
            if partition.leader is not None and partition.name == TOPIC
        }

    def _may_send(self, partition: ProducedPartition) -> bool:
        if self.settings.is_idempotent and partition.producer_id < 0:
            return False
        return bool(partition.sent) or (self.produces and self.settings.interval_ms > 0)

    def _any_broker(self) -> int:
        return self.random.choice(self.settings.brokers)

    def _soon(self, now_ms: int) -> None:
        """Look at the metadata again before long."""
        at_ms = now_ms + self.random.randint(1, self.settings.short_ms)
        self._due_ms = min(self._due_ms, at_ms)

    # --- the topic and its leaders --------------------------------------------------------

    def _create(self) -> None:
        body = CreateTopicsRequest(
            topics=(self.settings.topic,), timeout_ms=self.settings.timeout_ms
        )
        self.asking.ask(self._any_broker(), body, self.settings.timeout_ms, self._created)

    def _created(self, body: object, now_ms: int) -> None:
        if isinstance(body, CreateTopicsResponse) and body.topics:
            known = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            self._is_created = self._is_created or body.topics[0].error_code in known
        self._soon(now_ms)

    def _ask_metadata(self) -> None:
        self._is_asking_metadata = True
        body = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        self.asking.ask(self._any_broker(), body, self.settings.short_ms, self._learn)

    def _learn(self, body: object, now_ms: int) -> None:
        self._is_asking_metadata = False
        if not isinstance(body, MetadataResponse):
            self._soon(now_ms)
            return
        for topic in body.topics:
            is_used = topic.name is not None and not topic.name.startswith(UNUSED)
            if topic.error_code is ErrorCode.NONE and is_used:
                self._learn_leaders(topic)
        leaders = [partition.leader for partition in self._partitions.values()]
        if not leaders or None in leaders:
            self._soon(now_ms)

    def _learn_leaders(self, topic: MetadataResponseTopic) -> None:
        for told in topic.partitions:
            assert topic.name is not None, topic
            key = (topic.topic_id, told.partition_index)
            partition = self._partitions.setdefault(key, ProducedPartition(topic.name))
            self._learn_id(topic.name, key, told.leader_id)
            if told.leader_epoch >= partition.leader_epoch:  # an older one is old news (KIP-320)
                partition.leader = told.leader_id if told.leader_id >= 0 else None
                partition.leader_epoch = told.leader_epoch

    def _learn_id(self, name: str, key: Key, leader: int) -> None:
        """Read of its leader what it must not give away: topics that had the same name."""
        ids = self._ids.setdefault((name, key[1]), [])
        if key[0] not in ids:
            ids.append(key[0])
        if ids[-1] == key[0] and leader >= 0:
            for topic_id in ids[:-1]:
                self._read_deleted(name, (topic_id, key[1]), leader)

    def _lose_leader(
        self, key: Key, partition: ProducedPartition, error: ErrorCode, now_ms: int
    ) -> None:
        """The leader is another, or the whole topic is gone.

        A broker that lags behind does not know the topic yet: metadata brings it back, as another
        `ProducedPartition` that knows nothing of what this one has sent.
        """
        partition.leader = None
        is_gone = error is ErrorCode.UNKNOWN_TOPIC_ID and partition.name != TOPIC
        if is_gone and self._partitions.get(key) is partition:
            del self._partitions[key]
        self._soon(now_ms)

    # --- producing ------------------------------------------------------------------------

    def _want_producer_id(self, partition: ProducedPartition) -> None:
        if not partition.is_asking_id:
            partition.is_asking_id = True
            answered = partial(self._given_id, partition)
            self.asking.ask(
                self._any_broker(), InitProducerIdRequest(), self.settings.short_ms, answered
            )

    def _given_id(self, partition: ProducedPartition, body: object, now_ms: int) -> None:
        partition.is_asking_id = False
        if isinstance(body, InitProducerIdResponse) and body.error_code is ErrorCode.NONE:
            partition.producer_id, partition.sequence = body.producer_id, 0

    def _produce(self, key: Key, partition: ProducedPartition, now_ms: int) -> None:
        if not partition.sent:
            partition.sent = self._new_values()
        partition.is_sending = True
        answered = partial(self._produced, key, partition)
        self._send(key, partition, self._batch(partition, now_ms), answered)

    def _new_values(self) -> tuple[bytes, ...]:
        count = self.random.randint(1, self.settings.records_max)
        return tuple(b"%d" % self.next_serial() for _ in range(count))

    def _send(
        self, key: Key, partition: ProducedPartition, records: bytes, answered: Answered
    ) -> None:
        assert partition.leader is not None, key
        data = PartitionProduceData(index=key[1], records=records)
        topic = TopicProduceData(name=partition.name, topic_id=key[0], partition_data=(data,))
        body = ProduceRequest(
            acks=-1, timeout_ms=self.settings.timeout_ms // 2, topic_data=(topic,)
        )
        self.asking.ask(partition.leader, body, self.settings.timeout_ms, answered)

    def _batch(self, partition: ProducedPartition, now_ms: int) -> bytes:
        return batch_of(partition, partition.sent, partition.sequence, now_ms)

    def _produced(self, key: Key, partition: ProducedPartition, body: object, now_ms: int) -> None:
        """The answer counts, even if the topic seemed to be gone meanwhile."""
        partition.is_sending = False
        told = produced_in(body)
        error = ErrorCode.REQUEST_TIMED_OUT if told is None else told.error_code
        if told is not None and error is ErrorCode.NONE:
            values = partition.sent
            self.judge.acknowledged(key, Acknowledged(base_offset=told.base_offset, values=values))
            self._next_batch(partition)
        elif error is ErrorCode.MESSAGE_TOO_LARGE:
            partition.sent = ()  # which has not moved the sequence
        elif error in LOST_SEQUENCE:
            self._next_batch(partition)
            partition.producer_id = -1
        elif not self.settings.is_idempotent:
            self._next_batch(partition)
        partition.due_ms = now_ms + self.random.randint(1, 2 * self.settings.interval_ms)
        if error is not ErrorCode.NONE:
            self._lose_leader(key, partition, error, now_ms)

    def _next_batch(self, partition: ProducedPartition) -> None:
        partition.sequence += len(partition.sent)
        partition.sent = ()

    # --- reading --------------------------------------------------------------------------

    def _read(self, key: Key, partition: ProducedPartition) -> None:
        assert partition.leader is not None, key
        partition.is_reading = True
        place = FetchPartition(
            partition=key[1],
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=partition.position,
            partition_max_bytes=_FETCH_BYTES,
        )
        body = FetchRequest(
            max_wait_ms=self.settings.timeout_ms // 4,
            min_bytes=1,
            topics=(FetchTopic(topic=partition.name, topic_id=key[0], partitions=(place,)),),
        )
        answered = partial(self._has_read, key, partition)
        self.asking.ask(partition.leader, body, self.settings.timeout_ms, answered)

    def _has_read(self, key: Key, partition: ProducedPartition, body: object, now_ms: int) -> None:
        partition.is_reading = False
        told = body.responses[0].partitions[0] if isinstance(body, FetchResponse) else None
        error = ErrorCode.REQUEST_TIMED_OUT if told is None else told.error_code
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self.judge.refused_position(key, partition.position)
            partition.is_before_start = True
        if told is None or error is not ErrorCode.NONE:
            self._lose_leader(key, partition, error, now_ms)
            return
        for value, offset in _values(told.records or b""):
            if offset >= partition.position:
                self.judge.has_read(key, offset, value)
                partition.position = offset + 1

    def _read_deleted(self, name: str, key: Key, leader: int) -> None:
        """By the id: the leader of the topic that has the name now does not know it."""
        place = FetchPartition(partition=key[1], fetch_offset=0, partition_max_bytes=_FETCH_BYTES)
        body = FetchRequest(
            max_wait_ms=0, topics=(FetchTopic(topic=name, topic_id=key[0], partitions=(place,)),)
        )
        self.asking.ask(leader, body, self.settings.short_ms, partial(self._has_read_deleted, key))

    def _has_read_deleted(self, key: Key, body: object, now_ms: int) -> None:
        records = (
            body.responses[0].partitions[0].records if isinstance(body, FetchResponse) else b""
        )
        for value, offset in _values(records or b""):
            self.judge.has_read(key, offset, value)

    def _find_start(self, key: Key, partition: ProducedPartition) -> None:
        assert partition.leader is not None, key
        partition.is_reading = True
        asked = ListOffsetsPartition(
            partition_index=key[1],
            current_leader_epoch=partition.leader_epoch,
            timestamp=EARLIEST,
        )
        body = ListOffsetsRequest(
            topics=(ListOffsetsTopic(name=partition.name, partitions=(asked,)),)
        )
        answered = partial(self._has_found_start, key, partition)
        self.asking.ask(partition.leader, body, self.settings.timeout_ms, answered)

    def _has_found_start(
        self, key: Key, partition: ProducedPartition, body: object, now_ms: int
    ) -> None:
        partition.is_reading = False
        told = body.topics[0].partitions[0] if isinstance(body, ListOffsetsResponse) else None
        error = ErrorCode.REQUEST_TIMED_OUT if told is None else told.error_code
        if told is None or error is not ErrorCode.NONE:
            self._lose_leader(key, partition, error, now_ms)
            return
        self.fired("sent_to_start")
        partition.is_before_start = False
        partition.position = told.offset


def batch_of(
    partition: ProducedPartition, values: tuple[bytes, ...], sequence: int, now_ms: int
) -> bytes:
    is_idempotent = partition.producer_id >= 0
    return build_batch(
        [Record(value=value) for value in values],
        timestamp_ms=now_ms,
        producer_id=partition.producer_id,
        producer_epoch=0 if is_idempotent else -1,
        base_sequence=sequence if is_idempotent else -1,
    )


def produced_in(body: object) -> PartitionProduceResponse | None:
    if not isinstance(body, ProduceResponse):
        return None
    return body.responses[0].partition_responses[0]


def _values(batches: bytes) -> Iterator[tuple[bytes, int]]:
    """Value and offset of every record."""
    for position, header in headers(batches):
        for record in records_of(batches[position : position + header.size_bytes]):
            assert record.value is not None, record
            yield record.value, record.offset
