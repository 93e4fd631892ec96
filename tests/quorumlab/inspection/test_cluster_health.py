"""The findings of `doctor` about the nodes of a local cluster."""

from typing import Any

import pytest

from quorumlab.inspection.diagnosis import findings_of
from quorumlab.inspection.facts import Level
from tests.quorumlab.pasted import pasted

DIRECTORY = "/clusters/of mine"


def node(node_id: int, state: str) -> dict[str, Any]:
    directory = f"{DIRECTORY}/{node_id}"
    role = state if state in ("leader", "follower", "standalone") else None
    return {"id": node_id, "state": state, "dir": directory, "role": role}


def status(*brokers: str, **changes: Any) -> dict[str, Any]:
    return {
        "design": "quorum",
        "directory": DIRECTORY,
        "active_controller": 101,
        "controllers": [node(101, "leader")],
        "brokers": [node(number, state) for number, state in enumerate(brokers, 1)],
        "zookeepers": [],
        "under_replicated_partitions": 0,
        "offline_partitions": 0,
        "metadata_is_current": True,
        **changes,
    }


def zookeeper(*brokers: str, server: str = "standalone") -> dict[str, Any]:
    return status(
        *brokers,
        design="zk-v1",
        active_controller=None,
        controllers=[],
        zookeepers=[node(1001, server)],
    )


def told(described: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The problems, and the commands that are advised."""
    found = list(findings_of(described))
    problems = [each.text for each in found if each.level is Level.PROBLEM]
    return problems, [" ".join(words) for each in found for words in pasted(each.advice)]


def test_a_cluster_that_is_well_has_no_problem() -> None:
    assert told(status("running", "running")) == ([], [])


def test_a_design_on_zookeeper_that_is_well_has_no_problem() -> None:
    described = zookeeper("running")
    assert told(described) == ([], [])
    assert any("keeps its metadata in ZooKeeper" in each.text for each in findings_of(described))


@pytest.mark.parametrize("state", ["stopped", "dead"])
def test_a_cluster_that_is_down_is_not_fine(state: str) -> None:
    everything = status(state, state, controllers=[node(101, state)], active_controller=None)
    expected = [f"nothing of the cluster in {DIRECTORY} runs"], [f"quorumlab up --dir {DIRECTORY}"]
    assert told(everything) == expected
    assert told(zookeeper(state, server=state)) == expected


def test_each_node_that_is_ill_is_named_with_what_starts_it() -> None:
    problems, commands = told(status("running", "dead", "fenced"))
    assert problems == ["broker 2 is dead", "broker 3 is fenced"]
    assert commands == [f"quorumlab node-start 2 --dir {DIRECTORY}"]
    problems, commands = told(zookeeper("running", server="stopped"))
    assert problems == ["ZooKeeper 1001 is stopped"]
    assert commands == [f"quorumlab up --dir {DIRECTORY}"]


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"active_controller": None}, ["no controller is active"]),
        ({"offline_partitions": 2}, ["2 partitions have no leader"]),
        ({"under_replicated_partitions": 1}, ["1 partitions are under-replicated"]),
        ({"metadata_is_current": False}, ["no node can tell how the partitions are now"]),
    ],
)
def test_nodes_that_are_well_may_make_a_cluster_that_is_not(
    changes: dict[str, Any], problems: list[str]
) -> None:
    assert told(status("running", **changes)) == (problems, [])
