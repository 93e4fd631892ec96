"""Findings about this machine apart from a cluster: installation, disk, processes, ports."""

import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jepsen_like.installation import ROOT, command, install_command
from jepsen_like.real.java import java_of_wheel, java_version, javas_of_machine
from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab import __version__
from quorumlab.inspection.facts import Finding, Level
from quorumlab.inspection.target import is_whole

__all__ = [
    "RunningNode",
    "clusters_in",
    "disk_finding",
    "installation_findings",
    "port_findings",
    "process_findings",
    "running_nodes",
]

_PROCESSES = Path("/proc")
_CONFIG = b"--config"
_JAVA_LEAST = 17  # for Spark 4 and the ZooKeeper that comes with it
_FREE_BYTES_LEAST = 1 << 30
_EXTRAS = (  # what it is for, the extra that brings it, its package
    ("the ZooKeeper designs", "zk", "kazoo"),
    ("checks and sweeps on Spark", "spark", "pyspark"),
    ("reports as PNG", "png", "resvg_py"),
)


def installation_findings() -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding(Level.FINE, f"quorumlab {__version__} on Python {python}, in {ROOT}")
    for purpose, extra, package in _EXTRAS:
        try:
            found = version(package)
        except PackageNotFoundError:
            advice = f"{install_command(extra)} brings it"
            yield Finding(Level.FINE, f"{package} is not installed: it is for {purpose}", advice)
        else:
            yield Finding(Level.FINE, f"{package} {found}, for {purpose}")
    yield _java()


def _java() -> Finding:
    wheel = java_of_wheel()
    for java in (*javas_of_machine(), *([wheel] if wheel else ())):
        release = java_version(java)
        if release >= _JAVA_LEAST:
            return Finding(Level.FINE, f"Java {release}, for ZooKeeper and Spark: {java}")
    return Finding(
        Level.FINE,
        f"no Java of release {_JAVA_LEAST} or newer, which ZooKeeper and Spark need",
        f"{install_command('zk')} brings one",
    )


def disk_finding(directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    told = f"{free / (1 << 30):.1f} GiB free in {directory}"
    if free < _FREE_BYTES_LEAST:
        return Finding(Level.WARNING, told, "brokers stop when a disk is full: make room")
    return Finding(Level.FINE, told)


def clusters_in(directory: Path) -> list[Path]:
    """The whole clusters in a directory, or the one that it is."""
    if is_whole(directory):
        return [directory]
    return sorted(child for child in directory.iterdir() if child.is_dir() and is_whole(child))


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A process that runs a node on this machine."""

    pid: int
    config: Path

    @property
    def cluster(self) -> Path:
        """Where its cluster lies, if quorumlab started it."""
        return self.config.parent.parent


def running_nodes() -> list[RunningNode]:
    """Nodes of this machine, as far as it tells: where there is no /proc, none."""
    return sorted(filter(None, map(_node, _PROCESSES.glob("[0-9]*"))), key=lambda node: node.pid)


def _node(process: Path) -> RunningNode | None:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return None  # it has ended, or is somebody else's
    is_ours = any(word.endswith(b"quorumlab") for word in words) and b"node" in words
    if not is_ours or _CONFIG not in words[:-1]:
        return None
    config = Path(words[words.index(_CONFIG) + 1].decode(errors="surrogateescape"))
    return RunningNode(int(process.name), config)


def process_findings(nodes: Sequence[RunningNode], here: Sequence[Path]) -> Iterator[Finding]:
    """Those that no cluster in `here` knows."""
    ours = {cluster.resolve() for cluster in here}
    elsewhere: dict[Path, int] = {}
    for node in nodes:
        if not node.config.exists():
            text = f"process {node.pid} runs a node whose configuration is gone: {node.config}"
            yield Finding(Level.PROBLEM, text, f"`kill {node.pid}` ends it")
        elif node.cluster.resolve() not in ours:
            elsewhere[node.cluster] = elsewhere.get(node.cluster, 0) + 1
    for cluster, count in sorted(elsewhere.items()):
        text = f"{count} node{'s' if count > 1 else ''} of another cluster: {cluster}"
        advice = f"`{command('doctor', cluster)}` looks at it" if is_whole(cluster) else ""
        yield Finding(Level.FINE, text, advice)


def port_findings(directory: Path) -> Iterator[Finding]:
    """The ports of nodes that do not run, which others have."""
    layout = ClusterLayout.load(directory.resolve())
    alive = LocalCluster(layout).running()
    for node in layout.nodes:
        if node.id in alive:
            continue
        for port in sorted({*filter(None, (node.port, node.controller_port, node.http_port))}):
            if _is_taken(node.host, port):
                yield Finding(
                    Level.PROBLEM,
                    f"port {port} of node {node.id} is in use by another process",
                    "end that, or the node cannot start",
                )


def _is_taken(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False
