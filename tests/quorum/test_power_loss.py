"""What a power failure leaves of a metadata log, at any system call: never less than was promised.

The medium is modelled: what was synced stays; of what was written since, a prefix reached it whole,
and of the writes behind that any sectors. Then a node starts on what is left.
"""

import os
from collections import defaultdict
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from quorum.disk import Disk
from quorum.effects import Append, Durability, Read, ReadDone, SaveElection, Stored, Token, Truncate
from quorum.files import FileStorage, StorageSettings
from quorum.segment import LogSettings
from quorum.storage import METADATA_LOG, StorageEffect
from quorum.types import ElectionState
from tests.quorum.log_files import batch
from wire.batch import headers
from wire.primitives import METADATA_TOPIC_ID

SECTOR = 512
SETTINGS = StorageSettings(
    metadata=LogSettings(segment_bytes=3000, index_interval_bytes=200, preallocate_bytes=1024)
)
Write = tuple[int, bytes]  # position, data


class Medium:
    """The system's calls, with a record of what each file's inode has on the medium."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.synced: dict[int, bytes] = defaultdict(bytes)
        self.unsynced: dict[int, list[Write | int]] = defaultdict(list)  # writes and truncations
        self.calls = 0
        self.crash_at = -1
        self.image: dict[str, bytes] = {}  # what a crash at that call leaves
        self.directory = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.crash_at:
            self.image = self.crash()

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self._count()
        self.unsynced[os.fstat(fd).st_ino].append((offset, bytes(data)))
        return os.pwrite(fd, data, offset)

    def ftruncate(self, fd: int, length: int) -> None:
        self._count()
        self.unsynced[os.fstat(fd).st_ino].append(length)
        os.ftruncate(fd, length)

    def posix_fallocate(self, fd: int, offset: int, length: int) -> None:
        self._count()
        self.unsynced[os.fstat(fd).st_ino].append((offset, bytes(length)))
        os.posix_fallocate(fd, offset, length)

    def fdatasync(self, fd: int) -> None:
        self._count()  # the power fails while it is under way
        inode, size = os.fstat(fd).st_ino, os.fstat(fd).st_size
        self.synced[inode] = os.pread(fd, size, 0)
        self.unsynced[inode].clear()
        self._count()

    def fsync(self, fd: int) -> None:
        if not os.path.isdir(f"/proc/self/fd/{fd}"):
            self.fdatasync(fd)

    def crash(self) -> dict[str, bytes]:
        paths = [path for path in Path(self.directory).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.directory)): self._survives(path) for path in paths}

    def _survives(self, path: Path) -> bytes:
        inode = path.stat().st_ino
        content = bytearray(self.synced[inode])
        pending = list(self.unsynced[inode])
        whole = self.random.randint(0, len(pending))
        for change in pending[:whole]:
            apply(content, change)
        for change in pending[whole:]:
            if isinstance(change, int):
                break  # what is written behind a truncation reaches the medium after it
            position, data = change
            for at in range(0, len(data), SECTOR):
                if self.random.random() < 0.5:
                    apply(content, (position + at, data[at : at + SECTOR]))
        return bytes(content)


def apply(content: bytearray, change: Write | int) -> None:
    if isinstance(change, int):
        del content[change:]
        content += bytes(change - len(content))
        return
    position, data = change
    content += bytes(max(0, position - len(content)))
    content[position : position + len(data)] = data


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
        for name, content in run.medium.image.items():
            Path(after, name).parent.mkdir(exist_ok=True)
            Path(after, name).write_bytes(content)
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
