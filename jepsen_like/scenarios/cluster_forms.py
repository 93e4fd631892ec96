"""Commands and conditions of a cluster, whose one partition is orders-0."""

from controller.metadata.partitions import NO_LEADER, PartitionState
from jepsen_like.scenarios import cluster_pictures, stage_forms
from jepsen_like.scenarios.directed_cluster import PARTITION, DirectedCluster
from jepsen_like.scenarios.forms import Forms, Misused

__all__ = ["CONDITIONS", "FORMS"]

FORMS = Forms(stage_forms.FORMS, around=stage_forms.AROUND)
CONDITIONS = Forms(stage_forms.CONDITIONS)


# --- clients --------------------------------------------------------------------------------


@FORMS.form("produce PARTITION VALUE", "a client sends a record to the leader, with acks=all")
def produce(cluster: DirectedCluster, partition: str, value: str) -> None:
    cluster.produce(value, to=_leader(cluster, partition))


@FORMS.form("produce PARTITION VALUE at NODE", "to this broker, whoever leads")
def produce_at(cluster: DirectedCluster, partition: str, value: str, node: int) -> None:
    _state(cluster, partition)
    cluster.produce(value, to=_broker(cluster, node))


@FORMS.form(
    "produce PARTITION VALUE as producer COUNT, sequence OFFSET",
    "by an idempotent producer (KIP-98)",
)
def produce_as(
    cluster: DirectedCluster, partition: str, value: str, count: int, offset: int
) -> None:
    cluster.produce(value, to=_leader(cluster, partition), producer=(count, offset))


@FORMS.form("read PARTITION", "a client reads from the beginning, at the leader")
def read(cluster: DirectedCluster, partition: str) -> None:
    cluster.read(of=_leader(cluster, partition))


@FORMS.form("read PARTITION at NODE", "at this broker, whoever leads")
def read_at(cluster: DirectedCluster, partition: str, node: int) -> None:
    _state(cluster, partition)
    cluster.read(of=_broker(cluster, node))


@FORMS.form("prefer NODE", "an administrator makes it the preferred leader, and has it elected")
def prefer(cluster: DirectedCluster, node: int) -> None:
    controller = cluster.active_controller
    if controller is None:
        raise Misused("there is no active controller")
    if _broker(cluster, node) not in _state(cluster, PARTITION).replicas:
        raise Misused(f"{node} has no replica of {PARTITION}")
    cluster.prefer(node, controller)


@FORMS.form("resign", "the active controller gives up its epoch")
def resign(cluster: DirectedCluster) -> None:
    controller = cluster.active_controller
    if controller is None:
        raise Misused("there is no active controller")
    cluster.resign(controller)


def _state(cluster: DirectedCluster, partition: str) -> PartitionState:
    state = cluster.partition
    if partition != PARTITION or state is None:
        raise Misused(f"there is no {partition}: `deliver until ready` waits for {PARTITION}")
    return state


def _leader(cluster: DirectedCluster, partition: str) -> int:
    leader = _state(cluster, partition).leader
    if leader == NO_LEADER:
        raise Misused(f"nobody leads {partition}")
    return leader


def _broker(cluster: DirectedCluster, node: int) -> int:
    if node not in cluster.brokers:
        raise Misused(f"{node} is no broker: {', '.join(map(str, cluster.brokers))}")
    return node


# --- pictures -------------------------------------------------------------------------------


@FORMS.form("state", "each broker, and its replica")
def state(cluster: DirectedCluster) -> None:
    for line in cluster_pictures.state(cluster):
        cluster.story.tell(line)


@FORMS.form("logs", "value and epoch of each record of each replica")
def logs(cluster: DirectedCluster) -> None:
    for line in cluster_pictures.logs(cluster):
        cluster.story.tell(line)


# --- conditions -----------------------------------------------------------------------------


@CONDITIONS.form("ready", "orders-0 is there, and all its replicas are in sync")
def ready(cluster: DirectedCluster) -> bool:
    return cluster.is_ready


@CONDITIONS.form("answered", "the client has an answer, or has given up, for all that it asked")
def answered(cluster: DirectedCluster) -> bool:
    return cluster.is_answered


@CONDITIONS.form("a controller", "a controller is active")
def a_controller(cluster: DirectedCluster) -> bool:
    return cluster.active_controller is not None


@CONDITIONS.form("NODE leads", "orders-0, and knows it")
def leads(cluster: DirectedCluster, node: int) -> bool:
    partition, replica = cluster.partition, cluster.replica(node)
    return (
        partition is not None
        and replica is not None
        and partition.leader == node == replica.leader_id
        and replica.leader_epoch == partition.leader_epoch
    )


@CONDITIONS.form("NODE follows OTHER", "in the newest leader epoch of orders-0")
def follows(cluster: DirectedCluster, node: int, other: int) -> bool:
    partition, replica = cluster.partition, cluster.replica(node)
    return (
        partition is not None
        and replica is not None
        and partition.leader == other == replica.leader_id != node
        and replica.leader_epoch == partition.leader_epoch
    )


@CONDITIONS.form("no leader", "the metadata names no leader of orders-0")
def no_leader(cluster: DirectedCluster) -> bool:
    return cluster.partition is not None and cluster.partition.leader == NO_LEADER


@CONDITIONS.form("the ISR is NODES", "of orders-0, as committed in the metadata")
def isr_is(cluster: DirectedCluster, nodes: list[int]) -> bool:
    return cluster.partition is not None and sorted(cluster.partition.isr) == sorted(nodes)


@CONDITIONS.form("NODE is fenced", "as committed in the metadata")
def is_fenced(cluster: DirectedCluster, node: int) -> bool:
    registered = cluster.registered(_broker(cluster, node))
    return registered is not None and registered.fenced


@CONDITIONS.form("NODE is unfenced", "as committed in the metadata")
def is_unfenced(cluster: DirectedCluster, node: int) -> bool:
    registered = cluster.registered(_broker(cluster, node))
    return registered is not None and not registered.fenced


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
