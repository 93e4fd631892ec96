"""A program that is run to its end by another one, and that is ended with it."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from jepsen_like.python_children import python_environment
from quorumlab.interrupts import sigterm_as_ctrl_c

__all__ = ["child"]

_SECONDS = 60.0  # to end in good order: a chaos run heals its faults and stops its nodes


@contextmanager
def child(
    command: Sequence[str],
    *,
    output: IO[str] | int | None = None,
    errors: int | None = None,
    directory: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Its exit code is known when this is left, and waited for. An interrupt ends it by SIGTERM.

    It has a session of its own: a terminal's Ctrl-C comes to us alone, so that it is told once.
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
                    process.wait(_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()
