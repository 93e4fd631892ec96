"""What a power failure leaves of snapshots, and of logs that they shorten or replace.

At any system call of saving, receiving, trimming and resetting: a node starts on what is left, a
snapshot that was reported is there, and with the log it holds all that was promised.
"""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from quorum.disk import Disk
from quorum.effects import (
    Append,
    Durability,
    ReceiveSnapshot,
    ResetLog,
    SaveSnapshot,
    SnapshotSaved,
    Stored,
    Token,
    Trim,
    Trimmed,
)
from quorum.files import FileStorage, StorageSettings
from quorum.segment import LogSettings
from quorum.storage import METADATA_LOG, StorageEffect
from quorum.types import OffsetAndEpoch
from tests.quorum.log_files import batch
from tests.quorum.medium import Medium
from tests.quorum.test_snapshot_files import pieces, whole
from wire.primitives import METADATA_TOPIC_ID

SETTINGS = StorageSettings(
    metadata=LogSettings(segment_bytes=900, index_interval_bytes=200, preallocate_bytes=1024)
)


class Run:
    """A node whose log grows, is compacted, and is replaced from time to time."""

    def __init__(self, seed: int, directory: str, crash_at: int) -> None:
        self.random = Random(seed)
        self.medium = Medium(Random(seed + 1))
        self.medium.directory = directory
        self.storage = FileStorage(directory, settings=SETTINGS, disk=Disk(system=self.medium))
        self.storage.load(METADATA_LOG, METADATA_TOPIC_ID)
        self.medium.crash_at = self.medium.calls + crash_at
        self.number = 0
        self.epoch = 1
        self.end_offset = 0  # of what was written
        self.promised = 0  # of what was stored, in the log or in a snapshot
        self.ends: dict[int, int] = {}  # by token
        self.snapshots: list[OffsetAndEpoch] = []  # that were reported, ascending
        self.start_offset = 0

    @property
    def has_crashed(self) -> bool:
        return bool(self.medium.image)

    def until_crash(self) -> None:
        for _ in range(300):
            self._step()
            if self.has_crashed:
                break
        self.storage.close(broker_epoch=None)

    def _step(self) -> None:
        kind = self.random.random()
        if kind < 0.6:
            self._do(*(self._append() for _ in range(self.random.randint(1, 5))))
        elif kind < 0.75 and self.promised > self.start_offset:
            self._save()
        elif kind < 0.9 and self.snapshots:
            start = self.random.choice(self.snapshots).offset
            self._do(Trim(log=METADATA_LOG, token=self._token(), start_offset=start))
        elif kind >= 0.9:
            self._replace()

    def _append(self) -> Append:
        size = self.random.choice((5, 100, 300))
        records = batch(self.end_offset, epoch=self.epoch, size=size)
        self.end_offset += 1
        token = self._token()
        self.ends[token.number] = self.end_offset
        return Append(log=METADATA_LOG, token=token, records=records, durability=Durability.SYNCED)

    def _save(self) -> None:
        """Of the epoch in which all is written between two replacements."""
        offset = self.random.randint(self.start_offset + 1, self.promised)
        self._do(
            SaveSnapshot(
                log=METADATA_LOG,
                token=self._token(),
                id=OffsetAndEpoch(offset, self.epoch),
                content=iter(pieces(epoch=self.epoch)),
            )
        )

    def _replace(self) -> None:
        """A leader that is far ahead sends its snapshot."""
        self.epoch += 1
        start = OffsetAndEpoch(self.end_offset + self.random.randint(1, 50), self.epoch)
        content = whole(epoch=self.epoch)
        cut = self.random.randint(1, len(content) - 1)
        for position, records in ((0, content[:cut]), (cut, content[cut:])):
            self._do(
                ReceiveSnapshot(
                    log=METADATA_LOG,
                    token=self._token(),
                    id=start,
                    position=position,
                    records=records,
                    is_last=position > 0,
                )
            )
        token = self._token()
        self.end_offset = self.ends[token.number] = start.offset
        self._do(ResetLog(log=METADATA_LOG, token=token, start=start))
        self.start_offset = start.offset

    def _token(self) -> Token:
        self.number += 1
        return Token("raft", self.number)

    def _do(self, *effects: StorageEffect) -> None:
        if self.has_crashed:
            return
        for effect in effects:
            self.storage.perform(effect)
        is_busy = True
        while is_busy:
            events = self.storage.take_events()
            if self.has_crashed:
                return  # nobody has heard of them
            for event in events:
                self._hear(event)
            is_busy = self.storage.is_busy

    def _hear(self, event: object) -> None:
        match event:
            case Stored():
                self.promised = self.ends[event.token.number]
            case SnapshotSaved():
                self.snapshots = sorted({*self.snapshots, event.file.id})
            case Trimmed():
                self.start_offset = event.start_offset
                self.snapshots = [s for s in self.snapshots if s.offset >= event.start_offset]
            case _:
                raise AssertionError(event)


@pytest.mark.parametrize("seed", range(60))
def test_power_failure_leaves_a_snapshot_and_the_log_behind_it(seed: int, tmp_path: Path) -> None:
    crash_at = Random(seed).randint(1, 250)
    with TemporaryDirectory(dir=tmp_path) as before, TemporaryDirectory(dir=tmp_path) as after:
        run = Run(seed, before, crash_at)
        run.until_crash()
        assert run.has_crashed, "the run ended before the power failed: make it longer"
        run.medium.leave(Path(after))
        again = FileStorage(after, settings=SETTINGS)
        state = again.load(METADATA_LOG, METADATA_TOPIC_ID).state
        again.close(broker_epoch=None)
        found = [file.id for file in state.snapshots]
        assert set(run.snapshots) - set(found) == {
            each for each in run.snapshots if each.offset < state.start_offset
        }
        assert state.start_offset == 0 or (found and found[-1].offset >= state.start_offset)
        assert state.end_offset >= run.promised
        assert all(file.size_bytes == len(whole()) for file in state.snapshots)
        assert not list(Path(after).rglob("*.part"))
