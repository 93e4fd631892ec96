"""Every family of faults on real processes: it bites, it says so, and what it broke is healed."""

import os
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.faults.fault import Fault, InForce, Injector, Proof
from jepsen_like.real.injection.clocks import why_no_clock
from jepsen_like.real.injection.filesystems import why_no_disks
from jepsen_like.real.injection.local_injectors import injectors, prepared
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from tests.integration.waiting import wait

pytestmark = pytest.mark.extra  # a cluster behind proxies that is broken 23 times

Inject = Callable[..., InForce]


needs_disks = pytest.mark.skipif(why_no_disks() != "", reason=why_no_disks())
needs_clock = pytest.mark.skipif(why_no_clock() != "", reason=why_no_clock())


@dataclass(frozen=True, slots=True)
class Rig:
    cluster: LocalCluster
    known: Mapping[str, Injector]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Three nodes, each a broker and a controller, with proxies between them and own disks."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    cluster = LocalCluster.create(directory, combined=True, first_voters=3, proxies=True)
    with (
        prepared(cluster, ["full-disk", "clock-jump"]) as gear,
        ProxyMesh(cluster.layout.links) as mesh,
    ):
        try:
            cluster.start_all()
            cluster.wait_ready()
            yield Rig(cluster, injectors(cluster, mesh, gear))
        finally:
            mesh.heal()
            cluster.stop_all()


@pytest.fixture
def cluster(rig: Rig) -> Iterator[LocalCluster]:
    """Healthy before and after each test."""
    rig.cluster.wait_ready()
    yield rig.cluster
    rig.cluster.wait_ready()


@pytest.fixture
def inject(rig: Rig, cluster: LocalCluster) -> Inject:
    known = rig.known

    def strike(kind: str, nodes: Sequence[int], **parameters: Any) -> InForce:
        assert known[kind].why_not == ""
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


def heal(fault: InForce) -> str:
    fault.heal()
    proof = fault.proof()
    assert proof.bit, proof.evidence
    return proof.evidence


def until_it_bites(strike: Callable[[], InForce]) -> str:
    """Injected again, as the nemesis does, until it bites; the evidence."""
    proofs: list[Proof] = []

    def bites() -> bool:
        fault = strike()
        time.sleep(0.5)
        fault.heal()
        proofs.append(fault.proof())
        return proofs[-1].bit

    wait(bites, "proof")
    return proofs[-1].evidence


def test_killed_controller_is_replaced_and_comes_back(
    cluster: LocalCluster, inject: Inject
) -> None:
    target = active(cluster)
    kill = inject("kill", [target])
    wait(lambda: is_replaced(cluster, target), "another leader")
    assert "SIGKILL" in heal(kill)
    assert target in cluster.running()


def test_stopped_node_is_started_again(cluster: LocalCluster, inject: Inject) -> None:
    stop = inject("stop", [2])
    assert 2 not in cluster.running()
    assert "stopped" in heal(stop)
    assert 2 in cluster.running()


def test_paused_controller_is_replaced_and_told(cluster: LocalCluster, inject: Inject) -> None:
    target = active(cluster)
    pause = inject("pause", [target])
    wait(lambda: is_replaced(cluster, target), "another leader")
    assert "stood still" in heal(pause)
    wait(lambda: leaders(cluster).get(target) not in (target, None), "the paused node to follow")


@pytest.mark.parametrize("kind", ["isolate-controller", "partition-one-way"])
def test_isolated_controller_is_replaced(cluster: LocalCluster, inject: Inject, kind: str) -> None:
    target = active(cluster)
    cut = inject(kind, [target])
    wait(lambda: is_replaced(cluster, target), "another leader")
    assert "frames waited" in heal(cut)
    wait(lambda: leaders(cluster).get(target) not in (target, None), "the isolated node to follow")


@pytest.mark.parametrize("kind", ["partition-ring", "bridge", "delay", "reset", "slow-close"])
def test_fault_of_the_network_bites(cluster: LocalCluster, inject: Inject, kind: str) -> None:
    follower = next(node.id for node in cluster.layout.nodes if node.id != active(cluster))
    until_it_bites(lambda: inject(kind, [follower], delay_ms=200))


@pytest.mark.parametrize("kind", ["hold-rpc", "drop-rpc", "duplicate-rpc", "reorder-rpc"])
def test_named_request_is_struck(cluster: LocalCluster, inject: Inject, kind: str) -> None:
    evidence = until_it_bites(lambda: inject(kind, [1, 2, 3], apis=["broker_heartbeat"]))
    assert "broker_heartbeat" in evidence


def test_nodes_are_restarted_one_after_the_other(cluster: LocalCluster, inject: Inject) -> None:
    before = cluster.running()
    restart = inject("rolling-restart", [1, 2])

    def is_new(node_id: int) -> bool:
        return cluster.running().get(node_id, before[node_id]) != before[node_id]

    wait(lambda: is_new(1) and is_new(2), "two restarts")
    assert heal(restart).count("anew") == 2


