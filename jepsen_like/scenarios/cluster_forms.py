"""Commands of a cluster, whose one partition is orders-0."""

from typing import Protocol

from controller.metadata.partitions import NO_LEADER, PartitionState
from jepsen_like.scenarios import cluster_pictures, directed_forms
from jepsen_like.scenarios.directed_clients import Produced
from jepsen_like.scenarios.directed_cluster import PARTITION, DirectedCluster
from jepsen_like.scenarios.directed_forms import Directed
from jepsen_like.scenarios.forms import Forms, Misused
from jepsen_like.scenarios.topic_forms import TOPIC_FORMS
from jepsen_like.sim.world.network import Message
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse

__all__ = ["FORMS", "PARTITION_FORMS", "DirectedPartition", "broker_of"]

PARTITION_FORMS = Forms()  # of any partition, also in ZooKeeper mode


class DirectedPartition(Directed, Protocol):
    """One partition, wherever its metadata is."""

    @property
    def sent(self) -> dict[str, Produced]: ...
    def produce(self, value: str, to: int) -> Produced: ...


@PARTITION_FORMS.form("produce VALUE at NODE", "a client sends a record to this broker")
def produce_value(partition: DirectedPartition, value: str, node: int) -> None:
    partition.produce(value, node)


@PARTITION_FORMS.form("commit VALUE at NODE", "the same, and wait until it is acknowledged")
def commit(partition: DirectedPartition, value: str, node: int) -> None:
    produced = partition.produce(value, node)
    partition.until(lambda: produced.is_acknowledged, f"{value} is committed")


FORMS = Forms(directed_forms.FORMS, TOPIC_FORMS, around=directed_forms.AROUND)
FORMS.add_number("the broker epoch of NODE", DirectedCluster.broker_epoch)
FORMS.add_number("the metadata end of NODE", DirectedCluster.metadata_end)
FORMS.add("elect NODE", DirectedCluster.elect)
FORMS.add("reassign orders-0 to NODES", DirectedCluster.reassign)
FORMS.add("write register COUNT at NODE", DirectedCluster.write_register)
FORMS.add("begin to write register COUNT at NODE", DirectedCluster.begin_register)
FORMS.add("read register at NODE", DirectedCluster.read_register)
FORMS.add("begin to stop NODE", DirectedCluster.stop)
FORMS.add("hold reads of NODE", DirectedCluster.hold_reads)
FORMS.add("release reads of NODE", DirectedCluster.release_reads)

# --- clients --------------------------------------------------------------------------------


@FORMS.form("produce PARTITION VALUE", "a client sends a record to the leader, with acks=all")
def produce(cluster: DirectedCluster, partition: str, value: str) -> None:
    cluster.produce(value, to=_leader(cluster, partition))


@FORMS.form("produce PARTITION VALUE at NODE", "to this broker, whoever leads")
def produce_at(cluster: DirectedCluster, partition: str, value: str, node: int) -> None:
    _state(cluster, partition)
    cluster.produce(value, to=broker_of(cluster, node))


@FORMS.form(
    "produce PARTITION VALUE as producer COUNT, sequence OFFSET",
    "by an idempotent producer (KIP-98)",
)
def produce_as(
    cluster: DirectedCluster, partition: str, value: str, count: int, offset: int
) -> None:
    cluster.produce(value, _leader(cluster, partition), (count, offset))


@FORMS.form("read PARTITION", "a client reads from the beginning, at the leader")
def read(cluster: DirectedCluster, partition: str) -> None:
    cluster.read(_leader(cluster, partition))


@FORMS.form("read PARTITION at NODE", "at this broker, whoever leads")
def read_at(cluster: DirectedCluster, partition: str, node: int) -> None:
    _state(cluster, partition)
    cluster.read(broker_of(cluster, node))


@FORMS.form("prefer NODE", "an administrator makes it the preferred leader, and has it elected")
def prefer(cluster: DirectedCluster, node: int) -> None:
    controller = cluster.active_controller
    if controller is None:
        raise Misused("there is no active controller")
    if broker_of(cluster, node) not in _state(cluster, PARTITION).replicas:
        raise Misused(f"{node} has no replica of {PARTITION}")
    cluster.prefer(node, controller)


@FORMS.form("read all at NODE", "a client reads from the beginning, and is waited for")
def read_all(cluster: DirectedCluster, node: int) -> None:
    cluster.until(lambda: cluster.read_to_the_end(node), "a reader has come to the end")


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


def broker_of(cluster: DirectedCluster, node: int) -> int:
    if node not in cluster.brokers:
        raise Misused(f"{node} is no broker: {', '.join(map(str, cluster.brokers))}")
    return node


# --- processes, disks, messages ---------------------------------------------------------------


@FORMS.form("isolate NODE but for ISR changes as NAME", "requests of AlterPartition arrive")
def isolate_but(cluster: DirectedCluster, node: int, name: str) -> None:
    def is_cut(message: Message) -> bool:
        changes = isinstance(message.body, AlterPartitionRequest | AlterPartitionResponse)
        return node in (message.source, message.target) and not changes

    cluster.note(f"{cluster.names.of(node)} is cut off from everybody")
    cluster.machines.hold(is_cut, name)


@FORMS.form(
    "divert an ISR change of NODE to OTHER as NAME", "the next request arrives there instead"
)
def divert(cluster: DirectedCluster, node: int, other: int, name: str) -> None:
    def is_astray(message: Message) -> bool:
        is_it = message.source == node and isinstance(message.body, AlterPartitionRequest)
        if is_it and message.target != other:
            cluster.cluster.hosts[other].deliver(message._replace(target=other))
            return True
        return False

    names = cluster.names
    cluster.note(f"the next ISR change of {names.of(node)} goes astray, to {names.of(other)}")
    cluster.machines.hold(is_astray, name, times=1)


# --- pictures -------------------------------------------------------------------------------


@FORMS.form("state", "each broker, and its replica")
def state(cluster: DirectedCluster) -> None:
    for line in cluster_pictures.state(cluster):
        cluster.story.tell(line)


@FORMS.form("logs", "value and epoch of each record of each replica")
def logs(cluster: DirectedCluster) -> None:
    for line in cluster_pictures.logs(cluster):
        cluster.story.tell(line)


FORMS.all += PARTITION_FORMS.all
