"""Files by path, under a bounded number of open descriptors, with errors that people can act on.

Everything that storage does to the operating system goes through one `Disk` a process: thousands
of logs share its descriptor cache, and the simulator replaces `system`. Every failure
is a `StorageError` that names the file. Nothing is retried: after a failed sync the kernel may have
dropped the pages and would report success the next time (the "fsyncgate" of 2018).

A descriptor that is evicted takes unreported write errors with it, as in any log that does not keep
every file open; what waits for a sync is in use by it soon, and so among the last to be evicted.
"""

import errno
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from posixpath import dirname
from stat import S_ISDIR
from threading import Lock
from typing import TypeVar

from quorum.core.storage import StorageError
from quorum.log.files.system import CREATED, DIRECTORY, EMPTIED, READ, READ_AND_WRITE, System

__all__ = ["Disk"]

T = TypeVar("T")

_FILE_MODE = 0o644
_CHUNK_BYTES = 1 << 20
_ADVICE = {
    errno.ENOSPC: "free space on that volume, then restart the node",
    errno.EDQUOT: "raise the quota or free space, then restart the node",
    errno.EFBIG: "raise the file size limit (ulimit -f), then restart the node",
    errno.EACCES: "the user that runs the node needs read and write access to it",
    errno.EPERM: "the user that runs the node needs read and write access to it",
    errno.EROFS: "mount that file system for writing, then restart the node",
    errno.EIO: "the disk is failing: check the kernel's log before restarting the node",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then restart the node",
    errno.ENFILE: "raise the system's limit of open files, then restart the node",
}
_NO_PREALLOCATION = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class _Descriptor:
    __slots__ = ("fd", "is_forgotten", "users")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.users = 0
        self.is_forgotten = False


