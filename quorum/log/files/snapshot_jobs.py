"""The effects on snapshots: which there are, and what runs in which thread.

One is saved at a time, in a thread of its own, since it may take minutes; the pieces of one that
another node sends are written at once, like appends, and what follows the last piece runs in the
background. Reads are answered at once.

The blocking work is in `quorum.log.files.snapshot_files`. A failure is the failure of the log.
"""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from quorum.core.effects import (
    ReadSnapshot,
    ReceiveSnapshot,
    SaveSnapshot,
    SnapshotFile,
    SnapshotRead,
    SnapshotSaved,
    Token,
)
from quorum.core.storage import SnapshotEffect, StorageError
from quorum.core.types import OffsetAndEpoch
from quorum.log.files.jobs import Jobs, Outcome, Pool
from quorum.log.files.snapshot_files import SnapshotFiles

__all__ = ["SnapshotJobs"]

_GONE = -1


class SnapshotJobs:
    """Belongs to the driver's thread. `report` takes the events, `fail` what went wrong."""

    def __init__(
        self,
        files: SnapshotFiles,
        jobs: Jobs,
        *,
        report: Callable[[SnapshotSaved | SnapshotRead], None],
        fail: Callable[[Token, StorageError], None],
    ) -> None:
        self._files = files
        self._jobs = jobs
        self._report = report
        self._fail = fail
        self._known: dict[OffsetAndEpoch, SnapshotFile] = {}
        self._receiving: OffsetAndEpoch | None = None
        self._is_abandoned = False  # read in a thread

    def found(self, snapshots: tuple[SnapshotFile, ...]) -> None:
        """Those that were there at the start."""
        self._known = {file.id: file for file in snapshots}

    def abandon(self) -> None:
        """The process ends: a snapshot that is being saved is not worth waiting for."""
        self._is_abandoned = True

    def trim(self, start_offset: int) -> list[OffsetAndEpoch]:
        """Those that end before the start of the log; they are not read any more."""
        gone = [each for each in self._known if each.offset < start_offset]
        for snapshot_id in gone:
            del self._known[snapshot_id]
        return gone

    def perform(self, effect: SnapshotEffect) -> None:
        """Raises `StorageError`."""
        match effect:
            case SaveSnapshot():
                job = partial(
                    self._files.save,
                    effect.id,
                    effect.content,
                    is_abandoned=lambda: self._is_abandoned,
                )
                self._jobs.submit(Pool.SNAPSHOT, job, partial(self._finish_save, effect))
            case ReceiveSnapshot():
                self._receive(effect)
            case ReadSnapshot():
                self._read(effect)
            case _:
                assert_never(effect)

    def _finish_save(self, effect: SaveSnapshot, outcome: Outcome) -> None:
        try:
            file = outcome.result()
        except StorageError as error:
            self._fail(effect.token, error)
            return
        if file is not None:
            self._saved(effect, file)

    def _receive(self, effect: ReceiveSnapshot) -> None:
        if effect.position == 0 and self._receiving not in (None, effect.id):
            assert self._receiving is not None
            self._files.discard(self._receiving)
        self._receiving = effect.id
        self._files.receive(effect.id, effect.position, effect.records)
        if effect.is_last:
            self._receiving = None
            job = partial(self._files.finish, effect.id)
            self._jobs.submit(Pool.BACKGROUND, job, partial(self._finish_receive, effect))

    def _finish_receive(self, effect: ReceiveSnapshot, outcome: Outcome) -> None:
        try:
            file = outcome.result()
        except StorageError as error:
            self._fail(effect.token, error)
            return
        if file is None:
            self._report(
                SnapshotRead(token=effect.token, log=effect.log, size_bytes=_GONE, records=b"")
            )
        else:
            self._saved(effect, file)

    def _saved(self, effect: SaveSnapshot | ReceiveSnapshot, file: SnapshotFile) -> None:
        self._known[file.id] = file
        self._report(SnapshotSaved(token=effect.token, log=effect.log, file=file))

    def _read(self, effect: ReadSnapshot) -> None:
        file = self._known.get(effect.id)
        records = b""
        if file is not None:
            records = self._files.read(effect.id, position=effect.position, length=effect.bytes_max)
        self._report(
            SnapshotRead(
                token=effect.token,
                log=effect.log,
                size_bytes=_GONE if file is None else file.size_bytes,
                records=records,
            )
        )
