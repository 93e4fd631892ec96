"""The clients of a directed cluster: they ask what they are told to, and keep their history.

Each operation is a process of its own on a connection of its own, since any of them may be left
waiting. A reader begins at zero and is done when it has reached the high watermark that it was
told; where there are transactions it reads what has committed, up to the last stable offset. A
register is a topic's config, as in the workload of that name.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from controller.committed_reads import ReadCommittedRequest, ReadCommittedResponse
from jepsen_like.clients.admin_client import register_write
from jepsen_like.clients.readable import READ_COMMITTED, readable
from jepsen_like.histories.history import Kind, Value
from jepsen_like.scenarios.language.forms import Names
from jepsen_like.scenarios.stage.story import Production, Story
from jepsen_like.sim.assemblies.cluster.clients.client import LOST_SEQUENCE, Judge
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Acknowledged, Key
from jepsen_like.sim.assemblies.quorum.clients.asking import AskingCore
from jepsen_like.sim.world.host import Host
from jepsen_like.workloads.metadata_workloads import CONFIG
from wire.batch import Record, build_batch, headers, records_of
from wire.errors import ErrorCode
from wire.messages.configs import IncrementalAlterConfigsResponse
from wire.messages.fetching import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from wire.messages.producing import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.transaction_markers import read_marker

__all__ = ["DirectedClients", "Produced", "Reader", "number_of", "outcome_of", "values_in"]

# Is called with a partition, where a reader was and is now, and what it was given, by offset.
ReadsCommitted = Callable[[Key, int, int, Mapping[int, bytes]], None]

_FETCH_BYTES = 1 << 20
# Refused before anything was appended; after any other error the record may be there.
_SURELY_NOT = (ErrorCode.NOT_ENOUGH_REPLICAS,)


def number_of(value: str) -> int:
    """A value of the script as the number that stands for it in the history."""
    return int.from_bytes(value.encode(), "big")


def values_in(batches: bytes) -> Iterator[tuple[int, str]]:
    """Offset and value of each record; of a control record, what it says."""
    for position, header in headers(batches):
        batch = batches[position : position + header.size_bytes]
        marker = read_marker(batch, header)
        if marker is not None:
            yield header.base_offset, "COMMIT" if marker.is_commit else "ABORT"
            continue
        for record in records_of(batch):
            yield record.offset, (record.value or b"").decode()


@dataclass(slots=True)
class Produced:
    """A record that was sent; `error` is None until it is answered."""

    value: str
    error: ErrorCode | None = None

    @property
    def is_answered(self) -> bool:
        return self.error is not None

    @property
    def is_acknowledged(self) -> bool:
        return self.error is ErrorCode.NONE


@dataclass(slots=True)
class Reader:
    process: int
    position: int = 0
    is_done: bool = False  # has caught up, or was refused
    is_last: bool = False  # everything is at rest: what it cannot read is not only late


class DirectedClients(AskingCore):
    """A core that asks what it is told to, in the turn that it is then given on its `host`.

    What is asked is noted in the account; what is answered is told in the story, too.
    """

    host: Host  # set as soon as there is one

    def __init__(
        self,
        production: Production,
        judge: Judge,
        names: Names,
        story: Story,
        *,
        timeout_ms: int,
        reads_committed: ReadsCommitted | None = None,
    ) -> None:
        """`timeout_ms`: when it gives up. `reads_committed` judges readers of transactions."""
        super().__init__(timeout_ms=timeout_ms)
        self.sent: dict[str, Produced] = {}  # by value
        self._acknowledged: dict[tuple[Key, int], set[int]] = {}  # sequences, by producer id
        self._production = production
        self._judge = judge
        self._reads_committed = reads_committed
        self._names = names
        self._story = story

    def _told(self, line: str) -> None:
        self._production.note(f"client: {line}")
        self._story.tell(f"client: {line}")

    def _send(self) -> None:
        self.host.command(lambda _now_ms: None)

    def order(
        self, to: int, body: object, answered: Callable[[object], None] = lambda _answer: None
    ) -> None:
        """Ask anything; the history does not tell of it."""
        self.ask(to, body, lambda answer, _now_ms: answered(answer))
        self._send()

    # --- producing ----------------------------------------------------------------------

    def produce(
        self, key: Key, value: str, to: int, producer: tuple[int, int] = (-1, -1)
    ) -> Produced:
        """With acks=all. `producer`: its id, and the sequence of the record."""
        named = f"{value} ({number_of(value)} in the history)"
        self._production.note(f"a client sends {named} to {self._names.of(to)}")
        produced = self.sent[value] = Produced(value)
        process = self._production.invoke("send", [["send", _name(key), number_of(value)]])
        records = build_batch(
            [Record(value=value.encode())],
            timestamp_ms=0,
            producer_id=producer[0],
            producer_epoch=0 if producer[0] >= 0 else -1,
            base_sequence=producer[1],
        )
        data = PartitionProduceData(index=key[1], records=records)
        topic = TopicProduceData(name=TOPIC, topic_id=key[0], partition_data=(data,))
        body = ProduceRequest(acks=-1, timeout_ms=self.timeout_ms, topic_data=(topic,))

        def answered(answer: object, _now_ms: int) -> None:
            told = _produced_in(answer)
            produced.error = ErrorCode.REQUEST_TIMED_OUT if told is None else told.error_code
            self._has_produced(key, produced, told, process)
            self._told(f"{value} {outcome_of(told, self._names.of(to))}")
            if producer[0] >= 0:
                self._hears_of_sequence(key, *producer, produced.error)

        self.ask(to, body, answered)
        self._send()
        return produced

    def _has_produced(
        self, key: Key, produced: Produced, told: PartitionProduceResponse | None, process: int
    ) -> None:
        assert produced.error is not None
        if told is None or not produced.is_acknowledged:
            kind = Kind.FAIL if produced.error in _SURELY_NOT else Kind.INFO
            self._production.complete(process, kind, error=produced.error.name)
            return
        done = [["send", _name(key), [told.base_offset, number_of(produced.value)]]]
        self._production.complete(process, Kind.OK, done)
        batch = Acknowledged(base_offset=told.base_offset, values=(produced.value.encode(),))
        self._judge.acknowledged(key, batch)

    def _hears_of_sequence(
        self, key: Key, producer_id: int, sequence: int, error: ErrorCode
    ) -> None:
        """A sequence that follows on all that was acknowledged must not be out of order."""
        acknowledged = self._acknowledged.setdefault((key, producer_id), set())
        if error is ErrorCode.NONE:
            acknowledged.add(sequence)
        elif error in LOST_SEQUENCE and acknowledged == set(range(sequence)):
            self._judge.refused_sequence(key, sequence)

    # --- reading ------------------------------------------------------------------------

    def read(self, key: Key, of: int, *, is_last: bool = False) -> Reader:
        """Everything from zero on, of one leader."""
        self._production.note(f"a reader begins at the beginning, at {self._names.of(of)}")
        process = self._production.invoke("assign", [_name(key)], seek="beginning")
        self._production.complete(process, Kind.OK)
        reader = Reader(process, is_last=is_last)
        self._poll(key, of, reader)
        self._send()
        return reader

    def _poll(self, key: Key, of: int, reader: Reader) -> None:
        self._production.go_on(reader.process, "poll", [["poll"]])
        place = FetchPartition(
            partition=key[1], fetch_offset=reader.position, partition_max_bytes=_FETCH_BYTES
        )
        topic = FetchTopic(topic=TOPIC, topic_id=key[0], partitions=(place,))
        isolation = 0 if self._reads_committed is None else READ_COMMITTED
        body = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=isolation, topics=(topic,))
        self.ask(of, body, lambda answer, _now_ms: self._has_read(key, of, reader, answer))

    def _has_read(self, key: Key, of: int, reader: Reader, answer: object) -> None:
        is_answer = isinstance(answer, FetchResponse) and bool(answer.responses)
        told = answer.responses[0].partitions[0] if is_answer else None  # type: ignore[attr-defined]
        if told is None or told.error_code is not ErrorCode.NONE:
            error = "no answer" if told is None else told.error_code.name
            node = self._names.of(of)
            why = f"gets no answer of {node}" if told is None else f"is refused by {node}: {error}"
            self._production.complete(reader.process, Kind.FAIL, error=error)
            self._told(f"a read {why}")
            reader.is_done = True
            return
        before = reader.position
        records = self._taken(key, reader, told)
        pairs = [[offset, number_of(value)] for offset, value in records]
        done = [["poll", {_name(key): pairs} if pairs else {}]]
        end_offset = (
            told.high_watermark if self._reads_committed is None else told.last_stable_offset
        )
        reader.is_done = reader.position >= end_offset or reader.position == before
        # What is open holds it back, and what has just been committed, until its marker is there.
        is_whole = reader.is_last or end_offset == told.high_watermark
        has_all = reader.is_done and is_whole
        extra: dict[str, Value] = {"caught_up": True} if has_all else {}
        self._production.complete(reader.process, Kind.OK, done, extra=extra)
        text = ", ".join(f"{value} at {offset}" for offset, value in records)
        self._told(f"reads of {self._names.of(of)}: {text or 'nothing'}")
        if not reader.is_done:
            self._poll(key, of, reader)

    def _taken(self, key: Key, reader: Reader, told: FetchedPartition) -> list[tuple[int, str]]:
        """The records that the reader is given."""
        start = reader.position
        given: dict[int, bytes] = {}
        for header, records in readable(told):
            reader.position = header.next_offset
            given |= {record.offset: record.value or b"" for record in records}
        for offset, value in given.items():
            self._judge.has_read(key, offset, value)
        if self._reads_committed is not None:
            self._reads_committed(key, start, reader.position, given)
        return [(offset, value.decode()) for offset, value in given.items()]

    # --- a register ---------------------------------------------------------------------

    def write_register(self, value: int, to: int) -> int:
        """Returns the process that does it, which may be left waiting."""
        self._production.note(f"a client asks {self._names.of(to)} to write {value}")
        process = self._production.invoke("write", [TOPIC, value])

        def answered(answer: object, _now_ms: int) -> None:
            is_done = (
                isinstance(answer, IncrementalAlterConfigsResponse)
                and answer.responses[0].error_code is ErrorCode.NONE
            )
            self._production.complete(process, Kind.OK if is_done else Kind.INFO)

        self.ask(to, register_write(TOPIC, value), answered)
        self._send()
        return process

    def read_register(self, of: int) -> int:
        """What a controller says is committed, which must first be sure that it leads."""
        process = self._production.invoke("read", [TOPIC, None])

        def answered(answer: object, _now_ms: int) -> None:
            if isinstance(answer, ReadCommittedResponse) and answer.error is ErrorCode.NONE:
                value = None if answer.value is None else int(answer.value)
                self._told(f"{self._names.of(of)} says that it is {value}")
                self._production.complete(process, Kind.OK, [TOPIC, value])
            else:
                self._production.complete(process, Kind.FAIL, error="no answer")

        self.ask(of, ReadCommittedRequest(topic=TOPIC, config=CONFIG), answered)
        self._send()
        return process


def _name(key: Key) -> str:
    return f"{TOPIC}-{key[1]}"


def _produced_in(answer: object) -> PartitionProduceResponse | None:
    if not isinstance(answer, ProduceResponse):
        return None
    return answer.responses[0].partition_responses[0]


def outcome_of(told: PartitionProduceResponse | None, node: str) -> str:
    if told is None:
        return f"gets no answer of {node}"
    if told.error_code is not ErrorCode.NONE:
        return f"is refused by {node}: {told.error_code.name}"
    return f"is acknowledged by {node} at offset {told.base_offset}"
