"""A file system in memory, on which everything fails that may: `quorum.log.files.system.System`.

It has one process at a time, which may die at any call (`die_after`). The faults of calls are
chances, three of those of a disk, drawn from a stream of its own:

    write_failure  a write takes a part of its data, then there is no space until the process ends
    fsync_failure  a sync of a file fails, and the next power failure takes what it was to write
    read_failure   a read fails, this once

What a power failure leaves is told in virtual_nodes.py. A bit flips where `flip` says. Descriptors
are numbers; nothing is mapped into memory, since storage maps nothing.
"""

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from posixpath import basename, dirname
from random import Random
from stat import S_IFDIR, S_IFREG

from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.virtual_nodes import SECTOR_BYTES, VirtualDirectory, VirtualFile
from quorum.log.files.system import CREATED, EMPTIED

__all__ = ["Died", "VirtualFiles"]


class Died(BaseException):
    """The process ends in the midst of a call. No handler of errors may catch it."""


@dataclass(frozen=True, slots=True)
class _Status:
    st_mode: int
    st_size: int
    st_mtime_ns: int = 0


class VirtualFiles:
    def __init__(
        self,
        random: Random,
        *,
        fired: Callable[[str], None] = lambda _kind: None,
        sync_seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`fired` is told of faults by kind; a sync takes `sync_seconds()`."""
        self.faults = DiskFaults()
        self.syncs = 0
        self.seconds = 0.0  # spent in syncs
        self.errors = 0  # calls that failed by chance, so far
        self._random = random
        self._fired = fired
        self._sync_seconds = sync_seconds
        self._root = VirtualDirectory()
        self._open: dict[int, VirtualFile | VirtualDirectory] = {}
        self._next_fd = 3
        self._is_full = False
        self._calls_left: int | None = None  # that change something, before the process dies

    # --- one open file --------------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = 0o777, /) -> int:
        directory, name = self._parent(path), basename(path)
        node = directory.entries.get(name)
        if node is None and flags & CREATED:
            self._changes()
            self._takes_space()
            node = VirtualFile()
            directory.change({name: node})
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        if flags & EMPTIED and isinstance(node, VirtualFile) and node.cache:
            self._changes()
            node.change(0)
        self._next_fd += 1
        self._open[self._next_fd] = node
        return self._next_fd

    def close(self, fd: int, /) -> None:
        del self._open[fd]

    def pread(self, fd: int, length: int, offset: int, /) -> bytes:
        if self._happens(self.faults.read_failure):
            raise self._failed("read_failed", errno.EIO)
        return bytes(self._file(fd).cache[offset : offset + length])

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int, /) -> int:
        self._changes()
        file = self._file(fd)
        if self._is_full and offset + len(data) > len(file.cache):
            raise self._failed("write_failed", errno.ENOSPC)
        if (
            data
            and self._happens(self.faults.write_failure)
            and not _is_in_place(file, data, offset)
        ):
            self._is_full = True
            data = data[: self._random.randrange(len(data))]
            if not data:
                raise self._failed("write_failed", errno.ENOSPC)
        file.change((offset, bytes(data)))
        return len(data)

    def fdatasync(self, fd: int, /) -> None:
        self.fsync(fd)

    def fsync(self, fd: int, /) -> None:
        self._changes()
        node = self._open[fd]
        self.syncs += 1
        self.seconds += self._sync_seconds()
        if isinstance(node, VirtualFile) and self._happens(self.faults.fsync_failure):
            node.fail_to_sync(self._random)
            raise self._failed("fsync_failed", errno.EIO)
        node.sync()

    def ftruncate(self, fd: int, length: int, /) -> None:
        self._changes()
        self._file(fd).change(length)

    def posix_fallocate(self, fd: int, offset: int, length: int, /) -> None:
        self._changes()
        self._takes_space()
        file = self._file(fd)
        if offset + length > len(file.cache):
            file.change(offset + length)

    # --- names ----------------------------------------------------------------------------------

    def stat(self, path: str, /) -> _Status:
        node = self._node(path)
        if isinstance(node, VirtualDirectory):
            return _Status(S_IFDIR | 0o755, 0)
        return _Status(S_IFREG | 0o644, len(node.cache))

    def listdir(self, path: str, /) -> list[str]:
        return list(self._directory(path).entries)

    def mkdir(self, path: str, /) -> None:
        self._changes()
        directory, name = self._parent(path), basename(path)
        if name in directory.entries:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self._takes_space()
        directory.change({name: VirtualDirectory()})

    def rmdir(self, path: str, /) -> None:
        self._changes()
        if self._directory(path).entries:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        self._parent(path).change({basename(path): None})

    def rename(self, source: str, target: str, /) -> None:
        """Within one directory."""
        self._changes()
        assert dirname(source) == dirname(target), (source, target)
        node = self._node(source)
        self._parent(source).change({basename(source): None, basename(target): node})

    def unlink(self, path: str, /) -> None:
        self._changes()
        if isinstance(self._node(path), VirtualDirectory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        self._parent(path).change({basename(path): None})

    # --- what happens to it -----------------------------------------------------------------------

    def make_durable(self) -> None:
        """As after a long time without a failure."""
        self._root.sync()
        for node in self._nodes(self._root):
            node.sync()

    def die_after(self, calls: int | None) -> None:
        """Let `Died` be raised in the place of the next change but so many. None: never."""
        self._calls_left = calls

    def crash(self, *, power_loss: bool) -> bool:
        """The process has ended. Returns whether anything may be gone that it has written.

        That takes a power failure, or a sync that has failed: the system reads pages again, now or
        when a later process has ended.
        """
        self._open.clear()
        self._calls_left = None
        self._is_full = False  # somebody has made room
        forgets = not power_loss and self._random.random() < 0.5
        has_lost = power_loss
        if power_loss:
            self._lose_power(self._root)
        for node in self._nodes(self._root):
            if forgets and isinstance(node, VirtualFile):
                has_lost |= node.forget_pages()
        return has_lost

    def _lose_power(self, directory: VirtualDirectory) -> None:
        if directory.lose_power(self._random):
            self._fired("lost_entry")
        for name in sorted(directory.entries):
            match directory.entries[name]:
                case VirtualDirectory() as below:
                    self._lose_power(below)
                case VirtualFile() as file:
                    if file.lose_power(self._random):
                        self._fired("lost_sectors")

    def content(self, path: str) -> bytes:
        """The content of a file, as an observer sees it: no call, and no fault."""
        node = self._node(path)
        assert isinstance(node, VirtualFile), path
        return bytes(node.cache)

    def copy(self) -> "VirtualFiles":
        """What a process sees, made durable, on a disk without faults."""
        other = VirtualFiles(self._random)
        other._root = self._root.copy()
        return other

    def flip(self, path: str, *, position: int, bit: int) -> None:
        """On the medium and in memory: nothing is waiting to be written there."""
        node = self._node(path)
        assert isinstance(node, VirtualFile), path
        for content in (node.medium, node.cache):
            content[position] ^= 1 << bit

    # --- faults -----------------------------------------------------------------------------------

    def _changes(self) -> None:
        if self._calls_left is None:
            return
        if self._calls_left == 0:
            raise Died
        self._calls_left -= 1

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self._random.random() < chance

    def _takes_space(self) -> None:
        if self._is_full:
            raise self._failed("write_failed", errno.ENOSPC)

    def _failed(self, kind: str, number: int) -> OSError:
        self.errors += 1
        self._fired(kind)
        return OSError(number, f"{errno.errorcode[number]} (injected)")

    # --- paths ------------------------------------------------------------------------------------

    def _file(self, fd: int) -> VirtualFile:
        node = self._open[fd]
        assert isinstance(node, VirtualFile), fd
        return node

    def _node(self, path: str) -> VirtualFile | VirtualDirectory:
        node: VirtualFile | VirtualDirectory = self._root
        for name in path.split("/")[1:]:
            below = node.entries.get(name) if isinstance(node, VirtualDirectory) else None
            if below is None:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = below
        return node

    def _directory(self, path: str) -> VirtualDirectory:
        node = self._node(path) if path else self._root
        if not isinstance(node, VirtualDirectory):
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
        return node

    def _parent(self, path: str) -> VirtualDirectory:
        return self._directory(dirname(path).rstrip("/"))

    def _nodes(self, directory: VirtualDirectory) -> "Iterator[VirtualFile | VirtualDirectory]":
        """All below it."""
        for name in sorted(directory.entries):
            node = directory.entries[name]
            yield node
            if isinstance(node, VirtualDirectory):
                yield from self._nodes(node)


def _is_in_place(file: VirtualFile, data: bytes | memoryview, offset: int) -> bool:
    """Does a write change the bytes of one sector only? It needs no room: it is never short."""
    end = offset + len(data)
    return end <= len(file.cache) and offset // SECTOR_BYTES == (end - 1) // SECTOR_BYTES
