"""Histories that are still being written, judged by Structured Streaming.

    from quorumlab import growing_files, topic_lines, watch

    verdicts = watch(growing_files(session, "/runs"))
    verdicts.writeStream.option("checkpointLocation", "…").toTable("verdicts")

In goes a stream of lines of histories: a column `run`, and `line` with one line as JSON, or the
content of one of our frames; `growing_files` and `topic_lines` make such streams, and so does
anything that Spark reads. Out comes a stream of verdicts, in append mode: what is told is certain,
and is never taken back.

A run is one group, and one task at a time: its lines are looked at in the order of their indexes,
which no other division keeps. What is remembered of it is one value in Spark's state store, of
bounded size; with a checkpoint a query that is started again goes on where it was, and every line
counts once. No timer and no watermark is needed, and the session is not configured.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupStateTimeout

from jepsen_like.checkers.online.run import OnlineRun
from jepsen_like.checkers.online.told import Limits, Told
from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.histories.history import (
    Header,
    MalformedHistory,
    Op,
    Value,
    header_of,
    op_of_frame,
)
from jepsen_like.histories.mappings import json_of, lines_of
from spark.rows import no_cycles
from spark.schema import ddl_of
from spark.shipping import ship
from spark.tailing import register
from spark.verdict_rows import VERDICTS

__all__ = ["VERSION", "WATCHED", "Watching", "growing_files", "topic_lines", "watch"]

VERSION = 1
WATCHED = VERDICTS.insert(VERDICTS.get_field_index("counts"), pa.field("upto", pa.int64()))
# States that this worker has seen last, and what they say.
_LATEST: dict[tuple[str, Limits], tuple[bytes, OnlineRun]] = {}
_LATEST_MAX = 8
_HELD_MAX = 10_000  # lines of which nobody has said yet what history they are of


def growing_files(session: SparkSession, path: str) -> DataFrame:
    """The lines of all *.msgpack and *.jsonl below a directory, or of one file, as they are
    written. The run is the file's path."""
    return _read(session, "quorumlab-files", {"path": path})


def topic_lines(
    session: SparkSession, servers: str, topic: str, settings: Mapping[str, str] | None = None
) -> DataFrame:
    """The records of a topic of Kafka, from its beginning: values are lines, keys are runs.

    `settings` are librdkafka's. The workers need confluent-kafka.
    """
    own = {f"kafka.{name}": each for name, each in (settings or {}).items()}
    return _read(session, "quorumlab-topic", {"servers": servers, "topic": topic, **own})


def _read(session: SparkSession, source: str, options: Mapping[str, str]) -> DataFrame:
    register(session)
    return session.readStream.format(source).options(**options).load()


