"""A filesystem of its own for a node's data: an ext4 image on a loop device, which can be broken.

A disk of its own can be full, slow, dead, or lose its power, while the machine goes on. Needs root;
`why_not` says what is missing. `EXT4_IOC_SHUTDOWN` ends a filesystem at once: without a flush of
the journal, what no sync has covered is gone after the next mount, as after a power failure; until
then every write and every sync fails with EIO.

`DiskWatch` looks often how long the threads of a process wait for a disk. A thread that waits for a
write or a sync cannot be interrupted, and the kernel shows it as `D`. That is the waiting itself,
not its cause: a fault that slows a disk must know how long a thread waits otherwise.

Source: Linux, fs/ext4/ioctl.c; proc(5); what was measured stands in the reliability facts, section
2.
"""

import fcntl
import os
import shutil
import struct
import threading
import time
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from jepsen_like.real.layout import ClusterError, NodeLayout
from jepsen_like.real.processes import ProcessId, is_alive, run, state_of

__all__ = ["DiskImage", "DiskWatch", "Waits", "why_no_disks"]

_IMAGE_BYTES = 512 << 20  # sparse: what is not written takes no room
_TOOLS = ("mkfs.ext4", "mount", "umount")
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_FLUSH_ALL = 0
_FLUSH_NOTHING = 2
_UNMOUNT_TRIES = 50
_BALLAST = ".ballast"
_LOOK_SECONDS = 0.02


def why_no_disks() -> str:
    if os.geteuid() != 0:
        return "needs root, to mount a disk for each node"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    return "" if Path("/dev/loop-control").exists() else "needs loop devices"


class DiskImage:
    """Mounted at the node's data directory, which must be empty when it is made."""

    def __init__(self, node: NodeLayout) -> None:
        self._node = node
        self._image = node.path / "disk.img"

    @property
    def device(self) -> str:
        """`major:minor` of the loop device."""
        number = self._node.data.stat().st_dev
        return f"{os.major(number)}:{os.minor(number)}"

    def make(self) -> None:
        self._node.data.mkdir(parents=True, exist_ok=True)
        with self._image.open("wb") as image:
            image.truncate(_IMAGE_BYTES)
        run(["mkfs.ext4", "-q", "-F", "-m", "0", str(self._image)])
        self.mount()
        (self._node.data / "lost+found").rmdir()

    def mount(self) -> None:
        run(["mount", "-o", "loop", str(self._image), str(self._node.data)])

    def unmount(self) -> None:
        """Once nobody has a file open on it."""
        for _ in range(_UNMOUNT_TRIES):
            try:
                run(["umount", str(self._node.data)])
                return
            except ClusterError as error:
                problem = error
                time.sleep(0.05)
        raise problem

    def remove(self) -> None:
        """Keep the files on it, as plain files in the node's data directory."""
        self.remount()  # it may have been broken
        kept = self._node.path / "data.kept"
        shutil.copytree(self._node.data, kept, dirs_exist_ok=True)
        self.unmount()
        self._node.data.rmdir()
        kept.rename(self._node.data)
        self._image.unlink()

    def remount(self) -> None:
        self.unmount()
        self.mount()

    def die(self) -> None:
        """Everything is written, and nothing ever again: writes and syncs fail with EIO."""
        self._shut_down(_FLUSH_ALL)

    def lose_power(self) -> None:
        """Lose what no sync has covered; writes and syncs fail until it is mounted again."""
        self._shut_down(_FLUSH_NOTHING)

    def fill(self) -> int:
        """Take all room that is left; how much that was."""
        path = self._node.data / _BALLAST
        with path.open("wb") as ballast:
            left = os.statvfs(self._node.data)
            free = left.f_bavail * left.f_bsize
            while free > 0:
                try:
                    os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), free)
                except OSError:
                    free //= 2  # the filesystem needs some of it to keep books
        return path.stat().st_size

    def free(self) -> None:
        """For good: a power failure does not bring the ballast back."""
        (self._node.data / _BALLAST).unlink(missing_ok=True)
        directory = os.open(self._node.data, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def fingerprint(self) -> dict[str, tuple[int, int]]:
        """Size and checksum of every file."""
        found = {}
        for path in sorted(self._node.data.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                found[str(path.relative_to(self._node.data))] = len(content), zlib.crc32(content)
        return found

    def _shut_down(self, how: int) -> None:
        directory = os.open(self._node.data, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, _SHUTDOWN, struct.pack("I", how))
        finally:
            os.close(directory)


@dataclass(slots=True)
class Waits:
    """How long threads were seen to wait."""

    total_seconds: float = 0.0  # of all threads
    longest_seconds: float = 0.0  # of one thread, at a stretch
    _since: dict[str, float] = field(default_factory=dict)  # by thread, while it waits
    _last: float = 0.0

    def look(self, waiting: Collection[str], now: float) -> None:
        """`waiting` are the threads that wait now; who did not at the last look begins."""
        self.total_seconds += sum(now - self._last for each in waiting if each in self._since)
        self._since = {each: self._since.get(each, now) for each in waiting}
        self._last = now
        longest = max((now - began for began in self._since.values()), default=0.0)
        self.longest_seconds = max(self.longest_seconds, longest)


class DiskWatch:
    """Looks at a process from now on, until `stop`."""

    def __init__(self, process: ProcessId) -> None:
        self.waits = Waits()
        self._process = process
        self._enough = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name=f"disk-watch-{process.pid}", daemon=True
        )
        self._thread.start()

    def stop(self) -> Waits:
        self._enough.set()
        self._thread.join()
        return self.waits

    def _watch(self) -> None:
        while is_alive(self._process) and not self._enough.wait(_LOOK_SECONDS):
            tasks = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
            waiting = {path.parent.name for path in tasks if state_of(path) == "D"}
            self.waits.look(waiting, time.monotonic())
