"""Files by path: bounds, and errors in words."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.core.storage import StorageError
from quorum.log.files.disk import Disk
from tests.quorum.log_files import FailingSystem


def test_evicted_file_is_opened_again(tmp_path: Path) -> None:
    disk = Disk(descriptors_max=2)
    paths = [f"{tmp_path}/{i}" for i in range(5)]
    for path in paths:
        disk.create(path)
    for round_ in range(3):
        for i, path in enumerate(paths):
            disk.write(path, b"%d" % i, position=round_)
            assert disk.descriptors_open <= 2
    assert [disk.read(path, position=0, length=9) for path in paths] == [
        b"%d" % i * 3 for i in range(5)
    ]
    disk.close()
    assert disk.descriptors_open == 0


@pytest.mark.parametrize(
    ("use", "kept"),
    [
        (lambda disk, path: disk.create(f"{path}/another"), 4),
        (lambda disk, path: disk.read_once(f"{path}/0", position=0, length=1), 3),
        (lambda disk, path: disk.read_whole(f"{path}/0"), 3),
        (lambda disk, path: disk.sync_directory(path), 3),
    ],
    ids=["create", "read_once", "read_whole", "sync_directory"],
)
def test_descriptors_are_given_up_when_the_process_has_too_many(
    tmp_path: Path, use: Callable[[Disk, str], object], kept: int
) -> None:
    system = FailingSystem()
    disk = Disk(system=system)
    for i in range(6):
        disk.create(f"{tmp_path}/{i}")
    left = [1]

    def fails(name: str, arguments: tuple[object, ...]) -> OSError | None:
        if name == "open" and left.pop() if left else False:
            return OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return None

    system.fails = fails
    use(disk, str(tmp_path))
    assert disk.descriptors_open == kept


@pytest.mark.parametrize("by", ["forgetting it", "opening too many"])
def test_descriptor_in_use_is_not_given_to_another_file(tmp_path: Path, by: str) -> None:
    """While a thread reads a file, others may take its descriptor away: it closes after that."""
    paths = [f"{tmp_path}/{i}" for i in range(3)]

    class Busy(FailingSystem):
        def pread(self, fd: int, length: int, offset: int) -> bytes:
            if by == "forgetting it":
                disk.forget(paths[0])
            for path in paths[1:]:
                disk.write(path, b"another", position=0)
            return os.pread(fd, length, offset)

    disk = Disk(descriptors_max=1 if by == "opening too many" else 100, system=Busy())
    for path in paths:
        disk.create(path)
        disk.write(path, b"mine", position=0)
        disk.forget(path)
    assert disk.read(paths[0], position=0, length=9) == b"mine"
    disk.close()
    assert disk.descriptors_open == 0


def test_short_writes_are_continued(tmp_path: Path) -> None:
    class Stingy(FailingSystem):
        def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            return os.pwrite(fd, bytes(data)[:3], offset)

    disk = Disk(system=Stingy())
    disk.create(f"{tmp_path}/f")
    disk.write(f"{tmp_path}/f", b"0123456789", position=0)
    assert disk.read(f"{tmp_path}/f", position=0, length=99) == b"0123456789"


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        ("pwrite", errno.ENOSPC, "cannot write to .*/f: No space left on device; free space"),
        ("pwrite", errno.EFBIG, "cannot write to .*/f: File too large; raise"),
        ("fdatasync", errno.EIO, "cannot sync .*/f: Input/output error; the disk is failing"),
        ("open", errno.EACCES, "cannot .* .*/f: Permission denied; the user"),
        ("ftruncate", errno.EROFS, "cannot truncate .*/f: Read-only file system; mount"),
    ],
)
def test_failure_names_the_file_and_what_to_do(
    tmp_path: Path, call: str, number: int, words: str
) -> None:
    system = FailingSystem()
    disk = Disk(system=system)
    path = f"{tmp_path}/f"
    disk.create(path)
    if call == "open":
        disk.close()
    system.fail(call, number)

    def use() -> None:
        disk.write(path, b"x", position=0)
        disk.sync(path)
        disk.truncate(path, 0)

    with pytest.raises(StorageError, match=words):
        use()


@pytest.mark.parametrize("call", ["pwrite", "fsync", "open"])
def test_failed_replacement_leaves_the_old_content(tmp_path: Path, call: str) -> None:
    system = FailingSystem()
    disk = Disk(system=system)
    path = f"{tmp_path}/f"
    disk.replace(path, b"old")
    system.fail(call)
    with pytest.raises(StorageError):
        disk.replace(path, b"new")
    assert Path(path).read_bytes() == b"old"


def test_replacement_syncs_before_it_renames_and_then_the_directory(tmp_path: Path) -> None:
    system = FailingSystem()
    disk = Disk(system=system)
    disk.replace(f"{tmp_path}/f", b"x")
    assert disk.descriptors_open == 0, "the file has another name now"
    calls = [name for name in system.calls if name not in ("close", "ftruncate")]
    assert calls == ["open", "pwrite", "fsync", "rename", "open", "fsync"]


def test_replaced_file_is_not_written_by_its_old_descriptor(tmp_path: Path) -> None:
    disk, path = Disk(), str(tmp_path / "f")
    disk.create(path)
    disk.write(path, b"one", position=0)
    disk.replace(path, b"other")
    disk.write(path, b"O", position=0)
    assert disk.read_whole(path) == b"Other"
    disk.close()


def test_every_call_that_makes_something_durable_is_counted(tmp_path: Path) -> None:
    disk, path = Disk(), f"{tmp_path}/f"
    disk.create(path)
    disk.write(path, b"x", position=0)
    counted = [disk.syncs]
    disk.sync(path)
    counted.append(disk.syncs)
    disk.replace(path, b"y")
    counted.append(disk.syncs)
    disk.replace(path, b"z", syncs_directory=False)
    counted.append(disk.syncs)
    disk.rename(path, f"{tmp_path}/g")
    counted.append(disk.syncs)
    assert counted == [0, 1, 3, 4, 5], "a replacement syncs the file, then its directory"


def test_preallocation_that_is_refused_is_done_without(tmp_path: Path) -> None:
    system = FailingSystem()
    disk = Disk(system=system)
    disk.create(f"{tmp_path}/f")
    assert disk.preallocate(f"{tmp_path}/f", position=0, length=100)
    assert disk.size(f"{tmp_path}/f") == 100
    for number in (errno.ENOSPC, errno.EOPNOTSUPP):
        system.fail("posix_fallocate", number)
        assert not disk.preallocate(f"{tmp_path}/f", position=100, length=100)
    system.fail("posix_fallocate", errno.EIO)
    with pytest.raises(StorageError):
        disk.preallocate(f"{tmp_path}/f", position=100, length=100)


@pytest.mark.parametrize(
    ("doing", "name", "work"),
    [
        ("remove", "missing", Disk.remove_tree),
        ("rename", "missing", lambda disk, path: disk.rename(path, path + "-delete")),
        ("read", "missing", Disk.modified_ms),
        ("read", "directory", Disk.read_whole),
    ],
)
def test_what_is_not_as_it_should_be_is_named(
    tmp_path: Path, doing: str, name: str, work: Callable[[Disk, str], object]
) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(StorageError, match=f"cannot {doing} {tmp_path}/{name}: "):
        work(Disk(), f"{tmp_path}/{name}")
