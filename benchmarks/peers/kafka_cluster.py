"""A whole cluster of Apache Kafka, from jars, in the layout that a cluster of ours would have."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.peers.kafka import JVM_OPTIONS, RELEASE
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.verbs.secured_cluster import secure
from tests.kafka.kafka_jars import JavaServer, format_storage, missing_reason

__all__ = ["KafkaCluster"]

_HEAP = "1g"  # what its start script gives a broker
_PATIENCE_SECONDS = 600.0


class KafkaCluster:
    """With the settings and the secrets of `quorumlab up`; three of each role if not told more.

    Controllers of a secured one start from what `up` formats: the administrator is in there.
    """

    name = "kafka"

    def __init__(self, directory: Path, **wanted: Any) -> None:
        """`wanted` are fields of its Shape."""
        cluster = LocalCluster.create(directory, **wanted)
        secure(cluster)
        self.layout = layout = cluster.layout
        self.brokers = tuple(node.id for node in layout.brokers)
        self.controllers = tuple(node.id for node in layout.controllers)
        self.servers = layout.bootstrap_servers
        self._servers: dict[int, JavaServer] = {}
        for node in layout.nodes:
            node.path.mkdir(parents=True, exist_ok=True)
            node.config.write_text(layout.properties(node, cluster.settings))
            self._servers[node.id] = JavaServer(
                "kafka.Kafka",
                [str(node.config)],
                node.log,
                heap=_HEAP,
                jvm_options=JVM_OPTIONS,
                ready_timeout=_PATIENCE_SECONDS,
                stop_timeout=_PATIENCE_SECONDS,
            )
        configs = [node.config for node in layout.nodes]
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(partial(_format, layout.cluster_id), configs))

    @staticmethod
    def missing() -> str | None:
        return missing_reason()

    def start(self, node_ids: Sequence[int]) -> None:
        for node_id in node_ids:
            self._servers[node_id].start()
        for node_id in node_ids:
            self._servers[node_id].wait_ready()

    def stop(self, node_ids: Sequence[int]) -> None:
        with ThreadPoolExecutor(max_workers=len(node_ids)) as pool:
            list(pool.map(lambda node_id: self._servers[node_id].stop(), node_ids))

    def kill(self, node_id: int) -> None:
        self._servers[node_id].kill()

    def pid(self, node_id: int) -> int:
        return self._servers[node_id].pid

    def close(self) -> None:
        for server in self._servers.values():
            server.kill()


def _format(cluster_id: str, config: Path) -> None:
    format_storage(config, cluster_id, "--ignore-formatted", *RELEASE)
