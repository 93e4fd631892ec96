"""Tables about a cluster: its brokers as the metadata has them, and the replicas of orders-0."""

from broker.partition.partition import LeaderOf
from jepsen_like.scenarios.directed_clients import values_in
from jepsen_like.scenarios.directed_cluster import DirectedCluster
from jepsen_like.scenarios.pictures import table

__all__ = ["logs", "state"]


def state(cluster: DirectedCluster) -> list[str]:
    return table(
        ("broker", "process", "registered", "orders-0", "epoch", "high watermark", "log"),
        [_state_of(cluster, node) for node in cluster.brokers],
    )


def _state_of(cluster: DirectedCluster, node: int) -> tuple[object, ...]:
    process = "up" if node in cluster.machines.up else "down"
    registered = cluster.registered(node)
    known = None if registered is None else "fenced" if registered.fenced else "unfenced"
    replica = cluster.replica(node)
    if replica is None:
        return (node, process, known, None, None, None, None)
    role = "leader" if isinstance(replica.role, LeaderOf) else "follower"
    log = replica.open_log
    return (
        node,
        process,
        known,
        role,
        replica.leader_epoch,
        log.high_watermark,
        f"0 to {log.end_offset}",
    )


def logs(cluster: DirectedCluster) -> list[str]:
    """One column an offset, and in it the record's value and epoch."""
    cells = {node: _cells(cluster, node) for node in cluster.brokers}
    ends = max((max(of_node, default=-1) + 1 for of_node in cells.values()), default=0)
    if not ends:
        return ["no records"]
    rows = [
        (node, *(cells[node].get(offset, "") for offset in range(ends))) for node in cluster.brokers
    ]
    return table(("offset", *map(str, range(ends))), rows)


def _cells(cluster: DirectedCluster, node: int) -> dict[int, str]:
    return {
        offset: f"{value}@{entry.epoch}"
        for entry in cluster.written(node).entries
        for offset, value in values_in(entry.records)
    }
