"""Findings about a local cluster from its `quorumlab status`: which nodes do not run, and why.

The files of a node, which the other findings of `doctor` come from, do not tell whether it runs.
Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jepsen_like.installation import command
from quorumlab.inspection.facts import Finding, Level
from quorumlab.status import has_controller, is_healthy
from wire.zk.designs import DESIGNS

__all__ = ["findings_of"]

Status = Mapping[str, Any]
_ROLES = (("ZooKeeper", "zookeepers"), ("controller", "controllers"), ("broker", "brokers"))
_WELL = ("running", "leader", "follower", "observer", "standalone")
_DOWN = ("stopped", "dead")


def findings_of(status: Status) -> Iterator[Finding]:
    """`status` is what `quorumlab.status.describe` returns."""
    directory = status["directory"]
    nodes = [(role, node) for role, key in _ROLES for node in status[key]]
    if status["design"] in DESIGNS:
        text = f"{status['design']} keeps its metadata in ZooKeeper: there is no log to look at"
        yield Finding(Level.FINE, text)
    if all(node["state"] in _DOWN for _, node in nodes):
        text = f"nothing of the cluster in {directory} runs"
        yield Finding(Level.PROBLEM, text, f"`{command('up', '--dir', directory)}` starts it")
        return
    failing = [(role, node) for role, node in nodes if node["state"] not in _WELL]
    for role, node in failing:
        yield _of_node(role, node, directory)
    if is_healthy(status):
        yield Finding(Level.FINE, f"all {len(nodes)} nodes run, and every partition is replicated")
    elif not failing:
        yield from _of_cluster(status)


def _of_node(role: str, node: Mapping[str, Any], directory: str) -> Finding:
    verb = ["up"] if role == "ZooKeeper" else ["node-start", node["id"]]
    start = f"`{command(*verb, '--dir', directory)}` starts it; " if node["state"] in _DOWN else ""
    log = node.get("log", f"{node['dir']}/node.log")
    text = f"{role} {node['id']} is {node['state']}"
    return Finding(Level.PROBLEM, text, f"{start}its last words are in {log}")


def _of_cluster(status: Status) -> Iterator[Finding]:
    """For a cluster that is unhealthy although each of its nodes runs."""
    offline = status["offline_partitions"]
    lagging = status["under_replicated_partitions"]
    if offline:
        yield Finding(Level.PROBLEM, f"{offline} partitions have no leader")
    if lagging:
        yield Finding(Level.PROBLEM, f"{lagging} partitions are under-replicated")
    if status["active_controller"] is None and has_controller(status["design"]):
        yield Finding(Level.PROBLEM, "no controller is active")
    if not status["metadata_is_current"]:
        yield Finding(Level.PROBLEM, "no node can tell how the partitions are now")
