"""What is named as Spark names it, on one machine: its files, and tables of its catalog."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jepsen_like.checkers.verdict import from_json
from jepsen_like.histories.history import Lines
from quorumlab import convert
from spark.parquet import write_parquet
from tests.spark.agreement import judged_alone, same
from tests.spark.histories import random_history
from tests.spark.stores.any_store import OnAnyStore, checked
from tests.spark.tables import write_table

pytestmark = [pytest.mark.slow, pytest.mark.extra]


class TestFiles(OnAnyStore):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file:{tmp_path}"


def test_table_of_a_catalog_is_judged_into_another(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    histories = {str(seed): random_history(seed) for seed in range(4)}
    write_table(histories, tmp_path / "x.parquet")
    spark.read.parquet(f"file:{tmp_path}/x.parquet").createOrReplaceTempView("histories")
    spark.sql("select 1 as run").createOrReplaceTempView("others")
    here = judged_alone(histories)
    code, there = checked(capsys, "table:histories")
    assert (code, same(from_json(there))) == (here.outcome.exit_code, same(here))
    for name, why in {"others": "no table of histories", "nothing": "NOT_FOUND"}.items():
        code, told = checked(capsys, f"table:{name}")
        assert (code, why in told) == (1, True), told


def test_page_that_is_damaged_is_no_verdict(spark: SparkSession, tmp_path: Path) -> None:
    from py4j.protocol import Py4JJavaError

    history, path = random_history(1), tmp_path / "x.parquet"
    write_parquet(history.header, [Lines.of(history.ops)], path, run="x")
    names = pq.ParquetFile(path).schema_arrow.names
    chunk = pq.read_metadata(path).row_group(0).column(names.index("call"))
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(Py4JJavaError, match="FAILED_READ_FILE"):
        convert(spark, [f"file:{path}"]).select("call").collect()
