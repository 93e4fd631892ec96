"""A real Spark cluster: a standalone master and two workers, each a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from jepsen_like.histories.history import encode_header, encode_op
from jepsen_like.real.free_ports import free_ports
from spark.session import java_home
from tests.spark.histories import random_history

pytestmark = pytest.mark.extra

ROOT = Path(__file__).parent.parent.parent
RUNS = 6
PARTITIONS = 2  # of a shuffle: Spark's 200 are most of what so little costs
SECONDS = 600  # on a machine that does much else


def environment_of(scratch: Path) -> dict[str, str]:
    """What Spark's own scripts want to know; `scratch` is for a Java of the wheel."""
    return {
        **os.environ,
        "JAVA_HOME": str(java_home(scratch)),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": str(Path(pytest.importorskip("pyspark").__file__).parent),
    }


@contextmanager
def started(
    name: str, directory: Path, *arguments: str, inside: Sequence[str] = ()
) -> Iterator[Path]:
    """A process of Spark's; yields its log. `inside`: a command that runs others."""
    log = directory / f"{name}.log"
    environment = environment_of(directory / f"{name}.java")
    start = Path(environment["SPARK_HOME"]) / "bin/spark-class"
    environment.pop("PYTHONPATH", None)  # workers get this project from Spark
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*inside, start, f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]],
            cwd=directory,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def until(told: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not told():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@contextmanager
def two_workers(directory: Path) -> Iterator[str]:
    """The URL of their master; they work in DIRECTORY/one and DIRECTORY/two."""
    port = next(free_ports())
    url = f"spark://127.0.0.1:{port}"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    cores = ("--cores", "1", "--memory", "1g")
    with ExitStack() as stack:
        begin = ("master.Master", *here, "--port", str(port))
        log = stack.enter_context(started("master", directory, *begin))
        until(lambda: "I have been elected leader" in log.read_text(), "no master")
        for name in ("one", "two"):
            join = ("worker.Worker", *here, *cores, "-d", str(directory / name), url)
            stack.enter_context(started(name, directory, *join))
        until(lambda: log.read_text().count("Registering worker") == 2, "no two workers")
        yield url


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with two_workers(tmp_path) as url:
        yield url


def test_check_runs_on_a_master_with_two_workers(master: str, tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    runs = tmp_path / "runs"
    for seed in range(RUNS):
        history = random_history(seed)
        path = runs / str(seed) / "history.msgpack"
        path.parent.mkdir(parents=True)
        path.write_bytes(encode_header(history.header) + b"".join(map(encode_op, history.ops)))
    asked = ["check", str(runs), "--format", "json", "--timeout", str(SECONDS)]
    done = run(
        [sys.executable, "-m", "quorumlab", *asked, "--master", master], tmp_path / "one.run"
    )
    assert done.returncode == 4, done.stderr
    executors = [path for name in ("one", "two") for path in (tmp_path / name).glob("app-*/*")]
    assert len(executors) == 2, executors
    assert '"outcome": "violated"' in done.stdout

    program = tmp_path / "program.py"
    program.write_text("import sys; from quorumlab.cli import main; sys.exit(main(sys.argv[1:]))")
    submit = Path(pyspark.__file__).parent / "bin/spark-submit"
    alone = ("--total-executor-cores", "1")  # two workers have been seen to share the work
    submitted = run([submit, "--master", master, *alone, program, *asked], tmp_path / "two.run")
    assert submitted.returncode == 4, submitted.stderr
    assert json.loads(submitted.stdout) == json.loads(done.stdout)


def run(command: Sequence[str | Path], scratch: Path) -> "subprocess.CompletedProcess[str]":
    settings = scratch.with_suffix(".conf")
    settings.mkdir()
    text = f"spark.sql.shuffle.partitions {PARTITIONS}\n"
    (settings / "spark-defaults.conf").write_text(text)
    return subprocess.run(
        command,
        env=environment_of(scratch) | {"SPARK_CONF_DIR": str(settings)},
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
