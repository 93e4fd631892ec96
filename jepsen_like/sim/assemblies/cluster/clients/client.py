"""A client of the simulated cluster, as a core: produces to every partition, reads, remembers.

It creates its topic, then produces batches of unique values with acks=all, one at a time to a
partition, and reads every partition from the beginning on. It goes on to ask for topics that were
deleted, by their ids, when others have their names. What it was told goes to its `Judge`; whether
that came true is judged in `jepsen_like.sim.assemblies.cluster.invariants.partition_invariants` and
`jepsen_like.sim.assemblies.cluster.liveness`.

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
from jepsen_like.clients.admin_client import ALL_TOPICS, creation
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, WIDE, Acknowledged, Key
from jepsen_like.sim.assemblies.quorum.clients.asking import Answered, AskingCore
from jepsen_like.sim.world.client_releases import NEWEST, ClientRelease
from jepsen_like.workloads.workload import NewTopic
from wire.batch import Record, build_batch, headers, records_of
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from wire.messages.producing import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.messages.topics import CreateTopicsResponse

__all__ = [
    "LOST_SEQUENCE",
    "Client",
    "ClientSettings",
    "InFlight",
    "Judge",
    "ProducedPartition",
    "batch_of",
    "fetched_in",
    "produced_in",
]

_UNUSED = (WIDE, "__")  # how the names of topics begin that no client uses
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
    topic: NewTopic
    timeout_ms: int
    interval_ms: int  # between two batches to a partition, on average; 0: it produces nothing
    is_idempotent: bool = False
    in_flight_max: int = 1  # idempotent batches of a partition
    records_max: int = 3
    release: ClientRelease = NEWEST


class Judge(Protocol):
    """Who looks at what a client is told, at once."""

    def acknowledged(self, key: Key, batch: Acknowledged) -> None: ...

    def has_read(self, key: Key, offset: int, value: bytes) -> None: ...

    def refused_position(self, key: Key, offset: int) -> None:
        """What was read up to is out of range now."""

    def refused_sequence(self, key: Key, sequence: int) -> None:
        """A batch is out of order, though all before it were acknowledged."""


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


class Client(AskingCore):
    def __init__(
        self,
        settings: ClientSettings,
        random: Random,
        next_serial: Callable[[], int],
        judge: Judge,
        fired: Callable[[str], None] = lambda _kind: None,
    ) -> None:
        super().__init__(timeout_ms=settings.timeout_ms, release=settings.release)
        self.settings = settings
        self.produces = True
        self._random = random
        self._next_serial = next_serial
        self._judge = judge
        self._fired = fired
        # For what any broker can answer at once: else another is asked.
        self._short_ms = max(1, settings.timeout_ms // 8)
        self._is_created = False
        self._partitions: dict[Key, ProducedPartition] = {}
        self._ids: dict[tuple[str, int], list[UUID]] = {}  # ever, the last counts
        self._is_asking_metadata = False
        self._due_ms = 0  # the next look at the metadata, or the next try to create the topic

    # --- Core ---------------------------------------------------------------------------

    def settle(self, now_ms: int) -> None:
        if now_ms >= self._due_ms and not self._is_asking_metadata:
            self._due_ms = now_ms + 2 * self.timeout_ms
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

    def _ask_any(self, body: object, answered: Answered, timeout_ms: int) -> None:
        self.ask(self._random.choice(self.settings.brokers), body, answered, timeout_ms)

    def _ask_leader(
        self, key: Key, partition: ProducedPartition, body: object, answered: Answered
    ) -> None:
        assert partition.leader is not None, key
        self.ask(partition.leader, body, answered)

    def _soon(self, now_ms: int) -> None:
        """Look at the metadata again before long."""
        self._due_ms = min(self._due_ms, now_ms + self._random.randint(1, self._short_ms))

    # --- the topic and its leaders --------------------------------------------------------

    def _create(self) -> None:
        body = creation(self.settings.topic, self.timeout_ms)
        self._ask_any(body, self._created, self.timeout_ms)

    def _created(self, body: object, now_ms: int) -> None:
        if isinstance(body, CreateTopicsResponse) and body.topics:
            known = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            self._is_created = self._is_created or body.topics[0].error_code in known
        self._soon(now_ms)

    def _ask_metadata(self) -> None:
        self._is_asking_metadata = True
        self._ask_any(ALL_TOPICS, self._learn, self._short_ms)

    def _learn(self, body: object, now_ms: int) -> None:
        self._is_asking_metadata = False
        if not isinstance(body, MetadataResponse):
            self._soon(now_ms)
            return
        for topic in body.topics:
            is_used = topic.name is not None and not topic.name.startswith(_UNUSED)
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
        if partition.is_asking_id:
            return
        partition.is_asking_id = True

        def given(body: object, now_ms: int) -> None:
            partition.is_asking_id = False
            if isinstance(body, InitProducerIdResponse) and body.error_code is ErrorCode.NONE:
                partition.producer_id, partition.sequence = body.producer_id, 0

        self._ask_any(InitProducerIdRequest(), given, self._short_ms)

    def _produce(self, key: Key, partition: ProducedPartition, now_ms: int) -> None:
        if not partition.sent:
            partition.sent = self._new_values()
        partition.is_sending = True
        records = batch_of(partition, partition.sent, partition.sequence, now_ms)
        self._send(key, partition, records, partial(self._produced, key, partition))

    def _new_values(self) -> tuple[bytes, ...]:
        count = self._random.randint(1, self.settings.records_max)
        return tuple(b"%d" % self._next_serial() for _ in range(count))

    def _send(
        self, key: Key, partition: ProducedPartition, records: bytes, answered: Answered
    ) -> None:
        data = PartitionProduceData(index=key[1], records=records)
        topic = TopicProduceData(name=partition.name, topic_id=key[0], partition_data=(data,))
        body = ProduceRequest(acks=-1, timeout_ms=self.timeout_ms // 2, topic_data=(topic,))
        self._ask_leader(key, partition, body, answered)

    def _produced(self, key: Key, partition: ProducedPartition, body: object, now_ms: int) -> None:
        """The answer counts, even if the topic seemed to be gone meanwhile."""
        partition.is_sending = False
        told, error = produced_in(body)
        if told is not None and error is ErrorCode.NONE:
            values = partition.sent
            self._judge.acknowledged(key, Acknowledged(base_offset=told.base_offset, values=values))
            self._next_batch(partition)
        elif error is ErrorCode.MESSAGE_TOO_LARGE:
            partition.sent = ()  # which has not moved the sequence
        elif error in LOST_SEQUENCE:
            self._next_batch(partition)
            partition.producer_id = -1
        elif not self.settings.is_idempotent:
            self._next_batch(partition)
        partition.due_ms = now_ms + self._random.randint(1, 2 * self.settings.interval_ms)
        if error is not ErrorCode.NONE:
            self._lose_leader(key, partition, error, now_ms)

    def _next_batch(self, partition: ProducedPartition) -> None:
        partition.sequence += len(partition.sent)
        partition.sent = ()

    # --- reading --------------------------------------------------------------------------

    def _read(self, key: Key, partition: ProducedPartition) -> None:
        partition.is_reading = True
        place = FetchPartition(
            partition=key[1],
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=partition.position,
            partition_max_bytes=_FETCH_BYTES,
        )
        body = FetchRequest(
            max_wait_ms=self.timeout_ms // 4,
            min_bytes=1,
            topics=(FetchTopic(topic=partition.name, topic_id=key[0], partitions=(place,)),),
        )
        self._ask_leader(key, partition, body, partial(self._has_read, key, partition))

    def _has_read(self, key: Key, partition: ProducedPartition, body: object, now_ms: int) -> None:
        partition.is_reading = False
        told = fetched_in(body)
        error = ErrorCode.REQUEST_TIMED_OUT if told is None else told.error_code
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._judge.refused_position(key, partition.position)
            partition.is_before_start = True
        if error is not ErrorCode.NONE:
            self._lose_leader(key, partition, error, now_ms)
            return
        for value, offset in _values(told):
            if offset >= partition.position:
                self._judge.has_read(key, offset, value)
        partition.position = max(partition.position, _end_of(told))

    def _read_deleted(self, name: str, key: Key, leader: int) -> None:
        """By the id: the leader of the topic that has the name now does not know it."""
        place = FetchPartition(partition=key[1], fetch_offset=0, partition_max_bytes=_FETCH_BYTES)
        body = FetchRequest(
            max_wait_ms=0, topics=(FetchTopic(topic=name, topic_id=key[0], partitions=(place,)),)
        )

        def has_read(body: object, now_ms: int) -> None:
            for value, offset in _values(fetched_in(body)):
                self._judge.has_read(key, offset, value)

        self.ask(leader, body, has_read, self._short_ms)

    def _find_start(self, key: Key, partition: ProducedPartition) -> None:
        partition.is_reading = True
        asked = ListOffsetsPartition(
            partition_index=key[1],
            current_leader_epoch=partition.leader_epoch,
            timestamp=EARLIEST,
        )

        def found(body: object, now_ms: int) -> None:
            partition.is_reading = False
            told = body.topics[0].partitions[0] if isinstance(body, ListOffsetsResponse) else None
            error = ErrorCode.REQUEST_TIMED_OUT if told is None else told.error_code
            if told is None or error is not ErrorCode.NONE:
                self._lose_leader(key, partition, error, now_ms)
                return
            self._fired("sent_to_start")
            partition.is_before_start = False
            partition.position = told.offset

        topic = ListOffsetsTopic(name=partition.name, partitions=(asked,))
        self._ask_leader(key, partition, ListOffsetsRequest(topics=(topic,)), found)


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


def produced_in(body: object) -> tuple[PartitionProduceResponse | None, ErrorCode]:
    """What was said of the partition, and the error: a time-out if nothing was."""
    if not isinstance(body, ProduceResponse):
        return None, ErrorCode.REQUEST_TIMED_OUT
    told = body.responses[0].partition_responses[0]
    return told, told.error_code


def fetched_in(body: object) -> FetchedPartition | None:
    return body.responses[0].partitions[0] if isinstance(body, FetchResponse) else None


def _end_of(fetched: FetchedPartition | None) -> int:
    """The offset behind the last batch; 0 if there is none."""
    batches = b"" if fetched is None else fetched.records or b""
    return max((header.next_offset for _, header in headers(batches)), default=0)


def _values(fetched: FetchedPartition | None) -> Iterator[tuple[bytes, int]]:
    """Value and offset of every record but the markers of transactions."""
    batches = b"" if fetched is None else fetched.records or b""
    for position, header in headers(batches):
        if header.is_control:
            continue
        for record in records_of(batches[position : position + header.size_bytes]):
            assert record.value is not None, record
            yield record.value, record.offset
