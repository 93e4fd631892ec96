"""`quorumlab tour`: what there is to see, step by step, with real processes.

The steps are a text (`quorumlab/tour.md`): a heading, what there is to know, a line for the shell.
They run in a directory that is removed in the end, whatever happens; so are the nodes.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.layout import CLUSTER_FILE
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.arguments import UsageError
from quorumlab.output import say

__all__ = ["Step", "run", "steps_of"]

_WIDTH_MAX = 80
_END = ("q", "quit", "exit")


class Step(NamedTuple):
    title: str
    text: str
    line: str  # for the shell


def steps_of(text: str) -> list[Step]:
    """The steps of a text: each a heading, paragraphs, and one indented line."""
    steps = []
    for part in text.split("# ")[1:]:
        told, _, line = part.rstrip().partition("\n\n    ")
        title, _, about = told.partition("\n")
        assert len(line.splitlines()) == 1, f"one line for the shell: {title}"
        steps.append(Step(title, about, line))
    return steps


def run(args: SimpleNamespace) -> int:
    steps = steps_of((files("quorumlab") / "tour.md").read_text())
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("the tour waits for Enter before each step: --yes goes on without")
    with _place() as directory:
        return _walk(steps, directory, is_asked=not args.yes)


def _walk(steps: Sequence[Step], directory: Path, *, is_asked: bool) -> int:
    width = min(_WIDTH_MAX, shutil.get_terminal_size().columns)
    for number, step in enumerate(steps, 1):
        say(f"\n{number} of {len(steps)}: {step.title}\n")
        say(textwrap.fill(step.text, width))
        say(f"\n$ {step.line}")
        if is_asked and not _goes_on():
            return 0
        code = _carried_out(step.line, directory)
        if code:
            say(f"(exit code {code})")
    say("\nThat was it: the nodes end, and their data goes. README.md has all of this for you.")
    return 0


def _goes_on() -> bool:
    try:
        return input("Enter runs it, q ends the tour: ").strip().lower() not in _END
    except EOFError:
        return False


def _carried_out(line: str, directory: Path) -> int:
    environment = python_environment()
    environment["PATH"] = os.pathsep.join([str(directory / "bin"), environment.get("PATH", "")])
    done = subprocess.run(  # noqa: S603  # a line of our own text
        ["/bin/sh", "-c", line], cwd=directory / "work", env=environment, check=False
    )
    return done.returncode


@contextmanager
def _place() -> Iterator[Path]:
    """A directory with `work` to be in, and a `bin` in which `quorumlab` is this one."""
    with tempfile.TemporaryDirectory(prefix="quorumlab-tour-") as name:
        directory = Path(name)
        for part in ("work", "bin"):
            (directory / part).mkdir()
        command = directory / "bin" / "quorumlab"
        command.write_text(f'#!/bin/sh\nexec {shlex.join(python_command("quorumlab"))} "$@"\n')
        command.chmod(0o755)
        try:
            yield directory
        finally:
            _end_nodes(directory / "work" / "data")


def _end_nodes(cluster: Path) -> None:
    if (cluster / CLUSTER_FILE).exists():
        LocalCluster.open(cluster).kill_all()
