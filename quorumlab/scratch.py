"""Directories for as long as a process lives: those of one that was killed go when the next begins.

A lock on the directory tells who lives, also across containers that share it.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["scratch"]

_NEW_SECONDS = 60.0  # a younger one may not be locked yet


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """`name` says what for: directories of the same name are looked at."""
    prefix = f"quorumlab-{name}-"
    _remove_left(prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as directory:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(directory)
        finally:
            os.close(descriptor)


def _remove_left(prefix: str) -> None:
    """Others' are left to them: they cannot be opened."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if time.time() - os.fstat(descriptor).st_mtime > _NEW_SECONDS:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)
