"""The calls by which storage reaches a file system, and nothing else does: those of module `os`.

`Disk` makes all of them. The shipped system is the module itself, so that the seam costs nothing.
The simulator has another one in memory (jepsen_like/sim/disks/virtual_files.py), whose power fails.
"""

import os
from collections.abc import Sequence
from typing import Protocol

__all__ = [
    "CREATED",
    "DIRECTORY",
    "EMPTIED",
    "READ",
    "READ_AND_WRITE",
    "FileStatus",
    "System",
]

# How a file is opened; several are joined.
READ = os.O_RDONLY | os.O_CLOEXEC
READ_AND_WRITE = os.O_RDWR | os.O_CLOEXEC
CREATED = os.O_CREAT
EMPTIED = os.O_TRUNC
DIRECTORY = os.O_DIRECTORY


class FileStatus(Protocol):
    """What is used of `os.stat_result`."""

    @property
    def st_mode(self) -> int: ...

    @property
    def st_size(self) -> int: ...

    @property
    def st_mtime_ns(self) -> int: ...


class System(Protocol):
    """Every call fails with an `OSError`, as those of `os` do."""

    # --- one open file --------------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = ..., /) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def pread(self, fd: int, length: int, offset: int, /) -> bytes: ...
    def pwrite(self, fd: int, data: bytes | memoryview, offset: int, /) -> int: ...
    def fdatasync(self, fd: int, /) -> None: ...
    def fsync(self, fd: int, /) -> None:
        """A directory is synced, too: what came, went or was renamed in it."""
        ...

    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def posix_fallocate(self, fd: int, offset: int, length: int, /) -> None: ...

    # --- names ----------------------------------------------------------------------------------

    def stat(self, path: str, /) -> FileStatus: ...
    def listdir(self, path: str, /) -> Sequence[str]: ...
    def mkdir(self, path: str, /) -> None: ...
    def rmdir(self, path: str, /) -> None: ...
    def rename(self, source: str, target: str, /) -> None: ...
    def unlink(self, path: str, /) -> None: ...
