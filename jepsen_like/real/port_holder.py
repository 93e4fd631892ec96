"""Finds the process that listens on a port of this machine, so that a message can name it.

Only Linux tells: /proc/net/tcp lists the sockets by port, /proc/<pid>/fd those of a process. The
processes of other users may be hidden.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jepsen_like.real.layout import CLUSTER_FILE

__all__ = ["holder_of"]

_LISTENS = "0A"
_PROC = Path("/proc")


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
