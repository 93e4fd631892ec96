"""One Spark session for the tests of this folder: it costs seconds."""

from collections.abc import Iterator
from contextlib import ExitStack, chdir

import pytest
from pyspark.sql import SparkSession

from spark.session import session
from tests.hostile_files import write_hostile_files
from tests.spark.conftest import SETTINGS


@pytest.fixture(scope="package")
def spark(
    short_lived_java: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Its workers keep the directory in which it is started; a user may have any files there."""
    pytest.importorskip("pyspark")
    with ExitStack() as stack:
        with chdir(write_hostile_files(tmp_path_factory.mktemp("spark"))):
            running = stack.enter_context(session(SETTINGS))
        yield running
