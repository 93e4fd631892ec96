"""What is wrong with the nodes of a local cluster, by what `quorumlab status` says of them.

The files of a node do not tell whether it runs. Pure: facts in, findings out.
"""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from quorumlab.inspection.facts import Finding, Level
from quorumlab.status import is_healthy
from wire.zk.designs import DESIGNS

__all__ = ["findings_of"]

Status = Mapping[str, Any]
_ROLES = (("ZooKeeper", "zookeepers"), ("controller", "controllers"), ("broker", "brokers"))
_WELL = ("running", "leader", "follower", "observer", "standalone")
_DOWN = ("stopped", "dead")


def findings_of(status: Status) -> Iterator[Finding]:
    """`status` as `quorumlab.status.describe` makes it."""
    where = quote(str(status["directory"]))
    nodes = [(role, node) for role, key in _ROLES for node in status[key]]
    if status["design"] in DESIGNS:
        text = f"{status['design']} keeps its metadata in ZooKeeper: there is no log to look at"
        yield Finding(Level.FINE, text)
    if all(node["state"] in _DOWN for _, node in nodes):
        text = f"nothing of the cluster in {status['directory']} runs"
        yield Finding(Level.PROBLEM, text, f"`quorumlab up --dir {where}` starts it")
        return
    ill = [(role, node) for role, node in nodes if node["state"] not in _WELL]
    for role, node in ill:
        yield _ill(role, node, where)
    if is_healthy(status):
        yield Finding(Level.FINE, f"all {len(nodes)} nodes run, and every partition is replicated")
    elif not ill:
        yield from _unwell(status)


def _ill(role: str, node: Mapping[str, Any], where: str) -> Finding:
    starts = f"`quorumlab node-start {node['id']} --dir {where}`"
    if role == "ZooKeeper":
        starts = f"`quorumlab up --dir {where}`"
    log = node.get("log", f"{node['dir']}/node.log")
    advice = f"{starts} starts it; " if node["state"] in _DOWN else ""
    text = f"{role} {node['id']} is {node['state']}"
    return Finding(Level.PROBLEM, text, f"{advice}its last words are in {log}")


def _unwell(status: Status) -> Iterator[Finding]:
    """Where every node is well by itself."""
    offline = status["offline_partitions"]
    lagging = status["under_replicated_partitions"]
    if offline:
        yield Finding(Level.PROBLEM, f"{offline} partitions have no leader")
    if lagging:
        yield Finding(Level.PROBLEM, f"{lagging} partitions are under-replicated")
    if not offline and not lagging:
        yield Finding(Level.PROBLEM, "no controller is active")
