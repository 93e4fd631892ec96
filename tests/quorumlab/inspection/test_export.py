"""A log of Apache Kafka as tables."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quorumlab.inspection.export import export
from quorumlab.inspection.target import Target, find_target

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("export") / "tables"
    target = find_target(str(GOLDEN / "kraft3/node-1"))
    assert isinstance(target, Target)
    rows, problems = export(target, directory)
    assert not problems
    assert rows == {"records": 167, "brokers": 3, "topics": 2, "partitions": 10, "configs": 5}
    return directory


def test_every_record_is_a_row(exported: Path) -> None:
    rows = pq.read_table(exported / "records.parquet").to_pylist()
    assert [row["offset"] for row in rows] == list(range(167))
    row = rows[37]
    assert (row["type"], row["topic"], row["partition"]) == ("PARTITION_RECORD", "safe", 0)
    assert json.loads(row["data"])["replicas"] == [1, 2, 3]


def test_partitions_are_those_of_the_end(exported: Path) -> None:
    rows = pq.read_table(exported / "partitions.parquet").to_pylist()
    safe = [row for row in rows if row["topic"] == "safe"]
    assert [row["partition"] for row in safe] == [0, 1, 2]
    assert all(row["leader"] == -1 and row["isr"] == [] for row in safe)
    assert safe[0]["eligible_leader_replicas"] == [1, 2]


def test_a_topic_that_was_deleted_is_not_among_them(exported: Path) -> None:
    names = pq.read_table(exported / "topics.parquet").column("name").to_pylist()
    assert sorted(names) == ["safe", "six"]
