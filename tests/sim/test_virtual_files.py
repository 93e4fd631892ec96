"""The virtual file system: what survives a crash, exactly, and what its faults do."""

import errno
import os
from pathlib import Path
from random import Random

import pytest

from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.virtual_files import Died, VirtualFiles
from jepsen_like.sim.disks.virtual_nodes import SECTOR_BYTES
from quorum.core.storage import StorageError
from quorum.log.files.disk import Disk
from quorum.log.files.system import CREATED, READ_AND_WRITE

SEEDS = range(60)


class Bench:
    """A file system with a directory `/d`, and a `Disk` on it."""

    def __init__(self, seed: int = 0, **faults: float) -> None:
        self.fired: list[str] = []
        self.files = VirtualFiles(Random(seed), fired=self.fired.append)
        self.files.mkdir("/d")
        self.files.make_durable()
        self.files.faults = DiskFaults(**faults)  # type: ignore[arg-type]
        self.disk = Disk(system=self.files)

    def durable(self, content: bytes, path: str = "/d/f") -> None:
        """Write a file that no power failure takes back."""
        self.disk.create(path)
        self.disk.write(path, content, position=0)
        self.files.make_durable()

    def after_power_loss(self, path: str = "/d/f") -> bytes | None:
        self.files.crash(power_loss=True)
        self.disk = Disk(system=self.files)
        return self.disk.read_whole(path)


# --- what survives ----------------------------------------------------------------------------


def test_a_process_that_dies_leaves_all_that_it_has_written() -> None:
    bench = Bench()
    bench.disk.create("/d/f")
    bench.disk.write("/d/f", b"abc", position=0)
    bench.files.crash(power_loss=False)
    assert bench.disk.read_whole("/d/f") == b"abc"


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_synced_survives_with_its_name(seed: int) -> None:
    bench = Bench(seed)
    bench.disk.create("/d/f")
    bench.disk.write("/d/f", b"a" * 2000, position=0)
    bench.disk.sync("/d/f")
    bench.disk.sync_directory("/d")
    assert bench.after_power_loss() == b"a" * 2000


def test_any_subset_of_the_sectors_survives_and_nothing_between() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"a" * 3 * SECTOR_BYTES)
        bench.disk.write("/d/f", b"b" * 3 * SECTOR_BYTES, position=0)
        content = bench.after_power_loss()
        assert content is not None
        sectors = [content[at : at + SECTOR_BYTES] for at in range(0, len(content), SECTOR_BYTES)]
        assert all(len(set(sector)) == 1 for sector in sectors)
        found.add(bytes(sector[0] for sector in sectors))
    assert found == {bytes(each) for each in _all_of(b"ab", 3)}


def _all_of(values: bytes, length: int) -> list[list[int]]:
    rest = _all_of(values, length - 1) if length else []
    return [[value, *each] for each in rest for value in values] if length else [[]]


def test_a_later_write_may_survive_an_earlier_one_that_does_not() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"")
        bench.disk.write("/d/f", b"a" * SECTOR_BYTES, position=0)
        bench.disk.write("/d/f", b"b" * SECTOR_BYTES, position=SECTOR_BYTES)
        content = bench.after_power_loss()
        assert content is not None
        found.add(content.replace(b"\0" * SECTOR_BYTES, b"0").replace(b"a" * SECTOR_BYTES, b"a"))
    assert found == {b"", b"a", b"0" + b"b" * SECTOR_BYTES, b"a" + b"b" * SECTOR_BYTES}


def test_a_size_may_be_the_old_one_under_what_was_written_since() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"aaaa")
        bench.disk.truncate("/d/f", 1)
        bench.disk.write("/d/f", b"b", position=1)
        found.add(bench.after_power_loss())
    assert found == {b"aaaa", b"a", b"abaa", b"ab"}


def test_a_synced_file_without_a_synced_name_may_be_gone() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.disk.create("/d/f")
        bench.disk.write("/d/f", b"abc", position=0)
        bench.disk.sync("/d/f")
        found.add(bench.after_power_loss())
    assert found == {None, b"abc"}


def test_a_removed_file_may_be_back_until_the_directory_is_synced() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"abc")
        bench.disk.remove("/d/f")
        found.add(bench.after_power_loss())
        bench.durable(b"abc")
        bench.disk.remove("/d/f")
        bench.disk.sync_directory("/d")
        assert bench.after_power_loss() is None
    assert found == {None, b"abc"}


def test_a_renaming_happens_whole_or_not_at_all() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"old")
        bench.durable(b"new", "/d/other")
        bench.files.rename("/d/other", "/d/f")
        content = bench.after_power_loss()
        found.add((content, bench.disk.read_whole("/d/other")))
    assert found == {(b"old", b"new"), (b"new", None)}


def test_changes_of_a_directory_survive_in_any_order() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"a", "/d/first")
        bench.durable(b"b", "/d/second")
        bench.disk.remove("/d/first")
        bench.disk.remove("/d/second")
        bench.files.crash(power_loss=True)
        found.add(tuple(bench.disk.names("/d")))
    assert found == {(), ("first",), ("second",), ("first", "second")}


