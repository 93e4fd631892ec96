"""One Spark session for all tests: it costs seconds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from spark.session import Settings, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = Settings(master="local[2]", driver_mb=1024, seconds=300)


@pytest.fixture(scope="session", autouse=True)
def short_lived_java() -> Iterator[None]:
    """No test runs long enough for what Java's second compiler costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(scope="session")
def spark(short_lived_java: None) -> "Iterator[SparkSession]":
    pytest.importorskip("pyspark")
    with session(SETTINGS) as running:
        yield running
