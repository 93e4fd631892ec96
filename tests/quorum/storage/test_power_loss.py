"""What a power failure leaves of a metadata log, at any system call: never less than was promised.

`tests.quorum.medium` says what is left. Then a node starts on it.
"""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from quorum.core.effects import (
    Append,
    Durability,
    Read,
    ReadDone,
    SaveElection,
    Stored,
    Token,
    Truncate,
)
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG, StorageEffect
from quorum.core.types import ElectionState
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage, StorageSettings
from tests.quorum.log_files import batch
from tests.quorum.medium import Medium
from wire.batch import headers
from wire.primitives import METADATA_TOPIC_ID

SETTINGS = StorageSettings(
    metadata=LogSettings(segment_bytes=3000, index_interval_bytes=200, preallocate_bytes=1024)
)


class Run:
    """Random effects on a metadata log, and what was promised while they ran."""

    def __init__(self, seed: int, directory: str, crash_at: int) -> None:
        self.random = Random(seed)
        self.medium = Medium(Random(seed + 1))
        self.medium.directory = directory
        self.storage = FileStorage(directory, settings=SETTINGS, disk=Disk(system=self.medium))
        self.storage.load(METADATA_LOG, METADATA_TOPIC_ID)
        self.medium.crash_at = self.medium.calls + crash_at
        self.written: list[bytes] = []
        self.epoch = 1
        self.election = ElectionState()
        self.tokens: dict[int, tuple[list[bytes], ElectionState]] = {}
        self.promised: tuple[list[bytes], ElectionState] = ([], ElectionState())
        self.number = 0

    @property
    def has_crashed(self) -> bool:
        return bool(self.medium.image)

    def until_crash(self) -> None:
        for _ in range(200):
            for _ in range(self.random.randint(1, 4)):
                self.storage.perform(self._effect())
            self._settle()
            if self.has_crashed:
                break
        self.storage.close(broker_epoch=None)

    def _settle(self) -> None:
        is_busy = True
        while is_busy:
            events = self.storage.take_events()
            if self.has_crashed:
                return  # nobody has heard of them
            for event in events:
                assert isinstance(event, Stored), event
                self.promised = self.tokens[event.token.number]
            is_busy = self.storage.is_busy

    def _effect(self) -> StorageEffect:
        self.number += 1
        token = Token("raft", self.number)
        end_offset = len(self.written)
        kind = self.random.random()
        if kind < 0.75:
            records = batch(end_offset, epoch=self.epoch, size=self.random.choice((5, 300, 900)))
            self.written.append(records)
            effect: StorageEffect = Append(
                log=METADATA_LOG, token=token, records=records, durability=Durability.SYNCED
            )
        elif kind < 0.9:
            end_offset = self.random.randint(len(self.promised[0]) // 2, end_offset)
            del self.written[end_offset:]
            kept = self.promised[0][:end_offset]
            self.promised = (kept, self.promised[1])  # the core has taken the rest back
            self.tokens = {n: (log[:end_offset], e) for n, (log, e) in self.tokens.items()}
            self.epoch += 1
            effect = Truncate(
                log=METADATA_LOG,
                token=token,
                end_offset=end_offset,
                durability=Durability.SYNCED,
            )
        else:
            self.epoch += 1
            self.election = ElectionState(epoch=self.epoch)
            effect = SaveElection(log=METADATA_LOG, token=token, election=self.election)
        self.tokens[self.number] = (list(self.written), self.election)
        return effect


@pytest.mark.parametrize("seed", range(30))
def test_power_failure_takes_nothing_that_was_promised(seed: int, tmp_path: Path) -> None:
    crash_at = Random(seed).randint(1, 150)
    with TemporaryDirectory(dir=tmp_path) as before, TemporaryDirectory(dir=tmp_path) as after:
        run = Run(seed, before, crash_at)
        run.until_crash()
        assert run.has_crashed, "the run ended before the power failed: make it longer"
        run.medium.leave(Path(after))
        again = FileStorage(after, settings=SETTINGS)
        loaded = again.load(METADATA_LOG, METADATA_TOPIC_ID)
        promised, election = run.promised
        assert loaded.election.epoch >= election.epoch
        found = read_all(again, loaded.state.end_offset)
        assert found[: len(promised)] == promised
        again.close(broker_epoch=None)


def read_all(storage: FileStorage, end_offset: int) -> list[bytes]:
    batches: list[bytes] = []
    while len(batches) < end_offset:
        offset = len(batches)
        storage.perform(
            Read(
                log=METADATA_LOG,
                token=Token("test", 10_000 + offset),
                start_offset=offset,
                end_offset=end_offset,
                bytes_max=1 << 20,
            )
        )
        (records,) = [e.records for e in storage.take_events() if isinstance(e, ReadDone)]
        batches += [records[at : at + header.size_bytes] for at, header in headers(records)]
    return batches