def test_torn_write_is_cut_off(cluster: LocalCluster, inject: Inject) -> None:
    torn = inject("torn-write", [3])
    assert "cut off" in heal(torn)


@pytest.mark.long
def test_torn_write_of_a_partition_is_cut_off(cluster: LocalCluster, inject: Inject) -> None:
    write_to_node(cluster, 3)
    evidence = heal(inject("torn-write", [3], log="partition"))
    assert "cut off" in evidence
    assert "/faults-" in evidence


@pytest.mark.long
def test_flipped_bit_of_a_partition_is_refused_aloud(cluster: LocalCluster, inject: Inject) -> None:
    write_to_node(cluster, 3)
    flip = inject("bit-flip", [3], log="partition")
    assert 3 not in cluster.running()
    evidence = heal(flip)
    assert "checksum" in evidence
    assert "/faults-" in evidence


def test_flipped_bit_is_refused_aloud(cluster: LocalCluster, inject: Inject) -> None:
    flip = inject("bit-flip", [3])
    assert 3 not in cluster.running()
    assert cluster.exited() == [], "a refusal that was wanted is no crash"
    assert "checksum" in heal(flip)


def test_node_without_descriptors_takes_no_connection(
    cluster: LocalCluster, inject: Inject
) -> None:
    assert "node 2" in heal(inject("fd-exhaustion", [2]))


def test_node_that_ends_for_want_of_descriptors_is_started_again(
    cluster: LocalCluster, inject: Inject
) -> None:
    starving = inject("fd-exhaustion", [2])
    os.kill(cluster.running()[2].pid, signal.SIGKILL)  # as if it could not store a vote
    wait(lambda: [gone.node_id for gone in cluster.exited()] == [2], "its end")
    starving.heal()
    assert 2 in cluster.running()


def test_voter_is_removed_and_added_again(cluster: LocalCluster, inject: Inject) -> None:
    target = active(cluster)
    change = inject("membership", [target])
    wait(lambda: is_replaced(cluster, target), "another leader")
    before, without, healed = heal(change).split("; ")
    assert before.startswith(f"voters 1, 2, 3, led by {target} in epoch")
    assert without.startswith("then voters ")
    assert str(target) not in without.partition(", led by ")[0]
    assert healed.startswith("healed: voters 1, 2, 3, led by")


@pytest.mark.extra
@needs_disks
def test_full_disk_is_said_and_survived(cluster: LocalCluster, inject: Inject) -> None:
    produce = writing_to(cluster)
    full = inject("full-disk", [1])
    produce(b"x" * 100_000)
    assert "No space left" in heal(full)


@pytest.mark.extra
@needs_disks
def test_failing_disk_is_said_and_survived(cluster: LocalCluster, inject: Inject) -> None:
    assert "Input/output error" in heal(inject("fsync-error", [1]))


@pytest.mark.extra
@needs_disks
def test_power_loss_takes_what_was_not_synced(cluster: LocalCluster, inject: Inject) -> None:
    writing_to(cluster)(b"not synced")
    assert "lost what was not synced" in heal(inject("power-loss", [1]))


@pytest.mark.extra
@needs_disks
def test_slow_disk_is_written_slowly(cluster: LocalCluster, inject: Inject) -> None:
    slow = inject("slow-disk", [active(cluster)])
    offset = metadata_offset(cluster)
    wait(lambda: metadata_offset(cluster) > offset + 2, "a few records")
    assert "at a stretch" in heal(slow)


@pytest.mark.extra
@needs_clock
def test_clock_jumps(cluster: LocalCluster, inject: Inject) -> None:
    assert re.search(r"-360[01] s off", heal(inject("clock-jump", [2])))  # dates have whole seconds


def writing_to(cluster: LocalCluster) -> Callable[[bytes], None]:
    """Writes a value to a partition that every node has, whoever takes it."""
    servers: dict[str, str | int | float | bool] = {
        "bootstrap.servers": cluster.layout.bootstrap_servers
    }
    topic = f"faults-{secrets.token_hex(4)}"
    admin = AdminClient(servers)  # what it was asked ends with it
    created = admin.create_topics([NewTopic(topic, 1, 3)])[topic]
    refused = created.exception(15)
    # After a fault the broker may have lost its connection, and passed the request on twice.
    assert refused is None or "TOPIC_ALREADY_EXISTS" in str(refused), refused
    producer = Producer(servers | {"acks": 1})

    def produce(value: bytes) -> None:
        producer.produce(topic, value)
        producer.flush(10)

    return produce


def write_to_node(cluster: LocalCluster, node_id: int) -> None:
    """Until the node has it."""
    writing_to(cluster)(b"x" * 1000)
    data = cluster.layout.node(node_id).data
    wait(
        lambda: any(path.stat().st_size for path in data.glob("faults-*/*.log")),
        "a record on the node",
    )


def metadata_offset(cluster: LocalCluster) -> int:
    pages = [cluster.ask(node, "/v1/node")[1] for node in cluster.layout.nodes]
    return max((page["metadata"]["offset"] for page in pages if page), default=-1)
