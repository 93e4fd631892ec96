"""One session of Spark Connect for the tests of this folder.

These tests run in a process of their own (`tests/spark/test_on_connect.py`, which starts the
server): PySpark has no session of Connect in one that has had a classic session.
"""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.session import Settings, session

URL = os.environ.get("QUORUMLAB_ON_CONNECT", "")
collect_ignore_glob = [] if URL else ["test_*.py"]


@pytest.fixture
def server() -> str:
    return URL


@pytest.fixture(scope="module")
def connected() -> Iterator[SparkSession]:
    with session(Settings(remote=URL)) as running:
        yield running
