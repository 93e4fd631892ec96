"""Faults of the ZooKeeper that belongs to a cluster: a server dies, or brokers find no way."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from jepsen_like.faults.cut_links import both_ways
from jepsen_like.faults.fault import Course, Fault, Injector, Proof, in_force
from jepsen_like.faults.participants import FIRST_ZOOKEEPER
from jepsen_like.real.impairments import Cut
from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from wire.zk.session import SessionState

__all__ = ["zookeeper_injectors", "zookeeper_nodes"]


def zookeeper_nodes(layout: ClusterLayout) -> Sequence[int]:
    return [FIRST_ZOOKEEPER + index for index in range(layout.zookeepers)]


def zookeeper_injectors(cluster: LocalCluster, mesh: ProxyMesh) -> dict[str, Injector]:
    layout = cluster.layout
    none = "" if layout.zookeepers else f"the {layout.design} cluster has no ZooKeeper of its own"
    no_links = "" if layout.zookeeper_links else "no proxies stand before ZooKeeper"
    return {
        "kill-zookeeper": Injector(partial(kill_zookeeper, cluster), none),
        "cut-zookeeper": Injector(partial(cut_zookeeper, cluster, mesh), none or no_links),
    }


@in_force
def kill_zookeeper(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    """SIGKILL. What it has answered is in its log, which it reads again."""
    zookeeper = cluster.zookeeper
    assert zookeeper is not None, fault
    before = {}
    for node in targets:
        server = zookeeper.server(node - FIRST_ZOOKEEPER + 1)
        process = zookeeper.process(server)
        if process is not None:
            zookeeper.kill(server.id)
            before[server.id] = process
    yield [FIRST_ZOOKEEPER + each - 1 for each in before]
    for server_id in before:
        if zookeeper.process(zookeeper.server(server_id)) is None:
            zookeeper.start(server_id)
    return [f"ZooKeeper {each} (process {before[each].pid}) was killed" for each in before]


@in_force
def cut_zookeeper(
    cluster: LocalCluster, mesh: ProxyMesh, fault: Fault, targets: Sequence[int]
) -> Course:
    """Brokers find no way to any server; they go on hearing each other and their clients.

    What they ask waits, as with a network that is cut, and arrives late. It has bitten if a broker
    or ZooKeeper noticed: the session was suspended, or is over.
    """
    sessions = {node: _session(cluster, node)[1] for node in targets}
    directions = both_ways(targets, zookeeper_nodes(cluster.layout))
    cut = mesh.impose(Cut(), directions)
    yield targets
    noticed = list(_noticed(cluster, sessions))
    mesh.lift(cut)
    evidence = "; ".join([cut.describe(), *noticed])
    return Proof(bit=cut.is_proven and bool(noticed), evidence=evidence)


def _session(cluster: LocalCluster, node: int) -> tuple[str, int]:
    """Its state and its id, as the broker has them; nothing if it does not answer."""
    told = cluster.page(cluster.layout.node(node), "/v1/node").get("quorum", {})
    return told.get("session", ""), told.get("session_id", 0)


def _noticed(cluster: LocalCluster, sessions: Mapping[int, int]) -> Iterable[str]:
    zookeeper = cluster.zookeeper
    alive = zookeeper.sessions() if zookeeper is not None else None
    for node, session_id in sessions.items():
        state, _ = _session(cluster, node)
        if state not in ("", SessionState.CONNECTED.value):
            yield f"the session of node {node} is {state}"
        if session_id and alive is not None and session_id not in alive:
            yield f"ZooKeeper has ended session 0x{session_id:x} of node {node}"
