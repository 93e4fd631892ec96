"""Commands of a cluster, whose one partition is orders-0."""

from typing import Protocol

from broker.partition.partition import LeaderOf
from controller.metadata.partitions import NO_LEADER, PartitionState
from jepsen_like.scenarios.cluster.directed_clients import Produced, values_in
from jepsen_like.scenarios.cluster.directed_cluster import PARTITION, DirectedCluster
from jepsen_like.scenarios.language.forms import Forms, Misused
from jepsen_like.scenarios.stage import directed_forms
from jepsen_like.scenarios.stage.directed_forms import Directed
from jepsen_like.scenarios.stage.story import logs_table, table
from jepsen_like.sim.assemblies.cluster.invariants.watched import Key
from jepsen_like.sim.world.network import Message
from wire.batch import data_batch
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from wire.messages.producing import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

__all__ = ["FORMS", "PARTITION_FORMS", "DirectedPartition", "broker_of"]

PARTITION_FORMS = Forms()  # of any partition, also in ZooKeeper mode


class DirectedPartition(Directed, Protocol):
    """One partition, wherever its metadata is."""

    @property
    def sent(self) -> dict[str, Produced]: ...
    @property
    def leader(self) -> int: ...
    @property
    def isr(self) -> set[int]: ...
    def end_offset(self, node: int) -> int: ...
    def produce(self, value: str, to: int) -> Produced: ...


@PARTITION_FORMS.form("produce VALUE at NODE", "a client sends a record to this broker")
def produce_value(partition: DirectedPartition, value: str, node: int) -> None:
    partition.produce(value, node)


@PARTITION_FORMS.form("commit VALUE at NODE", "the same, and wait until it is acknowledged")
def commit(partition: DirectedPartition, value: str, node: int) -> None:
    produced = partition.produce(value, node)
    partition.until(lambda: produced.is_acknowledged, f"{value} is committed")


FORMS = Forms(directed_forms.FORMS, around=directed_forms.AROUND)
_FETCH_BYTES = 1 << 20


# --- topics beside orders -------------------------------------------------------------------

# A topic is named in the scenario, since another one of the same name in the cluster may follow it.


@FORMS.form("NAME = new topic VALUE on NODE", "one partition and one replica, there")
def create_topic(cluster: DirectedCluster, name: str, value: str, node: int) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=(node,))
    topic = CreatableTopic(name=value, assignments=(assignment,))
    cluster.ask(cluster.controller, CreateTopicsRequest(topics=(topic,)))
    watched = cluster.cluster.partitions.watched.items()
    (key,) = (key for key, each in watched if each.name == f"{value}-0" and each.state)
    cluster.until(lambda: cluster.is_leading(node, key), "the topic can be written to")
    cluster.topics[name] = key


@FORMS.form("delete topic VALUE", "by its name in the cluster")
def delete_topic(cluster: DirectedCluster, value: str) -> None:
    cluster.ask(cluster.controller, DeleteTopicsRequest(topics=(DeleteTopicState(name=value),)))


@FORMS.form("write VALUE to topic NAME at NODE", "by its id, with acks=all")
def write_to_topic(cluster: DirectedCluster, value: str, name: str, node: int) -> None:
    topic_id, partition = _key_of(cluster, name)
    data = PartitionProduceData(
        index=partition, records=data_batch([value.encode()], timestamp_ms=0)
    )
    topic = TopicProduceData(topic_id=topic_id, partition_data=(data,))
    cluster.ask(node, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)))


@FORMS.form("read topic NAME at NODE", "by its id alone, from the beginning")
def read_topic(cluster: DirectedCluster, name: str, node: int) -> None:
    key = _key_of(cluster, name)
    place = FetchPartition(partition=key[1], fetch_offset=0, partition_max_bytes=_FETCH_BYTES)
    topic = FetchTopic(topic_id=key[0], partitions=(place,))
    answer = cluster.ask(node, FetchRequest(max_wait_ms=0, topics=(topic,)))
    assert isinstance(answer, FetchResponse), answer
    for offset, value in values_in(answer.responses[0].partitions[0].records or b""):
        cluster.cluster.has_read(key, offset, value.encode())


def _key_of(cluster: DirectedCluster, name: str) -> Key:
    if name not in cluster.topics:
        raise Misused(f"no topic is named {name} here: `{name} = new topic NAME on NODE` makes one")
    return cluster.topics[name]


# --- what a method of the cluster carries out ---------------------------------------------------

FORMS.add_name("the broker epoch of NODE", DirectedCluster.broker_epoch)
FORMS.add_name("the metadata end of NODE", DirectedCluster.metadata_end)
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


@FORMS.form("prefer NODE", "an administrator makes it the preferred leader, and has it elected")
def prefer(cluster: DirectedCluster, node: int) -> None:
    controller = _controller(cluster)
    if broker_of(cluster, node) not in _state(cluster, PARTITION).replicas:
        raise Misused(f"{node} has no replica of {PARTITION}")
    cluster.prefer(node, controller)


@FORMS.form("read all at NODE", "a client reads from the beginning, and is waited for")
def read_all(cluster: DirectedCluster, node: int) -> None:
    cluster.until(lambda: cluster.read_to_the_end(node), "a reader has come to the end")


@FORMS.form("resign", "the active controller gives up its epoch")
def resign(cluster: DirectedCluster) -> None:
    cluster.resign(_controller(cluster))


def _controller(cluster: DirectedCluster) -> int:
    if cluster.active_controller is None:
        raise Misused("there is no active controller")
    return cluster.active_controller


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
    heading = ("broker", "process", "registered", "orders-0", "epoch", "high watermark", "log")
    cluster.story.tell(*table(heading, [_state_of(cluster, node) for node in cluster.brokers]))


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


@FORMS.form("logs", "value and epoch of each record of each replica")
def logs(cluster: DirectedCluster) -> None:
    cluster.story.tell(*logs_table({node: _cells(cluster, node) for node in cluster.brokers}))


def _cells(cluster: DirectedCluster, node: int) -> dict[int, str]:
    return {
        offset: f"{value}@{entry.epoch}"
        for entry in cluster.written(node).entries
        for offset, value in values_in(entry.records)
    }


FORMS.all += PARTITION_FORMS.all
