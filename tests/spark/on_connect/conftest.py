"""One Spark Connect server for the tests of this folder: it costs a minute. Its workers do not find
this project by themselves.

These tests run in a process of their own (`tests/spark/test_on_connect.py`): PySpark has no session
of Connect in one that has had a classic session.
"""

import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jepsen_like.real.free_ports import free_ports
from spark.session import Settings, session
from tests.spark.test_standalone import started, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


collect_ignore_glob = [] if "QUORUMLAB_ON_CONNECT" in os.environ else ["test_*.py"]


@pytest.fixture(scope="package")
def server(short_lived_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("pyspark")
    pytest.importorskip("grpc", reason="the extra spark brings it")
    port = next(free_ports())
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    told = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    service = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
    arguments = ("--master", "local[2]", *told, *service, "spark-internal")
    directory = tmp_path_factory.mktemp("connect")

    def is_up() -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", port)) == 0

    with started("connect", directory, "SparkSubmit", *arguments) as log:
        until(is_up, f"no server: {log}")
        yield f"sc://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def connected(server: str) -> "Iterator[SparkSession]":
    with session(Settings(remote=server)) as running:
        yield running
