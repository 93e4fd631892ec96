"""A check on a cluster says the same if Pythons, a worker, or the driver are killed meanwhile."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jepsen_like.checkers.verdict import Outcome, from_json
from tests.spark.agreement import judged_alone, same
from tests.spark.histories import random_history
from tests.spark.killed.processes import in_session, kill, python_workers, running_in, told_of
from tests.spark.stores.any_store import msgpack_of
from tests.spark.test_standalone import ROOT, SECONDS, environment_of, two_workers, until

pytestmark = pytest.mark.long

HISTORIES = {str(seed): random_history(seed) for seed in range(12)}
KILLS = 3  # a task that dies four times is given up


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, history in HISTORIES.items():
        path = tmp_path / "runs" / name / "history.msgpack"
        path.parent.mkdir(parents=True)
        path.write_bytes(msgpack_of(history))
    return tmp_path / "runs"


@contextmanager
def checking(target: str, master: str, scratch: Path) -> "Iterator[subprocess.Popen[str]]":
    asked = ("check", target, "--format", "json", "--timeout", str(SECONDS), "--master", master)
    process = subprocess.Popen(
        [sys.executable, "-m", "quorumlab", *asked],
        cwd=ROOT,
        env=environment_of(scratch),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill(in_session(process.pid))
        process.communicate()


def ends_as_without_spark(process: "subprocess.Popen[str]", name: str = "{}") -> None:
    out, errors = process.communicate(timeout=2 * SECONDS)
    assert process.returncode == Outcome.VIOLATED.exit_code, errors
    here = judged_alone({name.format(run): history for run, history in HISTORIES.items()})
    assert same(from_json(json.loads(out))) == same(here)


def test_pythons_of_an_executor_are_killed(runs: Path, tmp_path: Path) -> None:
    one, killed = tmp_path / "one", set[int]()

    def new() -> set[int]:
        return set(python_workers(running_in(one))) - killed

    with two_workers(tmp_path) as master, checking(str(runs), master, tmp_path / "java") as check:
        for _ in range(KILLS):
            until(lambda: bool(new()) or check.poll() is not None, "no Python")
            found = new()
            kill(found)
            killed |= found
        ends_as_without_spark(check)
    told = [path.read_text() for path in one.glob("app-*/*/stderr")]
    assert "Python worker exited unexpectedly" in "".join(told)


@pytest.mark.parametrize("scheme", ["", "file:"])
def test_worker_is_killed_with_all_that_it_runs(scheme: str, runs: Path, tmp_path: Path) -> None:
    """By tables of the command, and by the library: then rows of the other worker are gone."""
    one, target = tmp_path / "one", f"{scheme}{runs}"
    with two_workers(tmp_path) as master, checking(target, master, tmp_path / "java") as check:
        until(lambda: bool(python_workers(running_in(one))), "no Python")
        assert check.poll() is None
        kill([*told_of(one), *running_in(one)])
        ends_as_without_spark(check, f"{target}/{{}}/history.msgpack" if scheme else "{}")


def test_driver_is_killed_and_begins_again(runs: Path, tmp_path: Path) -> None:
    """As soon as something is beside a history, and when workers are at work."""
    executors = [tmp_path / "one", tmp_path / "two"]
    moments = (
        lambda: any(runs.glob("*/.quorumlab/*")) or any(runs.glob(".quorumlab/*")),
        lambda: any(python_workers(running_in(each)) for each in executors),
    )
    with two_workers(tmp_path) as master:
        for moment in moments:
            with checking(str(runs), master, tmp_path / "java") as check:
                until(moment, "nothing is done")
                assert check.poll() is None
            until(lambda: not any(map(running_in, executors)), "executors without a driver")
        with checking(str(runs), master, tmp_path / "java") as check:
            ends_as_without_spark(check)


def test_python_of_a_single_machine_is_killed(runs: Path, tmp_path: Path) -> None:
    """Spark does not try again there. Nothing is said of what was not looked at."""
    with checking(str(runs), "local[2]", tmp_path / "java") as check:
        until(lambda: bool(python_workers(in_session(check.pid))), "no Python")
        kill(python_workers(in_session(check.pid)))
        out, errors = check.communicate(timeout=2 * SECONDS)
    assert (check.returncode, out) == (1, ""), out
    assert "Python worker exited unexpectedly" in errors
