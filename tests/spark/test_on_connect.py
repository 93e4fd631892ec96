"""The tests of `on_connect`, in a process of their own, on a Spark Connect server that outlives it:
when PySpark ends, it may ask a server that has gone again and again, for minutes."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jepsen_like.real.free_ports import free_ports
from tests.spark.test_standalone import started, until

FOLDER = Path(__file__).with_name("on_connect")
ROOT = FOLDER.parents[2]
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """Its URL. Its workers do not find this project by themselves."""
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

    def is_up() -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", port)) == 0

    with started("connect", directory, "SparkSubmit", *arguments) as log:
        until(is_up, f"no server: {log}")
        yield f"sc://127.0.0.1:{port}"


@pytest.mark.extra
def test_sessions_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("grpc", reason="the extra spark brings it")
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    with server(tmp_path) as url:
        done = subprocess.run(
            [*PYTEST, FOLDER],
            cwd=ROOT,
            env=environment | {"QUORUMLAB_ON_CONNECT": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    print(done.stdout.splitlines()[-1])