def watch(
    lines: DataFrame,
    model: str | None = None,
    *,
    options: Mapping[str, Value] | None = None,
    limits: Limits | None = None,
) -> DataFrame:
    """The verdicts on a stream of lines: a row for each object that is violated, or of which
    nothing will be known; and after each batch a row for each run with new lines, of how far it
    was looked at.

    `model`: what the histories are judged as, with these `options`; without it, each run's first
    line says so, as our own histories do. Raises `ValueError` where a column is missing.
    """
    missing = {"run", "line"} - set(lines.columns)
    if missing:
        raise ValueError(f"no stream of lines: {' and '.join(sorted(missing))} is missing")
    ship(lines.sparkSession)
    watching = Watching(model=model, options=options or {}, limits=limits or Limits())
    grouped = lines.selectExpr("run", "cast(line as binary) as line").groupBy("run")
    return grouped.applyInPandasWithState(
        watching.told, ddl_of(WATCHED), "state binary", "append", GroupStateTimeout.NoTimeout
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """Goes to the workers as it is."""

    model: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def told(
        self, key: tuple[str], frames: Iterable[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        (run,) = key
        lines = (bytes(line) for frame in frames for line in frame["line"] if line is not None)
        with no_cycles():
            rows, after = self.rows(run, lines, state.get[0] if state.exists else None)
        state.update((after,))
        if rows:
            yield pd.DataFrame(rows, columns=WATCHED.names)

    def rows(
        self, run: str, lines: Iterable[bytes], state: bytes | None
    ) -> tuple[list[list[Any]], bytes]:
        """Verdicts on more lines of a run, and the state after them."""
        begun = time.process_time()
        held, online = self._loaded(run, state)
        if online is None:
            held += lines
            online, lines = self._begun(held)
        if online is None:
            if len(held) <= _HELD_MAX:
                return [], msgpack.packb([held, None])
            online = OnlineRun.of(Header(workload="", seed=0), self.limits)
        told = list(_taken(online, lines))
        after: bytes = msgpack.packb([[], online.dumps()])
        _LATEST[run, self.limits] = after, online
        if len(_LATEST) > _LATEST_MAX:
            del _LATEST[next(iter(_LATEST))]
        seconds = time.process_time() - begun
        rows = [_row(run, online, each) for each in told]
        return [*rows, _summary(run, online, len(after), seconds)], after

    def _loaded(self, run: str, state: bytes | None) -> tuple[list[bytes], OnlineRun | None]:
        if state is None:
            header = Header(workload=self.model or "", seed=0, options=self.options)
            return [], None if self.model is None else OnlineRun.of(header, self.limits)
        before, latest = _LATEST.pop((run, self.limits), (None, None))
        if before == state:
            return [], latest
        held, online = msgpack.unpackb(state)
        return held, None if online is None else OnlineRun.loads(online, self.limits)

    def _begun(self, held: list[bytes]) -> tuple[OnlineRun | None, list[bytes]]:
        """The run, once one of the lines tells what it is of."""
        for line in held:
            try:
                header = header_of(_value(line)) if b"quorumlab-history" in line else None
            except MalformedHistory:
                continue
            if header is not None:
                return OnlineRun.of(header, self.limits), held
        return None, []


def _taken(online: OnlineRun, lines: Iterable[bytes]) -> Iterator[Told]:
    ops: list[Op] = []
    try:
        for line in lines:
            op = _op(line)
            if op is not None:
                ops.append(op)
    except MalformedHistory as error:
        yield from online.take(sorted(ops, key=lambda op: op.index))
        yield from online.stop(f"it makes no sense: {error}")
        return
    yield from online.take(sorted(ops, key=lambda op: op.index))


def _op(line: bytes) -> Op | None:
    """Nothing if it is a header. Raises `MalformedHistory`."""
    if line[:1] not in (b"{", b" ", b"\t"):
        if b"quorumlab-history" in line[:40]:
            return None
        return op_of_frame(line)
    told = _value(line)
    if isinstance(told, dict) and "format" in told:
        return None
    if not isinstance(told, dict) or "index" not in told:
        raise MalformedHistory(f"a line without an index: {line!r:.100}")
    return lines_of([told], 0).op(0)


def _value(line: bytes) -> Value:
    if line[:1] in (b"{", b" ", b"\t"):
        return json_of(line.decode(errors="replace"), 1)
    try:
        return msgpack.unpackb(line, strict_map_key=False)
    except (ValueError, RecursionError, msgpack.UnpackException) as error:
        raise MalformedHistory(f"not msgpack: {error}") from error


def _row(run: str, online: OnlineRun, told: Told) -> list[Any]:
    upto, model = online.next - 1, online.header.workload
    if isinstance(told, Finding):
        found = [Outcome.VIOLATED.value, told.rule, told.detail, list(told.ops), None]
    else:
        found = [Outcome.UNDECIDED.value, None, None, [], told.why]
    return [VERSION, run, told.object or None, model, *found, upto, None, None]


def _summary(run: str, online: OnlineRun, size: int, seconds: float) -> list[Any]:
    counts = {
        "operations": online.operations,
        "objects": online.objects,
        "violated": online.violated,
        "undecided": online.undecided,
        "waiting": len(online.waiting),
        "state bytes": size,
    }
    found: list[Any] = [online.outcome.value, None, None, [], online.doubted or None]
    return [VERSION, run, None, online.header.workload, *found, online.next - 1, counts, seconds]
