"""Every family of faults on real processes: it bites, it says so, and what it broke is healed."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jepsen_like.faults import Fault, Injected
from jepsen_like.real.injection.registry import injectors
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from tests.integration.waiting import wait

Inject = Callable[..., Injected]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, ProxyMesh]]:
    """Three nodes, each a broker and a controller, with proxies between them."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    cluster = LocalCluster.create(directory, combined=True, proxies=True)
    with ProxyMesh(cluster.layout.links) as mesh:
        try:
            cluster.start_all()
            cluster.wait_ready()
            yield cluster, mesh
        finally:
            mesh.heal()
            cluster.stop_all()


@pytest.fixture
def cluster(three: tuple[LocalCluster, ProxyMesh]) -> Iterator[LocalCluster]:
    """Healthy before and after each test."""
    running, _ = three
    running.wait_ready()
    yield running
    running.wait_ready()


@pytest.fixture
def inject(three: tuple[LocalCluster, ProxyMesh], cluster: LocalCluster) -> Inject:
    known = injectors(*three)

    def strike(kind: str, nodes: Sequence[int], **parameters: Any) -> Injected:
        assert known[kind].why_not() == ""
        return known[kind].inject(Fault(kind=kind, parameters=parameters), nodes)

    return strike


def leaders(cluster: LocalCluster) -> dict[int, int | None]:
    """Whom each node that answers takes for the active controller."""
    pages = {node.id: cluster.ask(node, "/v1/node")[1] for node in cluster.layout.nodes}
    return {node: page["quorum"]["leader_id"] for node, page in pages.items() if page}


def active(cluster: LocalCluster) -> int:
    wait(lambda: len({*leaders(cluster).values()} - {None}) == 1, "one active controller")
    return next(leader for leader in leaders(cluster).values() if leader is not None)


def is_replaced(cluster: LocalCluster, node_id: int) -> bool:
    """Does a majority follow somebody else?"""
    others = [leader for leader in leaders(cluster).values() if leader not in (node_id, None)]
    return len(others) >= 2


def heal(fault: Injected) -> str:
    fault.heal()
    proof = fault.proof()
    assert proof.bit, proof.evidence
    return proof.evidence


def test_killed_controller_is_replaced_and_comes_back(
    cluster: LocalCluster, inject: Inject
) -> None:
    struck = active(cluster)
    kill = inject("kill", [struck])
    wait(lambda: is_replaced(cluster, struck), "another leader")
    assert "SIGKILL" in heal(kill)
    assert struck in cluster.running()


def test_stopped_node_is_started_again(cluster: LocalCluster, inject: Inject) -> None:
    stop = inject("stop", [2])
    assert 2 not in cluster.running()
    assert "stopped" in heal(stop)
    assert 2 in cluster.running()


def test_paused_controller_is_replaced_and_told(cluster: LocalCluster, inject: Inject) -> None:
    struck = active(cluster)
    pause = inject("pause", [struck])
    wait(lambda: is_replaced(cluster, struck), "another leader")
    assert "stood still" in heal(pause)
    wait(lambda: leaders(cluster)[struck] not in (struck, None), "the paused node to follow")


@pytest.mark.parametrize("kind", ["isolate-controller", "partition-one-way"])
def test_isolated_controller_is_replaced(cluster: LocalCluster, inject: Inject, kind: str) -> None:
    struck = active(cluster)
    cut = inject(kind, [struck])
    wait(lambda: is_replaced(cluster, struck), "another leader")
    assert "frames waited" in heal(cut)
    wait(lambda: leaders(cluster)[struck] not in (struck, None), "the isolated node to follow")


@pytest.mark.parametrize("kind", ["partition-ring", "bridge", "delay", "reset", "slow-close"])
def test_fault_of_the_network_bites(cluster: LocalCluster, inject: Inject, kind: str) -> None:
    follower = next(node.id for node in cluster.layout.nodes if node.id != active(cluster))
    fault = inject(kind, [follower], delay_ms=200)
    wait(lambda: fault.proof().bit, "proof")
    heal(fault)


@pytest.mark.parametrize("kind", ["hold-rpc", "drop-rpc", "duplicate-rpc", "reorder-rpc"])
def test_named_request_is_struck(cluster: LocalCluster, inject: Inject, kind: str) -> None:
    fault = inject(kind, [1, 2, 3], apis=["broker_heartbeat"], trigger="times(1)")
    wait(lambda: fault.proof().bit, "proof")
    assert "broker_heartbeat" in heal(fault)


def test_nodes_are_restarted_one_after_the_other(cluster: LocalCluster, inject: Inject) -> None:
    restart = inject("rolling-restart", [1, 2])
    wait(lambda: restart.proof().evidence.count("anew") == 2, "two restarts")
    heal(restart)
