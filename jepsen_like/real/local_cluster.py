"""A whole cluster of real processes on this machine: made, started, watched and broken.

Everything about it lives in its directory, so that any process can come later and go on: the pid
files tell which nodes run, and nothing but their HTTP side is asked how they are.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import Any, Self

from jepsen_like.faults.participants import FIRST_ZOOKEEPER
from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.credentials import NO_CREDENTIALS
from jepsen_like.real.delay_line import DelayLine
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.layout import (
    CLUSTER_FILE,
    CONTROLLED_SHUTDOWN_DEFAULT_MS,
    CONTROLLED_SHUTDOWN_SETTING,
    FAST_SETTINGS,
    FAST_ZOOKEEPER_SETTINGS,
    ClusterError,
    ClusterLayout,
    Link,
    NodeLayout,
)
from jepsen_like.real.pages import PageAccess, ask, page_access
from jepsen_like.real.processes import (
    DirectoryLock,
    ProcessId,
    end,
    is_alive,
    kill,
    last_lines,
    living,
    spawn,
    spawn_forks,
)
from jepsen_like.real.shape import Shape, links_to_zookeeper, refuse_engine
from jepsen_like.real.zookeeper import STOP_SECONDS, ZooKeeper

__all__ = ["Exited", "LocalCluster", "orderly_stop_seconds"]

_POLL_SECONDS = 0.03
_ORDERLY_STOP_SECONDS = 15.0
_LOG_STOP_SECONDS = 0.03  # what syncing a log of many takes, on a slow disk
_LAST_LINES = 12
_CONTROLLED_SHUTDOWN = re.compile(
    rf"^\s*{re.escape(CONTROLLED_SHUTDOWN_SETTING)}\s*[=:]\s*(\d+)\s*$", re.MULTILINE
)
_ZOOKEEPER = "zookeeper"
_DELAY = "zookeeper-delay"
_PREFORK = "quorumlab.prefork"
# numpy, which is never asked for linear algebra, starts no threads for it: only a process of one
# thread can be forked.
_OF_EVERY_NODE = {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Exited:
    """A node's process that is gone although nobody asked it to go."""

    node_id: int
    process: ProcessId
    log: Path
    last_lines: tuple[str, ...]


def _with_zookeeper(wanted: ClusterLayout, ports: Iterator[int], *, delay_ms: int) -> ClusterLayout:
    """Add what brokers connect to: servers of the cluster or others, behind a delay or not."""
    connect = wanted.zookeeper_connect
    if wanted.zookeepers:
        path = wanted.directory / _ZOOKEEPER
        connect = ZooKeeper.create(path, count=wanted.zookeepers, ports=ports).connect
    if delay_ms:
        path = wanted.directory / _DELAY
        servers = connect.split(",")
        connect = DelayLine.create(path, to=servers, delay_ms=delay_ms, ports=ports).connect
    links: tuple[Link, ...] = ()
    if wanted.links and wanted.zookeepers:
        behind = {
            FIRST_ZOOKEEPER + place: int(address.rpartition(":")[2])
            for place, address in enumerate(connect.split(","))
        }
        links = links_to_zookeeper(wanted.brokers, behind, ports)
    return replace(wanted, zookeeper_connect=connect, zookeeper_links=links)


def _fast(shape: Shape, settings: Mapping[str, str] | None) -> Mapping[str, str]:
    fast = FAST_ZOOKEEPER_SETTINGS if shape.has_zookeeper else FAST_SETTINGS
    return {**fast, **(settings or {})}


def orderly_stop_seconds(node: NodeLayout) -> float:
    """Return how long a node may take to stop in order.

    A broker waits for its controller as long as its configuration says. Then the node syncs every
    log that was written to. What cannot be read is no reason not to stop.
    """
    consent_ms = _controlled_shutdown_ms(node) if node.is_broker else 0
    return _ORDERLY_STOP_SECONDS + consent_ms / 1000 + _LOG_STOP_SECONDS * _log_count(node)


def _log_count(node: NodeLayout) -> int:
    try:
        return len(os.listdir(node.data))
    except OSError:
        return 0


def _controlled_shutdown_ms(node: NodeLayout) -> int:
    """What the file says that the node started with; 0 if it has never been started."""
    try:
        told = _CONTROLLED_SHUTDOWN.findall(node.config.read_text())
    except FileNotFoundError:
        return 0
    except (OSError, UnicodeDecodeError):
        told = []
    return int(told[-1]) if told else CONTROLLED_SHUTDOWN_DEFAULT_MS


