"""What a power failure leaves of snapshots, and of logs that they shorten or replace.

At any system call of saving, receiving, trimming and resetting: a node starts on what is left, a
snapshot that was reported is there, and with the log it holds all that was promised.
"""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from quorum.core.effects import (
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
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG, StorageEffect
from quorum.core.types import OffsetAndEpoch
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage, StorageSettings
from tests.quorum.log_files import batch, quick_disk
from tests.quorum.medium import Medium
from tests.quorum.storage.test_snapshot_files import pieces, whole
from wire.primitives import METADATA_TOPIC_ID

SETTINGS = StorageSettings(
    metadata=LogSettings(segment_bytes=250, index_interval_bytes=200, preallocate_bytes=1024)
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
        if kind < 0.65:
            self.write(self.random.randint(1, 5))
        elif kind < 0.8 and self.promised > self.start_offset:
            self.save(self.random.randint(self.start_offset + 1, self.promised))
        elif kind < 0.92 and self.snapshots:
            self.trim(self.random.choice(self.snapshots).offset)
        elif kind >= 0.92:
            self._replace()

    def write(self, count: int) -> None:
        self._do(*(self._append() for _ in range(count)))

    def trim(self, start_offset: int) -> None:
        self.start_offset = max(self.start_offset, start_offset)
        self._do(Trim(log=METADATA_LOG, token=self._token(), start_offset=start_offset))

    def _append(self) -> Append:
        size = self.random.choice((5, 100, 300))
        records = batch(self.end_offset, epoch=self.epoch, size=size)
        self.end_offset += 1
        token = self._token()
        self.ends[token.number] = self.end_offset
        return Append(log=METADATA_LOG, token=token, records=records, durability=Durability.SYNCED)

    def save(self, offset: int) -> None:
        """All between two replacements is of one epoch."""
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
                found = {*self.snapshots, event.file.id}
                self.snapshots = sorted(found, key=lambda each: each.offset)
            case Trimmed():
                self.start_offset = event.start_offset
                self.snapshots = [s for s in self.snapshots if s.offset >= event.start_offset]
            case _:
                raise AssertionError(event)


@pytest.mark.parametrize("seed", range(24))
def test_power_failure_leaves_a_snapshot_and_the_log_behind_it(seed: int, tmp_path: Path) -> None:
    crash_at = Random(seed).randint(1, 250)
    with TemporaryDirectory(dir=tmp_path) as before, TemporaryDirectory(dir=tmp_path) as after:
        run = Run(seed, before, crash_at)
        run.until_crash()
        assert run.has_crashed, "the run ended before the power failed: make it longer"
        check_start(run, after)


def test_power_failure_at_every_call_of_a_trim(tmp_path: Path) -> None:
    """Many segments at once, and snapshots: what is left of them has no gap."""
    crash_at = 0
    has_crashed = True
    while has_crashed:
        crash_at += 1
        with TemporaryDirectory(dir=tmp_path) as before, TemporaryDirectory(dir=tmp_path) as after:
            run = Run(crash_at, before, 1_000_000)
            for _ in range(2):
                run.write(6)
                run.save(run.end_offset - 2)
            run.medium.crash_at = run.medium.calls + crash_at
            run.trim(run.snapshots[-1].offset)
            run.storage.close(broker_epoch=None)
            has_crashed = run.has_crashed
            if has_crashed:
                check_start(run, after)
    assert crash_at > 20, crash_at


def check_start(run: Run, directory: str) -> None:
    run.medium.leave(Path(directory))
    again = FileStorage(directory, settings=SETTINGS, disk=quick_disk())
    state = again.load(METADATA_LOG, METADATA_TOPIC_ID).state
    again.close(broker_epoch=None)
    found = [file.id for file in state.snapshots]
    missing = set(run.snapshots) - set(found)
    assert all(each.offset < max(state.start_offset, run.start_offset) for each in missing)
    assert state.start_offset == 0 or (found and found[-1].offset >= state.start_offset)
    assert state.end_offset >= run.promised
    assert all(file.size_bytes == len(whole()) for file in state.snapshots)
    assert not list(Path(directory).rglob("*.part"))
