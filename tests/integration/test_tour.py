"""The tour on a terminal: its first step, an end in the middle, and what it leaves behind."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from quorumlab.cli import VERBS, main
from quorumlab.inspection.surroundings import running_nodes
from quorumlab.verbs.tour import steps_of

STEPS = steps_of((files("quorumlab") / "tour.md").read_text())


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process, self._descriptor, self._said = process, descriptor, ""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def hear(self, text: str) -> None:
        """Until it is said. Raises OSError if the program ends without."""
        while text not in self._said:
            self._said += os.read(self._descriptor, 4096).decode(errors="replace")
        self._said = self._said.partition(text)[2]

    def interrupt(self) -> None:
        """Once it reads: an interrupt between a prompt and its read is seen after the read only."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "S":
            os.sched_yield()
        self.process.send_signal(signal.SIGINT)


@contextmanager
def tour(place: Path) -> Iterator[Terminal]:
    """`place` is where temporary directories are made."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "quorumlab", "tour"]
    environment = os.environ | {"TMPDIR": str(place)}
    with subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    ) as process:
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            os.close(master)


def test_it_ends_when_asked_to(tmp_path: Path) -> None:
    with tour(tmp_path) as terminal:
        terminal.hear(f"1 of {len(STEPS)}: {STEPS[0].title}")
        terminal.hear("Enter runs it")
        terminal.type("q\n")
        assert terminal.process.wait(20) == 0
    assert list(tmp_path.iterdir()) == []


def test_interrupted_it_ends_the_nodes_and_removes_their_data(tmp_path: Path) -> None:
    with tour(tmp_path) as terminal:
        terminal.hear("Enter runs it")
        terminal.type("\n")
        terminal.hear("ready in")
        terminal.hear("Enter runs it")
        assert any(tmp_path in node.config.parents for node in running_nodes())
        terminal.interrupt()
        assert terminal.process.wait(20) == 130
    assert not any(tmp_path in node.config.parents for node in running_nodes())
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main(["tour"]) == 2
    assert "--yes goes on without" in capsys.readouterr().err


def test_every_line_uses_verbs_that_there_are() -> None:
    for step in STEPS:
        words = step.line.replace("(", " ").split()
        used = [verb for name, verb in pairwise(words) if name == "quorumlab"]
        assert used, step.line
        assert set(used) <= VERBS.keys(), step.line


@pytest.mark.long
def test_whole_tour_with_everything_real() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "quorumlab", "tour", "--yes"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(STEPS)} of {len(STEPS)}: {STEPS[-1].title}" in done.stdout
    told = (
        "left running",
        "under-replicated partitions: 3 (was 0)",
        "fell out of the ISR",
        "controller epoch 2",
        "planted: acknowledges_at_once",
        "kept in runs/seed-0/shrunk: ",
        "Broker crash: 100 partitions",
    )
    missing = [each for each in told if each not in done.stdout]
    assert missing == [], done.stdout
