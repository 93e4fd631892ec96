"""What a test of storage opened is closed after it: a crash, above all, closes nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from jepsen_like.sim.disks.virtual_files import VirtualFiles
from quorum.log.files.disk import Disk


@pytest.fixture(autouse=True)
def disks_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    disks: list[Disk] = []
    initialize = Disk.__init__

    def initialize_and_note(disk: Disk, **settings: Any) -> None:
        initialize(disk, **settings)
        if not isinstance(settings.get("system"), VirtualFiles):  # their power may be off
            disks.append(disk)

    monkeypatch.setattr(Disk, "__init__", initialize_and_note)
    yield
    for disk in disks:
        disk.close()
