"""S3, from here, and from a cluster whose two workers share no directory with the driver."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quorumlab.cli import main
from spark.session import session
from tests.spark.conftest import SETTINGS
from tests.spark.histories import random_history
from tests.spark.stores.any_store import OnAnyStore, msgpack_of
from tests.spark.stores.conftest import defaults

pytestmark = pytest.mark.long

NUMBERS = count()


@pytest.fixture(scope="module", params=["local[2]", "lonely_cluster"])
def spark(
    request: pytest.FixtureRequest,
    s3: Mapping[str, str],
    short_lived_java: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    is_here = request.param.startswith("local")
    master = request.param if is_here else request.getfixturevalue(request.param)
    with ExitStack() as stack:
        stack.enter_context(defaults(tmp_path_factory.mktemp("conf"), s3))
        yield stack.enter_context(session(replace(SETTINGS, master=master, executor_mb=512)))


@pytest.fixture
def root() -> str:
    return f"s3a://bucket/{next(NUMBERS)}"


class TestS3(OnAnyStore):
    pass


@pytest.mark.parametrize("spark", ["lonely_cluster"], indirect=True)
def test_file_of_the_driver_is_one_that_no_worker_sees(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "history.msgpack").write_bytes(msgpack_of(random_history(0)))
    assert main(["check", str(tmp_path), "--on", "spark"]) == 1
    assert "put them where all of them can read" in capsys.readouterr().err
