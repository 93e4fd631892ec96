"""A metadata log that is compacted all the time: who was away, or begins anew, catches up."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab import cluster_status as status
from tests.integration.waiting import wait
from tests.started import started

pytestmark = pytest.mark.extra  # writes until logs are cut, in five processes

SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "10000",
    "metadata.max.retention.bytes": "20000",
    "metadata.log.segment.bytes": "10000",
}
PARTITIONS = 50  # a topic's; about 5 kB of records


@pytest.fixture
def compacting(tmp_path: Path) -> Iterator[LocalCluster]:
    with started(
        LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=2, settings=SMALL)
    ) as running:
        yield running


def quorum(cluster: LocalCluster, node: NodeLayout) -> dict[str, Any]:
    code, page = cluster.ask(node, "/v1/node")
    assert code == 200, page
    facts: dict[str, Any] = page["quorum"]
    return facts


def begins_after(cluster: LocalCluster, node: NodeLayout, offset: int) -> bool:
    """Does its log?"""
    return bool(quorum(cluster, node)["log_start_offset"] > offset)


def create_topics(admin: AdminClient, names: list[str]) -> None:
    for name in names:
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(15)


def topics_of(broker: NodeLayout) -> set[str]:
    admin = AdminClient({"bootstrap.servers": f"{broker.host}:{broker.port}"})
    return set(admin.list_topics(timeout=10).topics)


def test_who_is_too_far_behind_catches_up_by_snapshots(compacting: LocalCluster) -> None:
    layout = compacting.layout
    active = int(status.describe(compacting)["active_controller"])
    standby = next(node for node in layout.controllers if node.id != active)
    first, second = layout.brokers
    compacting.kill(standby.id)
    known = quorum(compacting, layout.node(active))["log_end_offset"]  # more than it has
    compacting.stop(second.id)  # in good order: clients shall not look for it
    shutil.rmtree(second.data / "__cluster_metadata-0")

    names = [f"t-{number}" for number in range(8)]
    admin = AdminClient({"bootstrap.servers": f"{first.host}:{first.port}"})
    create_topics(admin, names)
    while not begins_after(compacting, layout.node(active), known):
        names.append(f"t-{len(names)}")
        create_topics(admin, names[-1:])

    compacting.start(standby.id)
    compacting.start(second.id)
    compacting.wait_ready()
    assert topics_of(second) >= set(names)
    for node in (standby, second):
        wait(partial(begins_after, compacting, node, known), f"node {node.id} has a snapshot")
        assert "snapshot_adopted" in node.log.read_text(), node.id
        assert "snapshot_loaded" in node.log.read_text(), node.id

    # Whoever was away counts in the quorum, and who led begins anew at a snapshot of its own.
    compacting.kill(active)
    create_topics(AdminClient({"bootstrap.servers": f"{second.host}:{second.port}"}), ["later"])
    compacting.start(active)
    compacting.wait_ready()
    assert "snapshot_loaded" in layout.node(active).log.read_text()
    assert status.is_healthy(status.describe(compacting)), status.describe(compacting)
