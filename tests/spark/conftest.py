"""One Spark session for all tests: it costs seconds."""

from collections.abc import Iterator
from contextlib import ExitStack, chdir
from typing import TYPE_CHECKING

import pytest

from spark.session import Settings, session
from tests.hostile_files import write_hostile_files

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
def spark(
    short_lived_java: None, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[SparkSession]":
    """Its workers keep the directory in which it is started; a user may have any files there."""
    pytest.importorskip("pyspark")
    with ExitStack() as stack:
        with chdir(write_hostile_files(tmp_path_factory.mktemp("spark"))):
            running = stack.enter_context(session(SETTINGS))
        yield running
