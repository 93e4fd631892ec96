"""A stream tells of growing files what the online checkers tell, once, also if it is restarted."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import History, encode_header, encode_op
from jepsen_like.histories.interchange import jsonl_lines
from spark.streaming import growing_files, watch
from tests.jepsen_like.checkers.online_judging import told_of
from tests.spark.histories import random_history, random_log

pytestmark = [pytest.mark.slow, pytest.mark.extra]

_HISTORIES = {
    "valid.msgpack": random_log(1),
    "log.msgpack": random_log(5),
    "text.jsonl": random_history(16),
    "registers.jsonl": random_history(11),
    "set.msgpack": random_history(5),
}


def content_of(name: str, history: History) -> bytes:
    if name.endswith(".jsonl"):
        return "".join(f"{line}\n" for line in jsonl_lines(history)).encode()
    return encode_header(history.header) + b"".join(map(encode_op, history.ops))


def expected(history: History) -> list[tuple[Any, ...]]:
    return [
        (each.object or None, "violated", each.rule, list(each.ops))
        if isinstance(each, Finding)
        else (each.object or None, "undecided", None, [])
        for each in told_of(history)[1]
    ]


def test_growing_files_are_judged_once_across_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """Files are cut anywhere: what is not whole waits for its rest."""
    runs, out = tmp_path / "runs", tmp_path / "verdicts"
    runs.mkdir()
    contents = {name: content_of(name, history) for name, history in _HISTORIES.items()}
    for share in (0.4, 1.0):
        for name, content in contents.items():
            (runs / name).write_bytes(content[: int(len(content) * share)])
        verdicts = watch(growing_files(spark, str(runs))).coalesce(1)
        writer = verdicts.writeStream.format("parquet").option("path", str(out))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    rows = spark.read.parquet(out.as_uri()).collect()
    for name, history in _HISTORIES.items():
        mine = [row for row in rows if row.run == str(runs / name)]
        told = [
            (row.object, row.outcome, row.rule, list(row.operations))
            for row in mine
            if row.counts is None
        ]
        assert sorted(told, key=repr) == sorted(expected(history), key=repr), name
        last = max(row.upto for row in mine)
        assert last == history.ops[-1].index, name
    assert len({row.outcome for row in rows}) == 3
