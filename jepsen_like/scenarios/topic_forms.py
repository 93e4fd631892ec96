"""Commands of a cluster for topics beside orders: made, written to, read by their id, deleted.

A topic is named in the scenario, since another one of the same name in the cluster may follow it.
"""

from jepsen_like.scenarios.directed_clients import values_in
from jepsen_like.scenarios.directed_cluster import DirectedCluster
from jepsen_like.scenarios.forms import Forms, Misused
from jepsen_like.sim.assemblies.cluster.client import Key
from wire.batch import data_batch
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.messages.producing import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

__all__ = ["TOPIC_FORMS"]

TOPIC_FORMS = Forms()
_BYTES = 1 << 20


@TOPIC_FORMS.form("NAME = new topic VALUE on NODE", "one partition and one replica, there")
def create(cluster: DirectedCluster, name: str, value: str, node: int) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=(node,))
    topic = CreatableTopic(name=value, assignments=(assignment,))
    cluster.ask(cluster.controller, CreateTopicsRequest(topics=(topic,)))
    watched = cluster.cluster.partitions.watched.items()
    (key,) = (key for key, each in watched if each.name == f"{value}-0" and each.state)
    cluster.until(lambda: cluster.is_leading(node, key), "the topic can be written to")
    cluster.topics[name] = key


@TOPIC_FORMS.form("delete topic VALUE", "by its name in the cluster")
def delete(cluster: DirectedCluster, value: str) -> None:
    cluster.ask(cluster.controller, DeleteTopicsRequest(topics=(DeleteTopicState(name=value),)))


@TOPIC_FORMS.form("write VALUE to topic NAME at NODE", "by its id, with acks=all")
def write(cluster: DirectedCluster, value: str, name: str, node: int) -> None:
    topic_id, partition = _key(cluster, name)
    data = PartitionProduceData(
        index=partition, records=data_batch([value.encode()], timestamp_ms=0)
    )
    topic = TopicProduceData(topic_id=topic_id, partition_data=(data,))
    cluster.ask(node, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)))


@TOPIC_FORMS.form("read topic NAME at NODE", "by its id alone, from the beginning")
def read(cluster: DirectedCluster, name: str, node: int) -> None:
    key = _key(cluster, name)
    place = FetchPartition(partition=key[1], fetch_offset=0, partition_max_bytes=_BYTES)
    topic = FetchTopic(topic_id=key[0], partitions=(place,))
    answer = cluster.ask(node, FetchRequest(max_wait_ms=0, topics=(topic,)))
    assert isinstance(answer, FetchResponse), answer
    for offset, value in values_in(answer.responses[0].partitions[0].records or b""):
        cluster.cluster.has_read(key, offset, value.encode())


def _key(cluster: DirectedCluster, name: str) -> Key:
    if name not in cluster.topics:
        raise Misused(f"no topic is named {name} here: `{name} = new topic NAME on NODE` makes one")
    return cluster.topics[name]
