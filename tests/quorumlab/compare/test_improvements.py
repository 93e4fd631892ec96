"""Each improvement is measured on and off, in the same experiment, with nothing else changed."""

import socket

import pytest

from jepsen_like.real.layout import ClusterError
from quorumlab.compare.experiments import EXPERIMENTS, MATRIX
from quorumlab.compare.flood import CONNECTIONS, Flood
from quorumlab.compare.improvements import of_improvements
from quorumlab.compare.results import CellKey
from quorumlab.compare.subjects import Subject, settings_of, subject_named
from quorumlab.config import node_config
from wire.zk.designs import DESIGNS
from wire.zk.switches import SWITCHES, switched_off

KEYS = of_improvements([100, 10], DESIGNS)


@pytest.mark.parametrize("name", SWITCHES)
def test_improvement_is_measured_on_and_off_in_the_same_experiments(name: str) -> None:
    off = [key for key in KEYS if subject_named(key.subject).without == name]
    assert off
    for key in off:
        subject = subject_named(key.subject)
        assert any(
            (each.subject, each.experiment, each.partitions)
            == (subject.design, key.experiment, key.partitions)
            for each in KEYS
        )
        assert not EXPERIMENTS[key.experiment].why_not(subject)
        assert " " not in key.file_name


def test_each_cell_is_planned_once_and_only_of_the_designs_that_are_asked_for() -> None:
    assert len(set(KEYS)) == len(KEYS)
    assert {key.partitions for key in KEYS} == {10, 100}
    assert {key.subject for key in of_improvements([10], ["zk-kip497"])} == {
        "zk-kip497",
        "zk-kip497 without guarded-writes",
    }


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_nodes_of_a_subject_are_started_with_its_switch_off(key: CellKey) -> None:
    subject = subject_named(key.subject)
    assert subject_named(subject.name) == subject
    given = {
        "broker.id": "1",
        "zookeeper.connect": "h:1",
        "listeners": "PLAINTEXT://:0",
        "quorumlab.design": subject.design,
        **settings_of(subject, "equal"),
    }
    design = node_config(given).design
    assert design is not None
    assert ",".join(switched_off(design)) == subject.without


def test_experiments_that_are_for_improvements_alone_are_not_in_the_matrix() -> None:
    assert set(EXPERIMENTS) - set(MATRIX) == {"crash-in-a-flood", "broker-bounce"}
    bounce = EXPERIMENTS["broker-bounce"]
    assert "no ZooKeeper" in bounce.why_not(Subject(design="quorum"))
    assert "replicas elect" in bounce.why_not(Subject(design="zk-v1"))


def flood_that_ends(node: socket.socket) -> None:
    with Flood(node.getsockname()[1]) as flood:
        node.accept()[0].close()
        flood._thread.join(5)


def test_flood_that_a_node_has_ended_is_not_taken_for_one() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS) as node,
        pytest.raises(ClusterError, match="the flood has ended early"),
    ):
        flood_that_ends(node)
