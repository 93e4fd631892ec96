"""Nodes in network namespaces: packets get lost between them, and nothing is left behind."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jepsen_like.faults.fault import Fault, InForce, Injector
from jepsen_like.real.injection.local_injectors import injectors, prepared
from jepsen_like.real.injection.namespaces import free_network, why_no_namespaces
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from tests.integration.waiting import wait
from tests.started import started

pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(why_no_namespaces() != "", reason=why_no_namespaces()),
]
Inject = Callable[..., InForce]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, Inject]]:
    """Three nodes, each a broker and a controller, each in a namespace."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    network = free_network()
    cluster = LocalCluster.create(directory, combined=True, network=network)
    with prepared(cluster, ["netns-partition"]) as gear, ProxyMesh(()) as mesh, started(cluster):
        yield cluster, injecting(injectors(cluster, mesh, gear))
    assert not namespaces_of(network)
    assert not Path("/sys/class/net", f"ql-{network}").exists()


def injecting(known: dict[str, Injector]) -> Inject:
    def inject(kind: str, nodes: list[int], **parameters: object) -> InForce:
        assert known[kind].why_not == ""
        return known[kind].inject(Fault(kind=kind, parameters=parameters), nodes)

    return inject


def namespaces_of(network: str) -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if f"-{network}" in line]


@pytest.fixture
def cluster(made: tuple[LocalCluster, Inject]) -> Iterator[LocalCluster]:
    """Healthy before and after each test."""
    made[0].wait_ready()
    yield made[0]
    made[0].wait_ready()


@pytest.fixture
def inject(made: tuple[LocalCluster, Inject]) -> Inject:
    return made[1]


def leaders(cluster: LocalCluster) -> dict[int, int | None]:
    """Whom each node takes for the active controller: HTTP gets through whatever is cut."""
    pages = {node.id: cluster.ask(node, "/v1/node")[1] for node in cluster.layout.nodes}
    return {node: page["quorum"]["leader_id"] for node, page in pages.items() if page}


def active(cluster: LocalCluster) -> int:
    wait(lambda: len({*leaders(cluster).values()} - {None}) == 1, "one active controller")
    return next(leader for leader in leaders(cluster).values() if leader is not None)


def is_replaced(cluster: LocalCluster, node_id: int) -> bool:
    others = [leader for leader in leaders(cluster).values() if leader not in (node_id, None)]
    return len(others) >= 2


@pytest.mark.parametrize("kind", ["netns-partition", "netns-one-way"])
def test_controller_whose_packets_are_lost_is_replaced(
    cluster: LocalCluster, inject: Inject, kind: str
) -> None:
    target = active(cluster)
    cut = inject(kind, [target])
    wait(lambda: is_replaced(cluster, target), "another leader")
    cut.heal()
    assert cut.proof().bit
    assert cut.proof().evidence.endswith("packets were dropped")
    wait(lambda: leaders(cluster).get(target) not in (target, None), "the target node to follow")


def test_client_that_is_cut_off_too_gets_no_answer_to_its_attempts(
    cluster: LocalCluster, inject: Inject
) -> None:
    broker = cluster.layout.node(2)
    cut = inject("netns-partition", [2], clients=True)
    with pytest.raises(TimeoutError):
        socket.create_connection((broker.host, broker.port), timeout=0.3)
    assert cluster.ask(broker, "/livez")[0] == 200, "whoever watches the run sees it"
    cut.heal()
    socket.create_connection((broker.host, broker.port), timeout=5.0).close()


def test_lost_packets_are_sent_again(cluster: LocalCluster, inject: Inject) -> None:
    target = next(node.id for node in cluster.layout.nodes if node.id != active(cluster))

    def is_lost() -> bool:
        loss = inject("netns-loss", [target], percent=20)
        time.sleep(0.5)
        loss.heal()
        return loss.proof().bit

    wait(is_lost, "a lost packet")