class Disk:
    """Safe to use from several threads, for different files or for reading, writing and syncing
    the same one."""

    def __init__(self, *, descriptors_max: int = 4096, system: System = os) -> None:
        assert descriptors_max >= 1, descriptors_max
        self._descriptors_max = descriptors_max
        self._system = system
        self._open: OrderedDict[str, _Descriptor] = OrderedDict()  # least recently used first
        self._lock = Lock()
        self.syncs = 0  # calls that made a file or a directory durable

    @property
    def descriptors_open(self) -> int:
        return len(self._open)

    # --- one file ---------------------------------------------------------------------------

    def create(self, path: str) -> None:
        """An empty file; one that is in the way is emptied."""
        self.forget(path)
        self._use("create", path, _nothing, flags=CREATED | EMPTIED)

    def read(self, path: str, *, position: int, length: int) -> bytes:
        """Up to `length` bytes: fewer at the end of the file."""
        return self._use("read", path, self._system.pread, length, position)

    def read_once(self, path: str, *, position: int, length: int) -> bytes:
        """The same of a file that is seldom read and never written: it need not be writable."""
        with _explained("read", path):
            fd = self._open_once(path, READ)
            try:
                return self._system.pread(fd, length, position)
            finally:
                self._system.close(fd)

    def write(self, path: str, data: bytes | memoryview, *, position: int) -> None:
        written = self._use("write to", path, self._system.pwrite, data, position)
        while written < len(data):  # a nearly full disk takes a part first, then refuses
            rest = memoryview(data)[written:]
            written += self._use("write to", path, self._system.pwrite, rest, position + written)

    def sync(self, path: str) -> None:
        """Make the content durable, and the size as far as reading needs it."""
        self._use("sync", path, self._system.fdatasync)
        with self._lock:
            self.syncs += 1

    def truncate(self, path: str, size: int) -> None:
        self._use("truncate", path, self._system.ftruncate, size)

    def preallocate(self, path: str, *, position: int, length: int) -> bool:
        """Extend the file by zeros. False where the file system or the space left forbid it."""

        def extend(fd: int) -> bool:
            try:
                self._system.posix_fallocate(fd, position, length)
            except OSError as error:
                if error.errno in _NO_PREALLOCATION:
                    return False
                raise
            return True

        return self._use("extend", path, extend)

    def size(self, path: str) -> int:
        with _explained("read", path):
            return self._system.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        with _explained("read", path):
            return self._system.stat(path).st_mtime_ns // 1_000_000

    def remove(self, path: str) -> None:
        self.forget(path)
        with _explained("remove", path), suppress(FileNotFoundError):
            self._system.unlink(path)

    def read_whole(self, path: str) -> bytes | None:
        """None if there is no such file."""
        with _explained("read", path):
            try:
                fd = self._open_once(path, READ)
            except FileNotFoundError:
                return None
            try:
                return self._read_on(fd)
            finally:
                self._system.close(fd)

    def replace(self, path: str, content: bytes, *, syncs_directory: bool = True) -> None:
        """Put `content` in place of the file, so that a crash leaves the one or the other.

        Durably, unless the caller syncs the directory later.
        """
        temporary = path + ".tmp"
        self.create(temporary)
        self.write(temporary, content, position=0)
        self._use("sync", temporary, self._system.fsync)
        with self._lock:
            self.syncs += 1
        self.forget(temporary)
        self.forget(path)
        with _explained("replace", path):
            self._system.rename(temporary, path)
        if syncs_directory:
            self.sync_directory(dirname(path))

    def put(self, path: str, content: bytes) -> None:
        """Write a small file, not durably: a power failure may leave it empty, or in part."""
        self.create(path)
        self.write(path, content, position=0)
        self.forget(path)

    def names(self, directory: str) -> list[str]:
        """The names of everything in a directory, sorted."""
        with _explained("list", directory):
            return sorted(self._system.listdir(directory))

    def make_directory(self, path: str) -> bool:
        """Not durably. Its parent must exist. False if it is there already."""
        with _explained("create", path):
            try:
                self._system.mkdir(path)
            except FileExistsError:
                if S_ISDIR(self._system.stat(path).st_mode):
                    return False
                raise
            return True

    def rename(self, path: str, to: str) -> None:
        """Durably, within one directory. Files below it must have been forgotten."""
        with _explained("rename", path):
            self._system.rename(path, to)
        self.sync_directory(dirname(path))

    def move(self, path: str, to: str) -> None:
        """Rename a file within its directory, not durably."""
        self.forget(path)
        self.forget(to)
        with _explained("rename", path):
            self._system.rename(path, to)

    def publish(self, part: str, path: str) -> None:
        """Give a whole file its final name, so that a crash leaves all of it there or nothing."""
        self.sync(part)
        self.forget(part)
        self.forget(path)
        self.rename(part, path)

    def remove_tree(self, path: str) -> None:
        """A directory and all that is in it, of which nothing may be in use."""
        with _explained("remove", path):
            self._remove_below(path)

    def sync_directory(self, path: str) -> None:
        """Make creations, removals and renames in a directory durable."""
        with _explained("sync", path):
            fd = self._open_once(path, READ | DIRECTORY)
            try:
                self._system.fsync(fd)
            finally:
                self._system.close(fd)
        with self._lock:
            self.syncs += 1

    def _read_on(self, fd: int) -> bytes:
        """All of an open file."""
        content = self._system.pread(fd, _CHUNK_BYTES, 0)
        while piece := self._system.pread(fd, _CHUNK_BYTES, len(content)):
            content += piece
        return content

    def _remove_below(self, path: str) -> None:
        for name in self._system.listdir(path):
            below = f"{path}/{name}"
            try:
                self._system.unlink(below)
            except IsADirectoryError:
                self._remove_below(below)
        self._system.rmdir(path)

    # --- descriptors ------------------------------------------------------------------------

    def forget(self, path: str) -> None:
        """Close the file as soon as nobody uses it."""
        with self._lock:
            descriptor = self._open.pop(path, None)
            if descriptor is None:
                return
            descriptor.is_forgotten = True
            if descriptor.users == 0:
                self._system.close(descriptor.fd)

    def close(self) -> None:
        """Close everything. No call may be under way."""
        for path in list(self._open):
            self.forget(path)

    def _use(
        self,
        doing: str,
        path: str,
        work: Callable[..., T],
        *given: object,
        flags: int = 0,
    ) -> T:
        """What `work` makes of the file's descriptor, which stays open until it has returned.

        An OSError becomes a StorageError.
        """
        try:
            with self._lock:
                descriptor = self._open.get(path)
                if descriptor is None:
                    self._evict(self._descriptors_max - 1)
                    descriptor = self._open[path] = _Descriptor(self._open_file(path, flags))
                else:
                    self._open.move_to_end(path)
                descriptor.users += 1
            try:
                return work(descriptor.fd, *given)
            finally:
                with self._lock:
                    descriptor.users -= 1
                    if descriptor.is_forgotten and descriptor.users == 0:
                        self._system.close(descriptor.fd)
        except OSError as error:
            raise _explain(doing, path, error) from error

    def _open_once(self, path: str, flags: int) -> int:
        """A descriptor that the caller closes."""
        try:
            return self._system.open(path, flags)
        except OSError as error:
            with self._lock:
                self._give_way(error)
        return self._system.open(path, flags)

    def _open_file(self, path: str, flags: int) -> int:
        flags |= READ_AND_WRITE
        try:
            return self._system.open(path, flags, _FILE_MODE)
        except OSError as error:
            self._give_way(error)
        return self._system.open(path, flags, _FILE_MODE)

    def _give_way(self, error: OSError) -> None:
        """Sockets share the limit of the process with us: close half, then try once more."""
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise error
        self._evict(len(self._open) // 2)

    def _evict(self, keep: int) -> None:
        """Close the least recently used ones until `keep` are left; those in use stay."""
        excess = len(self._open) - keep
        if excess <= 0:
            return
        idle = (path for path, descriptor in self._open.items() if descriptor.users == 0)
        for path in tuple(islice(idle, excess)):
            self._system.close(self._open.pop(path).fd)


def _nothing(_fd: int) -> None:
    """Opening the file was all."""


@contextmanager
def _explained(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _explain(doing, path, error) from error


def _explain(doing: str, path: str, error: OSError) -> StorageError:
    sentence = f"cannot {doing} {path}: {error.strerror or error}"
    advice = _ADVICE.get(error.errno or 0)
    return StorageError(f"{sentence}; {advice}" if advice else sentence)
