"""A stream of the lines that histories grow by: files in a directory, or a topic of Kafka.

Two sources for `session.readStream.format(…)`, written in Python: they need no jar, and work on
Spark Connect. A row is a run and a line. How far a batch goes is decided once, and is kept in the
checkpoint: read again, it has the same lines.

    GrowingFiles   option path: a file, or a directory of *.msgpack and *.jsonl at any depth; the
                   run is the file's path. All machines must see it. Only what was written whole
                   is read: frames, or lines that have ended.
    Topic          options servers, topic, and any of librdkafka with the prefix "kafka."; the run
                   is the key of a record, or the topic if it has none.

This module needs nothing of ours: it goes to the workers by value.
"""

import os
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

__all__ = ["GrowingFiles", "Topic", "register"]

_SUFFIXES = (".msgpack", ".jsonl")
_FRAMED = 0xCF
_MARK = ">BII"  # of a frame, as `jepsen_like.histories.frames` has it: by value goes no `Struct`
_MARK_BYTES = struct.calcsize(_MARK)
_BLOCK = 1 << 20
_BATCH_BYTES = 64 << 20  # of one file, or so, in one batch
_BATCH_RECORDS = 500_000  # of one partition
_ROWS = 50_000
_SECONDS = 30.0
_LINES = pa.schema([("run", pa.string()), ("line", pa.binary())])
_DDL = "run string, line binary"


def register(session: SparkSession) -> None:
    """Both sources, in this session."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    try:
        for source in (GrowingFiles, Topic):
            session.dataSource.register(source)
    finally:
        cloudpickle.unregister_pickle_by_value(  # type: ignore[no-untyped-call]
            sys.modules[__name__]
        )


class _Range(InputPartition):
    """Of a file or a partition, from one offset to before another."""

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name = name
        self.start = start
        self.end = end


class _Reader(DataSourceStreamReader):
    """An offset is one number for each file or partition."""

    def initialOffset(self) -> dict[str, int]:
        return {}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        ranges = (_Range(name, start.get(name, 0), upto) for name, upto in sorted(end.items()))
        return [each for each in ranges if each.start < each.end]


def _batches(rows: Iterator[tuple[str, bytes]]) -> Iterator[pa.RecordBatch]:
    runs: list[str] = []
    lines: list[bytes] = []
    for run, line in rows:
        runs.append(run)
        lines.append(line)
        if len(runs) == _ROWS:
            yield pa.RecordBatch.from_arrays([pa.array(runs), pa.array(lines)], schema=_LINES)
            runs, lines = [], []
    if runs:
        columns = [pa.array(runs, pa.string()), pa.array(lines, pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, schema=_LINES)


# --- files ---------------------------------------------------------------------------------------


class GrowingFiles(DataSource):
    @classmethod
    def name(cls) -> str:
        return "quorumlab-files"

    def schema(self) -> str:
        return _DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Files(Path(self.options["path"]))


class _Files(_Reader):
    def __init__(self, path: Path) -> None:
        self._path = path

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        begun = {str(path): start.get(str(path), 0) for path in _files(self._path)}
        return {**start, **{name: _whole_until(name, begin) for name, begin in begun.items()}}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        with Path(partition.name).open("rb") as file:
            file.seek(partition.start)
            content = file.read(partition.end - partition.start)
        if len(content) < partition.end - partition.start:
            raise ValueError(f"{partition.name} is shorter than it was: a history only grows")
        lines = _frames(content) if content[0] == _FRAMED else iter(content.splitlines())
        return _batches((partition.name, line) for line in lines if line.strip())


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for found in sorted(path.rglob("*")):
        if found.suffix in _SUFFIXES and found.is_file():
            yield found


def _whole_until(name: str, begin: int) -> int:
    """Where the last frame, or the last line, ends that is whole."""
    with Path(name).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(begin)
        content = file.read(min(size - begin, _BATCH_BYTES))
    if not content:
        return begin
    if content[0] != _FRAMED:
        return begin + content.rfind(b"\n") + 1
    end = 0
    while end + _MARK_BYTES <= len(content):
        mark, _, length = struct.unpack_from(_MARK, content, end)
        if mark != _FRAMED:
            raise ValueError(f"{name}: byte {begin + end}: damaged")
        if end + _MARK_BYTES + length > len(content):
            break
        end += _MARK_BYTES + length
    return begin + end


def _frames(content: bytes) -> Iterator[bytes]:
    """Damage comes to the checkers as a line that makes no sense."""
    from zlib import crc32

    at = 0
    while at < len(content):
        _, crc, length = struct.unpack_from(_MARK, content, at)
        at += _MARK_BYTES
        frame = content[at : at + length]
        yield frame if crc32(frame) == crc else b"damaged"
        at += length


# --- topics --------------------------------------------------------------------------------------


class Topic(DataSource):
    @classmethod
    def name(cls) -> str:
        return "quorumlab-topic"

    def schema(self) -> str:
        return _DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Partitions(dict(self.options))


class _Partitions(_Reader):
    """Of a topic, from its beginning."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._topic = options["topic"]
        own = {name[6:]: value for name, value in options.items() if name.startswith("kafka.")}
        self._config = {
            "bootstrap.servers": options["servers"],
            "group.id": "quorumlab-watch",  # nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            **own,
        }

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(self._config)
        try:
            topic = consumer.list_topics(self._topic, timeout=_SECONDS).topics[self._topic]
            if topic.error is not None:
                raise ValueError(f"topic {self._topic}: {topic.error}")
            found = {}
            for number in sorted(topic.partitions):
                place = TopicPartition(self._topic, number)
                _, high = consumer.get_watermark_offsets(place, timeout=_SECONDS)
                found[str(number)] = min(high, start.get(str(number), 0) + _BATCH_RECORDS)
            return {**start, **found}
        finally:
            consumer.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        return _batches(self._records(int(partition.name), partition.start, partition.end))

    def _records(self, number: int, start: int, end: int) -> Iterator[tuple[str, bytes]]:
        """What a transaction marks, or compaction took, is passed over."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        consumer = Consumer(self._config)
        try:
            consumer.assign([TopicPartition(self._topic, number, start)])
            deadline = time.monotonic() + _SECONDS
            while time.monotonic() < deadline:
                for message in consumer.consume(10_000, timeout=0.5):
                    deadline = time.monotonic() + _SECONDS
                    error = message.error()
                    if error is not None and error.code() == KafkaError._PARTITION_EOF:
                        return
                    if error is not None:
                        raise ValueError(f"topic {self._topic}: {error}")
                    offset, key = message.offset(), message.key()
                    if offset is None or offset >= end:
                        return
                    run = self._topic if key is None else key.decode(errors="replace")
                    yield run, message.value() or b""
                    if offset + 1 >= end:
                        return
            raise TimeoutError(f"topic {self._topic}: partition {number} stands at {start}")
        finally:
            consumer.close()
