"""What the tests of whole storages share: one on a directory, and the events that came of it."""

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Event as Signal
from typing import Any
from uuid import UUID

from quorum.core.effects import Append, Durability, Opened, OpenLog, Read, ReadDone, Token
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG, StorageEffect, StorageEvent
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage, StorageSettings
from tests.quorum.log_files import SMALL, batch

TOPIC = UUID(int=77)
LOG = "topic-with-dashes-3"
SETTINGS = StorageSettings(
    metadata=LogSettings(preallocate_bytes=4096), partitions=SMALL, descriptors_max=10
)


class Storage:
    """A FileStorage, and the events that came of it."""

    def __init__(
        self,
        path: Path,
        *,
        system: Any = os,
        settings: StorageSettings = SETTINGS,
        descriptors_max: int = 4096,
        directories: Mapping[str, UUID] | None = None,
    ) -> None:
        """In `path`, or with the metadata log there and `directories` for partitions."""
        self.path = path
        self.said: list[str] = []
        self.ready = Signal()
        self.files = FileStorage(
            directories or str(path),
            metadata_directory=str(path),
            settings=settings,
            disk=Disk(descriptors_max=descriptors_max, system=system),
            say=self.said.append,
        )
        self.files.wake_with(self.ready.set)
        self._number = 0

    def token(self) -> Token:
        self._number += 1
        return Token("test", self._number)

    def do(self, *effects: StorageEffect) -> list[StorageEvent]:
        """Perform them together, and wait until nothing runs any more."""
        for effect in effects:
            self.files.perform(effect)
        return self.settle()

    def settle(self) -> list[StorageEvent]:
        events = self.files.take_events()
        while self.files.is_busy:
            assert self.ready.wait(10)
            self.ready.clear()
            events += self.files.take_events()
        return events

    def append(
        self, offset: int, log: str = METADATA_LOG, *, synced: bool = True, **more: Any
    ) -> Append:
        durability = Durability.SYNCED if synced else Durability.WRITTEN
        records = batch(offset, **more)
        return Append(log=log, token=self.token(), records=records, durability=durability)

    def log_path(self, log: str = METADATA_LOG) -> Path:
        return self.path / log

    def read(self, log: str = METADATA_LOG, *, start_offset: int = 0) -> bytes:
        effect = Read(
            log=log,
            token=self.token(),
            start_offset=start_offset,
            end_offset=10**9,
            bytes_max=1 << 20,
        )
        (done,) = self.do(effect)
        assert isinstance(done, ReadDone)
        return done.records

    def open(self, log: str = LOG, topic_id: UUID = TOPIC, **more: Any) -> Opened:
        (event,) = self.do(OpenLog(log=log, token=self.token(), topic_id=topic_id, **more))
        assert isinstance(event, Opened)
        return event

    def close(self) -> None:
        self.files.close(broker_epoch=-1)
