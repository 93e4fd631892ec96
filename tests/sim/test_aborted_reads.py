"""The disks of simulated nodes tell of aborted transactions, as the shipped storage does."""

from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest

from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from quorum.core.effects import (
    Append,
    Durability,
    Event,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    Stored,
    Token,
    Truncate,
)
from quorum.core.storage import StorageEffect
from quorum.log.files.transaction_files import TransactionFiles
from tests.quorum.transactional import Transactions, extent, opened, overlapping
from tests.sim.storage_bench import StorageBench, on_files

TOPIC = UUID(int=7)


class _Log:
    """One log on a disk of either kind."""

    def __init__(self, disk: Disk, world: VirtualTime) -> None:
        self.disk, self.world = disk, world
        self.events: list[Event] = []
        self.written = Transactions()
        self._number = 1000
        disk.attach(self.events.append)

    def token(self) -> Token:
        self._number += 1
        return Token("broker", self._number)

    def do(self, effect: StorageEffect) -> list[Event]:
        self.events.clear()
        self.disk.perform(effect)
        self.events += self.disk.take_failures() + self.disk.begin_syncs()
        self.world.run_until(self.world.now_us + 10_000_000, events_max=1_000_000)
        return [event for event in self.events if not isinstance(event, Stored)]

    def open(self) -> Opened:
        (event,) = self.do(OpenLog(log="t-0", token=self.token(), topic_id=TOPIC))
        assert isinstance(event, Opened)
        return event

    def append(self, batch: bytes) -> None:
        aborted = self.written.aborted_by(batch)
        effect = Append(
            log="t-0",
            token=self.token(),
            records=batch,
            durability=Durability.SYNCED,
            aborted=aborted,
        )
        self.do(effect)

    def read(self, start_offset: int) -> ReadDone:
        effect = Read(
            log="t-0",
            token=self.token(),
            start_offset=start_offset,
            end_offset=10**9,
            bytes_max=300,
            wants_aborted=True,
        )
        (done,) = self.do(effect)
        assert isinstance(done, ReadDone)
        return done

    def check(self) -> None:
        for start_offset in range(self.written.end_offset):
            done = self.read(start_offset)
            _, aborted = self.written.read_back()
            assert set(done.aborted) == overlapping(aborted, *extent(done.records))


def _model() -> _Log:
    world, tree = VirtualTime(1), LogTree("D-ONE", "D-DIV")
    disk = Disk(
        world=world,
        random=Random(1),
        faults=DiskFaults(),
        tree_of=lambda _name, _topic_id: tree,
    )
    return _Log(disk, world)


def _shipped() -> _Log:
    bench: StorageBench = on_files(1)
    log = _Log(bench.disk, bench.world)  # type: ignore[arg-type]
    log.do(Truncate(log="t-0", token=log.token(), end_offset=0))
    return log


@pytest.mark.parametrize("made", [_model, _shipped])
def test_reads_are_told_of_what_was_aborted(made: Callable[[], _Log]) -> None:
    log = made()
    if made is _model:
        log.open()
    written = log.written
    for place in range(12):
        log.append(written.write(place % 3 + 1))
        if place % 4 == 3:
            log.append(written.end(place % 3 + 1, commits=place == 7))
    log.check()
    end_offset = written.end_offset - 2
    log.do(Truncate(log="t-0", token=log.token(), end_offset=end_offset))
    written.truncate(end_offset)
    log.check()
    log.disk.crash(power_loss=True)
    log.disk.attach(log.events.append)
    if made is _shipped:
        log.disk.recover("__cluster_metadata-0")
    state = log.open().state
    assert opened(state.producers) == opened(written.read_back()[0].values())
    log.check()


def test_storage_that_forgets_an_aborted_transaction_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = _shipped()
    log.append(log.written.write(1))
    monkeypatch.setattr(TransactionFiles, "append", lambda self, aborted: None)
    log.append(log.written.end(1))
    with pytest.raises(Violation, match="S-TX"):
        log.read(0)
