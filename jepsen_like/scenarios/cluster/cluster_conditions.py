"""Conditions of a cluster, whose one partition is orders-0."""

from controller.metadata.partitions import NO_LEADER
from jepsen_like.scenarios.cluster.cluster_forms import DirectedPartition, broker_of
from jepsen_like.scenarios.cluster.directed_cluster import DirectedCluster
from jepsen_like.scenarios.language.forms import Forms
from jepsen_like.scenarios.stage import directed_forms

__all__ = ["CONDITIONS", "PARTITION_CONDITIONS"]

PARTITION_CONDITIONS = Forms(directed_forms.CONDITIONS)  # of any partition, also in ZooKeeper mode


@PARTITION_CONDITIONS.form("VALUE is answered", "by an acknowledgement or a refusal")
def is_answered(partition: DirectedPartition, value: str) -> bool:
    return partition.sent[value].is_answered


@PARTITION_CONDITIONS.form("VALUE is acknowledged", "to the client that sent it")
def is_acknowledged(partition: DirectedPartition, value: str) -> bool:
    return partition.sent[value].is_acknowledged


@PARTITION_CONDITIONS.form("NODE is elected", "the metadata names it the leader")
def is_elected(partition: DirectedPartition, node: int) -> bool:
    return partition.leader == node


@PARTITION_CONDITIONS.form("none of NODES is elected", "the metadata names another leader, or none")
def none_is_elected(partition: DirectedPartition, nodes: list[int]) -> bool:
    return partition.leader not in nodes


@PARTITION_CONDITIONS.form("NODE is in sync", "in the ISR, as committed in the metadata")
def is_in_sync(partition: DirectedPartition, node: int) -> bool:
    return node in partition.isr


@PARTITION_CONDITIONS.form("NODE is not in sync", "it has left the ISR")
def is_not_in_sync(partition: DirectedPartition, node: int) -> bool:
    return node not in partition.isr


@PARTITION_CONDITIONS.form(
    "NODE is out of sync, or nobody leads", "as far as the metadata can tell"
)
def is_out(partition: DirectedPartition, node: int) -> bool:
    return node not in partition.isr or partition.leader < 0


@PARTITION_CONDITIONS.form("the log of NODE ends at OFFSET", "it has so many records")
def ends_at(partition: DirectedPartition, node: int, offset: int) -> bool:
    return partition.end_offset(node) == offset


CONDITIONS = Forms(PARTITION_CONDITIONS)
CONDITIONS.add("NODE has held reads", DirectedCluster.has_held_reads)


@CONDITIONS.form("ready", "orders-0 is there, and all its replicas are in sync")
def ready(cluster: DirectedCluster) -> bool:
    return cluster.is_ready


@CONDITIONS.form("answered", "the client has an answer, or has given up, for all that it asked")
def answered(cluster: DirectedCluster) -> bool:
    return cluster.clients.is_quiet


@CONDITIONS.form("a controller", "a controller is active")
def a_controller(cluster: DirectedCluster) -> bool:
    return cluster.active_controller is not None


def _newest_leader_of(cluster: DirectedCluster, node: int) -> int | None:
    """Whom the node takes for the leader, if that is so in the newest leader epoch."""
    partition, replica = cluster.partition, cluster.replica(node)
    if partition is None or replica is None or partition.leader != replica.leader_id:
        return None
    return partition.leader if replica.leader_epoch == partition.leader_epoch else None


@CONDITIONS.form("NODE leads", "orders-0, and knows it")
def leads(cluster: DirectedCluster, node: int) -> bool:
    return _newest_leader_of(cluster, node) == node


@CONDITIONS.form("NODE follows OTHER", "in the newest leader epoch of orders-0")
def follows(cluster: DirectedCluster, node: int, other: int) -> bool:
    return _newest_leader_of(cluster, node) == other != node


@CONDITIONS.form("no leader", "the metadata names no leader of orders-0")
def no_leader(cluster: DirectedCluster) -> bool:
    return cluster.partition is not None and cluster.partition.leader == NO_LEADER


@CONDITIONS.form("the ISR is NODES", "of orders-0, as committed in the metadata")
def isr_is(cluster: DirectedCluster, nodes: list[int]) -> bool:
    return cluster.isr == set(nodes)


@CONDITIONS.form("NODE is fenced", "the metadata says that it is fenced")
def is_fenced(cluster: DirectedCluster, node: int) -> bool:
    return cluster.is_fenced(broker_of(cluster, node)) is True


@CONDITIONS.form("NODE is unfenced", "the metadata says that it is not fenced")
def is_unfenced(cluster: DirectedCluster, node: int) -> bool:
    return cluster.is_fenced(broker_of(cluster, node)) is False


@CONDITIONS.form("NODE has all before OFFSET", "written to its log of orders-0")
def has_written(cluster: DirectedCluster, node: int, offset: int) -> bool:
    return cluster.written(node).end_offset >= offset


@CONDITIONS.form("NODE knows that all before OFFSET is committed", "its high watermark")
def knows_committed(cluster: DirectedCluster, node: int, offset: int) -> bool:
    replica = cluster.replica(node)
    return replica is not None and replica.open_log.high_watermark >= offset


@CONDITIONS.form(
    "the same everywhere", "all replicas that are up have one log, all of it committed"
)
def same(cluster: DirectedCluster) -> bool:
    replicas = [cluster.replica(node) for node in cluster.brokers if node in cluster.machines.up]
    ends = {
        None if r is None else (r.open_log.end_offset, r.open_log.high_watermark) for r in replicas
    }
    return len(ends) == 1 and all(end is not None and end[0] == end[1] for end in ends)


@CONDITIONS.form("NODE is in epoch EPOCH", "the leader epoch in which it leads or follows")
def is_in_epoch(cluster: DirectedCluster, node: int, epoch: int) -> bool:
    return cluster.epoch(node) == epoch


@CONDITIONS.form("NODE is in the newest epoch", "the leader epoch that is committed")
def is_in_newest_epoch(cluster: DirectedCluster, node: int) -> bool:
    return cluster.epoch(node) == cluster.state.leader_epoch


@CONDITIONS.form("NODE is in a newer epoch than OTHER", "by their leader epochs")
def is_newer(cluster: DirectedCluster, node: int, other: int) -> bool:
    return cluster.epoch(node) > cluster.epoch(other)


@CONDITIONS.form("NODE has another broker epoch than EPOCH", "it is registered again")
def is_registered_again(cluster: DirectedCluster, node: int, epoch: int) -> bool:
    return cluster.broker_epoch(node) > epoch


@CONDITIONS.form("NODE is a replica", "the metadata names it among the replicas")
def is_replica(cluster: DirectedCluster, node: int) -> bool:
    return node in cluster.replicas


@CONDITIONS.form("NODE is no replica", "the metadata does not name it among the replicas")
def is_no_replica(cluster: DirectedCluster, node: int) -> bool:
    return node not in cluster.replicas


@CONDITIONS.form("another controller than NODE is active", "it takes itself for the active one")
def is_another_active(cluster: DirectedCluster, node: int) -> bool:
    return cluster.controller != node


@CONDITIONS.form("NODE hears the controller", "it reads the metadata of the active one")
def hears_controller(cluster: DirectedCluster, node: int) -> bool:
    return cluster.node(node).leader.leader_id == cluster.controller


@CONDITIONS.form("the metadata of NODE ends after OFFSET", "its metadata log")
def metadata_ends_after(cluster: DirectedCluster, node: int, offset: int) -> bool:
    return cluster.metadata_end(node) > offset
