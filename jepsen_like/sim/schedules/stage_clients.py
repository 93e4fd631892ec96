"""The clients of a stage: they produce and read as the schedule says, and keep their history.

Each operation is a process of its own, since a schedule may leave any of them waiting. A reader
begins at zero and is done when it has reached the high watermark that it was told.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jepsen_like.histories.history import Kind, Value
from jepsen_like.sim.cluster.client import TOPIC, Acknowledged, Judge, Key
from jepsen_like.sim.quorum.asking import AskingCore
from jepsen_like.sim.schedules.production import Production
from wire.batch import data_batch, headers, records_of
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.messages.producing import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["Produced", "Reader", "StageClients", "number_of"]

_FETCH_BYTES = 1 << 20
# Refused before anything was appended; after any other error the record may be there.
_SURELY_NOT = (ErrorCode.NOT_ENOUGH_REPLICAS,)


def number_of(value: bytes) -> int:
    """A letter of the script as the number that stands for it in the history."""
    return int.from_bytes(value, "big")


@dataclass(slots=True)
class Produced:
    """A batch that was sent; `error` is None until it is answered."""

    value: bytes
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


class StageClients(AskingCore):
    """A core that asks what the schedule says. `timeout_ms`: when it gives up."""

    def __init__(self, production: Production, judge: Judge, *, timeout_ms: int) -> None:
        super().__init__(timeout_ms=timeout_ms)
        self._production = production
        self._judge = judge

    # --- producing ----------------------------------------------------------------------

    def produce(self, key: Key, value: bytes, to: int) -> Produced:
        """With acks=all."""
        produced = Produced(value)
        wish = [["send", _name(key), number_of(value)]]
        process = self._production.invoke("send", wish)
        data = PartitionProduceData(index=key[1], records=data_batch([value], timestamp_ms=0))
        topic = TopicProduceData(name=TOPIC, topic_id=key[0], partition_data=(data,))
        body = ProduceRequest(acks=-1, timeout_ms=self._timeout_ms, topic_data=(topic,))

        def answered(answer: object, _now_ms: int) -> None:
            told = _produced_in(answer)
            produced.error = ErrorCode.REQUEST_TIMED_OUT if told is None else told.error_code
            self._has_produced(key, produced, told, process)

        self.ask(to, body, answered)
        return produced

    def _has_produced(
        self, key: Key, produced: Produced, told: PartitionProduceResponse | None, process: int
    ) -> None:
        production, text = self._production, produced.value.decode()
        assert produced.error is not None
        if told is None or not produced.is_acknowledged:
            is_surely_not = produced.error in _SURELY_NOT
            kind = Kind.FAIL if is_surely_not else Kind.INFO
            production.note(f"{text} is answered with {produced.error.name}")
            production.complete(process, kind, error=produced.error.name)
            return
        number = number_of(produced.value)
        done = [["send", _name(key), [told.base_offset, number]]]
        production.note(f"{text} is acknowledged at offset {told.base_offset}")
        production.complete(process, Kind.OK, done)
        batch = Acknowledged(base_offset=told.base_offset, values=(produced.value,))
        self._judge.acknowledged(key, batch)

    # --- reading ------------------------------------------------------------------------

    def read(self, key: Key, of: int) -> Reader:
        """Everything from zero on, of one leader."""
        production = self._production
        process = production.invoke("assign", [_name(key)], seek="beginning")
        production.complete(process, Kind.OK)
        reader = Reader(process)
        self._poll(key, of, reader)
        return reader

    def _poll(self, key: Key, of: int, reader: Reader) -> None:
        self._production.go_on(reader.process, "poll", [["poll"]])
        place = FetchPartition(
            partition=key[1], fetch_offset=reader.position, partition_max_bytes=_FETCH_BYTES
        )
        topic = FetchTopic(topic=TOPIC, topic_id=key[0], partitions=(place,))
        body = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))
        self.ask(of, body, lambda answer, _now_ms: self._has_read(key, of, reader, answer))

    def _has_read(self, key: Key, of: int, reader: Reader, answer: object) -> None:
        told = answer.responses[0].partitions[0] if isinstance(answer, FetchResponse) else None
        if told is None or told.error_code is not ErrorCode.NONE:
            name = "no answer" if told is None else told.error_code.name
            self._production.complete(reader.process, Kind.FAIL, error=name)
            reader.is_done = True
            return
        records = [*_records(told.records or b"")]
        before = reader.position
        for offset, value in records:
            self._judge.has_read(key, offset, value)
            reader.position = offset + 1
        pairs = [[offset, number_of(value)] for offset, value in records]
        done = [["poll", {_name(key): pairs} if pairs else {}]]
        reader.is_done = reader.position >= told.high_watermark or reader.position == before
        extra: dict[str, Value] = {"caught_up": True} if reader.is_done else {}
        self._production.complete(reader.process, Kind.OK, done, extra=extra)
        text = " ".join(f"{offset}:{value.decode()}" for offset, value in records)
        self._production.note(f"a reader gets {text or 'nothing'}")
        if not reader.is_done:
            self._poll(key, of, reader)


def _name(key: Key) -> str:
    return f"{TOPIC}-{key[1]}"


def _produced_in(answer: object) -> PartitionProduceResponse | None:
    if not isinstance(answer, ProduceResponse):
        return None
    return answer.responses[0].partition_responses[0]


def _records(batches: bytes) -> Iterator[tuple[int, bytes]]:
    for position, header in headers(batches):
        for record in records_of(batches[position : position + header.size_bytes]):
            yield record.offset, record.value or b""
