"""Checkpoint files that are replaced now and then, in the background.

One write of a file at a time; what is asked for meanwhile replaces what waits. Nobody waits for
them, and the logs are as good without: a failure is a line in the log.
"""

from functools import partial

from quorum.log.files.disk import Disk
from quorum.log.files.jobs import Finish, Jobs, Outcome, Pool

__all__ = ["CheckpointWrites"]


class CheckpointWrites:
    """Belongs to the driver's thread."""

    def __init__(self, disk: Disk, jobs: Jobs, *, finish: Finish) -> None:
        self._disk = disk
        self._jobs = jobs
        self._finish = finish
        self._waiting: dict[str, bytes] = {}  # by path: what is to be written next
        self._running: set[str] = set()

    def save(self, path: str, content: bytes) -> None:
        self._waiting[path] = content
        self._begin(path)

    def _begin(self, path: str) -> None:
        if path not in self._waiting or path in self._running:
            return
        self._running.add(path)
        job = partial(self._disk.replace, path, self._waiting.pop(path))
        self._jobs.submit(Pool.BACKGROUND, job, partial(self._finished, path))

    def _finished(self, path: str, outcome: Outcome) -> None:
        self._running.discard(path)
        self._finish(outcome)
        self._begin(path)
