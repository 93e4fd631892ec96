"""What holds of any store: a run is judged there as it is here, and what is wrong is told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jepsen_like.checkers.verdict import from_json
from jepsen_like.histories.history import History, encode_header, encode_op
from jepsen_like.histories.interchange import edn_lines, jsonl_lines
from quorumlab import convert, judge
from quorumlab.cli import main
from spark import Limits
from tests.spark.agreement import judged_alone, same
from tests.spark.histories import random_history
from tests.spark.told import verdict_in

__all__ = ["OnAnyStore", "msgpack_of"]

RUNS = {f"a/{seed}": random_history(seed) for seed in range(3)}
LIMITS = Limits(tasks=2)


def msgpack_of(history: History) -> bytes:
    return encode_header(history.header) + b"".join(map(encode_op, history.ops))


def put(spark: SparkSession, files: Mapping[str, bytes | str], root: str) -> None:
    """Writes them below a directory of the store, in place of what is there."""
    virtual_machine: Any = spark._jvm
    configuration = spark._jsc.hadoopConfiguration()
    for name, content in files.items():
        path = virtual_machine.org.apache.hadoop.fs.Path(f"{root}/{name}")
        file = path.getFileSystem(configuration).create(path, True)
        file.write(bytearray(content.encode() if isinstance(content, str) else content))
        file.close()


def checked(capsys: pytest.CaptureFixture[str], *asked: str) -> tuple[int, Any]:
    """The exit code, and the verdict or what is said instead."""
    code = main(["check", *asked, "--format", "json"])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out else told.err


class OnAnyStore:
    """`spark` is a session, and `root` a directory of the store that nothing is in."""

    def test_runs_are_judged_there_as_they_are_here(
        self,
        spark: SparkSession,
        root: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        files = {f"{name}/history.msgpack": msgpack_of(each) for name, each in RUNS.items()}
        put(spark, files, f"{root}/runs")
        put(
            spark,
            {"a/0/verdict.json": '{"void": ["idle"]}', "b/x.log": "no history"},
            f"{root}/runs",
        )
        here = judged_alone(
            {f"{root}/runs/{name}/history.msgpack": each for name, each in RUNS.items()}
        )
        written = f"{root}/verdicts"
        code, there = checked(capsys, f"{root}/runs", "--verdicts", written)
        assert same(from_json(there)) == same(here), there
        assert code == here.outcome.exit_code
        assert there["void"] == [f"{root}/runs/a/0/verdict.json: idle"]
        rows = spark.read.parquet(written).toArrow().to_pylist()
        assert same(verdict_in(rows, single_run=False)) == same(here)

    def test_library_converts_judges_and_keeps_all_forms(
        self, spark: SparkSession, root: str
    ) -> None:
        history = RUNS["a/1"]
        forms: dict[str, bytes | str] = {
            "x.edn": "\n".join(edn_lines(history)),
            "x.jsonl": "\n".join(jsonl_lines(history)),
            "x.msgpack": msgpack_of(history),
        }
        put(spark, forms, root)
        convert(spark, [f"{root}/x.*"]).write.parquet(f"{root}/made.parquet")
        rows = judge(convert(spark, [f"{root}/made.parquet"]), limits=LIMITS).toArrow().to_pylist()
        here = judged_alone({f"{root}/{name}": history for name in forms})
        assert same(verdict_in(rows, single_run=False)) == same(here)

    def test_what_is_not_there_or_damaged_is_told(
        self, spark: SparkSession, root: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        whole = msgpack_of(RUNS["a/0"])
        put(spark, {"bad.msgpack": whole[:-3] + b"xxx", "none/x.log": "no history"}, root)
        for name, why in {
            "bad.msgpack": "bad.msgpack: byte ",
            "none": "no history.msgpack in it or below it",
            "missing": "PATH_NOT_FOUND",
        }.items():
            code, told = checked(capsys, f"{root}/{name}")
            assert (code, why in told) == (1, True), told
