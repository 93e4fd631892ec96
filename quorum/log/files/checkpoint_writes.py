"""Saves offset checkpoints in the background.

One job at a time writes a checkpoint, so a disk that hangs takes one thread and not all; the saves
that are asked for meanwhile become one more write after it. Nothing waits for these writes, and no
log depends on them: a failure is a line in the log.
"""

from functools import partial

from quorum.log.files.jobs import Finish, Jobs, Outcome, Pool
from quorum.log.files.offset_checkpoint import OffsetCheckpoint

__all__ = ["CheckpointWrites"]


class CheckpointWrites:
    """Belongs to the driver's thread."""

    def __init__(self, jobs: Jobs, *, finish: Finish) -> None:
        self._jobs = jobs
        self._finish = finish
        self._running: set[OffsetCheckpoint] = set()
        self._wanted: set[OffsetCheckpoint] = set()  # once more, when the running job has ended

    def save(self, checkpoint: OffsetCheckpoint) -> None:
        if checkpoint in self._running:
            self._wanted.add(checkpoint)
            return
        self._running.add(checkpoint)
        self._jobs.submit(Pool.BACKGROUND, checkpoint.save, partial(self._finished, checkpoint))

    def _finished(self, checkpoint: OffsetCheckpoint, outcome: Outcome) -> None:
        self._running.discard(checkpoint)
        self._finish(outcome)
        if checkpoint in self._wanted:
            self._wanted.discard(checkpoint)
            self.save(checkpoint)