def test_a_directory_goes_with_all_that_was_synced_in_it() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.disk.make_directory("/d/below")
        bench.disk.replace("/d/below/f", b"abc")
        found.add(tuple(bench.disk.names("/d")))
        bench.files.crash(power_loss=True)
        found.add(tuple(bench.disk.names("/d")))
    assert found == {(), ("below",)}


# --- faults -----------------------------------------------------------------------------------


def test_what_a_failed_sync_lost_can_be_read_until_the_power_fails() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"")
        bench.disk.write("/d/f", b"abc", position=0)
        bench.files.faults = DiskFaults(fsync_failure=1.0)
        with pytest.raises(StorageError, match="EIO"):
            bench.disk.sync("/d/f")
        bench.files.faults = DiskFaults()
        assert bench.disk.read_whole("/d/f") == b"abc"
        bench.disk.sync("/d/f")  # has nothing to do
        found.add(bench.after_power_loss())
        assert bench.fired[0] == "fsync_failed"
    assert found == {b"", b"abc"}


def test_what_a_failed_sync_lost_may_be_forgotten_between_two_processes() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed, fsync_failure=1.0)
        bench.durable(b"")
        bench.disk.write("/d/f", b"abc", position=0)
        with pytest.raises(StorageError):
            bench.disk.sync("/d/f")
        bench.files.crash(power_loss=False)
        found.add(bench.disk.read_whole("/d/f"))
    assert found == {b"", b"abc"}


def test_a_full_disk_takes_a_part_of_a_write_and_then_nothing() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"")
        bench.files.faults = DiskFaults(write_failure=1.0)
        with pytest.raises(StorageError, match="free space"):
            bench.disk.write("/d/f", b"abc", position=0)
        found.add(bench.disk.read_whole("/d/f"))
        bench.files.faults = DiskFaults()
        with pytest.raises(StorageError, match="free space"):
            bench.disk.create("/d/other")
        assert not bench.disk.preallocate("/d/f", position=0, length=100)
        bench.disk.write("/d/f", b"", position=0)  # needs no space
        bench.files.crash(power_loss=False)
        bench.disk.create("/d/other")
    assert {b"", b"a", b"ab"} <= found


def test_a_full_disk_changes_a_sector_in_place_as_a_whole() -> None:
    """Seed 190005646: a part of a recovery point, 45 bytes, had changed."""
    for seed in SEEDS:
        bench = Bench(seed)
        bench.durable(b"abcdef")
        bench.files.faults = DiskFaults(write_failure=1.0)
        bench.disk.write("/d/f", b"xyz", position=2)
        assert bench.disk.read_whole("/d/f") == b"abxyzf"


def test_a_read_fails_once() -> None:
    bench = Bench()
    bench.durable(b"abc")
    bench.files.faults = DiskFaults(read_failure=1.0)
    with pytest.raises(StorageError, match="EIO"):
        bench.disk.read("/d/f", position=0, length=3)
    bench.files.faults = DiskFaults()
    assert bench.disk.read("/d/f", position=0, length=3) == b"abc"
    assert bench.files.errors == 1


def test_a_bit_flips_on_the_medium_and_in_memory() -> None:
    bench = Bench()
    bench.durable(b"abc")
    bench.files.flip("/d/f", position=1, bit=0)
    assert bench.disk.read_whole("/d/f") == b"acc"
    assert bench.after_power_loss() == b"acc"


def test_a_process_dies_in_the_place_of_a_change() -> None:
    bench = Bench()
    bench.files.die_after(2)
    with pytest.raises(Died):
        bench.disk.replace("/d/f", b"abc")  # create, write, sync
    bench.files.die_after(None)
    assert bench.disk.read_whole("/d/f.tmp") == b"abc"
    assert bench.disk.read_whole("/d/f") is None


# --- as the system ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        lambda system, at: system.open(f"{at}/none", READ_AND_WRITE),
        lambda system, at: system.open(f"{at}/none/below", READ_AND_WRITE | CREATED),
        lambda system, at: system.stat(f"{at}/none"),
        lambda system, at: system.listdir(f"{at}/none"),
        lambda system, at: system.mkdir(at),
        lambda system, at: system.unlink(f"{at}/none"),
        lambda system, at: (system.mkdir(f"{at}/below"), system.unlink(f"{at}/below")),
        lambda system, at: (system.mkdir(f"{at}/below"), system.rmdir(at)),
        lambda system, at: system.rename(f"{at}/none", f"{at}/other"),
    ],
    ids=range(9),
)
def test_what_is_refused_is_refused_as_by_the_system(wrong: object, tmp_path: Path) -> None:
    assert callable(wrong)
    with pytest.raises(OSError) as shipped:
        wrong(os, str(tmp_path))
    with pytest.raises(OSError) as virtual:
        wrong(Bench().files, "/d")
    assert errno.errorcode[virtual.value.errno or 0] == errno.errorcode[shipped.value.errno or 0]
    assert type(virtual.value) is type(shipped.value)
