"""One Spark session for all tests: it costs seconds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from spark.session import Settings, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = Settings(master="local[2]", driver_mb=1024, seconds=300)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    pytest.importorskip("pyspark")
    with session(SETTINGS) as running:
        yield running
