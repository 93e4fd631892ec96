"""The processes of one play: a cluster in a directory of its own, with proxies between its nodes.

Red nodes are started by `jepsen_like.museum.planted_node`, green ones as they ship. Whatever
happens, leaving the rig ends every process.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import await_value
from jepsen_like.real.proxy import ProxyMesh

__all__ = ["Rig", "reaches"]

_POLL_SECONDS = 0.03
_READY_SECONDS = 60.0
_PLANTED = "jepsen_like.museum.planted_node"


def reaches(condition: Callable[[], bool], within_ms: float) -> bool:
    """Does it come to hold in time?"""
    return await_value(condition, within_ms / 1000, pause_seconds=_POLL_SECONDS)


class Rig:
    def __init__(
        self, directory: Path, *, plants: str = "", settings: Mapping[str, str], **shape: Any
    ) -> None:
        """`shape` is as for `LocalCluster.create`."""
        self.cluster = LocalCluster.create(directory, proxies=True, settings=settings, **shape)
        if plants:
            self.cluster.command = (*python_command(_PLANTED), plants, "node")
        self.mesh = ProxyMesh(self.cluster.layout.proxied)
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.mesh)
            stack.callback(self.cluster.kill_all)
            self.cluster.start_all()
            self.cluster.wait_ready(_READY_SECONDS)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    # --- nodes --------------------------------------------------------------------------

    def is_up(self, node_id: int) -> bool:
        return node_id in self.cluster.running()

    def page(self, node_id: int, path: str) -> dict[str, Any]:
        return self.cluster.page(self.cluster.layout.node(node_id), path)

    def start_the_dead(self) -> None:
        for node in self.cluster.layout.nodes:
            if not self.is_up(node.id):
                self.cluster.start(node.id)

    def wipe_partitions(self, node_id: int) -> None:
        """Removes what a node that is down had of topics; the id of its directory stays."""
        data = self.cluster.layout.node(node_id).data
        for path in data.iterdir():
            if path.is_dir() and not path.name.startswith("__cluster_metadata"):
                shutil.rmtree(path)
            elif path.name.endswith("-checkpoint"):
                path.unlink()

    def replace_disk(self, node_id: int) -> None:
        """Removes everything that a node that is down had; its next directory has another id."""
        layout = self.cluster.layout
        node = layout.node(node_id)
        shutil.rmtree(node.data)
        if layout.dynamic:
            command = python_command("quorumlab", "format", "--config", str(node.config))
            command += ["--cluster-id", layout.cluster_id, "--no-initial-controllers"]
            subprocess.run(
                command,
                env=python_environment(),
                check=True,
                capture_output=True,
                timeout=_READY_SECONDS,
            )
