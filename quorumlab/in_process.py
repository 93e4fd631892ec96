"""A whole cluster in one process: real sockets and files, one event loop. For tests and examples.

    async with InProcessCluster(directory, controllers=1, brokers=3) as cluster:
        ...  # use cluster.bootstrap_servers with any client, from a thread or this loop
        await cluster.stop(1)
        await cluster.start(1)

Nodes share a loop and the interpreter: for speed and for kill -9 there is
`jepsen_like.real.local_cluster`.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.layout import FAST_SETTINGS, ClusterError, NodeLayout
from jepsen_like.real.shape import Shape
from quorum.core.effects import Stop
from quorumlab.config import node_config, parse_properties
from quorumlab.node import Node
from quorumlab.verbs.format import format_node

__all__ = ["InProcessCluster"]

_POLL_SECONDS = 0.02


class InProcessCluster:
    def __init__(
        self,
        directory: Path,
        *,
        controllers: int = 3,
        brokers: int = 3,
        combined: bool = False,
        proxies: bool = False,
        settings: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`proxies`: nodes and clients meet over a `ProxyMesh`, which must run."""
        shape = Shape(controllers=controllers, brokers=brokers, combined=combined, proxies=proxies)
        self.layout = shape.lay_out(directory, free_ports())
        self.nodes: dict[int, Node] = {}  # those that run
        self._settings = {**FAST_SETTINGS, **(settings or {})}
        self._say = say
        self._ends: dict[int, asyncio.Task[Stop]] = {}
        self._exit = AsyncExitStack()

    @property
    def bootstrap_servers(self) -> str:
        return self.layout.bootstrap_servers

    async def __aenter__(self) -> Self:
        self._tasks = await self._exit.enter_async_context(asyncio.TaskGroup())
        try:
            for node in self.layout.nodes:
                await self._begin(node)
            await self.wait_ready()
        except BaseException:
            await self._stop_all()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        await self._stop_all()
        return await self._exit.__aexit__(kind, error, trace)

    async def start(self, node_id: int) -> None:
        """Start one node that does not run, and wait until it is ready."""
        if node_id in self.nodes:
            raise ClusterError(f"node {node_id} runs already")
        await self._begin(self.layout.node(node_id))
        await self.wait_ready()

    async def stop(self, node_id: int) -> Stop:
        """An orderly stop of one node; returns why it ended."""
        self.nodes[node_id].begin_shutdown()
        return await self._ends[node_id]

    async def wait_ready(self, timeout_seconds: float = 30.0) -> None:
        """Waits until every running node does its work."""
        async with asyncio.timeout(timeout_seconds):
            while not all(node.is_ready for node in self.nodes.values()):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)  # readiness is a state, nobody announces it

    async def _begin(self, node: NodeLayout) -> None:
        config = node_config(parse_properties(self.layout.properties(node, self._settings)))
        format_node(config, self.layout.cluster_id, ignore_formatted=True)
        opened: asyncio.Future[Node] = asyncio.get_running_loop().create_future()
        self._ends[node.id] = self._tasks.create_task(self._live(Node(config, self._say), opened))
        self.nodes[node.id] = await opened

    async def _live(self, node: Node, opened: "asyncio.Future[Node]") -> Stop:
        try:
            async with node:
                opened.set_result(node)
                return await node.run()
        except BaseException as error:
            if not opened.done():
                opened.set_exception(error)
            raise
        finally:
            self.nodes.pop(node.config.node_id, None)

    async def _stop_all(self) -> None:
        """Brokers first, while there is a controller to hear of it."""
        for group in (self.layout.brokers, self.layout.controllers):
            running = [node.id for node in group if node.id in self.nodes]
            for node_id in running:
                self.nodes[node_id].begin_shutdown()
            await asyncio.gather(*(self._ends[node_id] for node_id in running))
