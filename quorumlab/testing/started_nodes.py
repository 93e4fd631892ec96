"""The nodes of a cluster for tests, as processes or within this one, behind proxies on every link.

Both kinds are started by what `quorumlab up` and the examples use. Entering one returns when all
nodes are ready; leaving it ends them at once. A process is really killed and stopped. A node of
this process cannot be: its links are broken instead, which is all that the others would see. It
then leaves in good order, or its own clock goes on; `ProcessNodes` are for tests of that.
"""

import asyncio
import subprocess
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from jepsen_like.faults.cut_links import Direction, around
from jepsen_like.faults.fault import Course, Fault, InForce, Proof, in_force
from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.impairments import Cut, Refuse
from jepsen_like.real.injection.network_faults import groups_of
from jepsen_like.real.injection.process_faults import down, kill, pause
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from jepsen_like.real.tampering import Tamper
from quorumlab.in_process import InProcessCluster

__all__ = ["InProcessNodes", "Nodes", "ProcessNodes", "Wanted"]

_READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """So many nodes, with settings beyond those of local clusters, and where their data is."""

    directory: Path
    controllers: int
    brokers: int
    settings: Mapping[str, str]
    tamper: Tamper


class Nodes(Protocol):
    layout: ClusterLayout
    mesh: ProxyMesh

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...

    def kill(self, nodes: Sequence[int]) -> InForce:
        """Healing starts them again."""

    def pause(self, nodes: Sequence[int]) -> InForce:
        """They hold their connections and say nothing, until the fault heals."""

    def wait_ready(self) -> None:
        """Raises ClusterError with the reason, in the end."""

    def ended(self) -> list[str]:
        """The nodes that ended although nobody ended them, and what they said last."""


@contextmanager
def _ended_with_us(directory: Path) -> Iterator[None]:
    """Stops the nodes in `directory` if this process ends without leaving, even by SIGKILL.

    A shell waits for the end of a pipe that only this process holds. It needs no `up` that lives.
    """
    down = python_command("quorumlab", "down", "--dir", str(directory))
    guard = subprocess.Popen(  # noqa: S603  # our own program
        ["/bin/sh", "-c", 'cat; exec "$@"', "sh", *down],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a terminal's Ctrl-C is for pytest
        env=python_environment(),
    )
    with guard:
        try:
            yield
        finally:
            guard.kill()


class ProcessNodes:
    def __init__(self, wanted: Wanted) -> None:
        self._cluster = LocalCluster.create(
            wanted.directory,
            controllers=wanted.controllers,
            brokers=wanted.brokers,
            settings=wanted.settings,
            proxies=True,
        )
        self.layout = self._cluster.layout
        self.mesh = ProxyMesh(self.layout.links, tamper=wanted.tamper)
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(_ended_with_us(self.layout.directory))
            stack.enter_context(self._cluster.lock())
            stack.enter_context(self.mesh)
            stack.callback(self._cluster.kill_all)
            self._cluster.start_all()
            self.wait_ready()
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def kill(self, nodes: Sequence[int]) -> InForce:
        return down(self._cluster, kill, Fault(kind="kill"), nodes)

    def pause(self, nodes: Sequence[int]) -> InForce:
        if not Path("/proc/self/fd").exists():
            raise ClusterError("only /proc shows that a process stands still: use in-process nodes")
        return pause(self._cluster, Fault(kind="pause"), nodes)

    def wait_ready(self) -> None:
        self._cluster.wait_ready(_READY_SECONDS)

    def ended(self) -> list[str]:
        return [
            "\n  ".join((f"node {gone.node_id} ended by itself:", *gone.last_lines))
            for gone in self._cluster.exited()
        ]


class InProcessNodes:
    """The nodes share a thread of their own. What they say is in `nodes.log` of the directory."""

    def __init__(self, wanted: Wanted) -> None:
        wanted.directory.mkdir(parents=True, exist_ok=True)
        self._log = wanted.directory / "nodes.log"
        self._cluster = InProcessCluster(
            wanted.directory,
            controllers=wanted.controllers,
            brokers=wanted.brokers,
            proxies=True,
            settings=wanted.settings,
            say=self._say,
        )
        self.layout = self._cluster.layout
        self.mesh = ProxyMesh(self.layout.links, tamper=wanted.tamper)
        self._thread = threading.Thread(target=self._run, name="nodes", daemon=True)
        self._started: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event

    def __enter__(self) -> Self:
        self.mesh.__enter__()
        self._thread.start()
        try:
            self._started.result(_READY_SECONDS)
        except BaseException:
            self.mesh.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(_READY_SECONDS)
        self.mesh.__exit__()

    def kill(self, nodes: Sequence[int]) -> InForce:
        return self._down(nodes)

    def pause(self, nodes: Sequence[int]) -> InForce:
        return self._silence(nodes)

    def wait_ready(self) -> None:
        self._call(self._cluster.wait_ready(_READY_SECONDS))

    def ended(self) -> list[str]:
        if self._started.done() and not self._thread.is_alive():
            return [f"the nodes of this process ended by themselves: see {self._log}"]
        return []

    @in_force
    def _down(self, nodes: Sequence[int]) -> Course:
        refused = self.mesh.impose(Refuse(), self._around(nodes))
        for node_id in nodes:
            self._call(self._cluster.stop(node_id))
        yield nodes
        self.mesh.lift(refused)
        for node_id in nodes:
            self._call(self._cluster.start(node_id))
        return [f"node {node_id} ended behind broken links" for node_id in nodes]

    @in_force
    def _silence(self, nodes: Sequence[int]) -> Course:
        cut = self.mesh.impose(Cut(), self._around(nodes))
        yield nodes
        self.mesh.lift(cut)
        return Proof(bit=cut.is_proven, evidence=cut.describe())

    def _around(self, nodes: Sequence[int]) -> Sequence[Direction]:
        fault = Fault(kind="partition", parameters={"clients": True})
        return around(groups_of(self.layout), fault, nodes)

    def _say(self, line: str) -> None:
        with self._log.open("a") as log:
            log.write(line + "\n")

    def _call(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_READY_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001  # for the thread that waits
            self._say(f"{type(error).__name__}: {error}")
            if not self._started.done():
                self._started.set_exception(error)

    async def _live(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with self._cluster:
            self._started.set_result(None)
            await self._over.wait()
