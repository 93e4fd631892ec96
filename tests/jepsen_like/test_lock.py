"""One `up` a directory; a claim whose owner is gone does not count."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.processes import DirectoryLock, ProcessId, is_alive, started_at


def test_a_second_claim_names_the_process_that_holds_it(tmp_path: Path) -> None:
    first = DirectoryLock(tmp_path)
    with first, pytest.raises(ClusterError, match=f"in use by process {os.getpid()}"):
        DirectoryLock(tmp_path).__enter__()
    with DirectoryLock(tmp_path):
        pass


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    ProcessId(int(child.stdout), "1").save(tmp_path / "up.lock")
    with DirectoryLock(tmp_path) as lock:
        owner = lock.owner()
        assert owner is not None
        assert owner.pid == os.getpid()


def test_a_pid_that_was_given_out_again_is_not_the_owner(tmp_path: Path) -> None:
    ProcessId(os.getpid(), "another start").save(tmp_path / "up.lock")
    with DirectoryLock(tmp_path):
        pass


def test_a_pid_counts_only_with_its_start_time() -> None:
    here = started_at(os.getpid())
    assert here is not None
    assert is_alive(ProcessId(os.getpid(), here))
    assert not is_alive(ProcessId(os.getpid(), here + "0"))
    assert not is_alive(None)


@pytest.mark.parametrize("content", ["", "{}", '{"pid": "x"}', "[]", "null"])
def test_a_torn_pid_file_is_no_process(tmp_path: Path, content: str) -> None:
    path = tmp_path / "node.pid"
    path.write_text(content)
    assert ProcessId.load(path) is None
