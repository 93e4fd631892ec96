"""A model of what reaches the medium: what was synced stays; of what was written since, a prefix
reached it whole, and of the writes behind that any sectors. Directories are as a journal keeps
them: what was created, renamed or removed stays so, in that order.
"""

import os
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

SECTOR = 512
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

    def rename(self, source: str, target: str) -> None:
        self._count()
        self._forget(target)
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        self._count()
        self._forget(path)
        os.unlink(path)

    def _forget(self, path: str) -> None:
        """Its inode may serve another file."""
        if os.path.exists(path):
            inode = os.stat(path).st_ino
            self.synced.pop(inode, None)
            self.unsynced.pop(inode, None)

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

    def leave(self, directory: Path) -> None:
        """What the crash has left, as files."""
        for name, content in self.image.items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_bytes(content)

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
