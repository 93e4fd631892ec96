"""The parts that only a node with a broker has: the broker, its readiness, its part of the pages.

Only those nodes load this module: a controller starts sooner without.
"""

from random import Random
from typing import TYPE_CHECKING, Any

from broker.broker import Broker
from broker.membership.lifecycle import BrokerState
from broker.replica_counts import broker_counts, replica_marks
from quorum.log.files.file_storage import FileStorage
from quorum.node.directories import DataDirectories
from quorum.raft.raft_node import RaftNode
from quorumlab.config import NodeConfig
from quorumlab.settings import broker_config

if TYPE_CHECKING:
    from quorum.raftos.raftos_node import RaftosNode

__all__ = ["broker_of", "describe", "replica_marks", "why_not_serving"]


def broker_of(
    config: NodeConfig,
    directories: DataDirectories,
    storage: FileStorage,
    raft: "RaftNode | RaftosNode",
    random: Random,
) -> Broker:
    return Broker.of_quorum(
        broker_config(config, directories, offline=storage.offline), raft, random, storage.found
    )


def why_not_serving(broker: Broker) -> str | None:
    """Returns, for people, what keeps the broker from its clients; None if nothing does."""
    state = broker.lifecycle.state
    if state is not BrokerState.RUNNING or not broker.serves_clients:
        return f"the broker does not serve clients: it is {state.name.lower()}"
    own = broker.cluster.own_registration
    if own is None or own.fenced:
        return "the broker is fenced: the controller has not heard of it for a while"
    return None


def describe(broker: Broker) -> dict[str, Any]:
    """The broker's part of /v1/node. Keys are added, never changed."""
    counts = broker_counts(broker.replicas, broker.cluster.image)
    state = broker.lifecycle.state
    return {
        "state": state.name.lower(),
        "state_code": state.value,
        "broker_epoch": broker.broker_epoch,
        "metadata_offset": broker.metadata.published_offset,
        "partitions": counts["PartitionCount"],
        "leaders": counts["LeaderCount"],
        "under_replicated": counts["UnderReplicatedPartitions"],
        "under_min_isr": counts["UnderMinIsrPartitionCount"],
        "at_min_isr": counts["AtMinIsrPartitionCount"],
        "offline_replicas": counts["OfflineReplicaCount"],
    }
