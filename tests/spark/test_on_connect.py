"""The tests of `on_connect`, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("on_connect")
ROOT = FOLDER.parents[2]


@pytest.mark.extra
def test_sessions_of_spark_connect() -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("grpc", reason="the extra spark brings it")
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", FOLDER],
        cwd=ROOT,
        env=environment | {"QUORUMLAB_ON_CONNECT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    print(done.stdout.splitlines()[-1])
