"""zsh and fish themselves complete a verb, an option, and the value of an option."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorumlab.cli import VERBS, main

pytestmark = pytest.mark.extra

_SECONDS = 30.0
_READY = "ready> "
CASES = [
    ("quorumlab topi", "topics"),
    ("quorumlab topics create --repl", "--replication-factor"),
    ("quorumlab top --bootstrap-se", "--bootstrap-server"),
    ("quorumlab chaos sim --on sp", "spark"),
    ("quorumlab completion fi", "fish"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a `quorumlab` that is this one."""
    command = tmp_path / "quorumlab"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m quorumlab "$@"\n')
    command.chmod(0o755)
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    root = str(Path(__file__).parent.parent.parent)
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(place), "PYTHONPATH": root, "TERM": "dumb"}


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}: `apt-get install {shell}`")


class Zsh:
    """An interactive one at a terminal: completion is part of its line editor."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def hear(self, text: str) -> str:
        """Until it is shown."""
        said, deadline = "", time.monotonic() + _SECONDS
        while text not in said:
            assert time.monotonic() < deadline, said
            if select.select([self._terminal], [], [], 0.2)[0]:
                said += os.read(self._terminal, 4096).decode(errors="replace")
        return said


@contextmanager
def zsh(place: Path) -> Iterator[Zsh]:
    terminal, side = pty.openpty()
    with subprocess.Popen(
        ["zsh", "-f", "-i"],
        stdin=side,
        stdout=side,
        stderr=side,
        env=environment(place),
        start_new_session=True,
    ) as process:
        os.close(side)
        try:
            yield Zsh(terminal)
        finally:
            process.kill()
            os.close(terminal)


@pytest.mark.parametrize(("typed", "completed"), CASES)
def test_zsh_completes(
    typed: str, completed: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs("zsh")
    (place / "_quorumlab").write_text(script("zsh", capsys))
    with zsh(place) as shell:
        loading = f"fpath=({place} $fpath); autoload -U compinit; compinit -u -d {place}/dump"
        shell.type(f"{loading}; PS1='ready''> '\n")
        shell.hear(_READY)
        shell.type(f"{typed}\t")
        shell.hear(f"{typed.rpartition(' ')[0]} {completed} ")


@pytest.mark.parametrize(("typed", "completed"), CASES)
def test_fish_completes(
    typed: str, completed: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs("fish")
    assert fish(typed, place, capsys)[0].partition("\t")[0] == completed


def test_fish_shows_whole_descriptions(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs("fish")
    assert fish("quorumlab topi", place, capsys) == [f"topics\t{VERBS['topics'][0]}"]


def fish(typed: str, place: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    file = place / "quorumlab.fish"
    file.write_text(script("fish", capsys))
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {file}; complete -C '{typed}'"],
        env=environment(place),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()
