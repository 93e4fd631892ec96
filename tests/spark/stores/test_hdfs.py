"""HDFS: a name node and a data node in one process."""

import re
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.session import java_home, session
from tests.spark.conftest import SETTINGS
from tests.spark.stores.any_store import OnAnyStore
from tests.spark.stores.conftest import fetched
from tests.spark.test_standalone import until

pytestmark = pytest.mark.long

NUMBERS = count()
CLUSTER = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = fetched("hdfs")
    of_spark = Path(pytest.importorskip("pyspark").__file__).parent / "jars"
    directory = tmp_path_factory.mktemp("hdfs")
    written, log = directory / "hdfs.xml", directory / "log"
    java = java_home(directory) / "bin/java"
    ports = ("-nnport", "0", "-nnhttpport", "0", "-writeConfig", str(written))
    command: list[str | Path] = [
        java,
        "-cp",
        f"{home}/jars/*:{of_spark}/*",
        CLUSTER,
        "-nomr",
        "-format",
        *ports,
    ]
    with log.open("wb") as output:
        node = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT)

    def is_up() -> bool:
        assert node.poll() is None, log.read_text()[-2000:]
        return written.exists() and "</configuration>" in written.read_text()

    try:
        until(is_up, f"no HDFS: {log}")
        found = re.search(r"<name>fs.defaultFS</name><value>(hdfs://[^<]+)<", written.read_text())
        assert found is not None
        yield found[1].rstrip("/")
    finally:
        node.kill()
        node.wait()


@pytest.fixture(scope="module")
def spark(short_lived_java: None) -> Iterator[SparkSession]:
    with session(SETTINGS) as running:
        yield running


@pytest.fixture
def root(hdfs: str) -> str:
    return f"{hdfs}/{next(NUMBERS)}"


class TestHdfs(OnAnyStore):
    pass