@contextmanager
def _starting(node: NodeLayout) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ClusterError(f"cannot start node {node.id}: {error}") from error


def _keep(process: ProcessId, node: NodeLayout) -> None:
    """Enter it as the process of a node. If that fails, nobody could end it later: it ends now."""
    try:
        process.save(node.pid_file)
    except BaseException:
        kill(process)
        raise


class LocalCluster:
    """The cluster in one directory. Methods that start or end processes may be called by anyone."""

    command: Sequence[str] = (*python_command("quorumlab"), "node")

    def __init__(self, layout: ClusterLayout, settings: Mapping[str, str] = FAST_SETTINGS) -> None:
        self.layout = layout
        self.settings = settings
        self.environment: dict[int, Mapping[str, str]] = {}  # what a node gets beyond ours
        self.credentials = NO_CREDENTIALS  # of a secured one, once somebody has them
        self.entrance: dict[int, Sequence[str]] = {}  # the command that runs a node's command

    @classmethod
    def create(
        cls,
        directory: Path,
        *,
        first_port: int = 0,
        settings: Mapping[str, str] | None = None,
        zookeeper_delay_ms: int = 0,
        **wanted: Any,
    ) -> Self:
        """Lay out a new cluster, or continue the one that `directory` holds.

        `wanted` are the fields of its `Shape`. Brokers hear what ZooKeepers answer
        `zookeeper_delay_ms` later than these said it.
        """
        directory = directory.resolve()
        shape = Shape(**wanted)
        if (directory / CLUSTER_FILE).exists():
            existing = ClusterLayout.load(directory)
            shape = shape.continuing(existing)
            existing.refuse_changes(shape.lay_out(directory, count(1)))
            refuse_engine(existing)
            return cls(existing, _fast(shape, settings))
        ports = free_ports(first_port)
        layout = shape.lay_out(directory, ports)
        refuse_engine(layout)
        directory.mkdir(parents=True, exist_ok=True)
        if shape.has_zookeeper:
            layout = _with_zookeeper(layout, ports, delay_ms=zookeeper_delay_ms)
        layout.save()
        return cls(layout, _fast(shape, settings))

    @cached_property
    def page_access(self) -> PageAccess | None:
        """Raises ClusterError if the files of a secured cluster are gone."""
        try:
            return page_access(self.layout.security, self.layout.security_files)
        except OSError as error:
            raise ClusterError(f"the pages of its nodes cannot be asked: {error}") from error

    @classmethod
    def open(cls, directory: Path) -> "LocalCluster":
        return cls(ClusterLayout.load(directory.resolve()))

    def lock(self) -> DirectoryLock:
        return DirectoryLock(self.layout.directory)

    def process(self, node: NodeLayout) -> ProcessId | None:
        """The node's living process, if it has one."""
        return living(node.pid_file)

    def start(self, node_id: int) -> ProcessId:
        """Start one node; formats its directory first if that was never done."""
        node = self.layout.node(node_id)
        running = self.process(node)
        if running is not None:
            raise ClusterError(f"node {node_id} runs already, as process {running.pid}")
        with _starting(node):
            arguments = [*self.entrance.get(node_id, ()), *self.command, *self._configured(node)]
            process = spawn(arguments, log=node.log, environment=self._environment(node_id))
            _keep(process, node)
        return process

    def _configured(self, node: NodeLayout) -> list[str]:
        """The options of a node's command, whose configuration is written if there is none."""
        self.configure(node)
        options = ["--config", str(node.config), "--format-as", self.layout.cluster_id]
        if self.layout.dynamic:
            options += ["--initial-controllers", self.layout.initial_controllers]
        if self.layout.release_version:
            options += ["--release-version", self.layout.release_version]
        return options

    def configure(self, node: NodeLayout) -> None:
        """Write the node's configuration, if there is none. It may hold secrets."""
        node.path.mkdir(parents=True, exist_ok=True)
        if not node.config.exists():
            node.config.touch(mode=0o600)
            node.config.write_text(self.layout.properties(node, self.settings))

    def _start_forks(self, nodes: Sequence[NodeLayout]) -> None:
        """Start nodes that differ only in their configuration; their code is loaded once."""
        wanted = []
        for node in nodes:
            with _starting(node):
                wanted.append((["node", *self._configured(node)], node.log))
        forks = spawn_forks(python_command(_PREFORK), wanted, environment=self._environment())
        with closing(forks) as started:
            for node, process in zip(nodes, started, strict=True):
                with _starting(node):
                    _keep(process, node)

    def _is_forked(self, node: NodeLayout) -> bool:
        """Runs it as the shipped node does, in our own environment?"""
        is_its_own = node.id in self.entrance or node.id in self.environment
        return sys.platform == "linux" and self.command is LocalCluster.command and not is_its_own

    @property
    def zookeeper(self) -> ZooKeeper | None:
        """The ZooKeeper that belongs to the cluster."""
        if not self.layout.zookeepers:
            return None
        return ZooKeeper.open(self.layout.directory / _ZOOKEEPER)

    @property
    def delay_line(self) -> DelayLine | None:
        """The delay line before its ZooKeeper, if there is one."""
        return DelayLine.open(self.layout.directory / _DELAY)

    def start_all(self) -> None:
        """Start every node that does not run, and ZooKeeper before them."""
        zookeeper = self.zookeeper
        if zookeeper is not None:
            zookeeper.start_all()
            zookeeper.wait_ready()
        if self.delay_line is not None:
            self.delay_line.start()
        missing = [node for node in self.layout.nodes if self.process(node) is None]
        forked = [node for node in missing if self._is_forked(node)]
        if len(forked) > 1:
            self._start_forks(forked)
            missing = [node for node in missing if node not in forked]
        for node in missing:
            self.start(node.id)

    def kill(self, node_id: int) -> None:
        """SIGKILL: the process gets no chance to say goodbye. Who watches will report the death."""
        kill(self._living(node_id))

    def kill_all(self) -> None:
        """All at once: no node has time to say anything more."""
        for node_id in self.running():
            with suppress(ClusterError):  # it may have ended since
                self.kill(node_id)
        self.kill_zookeeper()

    def kill_zookeeper(self) -> None:
        """Kill all servers, and the delay line before them."""
        zookeeper = self.zookeeper
        for server in () if zookeeper is None else zookeeper.servers:
            process = ProcessId.load(server.pid_file)
            if process is not None:
                kill(process)
                server.pid_file.unlink(missing_ok=True)
        if self.delay_line is not None:
            self.delay_line.stop()

    def stop(self, node_id: int) -> None:
        """An orderly stop; SIGKILL after a while, which is an error and said so."""
        node = self.layout.node(node_id)
        patience_seconds = orderly_stop_seconds(node)
        if not self._end(node, signal.SIGTERM, patience_seconds):
            self._end(node, signal.SIGKILL, 10.0)
            raise ClusterError(
                f"node {node_id} did not stop within {patience_seconds:.0f} s and was killed; "
                f"its last words are in {node.log}"
            )

    def pause(self, node_id: int) -> None:
        """SIGSTOP: it holds its connections and says nothing."""
        os.kill(self._living(node_id).pid, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        os.kill(self._living(node_id).pid, signal.SIGCONT)

    def resume_all(self) -> None:
        for node_id in self.running():
            self.resume(node_id)

    def stop_seconds(self) -> float:
        """How long `stop_all` may take until all have stopped or were killed."""
        waves = ([node for node in wave if self.process(node)] for wave in self._stop_waves())
        seconds = sum(max(map(orderly_stop_seconds, wave), default=0.0) for wave in waves)
        return seconds + (0.0 if self.zookeeper is None else STOP_SECONDS)

    def _stop_waves(self) -> tuple[list[NodeLayout], ...]:
        """Brokers stop first, while there is a controller to hear of it."""
        brokers = list(self.layout.brokers)
        return brokers, [node for node in self.layout.controllers if node not in brokers]

    def stop_all(self, but: Collection[int] = ()) -> list[int]:
        """An orderly stop of all. Returns the ids of nodes that had to be killed."""
        killed: list[int] = []
        for wave in self._stop_waves():
            running = [
                node for node in wave if node.id not in but and self.process(node) is not None
            ]
            for node in running:
                with suppress(ClusterError, ProcessLookupError):  # it may have ended since
                    os.kill(self._living(node.id).pid, signal.SIGTERM)
            deadline = time.monotonic() + max(map(orderly_stop_seconds, running), default=0.0)
            for node in running:
                if not self._end(node, signal.SIGTERM, max(0.1, deadline - time.monotonic())):
                    self._end(node, signal.SIGKILL, 10.0)
                    killed.append(node.id)
        zookeeper = self.zookeeper
        if zookeeper is not None and not but:
            killed += zookeeper.stop_all()
        if self.delay_line is not None and not but:
            self.delay_line.stop()
        return killed

    def exited(self) -> list[Exited]:
        """The nodes whose process is gone although nobody stopped it."""
        gone = []
        for node in self.layout.nodes:
            process = ProcessId.load(node.pid_file)
            if process is not None and not is_alive(process):
                lines = last_lines(node.log, _LAST_LINES, start=process.log_start)
                gone.append(Exited(node.id, process, node.log, tuple(lines)))
        return gone

    def running(self) -> dict[int, ProcessId]:
        found = ((node.id, self.process(node)) for node in self.layout.nodes)
        return {node_id: process for node_id, process in found if process is not None}

    def ask(self, node: NodeLayout, path: str, timeout_seconds: float = 1.0) -> tuple[int, Any]:
        """GET a page of a node's HTTP side: (status, value). Status 0: no answer.

        The value of a page that is no JSON, as `/livez` is none, is None.
        """
        address = (node.host, node.http_port)
        answered = ask(address, path, timeout_seconds=timeout_seconds, access=self.page_access)
        return answered.status, answered.page

    def page(self, node: NodeLayout, path: str, timeout_seconds: float = 1.0) -> dict[str, Any]:
        """GET a JSON page of a node; {} if it does not answer with one."""
        status, page = self.ask(node, path, timeout_seconds)
        return page if status == HTTPStatus.OK and isinstance(page, dict) else {}

    def wait_ready(
        self,
        timeout_seconds: float = 60.0,
        nodes: tuple[int, ...] | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Until every node, or each of `nodes`, is ready. Raises ClusterError with the reason."""
        wanted = [node for node in self.layout.nodes if nodes is None or node.id in nodes]
        waiting = {node.id: "it has not said a word yet" for node in wanted}
        deadline = time.monotonic() + timeout_seconds
        while waiting:
            for node in wanted:
                if node.id in waiting:
                    self._ask_whether_ready(node, waiting)
            for gone in self.exited():
                if gone.node_id in waiting:
                    lines = "\n  ".join(gone.last_lines)
                    raise ClusterError(f"node {gone.node_id} ended while starting:\n  {lines}")
            if waiting and time.monotonic() > deadline:
                reasons = "".join(
                    f"\n  node {node_id}: {reason}; see {self.layout.node(node_id).log}"
                    for node_id, reason in waiting.items()
                )
                raise ClusterError(f"not ready after {timeout_seconds:.0f} s:{reasons}")
            reason = next((f"; node {i}: {why}" for i, why in waiting.items()), "")
            progress(f"{len(wanted) - len(waiting)} of {len(wanted)} ready{reason}")
            time.sleep(_POLL_SECONDS)

    def _ask_whether_ready(self, node: NodeLayout, waiting: dict[int, str]) -> None:
        """`waiting` has the reasons of those that are not."""
        status, told = self.ask(node, "/readyz")
        if status == HTTPStatus.OK:
            del waiting[node.id]
        elif isinstance(told, dict) and "error" in told:
            waiting[node.id] = told["error"]

    def _environment(self, node_id: int | None = None) -> dict[str, str]:
        """Without settings meant for another node."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
        own = {} if node_id is None else self.environment.get(node_id, {})
        return {**python_environment(kept), **_OF_EVERY_NODE, **own}

    def _living(self, node_id: int) -> ProcessId:
        process = self.process(self.layout.node(node_id))
        if process is None:
            raise ClusterError(f"node {node_id} is not running")
        return process

    def _end(self, node: NodeLayout, how: signal.Signals, timeout_seconds: float) -> bool:
        process = ProcessId.load(node.pid_file)
        if process is None:
            return True
        node.pid_file.unlink(missing_ok=True)  # first: its end is wanted, not a failure
        ended = False
        try:
            ended = end(process, how=how, timeout_seconds=timeout_seconds)
        finally:  # who was interrupted while waiting does not know either
            if not ended:
                process.save(node.pid_file)
        return ended
