"""Ports for clusters that start now, or again later, beside others that do the same.

A port that was probed is free only until somebody else has probed it, too. So processes draw from
blocks: whoever has bound a block's first port has the block, until its process ends. The clock says
where to look for one: a block that was given back, with a cluster that may start again, is not
drawn for minutes.

A message about a port that is taken names the process that listens on it. Only Linux tells:
/proc/net/tcp lists the sockets by port, /proc/<pid>/fd those of a process. The processes of other
users may be hidden.
"""

import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jepsen_like.real.layout import CLUSTER_FILE, HOST, ClusterError

__all__ = ["free_ports", "holder_of"]

_LISTENS = "0A"
_PROC = Path("/proc")


# Below 32768, where Linux takes the ports of outgoing connections from.
_BLOCKS = range(20_000, 32_700, 50)
_HELD_BLOCKS = 40


def holder_of(port: int, proc: Path = _PROC) -> str:
    """Its name and process id; empty if they cannot be found."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    if not sockets:
        return ""
    for process in proc.iterdir():
        if process.name.isdigit() and not sockets.isdisjoint(_links(process / "fd")):
            return f"{_name(process)}, process {process.name}"
    return ""


def _listening(port: int, proc: Path) -> Iterator[str]:
    """The inodes of the sockets. A line: number, local address, remote address, state, …, inode."""
    for table in ("tcp", "tcp6"):
        for line in _lines(proc / "net" / table)[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _name(process: Path) -> str:
    arguments = (*_lines(process / "cmdline"), "")[0].split("\0")
    return _node_of(arguments) or (*_lines(process / "comm"), "unknown")[0]


def _node_of(arguments: list[str]) -> str:
    """Names a node that `LocalCluster` has started; empty for any other process."""
    if "--config" not in arguments[:-1]:
        return ""
    directory = Path(arguments[arguments.index("--config") + 1]).parent
    if not (directory.parent / CLUSTER_FILE).exists():
        return ""
    return f"node {directory.name} of the cluster in {directory.parent}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _links(directory: Path) -> Iterator[str]:
    try:
        for descriptor in directory.iterdir():
            with suppress(OSError):  # it has been closed meanwhile
                yield os.readlink(descriptor)
    except OSError:  # another user's process, or one that is gone
        return


def free_ports(first: int = 0) -> Iterator[int]:
    """Ports that nobody listens on now: from `first` upwards, or any that no other process draws.

    Raises ClusterError if `first` is taken, or if none is left.
    """
    return _from(first) if first else iter(_OURS.draw, None)


def _from(first: int) -> Iterator[int]:
    refusal = _refusal(first)
    if refusal is not None:
        holder = holder_of(first)
        why = f" by {holder}" if holder else f": {refusal.strerror}"
        raise ClusterError(f"port {first} is taken{why}") from refusal
    yield first
    yield from filter(_is_free, range(first + 1, 1 << 16))
    raise ClusterError(f"no port above {first} is free")


class _Blocks:
    """The blocks of this process. No port is drawn twice while its block is held."""

    def __init__(self) -> None:
        self._guards: deque[int] = deque()  # descriptors, oldest first
        self._left: Iterator[int] = iter(())
        self._turn = 0  # seconds, ahead of the clock if one block was not enough for one

    def draw(self) -> int:
        while True:
            for port in self._left:
                if _is_free(port):
                    return port
            self._left = self._claim()

    def _claim(self) -> Iterator[int]:
        if len(self._guards) == _HELD_BLOCKS:
            os.close(self._guards.popleft())
        self._turn = max(self._turn, int(time.monotonic()))
        for _ in _BLOCKS:
            self._turn += 1
            first = _BLOCKS[self._turn % len(_BLOCKS)]
            with socket.socket() as guard, suppress(OSError):  # another process has it
                guard.bind((HOST, first))
                self._guards.append(guard.detach())
                return iter(range(first + 1, first + _BLOCKS.step))
        raise ClusterError(f"every port from {_BLOCKS.start} to {_BLOCKS.stop} is taken")


def _is_free(port: int) -> bool:
    return _refusal(port) is None


def _refusal(port: int) -> OSError | None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return error
        return None


_OURS = _Blocks()
