"""A data directory has the same bytes, written through the virtual file system or through `os`."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from jepsen_like.sim.disks.virtual_files import VirtualFiles
from jepsen_like.sim.disks.world_workers import Done, QueuedWorkers
from quorum.core.effects import (
    Append,
    DeleteLog,
    Durability,
    OpenLog,
    ResetLog,
    SaveElection,
    SaveHighWatermarks,
    SaveSnapshot,
    StorageFailed,
    Token,
    Trim,
    Truncate,
)
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG, StorageEffect
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage, StorageSettings
from quorum.log.files.jobs import Outcome, Pool
from quorum.log.files.system import System
from quorum.log.snapshots import snapshot_content, snapshot_head
from tests.quorum.log_files import batch
from wire.primitives import METADATA_TOPIC_ID

SETTINGS = StorageSettings(
    metadata=LogSettings(segment_bytes=700, index_interval_bytes=100, preallocate_bytes=300),
    partitions=LogSettings(segment_bytes=500, index_interval_bytes=100),
    descriptors_max=3,
)
LOGS = (METADATA_LOG, "orders-0", "orders-1")


class AtOnce(QueuedWorkers):
    """Workers that let nobody wait, so that both runs have one order."""

    def run(self, pool: Pool, job: Callable[[], object], done: Callable[[Outcome], None]) -> None:
        done(Done(job))


class Run:
    """Random effects on three logs: the same for a seed, wherever they go."""

    def __init__(self, seed: int, directory: str, system: System) -> None:
        self._random = Random(seed)
        self._directory, self._system = directory, system
        self._number = 0
        self._epoch = 1
        self._starts: dict[str, int] = dict.fromkeys(LOGS, 0)
        self._ends: dict[str, int] = dict.fromkeys(LOGS, 0)

    def play(self) -> None:
        for life in range(3):
            storage = FileStorage(
                self._directory,
                settings=SETTINGS,
                disk=Disk(descriptors_max=3, system=self._system),
                workers=AtOnce(),
            )
            state = storage.load(METADATA_LOG, METADATA_TOPIC_ID).state
            assert state.end_offset == self._ends[METADATA_LOG]
            for log in LOGS[1:]:
                storage.perform(OpenLog(log=log, token=self._token(), topic_id=UUID(int=7)))
            for _ in range(40):
                for effect in self._effects():
                    storage.perform(effect)
                if self._random.random() < 0.5:
                    events = storage.take_events()
                    assert not any(isinstance(event, StorageFailed) for event in events)
            storage.close(broker_epoch=life)

    def _token(self) -> Token:
        self._number += 1
        return Token("raft", self._number)

    def _effects(self) -> list[StorageEffect]:
        log = self._random.choice(LOGS)
        token, end_offset = self._token(), self._ends[log]
        kind = self._random.random()
        if kind < 0.7:
            self._ends[log] += 1
            records = batch(end_offset, epoch=self._epoch, size=self._random.randrange(200))
            durability = self._random.choice(list(Durability))
            return [Append(log=log, token=token, records=records, durability=durability)]
        self._epoch += 1
        if kind < 0.8:
            self._ends[log] = self._random.randint(self._starts[log], end_offset)
            return [Truncate(log=log, token=token, end_offset=self._ends[log])]
        if kind < 0.85:
            election = ElectionState(epoch=self._epoch)
            return [SaveElection(log=METADATA_LOG, token=token, election=election)]
        if kind < 0.9:
            entries = (("orders", 0, self._ends["orders-0"]),)
            return [SaveHighWatermarks(entries=entries)]
        return self._rare(log, token)

    def _rare(self, log: str, token: Token) -> list[StorageEffect]:
        if log == METADATA_LOG:
            return self._begin_anew()
        if self._random.random() < 0.3:
            self._starts[log] = self._ends[log] = 0
            opens = OpenLog(log=log, token=self._token(), topic_id=UUID(int=8))
            return [DeleteLog(log=log, token=token), opens]
        self._starts[log] = self._random.randint(self._starts[log], self._ends[log])
        return [Trim(log=log, token=token, start_offset=self._starts[log])]

    def _begin_anew(self) -> list[StorageEffect]:
        """After a snapshot that replaces the log."""
        self._ends[METADATA_LOG] += 5
        self._starts[METADATA_LOG] = self._ends[METADATA_LOG]
        start = OffsetAndEpoch(self._ends[METADATA_LOG], self._epoch)
        content = snapshot_content(snapshot_head(0, ()), (), epoch=self._epoch, last_timestamp_ms=0)
        return [
            SaveSnapshot(log=METADATA_LOG, token=self._token(), id=start, content=content),
            ResetLog(log=METADATA_LOG, token=self._token(), start=start),
            Trim(log=METADATA_LOG, token=self._token(), start_offset=start.offset),
        ]


def contents(system: System, directory: str) -> dict[str, bytes]:
    disk = Disk(system=system)
    found: dict[str, bytes] = {}
    for name in disk.names(directory):
        path = f"{directory}/{name}"
        content = None if name in LOGS else disk.read_whole(path)
        assert content is not None or name in LOGS, path
        found |= {path: content} if content is not None else contents(system, path)
    disk.close()
    return found


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 20))]
)
def test_directory_has_the_bytes_that_it_has_through_os(seed: int, tmp_path: Path) -> None:
    directory = str(tmp_path / "data")
    files = VirtualFiles(Random(seed))
    made = ""
    for name in directory.split("/")[1:]:
        made = f"{made}/{name}"
        files.mkdir(made)
    os.mkdir(directory)
    Run(seed, directory, os).play()
    Run(seed, directory, files).play()
    found = contents(os, directory)
    assert any(path.endswith(".log") for path in found)
    assert contents(files, directory) == found
