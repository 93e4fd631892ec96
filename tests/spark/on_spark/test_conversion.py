"""Histories are converted by the workers, to the rows that they are here."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jepsen_like.histories.history import History, encode_header, encode_op
from jepsen_like.histories.interchange import edn_lines, jsonl_lines
from spark import convert
from tests.spark.histories import random_history
from tests.spark.tables import table_of, write_table

pytestmark = pytest.mark.extra


def msgpack_of(history: History) -> bytes:
    return encode_header(history.header) + b"".join(map(encode_op, history.ops))


def text_of(lines: Callable[[History], Iterator[str]]) -> Callable[[History], bytes]:
    return lambda history: "\n".join(lines(history)).encode()


FORMS = {"msgpack": msgpack_of, "jsonl": text_of(jsonl_lines), "edn": text_of(edn_lines)}


def test_files_of_all_kinds_become_rows(spark: SparkSession, tmp_path: Path) -> None:
    expected = []
    for seed in range(6):
        history = random_history(seed)
        for suffix, form in FORMS.items():
            path = tmp_path / f"{seed}.{suffix}"
            path.write_bytes(form(history))
            expected += table_of(history, f"file:{path}").to_pylist()
    table = tmp_path / "made.parquet"
    write_table({"made": random_history(6)}, table)
    expected += table_of(random_history(6), "made").to_pylist()
    found = convert(spark, [f"{tmp_path.as_uri()}/[0-9].*", table.as_uri()]).toArrow().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_nothing_is_read_before_it_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    path = tmp_path / "damaged.msgpack"
    path.write_bytes(msgpack_of(random_history(0))[:-3] + b"xxx")
    rows = convert(spark, [path.as_uri()])
    with pytest.raises(PySparkException, match=r"damaged\.msgpack: byte \d+: damaged"):
        rows.count()


def test_model_says_what_histories_are_of(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "foreign.jsonl"
    path.write_text('{"type": "ok", "process": 1, "f": "read", "value": 1}\n')
    assert {row.workload for row in convert(spark, [path.as_uri()], "queue").collect()} == {"queue"}
