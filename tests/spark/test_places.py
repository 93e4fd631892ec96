"""Names of what only Spark reads; and what the command refuses beside them."""

import pytest

from quorumlab.cli import main
from spark.places import home, is_directory, is_file, is_in_store, is_table


@pytest.mark.parametrize(
    ("name", "is_what"),
    [
        ("s3a://bucket/runs", is_directory),
        ("s3a://bucket/run-1.2/", is_directory),
        ("hdfs://host:9000/runs/*/history.msgpack", is_file),
        ("file:/tmp/*.{edn,jsonl}", is_file),
        ("dbfs:/x/table.parquet/", is_table),
        ("table:main.checks.histories", is_table),
    ],
)
def test_name_tells_what_it_stands_for(name: str, is_what: object) -> None:
    assert is_in_store(name)
    assert [each for each in (is_directory, is_file, is_table) if each(name)] == [is_what]


@pytest.mark.parametrize("name", ["runs", "a:b/c", "/x/history.msgpack", "x.parquet", "tables:x"])
def test_other_names_are_of_this_machine(name: str) -> None:
    assert not is_in_store(name)


def test_home_is_where_a_file_is() -> None:
    assert home("s3a://bucket/a/history.msgpack") == "s3a://bucket/a"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (["s3a://b/x", "--on", "local"], "--on local: only Spark reads s3a://b/x"),
        (["s3a://b/x", "--initial", "0"], "--initial: only of a history on this machine"),
        (["s3a://b/x", "--trust-failures"], "--trust-failures: only of a history"),
        (["s3a://b/x", "--report", "x.html"], "--report: only of a history on this machine"),
        (["table:x", "--model", "queue"], "--model: a table is judged as what it was made as"),
        (["table:x", "--model", "x.py:X"], "a model of your own is judged by without Spark"),
    ],
)
def test_what_cannot_be_asked_of_a_store_is_refused(
    asked: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *asked]) == 2
    assert why in capsys.readouterr().err
