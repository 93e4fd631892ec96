"""Programs of ours as children: they are ended with us."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from jepsen_like.python_children import python_environment
from quorumlab.interrupts import sigterm_as_ctrl_c

__all__ = ["child"]

_CHILD_SECONDS = 60.0  # to end in good order: a chaos run heals its faults and stops its nodes


@contextmanager
def child(
    command: Sequence[str],
    *,
    output: IO[str] | int | None = None,
    errors: int | None = None,
    directory: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Run a program of ours to its end: on leaving, its exit code is known.

    An interrupt ends it by SIGTERM. It has a session of its own, so that a terminal's Ctrl-C comes
    to us alone and the program is told once.
    """
    with sigterm_as_ctrl_c():
        process = subprocess.Popen(  # noqa: S603  # our own programs
            command,
            stdout=output,
            stderr=errors,
            cwd=directory,
            env=python_environment(),
            text=True,
            start_new_session=True,
        )
        try:
            yield process
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_CHILD_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()
