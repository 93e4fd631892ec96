"""The state of a local cluster, put together from what its nodes say: the contract of `status`.

Scripts rely on the keys of `describe`: they may be added to, never changed.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import ProcessId
from wire.zk.designs import DESIGNS
from wire.zk.switches import SWITCHES

__all__ = ["active_controller", "describe", "has_controller", "in_order_of_knowledge", "is_healthy"]

Answers = Mapping[int, Mapping[str, Any]]
_READING_SECONDS = 12.0  # a node gives up reading before
_WELL = ("leader", "follower", "observer")  # states of controllers


def describe(cluster: LocalCluster) -> dict[str, Any]:
    """The state of the cluster as one JSON object (design: `status --format json`)."""
    running = cluster.running()
    answers = _ask_all(cluster, running)
    leader, epoch = _active_controller(answers)
    layout = cluster.layout
    metadata = _metadata(cluster, answers, leader)
    return {
        "cluster_id": layout.cluster_id,
        "design": layout.design,
        "without": _switched_off(answers),
        "engine": layout.engine,
        "directory": str(layout.directory),
        "bootstrap_servers": layout.bootstrap_servers,
        "active_controller": leader,
        "controller_epoch": epoch,
        "controllers": [
            _node(node, running, answers, _controller_state) | {"port": node.controller_port}
            for node in layout.controllers
        ],
        "brokers": [
            _node(node, running, answers, partial(_broker_state, metadata=metadata))
            for node in layout.brokers
        ],
        "zookeepers": list(_zookeepers(cluster)),
        "partitions": metadata.get("partitions", 0),
        "under_replicated_partitions": metadata.get("under_replicated_partitions", 0),
        "offline_partitions": metadata.get("offline_partitions", 0),
        "metadata_is_current": metadata.get("is_current", False),
        # A node that hears of no leader has an empty image, which says nothing of the cluster.
        "metadata_is_known": metadata.get("is_current", False) or metadata.get("offset", -1) >= 0,
    }


def _switched_off(answers: Answers) -> list[str]:
    """The switches of a ZooKeeper design that any node that answers has turned off."""
    told = {name for page in answers.values() for name in page["quorum"].get("without", ())}
    return [name for name in SWITCHES if name in told]


def active_controller(cluster: LocalCluster) -> int | None:
    """The id of the node that says it is the active controller; None if no node does."""
    return _active_controller(_ask_all(cluster, cluster.running()))[0]


def _ask_all(cluster: LocalCluster, running: Mapping[int, ProcessId]) -> Answers:
    nodes = (node for node in cluster.layout.nodes if node.id in running)
    told = {node.id: cluster.page(node, "/v1/node") for node in nodes}
    return {node_id: page for node_id, page in told.items() if page}


def _zookeepers(cluster: LocalCluster) -> Iterator[dict[str, int | str | None]]:
    zookeeper = cluster.zookeeper
    if zookeeper is None:
        return
    for server in zookeeper.servers:
        process, role = zookeeper.process(server), zookeeper.role(server)
        gone = "dead" if server.pid_file.exists() else "stopped"
        yield {
            "id": server.id,
            "pid": None if process is None else process.pid,
            "host": server.host,
            "port": server.port,
            "role": role,
            "state": gone if process is None else role or "unresponsive",
            "dir": server.dir,
        }


def is_healthy(status: Mapping[str, Any]) -> bool:
    """Every node and ZooKeeper up and in its normal state, a controller active if the design has
    one, every partition replicated, and a node that can say so."""
    return (
        (status["active_controller"] is not None or not has_controller(status["design"]))
        and all(node["state"] in _WELL for node in status["controllers"])
        and all(node["state"] == "running" for node in status["brokers"])
        and all(server["role"] for server in status["zookeepers"])
        and not status["under_replicated_partitions"]
        and not status["offline_partitions"]
        and status["metadata_is_current"]
    )


def has_controller(design: str) -> bool:
    return design not in DESIGNS or DESIGNS[design].has_controller


def _active_controller(answers: Answers) -> tuple[int | None, int]:
    """The leader of the newest epoch that any node has heard of, and that epoch."""
    quorums = [answer["quorum"] for answer in answers.values()]
    epoch = max((quorum["epoch"] for quorum in quorums), default=-1)
    leaders = [
        quorum["leader_id"]
        for quorum in quorums
        if quorum["epoch"] == epoch and quorum["leader_id"] is not None
    ]
    # A leader that died is still believed in until a follower's fetch times out: only one that
    # says so itself is active.
    active = [
        leader
        for leader in leaders
        if leader in answers and answers[leader]["quorum"]["role"] == "leader"
    ]
    return (active[0] if active else None), epoch


def _metadata(
    cluster: LocalCluster, answers: Answers, active_controller: int | None
) -> Mapping[str, Any]:
    """Asks for a node that can tell how things are now; else the best informed one counts."""
    last_known: Mapping[str, Any] = {}
    for node_id in in_order_of_knowledge(answers, active_controller):
        page = cluster.page(cluster.layout.node(node_id), "/v1/metadata", _READING_SECONDS)
        if page.get("is_current"):
            return page
        last_known = last_known or page
    return last_known


def in_order_of_knowledge(answers: Answers, active_controller: int | None) -> list[int]:
    """The nodes that have metadata, the best informed first.

    In a quorum that is the node with the highest offset. In ZooKeeper designs each node counts
    offsets of its own, which cannot be compared: there it is the active controller.
    """

    def knowledge(node_id: int) -> int:
        if "design" in answers[node_id]["quorum"]:
            return node_id == active_controller
        return int(answers[node_id]["metadata"]["offset"])

    able = [node_id for node_id, answer in answers.items() if answer.get("metadata")]
    return sorted(able, key=knowledge, reverse=True)


def _node(
    node: NodeLayout,
    running: Mapping[int, ProcessId],
    answers: Answers,
    state_of: Callable[[Mapping[str, Any]], str],
) -> dict[str, int | str | None]:
    """`state_of` tells the state of a node that answers."""
    if node.id not in running:
        state = "dead" if node.pid_file.exists() else "stopped"  # as was wanted
    else:
        state = state_of(answers[node.id]) if node.id in answers else "unresponsive"
    return {
        "id": node.id,
        "pid": running[node.id].pid if node.id in running else None,
        "host": node.host,
        "port": node.port,
        "http_port": node.http_port,
        "state": state,
        "dir": node.dir,
        "log": str(node.log),
    }


def _controller_state(answer: Mapping[str, Any]) -> str:
    """An observer is a follower that does not vote: it was removed, or not made a voter yet."""
    role = str(answer["quorum"]["role"])
    return "observer" if role == "follower" and not answer["quorum"]["is_voter"] else role


def _broker_state(answer: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    own = str(answer["broker"]["state"])
    active = {broker["id"] for broker in metadata.get("brokers", ()) if not broker["fenced"]}
    is_away = metadata.get("is_current") and answer["node_id"] not in active
    return "fenced" if own == "running" and is_away else own
