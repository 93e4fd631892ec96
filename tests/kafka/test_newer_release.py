"""A quorum of a metadata.version that we do not know yet: our controller follows, and gives way.

Kafka 4.4.0 has one that is not released, 34 (4.5-IV0), where its configuration allows that.
"""

from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import (
    KafkaBesideUs,
    create_topic,
    log_bytes,
    needs_kafka,
    needs_kafka_4_4,
    wait,
)
from tests.kafka.test_interop_mixed import finalized, quorum

pytestmark = [*needs_kafka, needs_kafka_4_4, pytest.mark.long]

SETTINGS = {"unstable.feature.versions.enable": "true", "broker.session.timeout.ms": "6000"}
KAFKAS, OURS = (101, 102, 1), 103
REFUSAL = "unable to lead"
REASON = "because=metadata.version 34: known are up to 33"


def test_our_controller_follows_and_leaves_the_lead_to_kafka(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=2, settings=SETTINGS)
    mixed = KafkaBesideUs(cluster, KAFKAS, line="4.4")
    mixed.format("--release-version", "4.5-IV0")
    broker, ours = cluster.layout.node(1), cluster.layout.node(OURS)
    servers = f"{broker.host}:{broker.port}"
    with mixed.running(*KAFKAS, OURS):
        create_topic(servers, "before", [[1]])
        for _ in range(6):  # until ours has been elected, for either may be
            leader = leader_of_kafkas(mixed)
            mixed.kafka[leader].stop()
            mixed.start(leader)
            leader_of_kafkas(mixed)
            if REFUSAL in ours.log.read_text():
                break
        create_topic(servers, "after", [[1]], is_asked_again=True)
        said = ours.log.read_text()
        cluster.stop(OURS)
        for kafka in mixed.kafka.values():
            kafka.stop()
    assert REFUSAL in said
    assert REASON in said
    assert finalized(cluster, OURS)["metadata.version"] == 34
    logs = [log_bytes(node.data / "__cluster_metadata-0") for node in cluster.layout.controllers]
    longest = max(logs, key=len)
    assert [log for log in logs if not longest.startswith(log)] == []


def leader_of_kafkas(mixed: KafkaBesideUs) -> int:
    """Ours leads for a moment only, and may do so whenever it is looked at."""
    seen: list[int] = []

    def is_kafkas() -> bool:
        seen[:] = [leader for leader in [quorum(mixed, OURS)["leader_id"]] if leader in mixed.kafka]
        return bool(seen)

    wait(is_kafkas, "a leader of Kafka's")
    return seen[0]
