"""A program that another one runs ends with it, however that one ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jepsen_like.real.processes import started_at
from quorumlab.children import child

SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
PARENT = """
import sys
from quorumlab.children import child
try:
    with child([sys.executable, "-c", sys.argv[1]]):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_exit_code_is_known_once_it_has_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('done'); exit(5)"]
    with (tmp_path / "out").open("w") as output, child(command, output=output) as process:
        pass
    assert process.returncode == 5
    assert (tmp_path / "out").read_text() == "done\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_the_parent_ends_the_child(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, SLEEPER], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        sleeper = int(parent.stdout.readline())
        parent.send_signal(how)
        assert parent.wait(20) == 130
    assert started_at(sleeper) is None
