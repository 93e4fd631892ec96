"""A simulated cluster in ZooKeeper mode, its administrator and a client, for tests."""

from collections import Counter
from dataclasses import dataclass, field

from broker.partition.partition import LeaderOf, Partition
from controller.zk.zk_metadata import state_path, topic_id_of
from jepsen_like.sim.assemblies.cluster.clients.client import Client, ClientSettings
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Acknowledged, Key
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster, ZkOptions
from jepsen_like.sim.ensemble.zk_client import EnsembleClient
from jepsen_like.sim.time.pace import AT_ONCE
from jepsen_like.workloads.workload import NewTopic
from quorum.core.effects import Effect, Event, RequestFailed, Response
from quorum.core.outbox import Outbox
from quorum.core.types import Endpoint
from wire.batch import Record, build_batch
from wire.errors import ErrorCode
from wire.messages.producing import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.primitives import ZERO_UUID
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Create, Data, GetChildren, GetData, Operation, Result
from wire.zk.znodes import PartitionState, TopicAssignment

__all__ = ["Administrator", "Producer", "Told", "begin", "of", "replica", "state_of", "write_to"]


@dataclass
class Told:
    """What a client was told."""

    acknowledged: list[tuple[Key, int, bytes]] = field(default_factory=list)
    read: set[tuple[Key, int, bytes]] = field(default_factory=set)
    refused: Counter[Key] = field(default_factory=Counter)

    @property
    def unread(self) -> list[tuple[Key, int, bytes]]:
        return [each for each in self.acknowledged if each not in self.read]

    def acknowledged_batch(self, key: Key, batch: Acknowledged) -> None:
        for place, value in enumerate(batch.values):
            self.acknowledged.append((key, batch.base_offset + place, value))


class _Judge:
    def __init__(self, told: Told) -> None:
        self._told = told

    def acknowledged(self, key: Key, batch: Acknowledged) -> None:
        self._told.acknowledged_batch(key, batch)

    def has_read(self, key: Key, offset: int, value: bytes) -> None:
        self._told.read.add((key, offset, value))

    def refused_position(self, key: Key, offset: int) -> None:
        self._told.refused[key] += 1

    def refused_sequence(self, key: Key, sequence: int) -> None:
        raise AssertionError(f"one batch at a time is in flight: {sequence} of {key}")


class Administrator:
    """An administrator writes to ZooKeeper directly."""

    def __init__(self, cluster: ZkCluster) -> None:
        self._cluster = cluster
        self._client = EnsembleClient(
            cluster.ensemble, "administrator", timeout_ms=10_000, hear=lambda _event: None
        )
        self._client.start()
        cluster.run(50)

    def do(self, operation: Operation) -> Result:
        results = self.begin(operation)
        self._cluster.run_until(lambda: bool(results))
        return results[0]

    def begin(self, operation: Operation) -> list[Result]:
        """The list will get the result."""
        results: list[Result] = []
        self._client.ask(operation, session_id=self._client.session_id, done=results.append)
        return results

    def create_topic(self, name: str, partitions: dict[int, tuple[int, ...]]) -> None:
        data = TopicAssignment(partitions=partitions).encode()
        self.do(Create(path=paths.topic(name), data=data))

    def data(self, path: str) -> bytes | None:
        found = self.do(GetData(path=path))
        return found.data if isinstance(found, Data) else None

    def children(self, path: str) -> tuple[str, ...]:
        return getattr(self.do(GetChildren(path=path)), "names", ())


class Producer:
    """A client that stays with the broker that it was told of, a core."""

    def __init__(self, cluster: ZkCluster) -> None:
        self._outbox = Outbox("client")
        self._host = cluster.add(self)

    def send(self, node_id: int, which: TopicPartition, value: bytes) -> list[object]:
        """Write with acks=all and much patience."""
        data = PartitionProduceData(
            index=which.partition, records=build_batch([Record(value=value)], timestamp_ms=1)
        )
        topic_id = topic_id_of(which.topic)
        topic = TopicProduceData(name=which.topic, topic_id=topic_id, partition_data=(data,))
        return self.ask(node_id, ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=(topic,)))

    def ask(self, node_id: int, body: object) -> list[object]:
        """The list gets the answer, or what the broker says of the partition that was written."""
        answers: list[object] = []

        def answered(event: Event, _now_ms: int) -> None:
            told: object = event.body if isinstance(event, Response) else None
            if isinstance(told, ProduceResponse):
                told = told.responses[0].partition_responses[0]
            answers.append(told)

        def send(_now_ms: int) -> None:
            self._outbox.ask(
                Endpoint(node_id, f"node-{node_id}", 9092),
                body,
                channel=f"to {node_id}",
                timeout_ms=60_000,
                answered=answered,
            )

        self._host.command(send)
        return answers

    def receive(self, event: Event, now_ms: int) -> None:
        assert isinstance(event, Response | RequestFailed), event
        self._outbox.deliver(event.token, event, now_ms)

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        """Nothing is due."""

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()


def begin(design: Design, *, seed: int = 1, **options: object) -> ZkCluster:
    """A cluster that serves."""
    wanted: dict[str, object] = {"turns_us": AT_ONCE, **options}
    cluster = ZkCluster(seed, ZkOptions(design=design, **wanted))  # type: ignore[arg-type]
    cluster.start()
    cluster.run_until(
        lambda: (
            (cluster.active_controller is not None or not design.has_controller)
            and all(node.broker.serves_clients for node in cluster.up)
        )
    )
    return cluster


def of(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


def state_of(
    cluster: ZkCluster, administrator: Administrator, which: TopicPartition
) -> PartitionState | None:
    data = administrator.data(state_path(cluster.options.design, which))
    return None if data is None else PartitionState.decode(data)


def replica(cluster: ZkCluster, node_id: int, which: TopicPartition) -> Partition | None:
    replicas = cluster.nodes[node_id].broker.replicas
    found = replicas.find(which.topic, ZERO_UUID, which.partition)
    return None if isinstance(found, ErrorCode) else found


def leaders(cluster: ZkCluster, which: TopicPartition) -> list[int]:
    """The brokers that take themselves for the leader."""
    return [
        node.broker.config.node_id
        for node in cluster.up
        if (found := replica(cluster, node.broker.config.node_id, which)) is not None
        and isinstance(found.role, LeaderOf)
    ]


def write_to(cluster: ZkCluster, *, partitions: int = 3, interval_ms: int = 20) -> Told:
    """A client that creates `orders`, writes to it and reads it."""
    told = Told()
    settings = ClientSettings(
        brokers=cluster.options.brokers,
        topic=NewTopic(name=TOPIC, partitions=partitions, replication_factor=3),
        timeout_ms=1000,
        interval_ms=interval_ms,
        is_idempotent=True,
    )
    client = Client(
        settings=settings,
        random=cluster.world.fork("client"),
        next_serial=cluster.world.sequence,
        judge=_Judge(told),
    )
    cluster.add(client)
    return told
