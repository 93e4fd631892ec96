"""Which node `quorumlab status` believes, and when it calls a cluster well."""

from typing import Any

from quorumlab.cluster_status import in_order_of_knowledge, is_healthy

WELL: dict[str, Any] = {
    "design": "quorum",
    "active_controller": 1,
    "controllers": [{"state": "leader"}],
    "brokers": [{"state": "running"}],
    "zookeepers": [],
    "under_replicated_partitions": 0,
    "offline_partitions": 0,
    "metadata_is_current": True,
}


def answers(quorum: dict[str, object], **offsets: int) -> dict[int, dict[str, Any]]:
    return {
        int(node[1:]): {"quorum": quorum, "metadata": {"offset": offset}}
        for node, offset in offsets.items()
    }


def test_in_a_quorum_the_highest_offset_is_the_newest() -> None:
    told = answers({"role": "follower"}, n1=7, n2=9, n3=8)
    assert in_order_of_knowledge(told, active_controller=1) == [2, 3, 1]


def test_in_a_zookeeper_design_the_controller_knows_whatever_others_have_heard() -> None:
    told = answers({"role": "follower", "design": "zk-v3"}, n1=7, n2=9, n3=8)
    assert in_order_of_knowledge(told, active_controller=3)[0] == 3


def test_nobody_is_healthy_of_whom_only_the_past_is_known() -> None:
    assert is_healthy(WELL)
    assert not is_healthy({**WELL, "metadata_is_current": False})
