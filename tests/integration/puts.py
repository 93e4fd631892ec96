"""Several clients put to a quorum of controllers; then the logs are checked for what they put.

A put changes a setting of all brokers to a unique value, which can be found in the metadata logs on
disk. A put without an answer may have been done or not: the client goes on with another value.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Self

from benchmarks.peers.quorum import leader_of
from jepsen_like.python_children import python_command
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import ClusterError, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from tests.integration.breakable_node import SEED
from tests.integration.waiting import wait
from wire.batch import headers
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["Puts", "breakable_quorum", "check_logs", "lines_with", "start"]

CLIENTS = 4
_PAUSE_SECONDS = 0.02  # after a refusal, or where nobody answers
_FIRST_VALUE = 1_000_000_000
_BROKER, _ALL, _SETTING, _SET = 4, "", "log.retention.ms", 0
NO_SETTINGS: Mapping[str, str] = {}


@contextmanager
def breakable_quorum(
    directory: Path, seed: int, settings: Mapping[str, str] = NO_SETTINGS
) -> Iterator[LocalCluster]:
    """Three controllers, each a `tests.integration.breakable_node`."""
    cluster = LocalCluster.create(directory, controllers=3, brokers=0, settings=settings)
    cluster.command = python_command("tests.integration.breakable_node")
    try:
        for node in cluster.layout.controllers:
            start(cluster, node, f"{seed}/{node.id}")
        cluster.wait_ready()
        yield cluster
    finally:
        cluster.stop_all()


def start(cluster: LocalCluster, node: NodeLayout, seed: str) -> None:
    """Start the process of a node; `seed` decides when it dies."""
    cluster.environment[node.id] = {SEED: seed}
    cluster.start(node.id)


def lines_with(node: NodeLayout, what: str) -> list[str]:
    """The lines of the node's log that contain `what`."""
    lines = node.log.read_text(errors="replace").splitlines()
    return [line for line in lines if what in line]


class Puts:
    """Clients that put as fast as they can for as long as a `with` lasts."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.acknowledged: list[int] = []  # values
        self.errors: list[BaseException] = []
        self._nodes = cluster.layout.controllers
        self._values = count(_FIRST_VALUE)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(place,)) for place in range(CLIENTS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors, self.errors

    def go_on(self) -> None:
        """Wait until something that is put from now on is acknowledged."""
        before = len(self.acknowledged) + CLIENTS
        wait(lambda: self.errors or len(self.acknowledged) > before, "an acknowledgement")

    def _run(self, place: int) -> None:
        try:
            while not self._stop.is_set():
                place += 1
                self._ask(self._nodes[place % len(self._nodes)])
        except BaseException as error:  # noqa: BLE001 - `__exit__` raises it
            self.errors.append(error)

    def _ask(self, node: NodeLayout) -> None:
        """Put to one node until it refuses."""
        try:
            with Client([(node.host, node.port)], timeout_seconds=2.0) as client:
                while not self._stop.is_set():
                    value = next(self._values)
                    answer = client.ask(put(value), IncrementalAlterConfigsResponse)
                    if any(each.error_code is not ErrorCode.NONE for each in answer.responses):
                        break
                    self.acknowledged.append(value)
        except ClusterError:
            pass
        time.sleep(_PAUSE_SECONDS)


def put(value: int) -> IncrementalAlterConfigsRequest:
    setting = AlterableConfig(name=_SETTING, config_operation=_SET, value=str(value))
    resource = AlterConfigsResource(resource_type=_BROKER, resource_name=_ALL, configs=(setting,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


def check_logs(cluster: LocalCluster, acknowledged: list[int]) -> None:
    """Assert that no log lacks what was acknowledged, and no two differ. Stops the cluster."""
    end_offset = leader_of(cluster)[1].high_watermark
    wait(lambda: _all_have(cluster, end_offset), "everybody has everything")
    assert cluster.stop_all() == []
    logs = [_batches(node) for node in cluster.layout.controllers]
    for log in logs:
        content = b"".join(log.values())
        missing = [value for value in acknowledged if b"%d" % value not in content]
        assert not missing, f"{len(missing)} of {len(acknowledged)} are lost: {missing[:5]}"
        others = [other for other in logs if other is not log]
        for offset, batch in log.items():
            assert all(other.get(offset, batch) == batch for other in others), offset


def _all_have(cluster: LocalCluster, end_offset: int) -> bool:
    voters = leader_of(cluster)[1].current_voters
    return all(voter.log_end_offset >= end_offset for voter in voters)


def _batches(node: NodeLayout) -> dict[int, bytes]:
    """The batches of the node's metadata log, by base offset."""
    found: dict[int, bytes] = {}
    for segment in sorted((node.data / "__cluster_metadata-0").glob("*.log")):
        content = segment.read_bytes()
        for position, header in headers(content):
            found[header.base_offset] = content[position : position + header.size_bytes]
    return found
