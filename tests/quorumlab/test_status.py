"""Which node `quorumlab status` believes, and when it calls a cluster well."""

from pathlib import Path
from typing import Any

import pytest

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import ProcessId
from quorumlab.cli import main
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


@pytest.mark.parametrize(
    ("offset", "told"),
    [
        (-1, "partitions are not known: no node that answers has read the metadata\n"),
        (7, "0 partitions, 0 under-replicated, 0 without a leader, as last known: no node can"),
    ],
)
def test_of_what_no_node_has_read_there_are_no_numbers(
    offset: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    metadata = {"offset": offset, "partitions": 0, "is_current": False}
    quorum = {"role": "unattached", "epoch": 1, "leader_id": None, "is_voter": False}
    page = {"quorum": quorum, "broker": {"state": "starting"}, "metadata": metadata}

    def ask(_: LocalCluster, _node: object, path: str, *_more: object) -> tuple[int, Any]:
        return 200, metadata if path == "/v1/metadata" else page

    monkeypatch.setattr(LocalCluster, "ask", ask)
    monkeypatch.setattr(LocalCluster, "running", lambda _: {2: ProcessId(1, "now")})
    LocalCluster.create(tmp_path, controllers=1, brokers=2)
    assert main(["status", "--dir", str(tmp_path)]) == 3
    assert told in capsys.readouterr().out


def test_status_says_what_is_turned_off_on_any_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quorum = {"design": "zk-redesign", "role": "follower", "epoch": 1, "leader_id": None}
    off: dict[int, list[str]] = {1: ["generation-check"], 2: ["batched-commands"]}

    def page(_: LocalCluster, node: NodeLayout, *_more: object) -> dict[str, Any]:
        told = {**quorum, "without": off[node.id]}
        return {"quorum": told, "broker": {"state": "running"}, "metadata": {}, "node_id": node.id}

    monkeypatch.setattr(LocalCluster, "page", page)
    monkeypatch.setattr(LocalCluster, "running", lambda _: dict.fromkeys(off, ProcessId(1, "now")))
    LocalCluster.create(tmp_path, brokers=2, design="zk-redesign", zookeeper_connect="h:1")
    assert main(["status", "--dir", str(tmp_path)]) == 3
    told = capsys.readouterr().out
    assert "design zk-redesign, without batched-commands, generation-check\n" in told
    off.update({1: [], 2: []})
    assert main(["status", "--dir", str(tmp_path)]) == 3
    assert "design zk-redesign\n" in capsys.readouterr().out


def test_watch_tells_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alive = dict.fromkeys((1, 2, 101), ProcessId(1, "now"))

    def page(_: LocalCluster, node: NodeLayout, *_more: object) -> dict[str, Any]:
        broker = {"state": "running"} if node.is_broker else None
        role = "leader" if node.is_controller else "observer"
        quorum = {"role": role, "epoch": 1, "leader_id": 101}
        return {"quorum": quorum, "broker": broker, "metadata": {}, "node_id": node.id}

    def slept(_: float) -> None:
        if 2 not in alive:
            raise KeyboardInterrupt
        del alive[2]

    monkeypatch.setattr(LocalCluster, "page", page)
    monkeypatch.setattr(LocalCluster, "running", lambda _: dict(alive))
    monkeypatch.setattr("quorumlab.verbs.status.time.sleep", slept)
    LocalCluster.create(tmp_path, controllers=1, brokers=2)
    assert main(["status", "--watch", "--dir", str(tmp_path)]) == 130
    told = [line.partition("  ")[2] for line in capsys.readouterr().out.splitlines()]
    assert told[:4] == [
        "active controller: 101",
        "controller 101: leader",
        "broker 1: running",
        "broker 2: running",
    ]
    assert told[-1].startswith("broker 2: ")
    assert told[-1].endswith(" (was running)")
