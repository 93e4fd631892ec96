"""A simulated cluster in ZooKeeper mode, its administrator and a client, for tests."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from broker.partition.partition import Partition
from controller.zk.zk_metadata import state_path, topic_id_of
from jepsen_like.sim.assemblies.cluster.clients.client import Client, ClientSettings
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Acknowledged, Key
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster, ZkOptions
from jepsen_like.sim.ensemble.zk_client import EnsembleClient
from jepsen_like.sim.time.pace import AT_ONCE
from jepsen_like.sim.world.network import Message
from jepsen_like.workloads.workload import NewTopic
from quorum.core.effects import Effect, Event, RequestFailed, Response
from quorum.core.outbox import Outbox
from quorum.core.types import Endpoint
from wire.batch import Record, build_batch
from wire.messages.producing import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import DESIGNS, Design
from wire.zk.session import Create, Data, GetChildren, GetData, Operation, Result, SetData
from wire.zk.znodes import PartitionState, Reassignments, ReplicaList, TopicAssignment

__all__ = [
    "NO_STATE",
    "WITH_CONTROLLER",
    "Administrator",
    "Producer",
    "Scene",
    "T",
    "Told",
    "begin",
    "fetches_of",
    "nothing",
    "of",
]

NO_STATE = PartitionState(leader=-1, leader_epoch=0, isr=(), controller_epoch=0)
T = TopicPartition("t", 0)
WITH_CONTROLLER = [design for design in DESIGNS.values() if design.has_controller]


def of(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


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


class Scene(ZkCluster):
    """A cluster, and what tests ask of it."""

    @property
    def controller(self) -> int:
        assert self.active_controller is not None
        return self.active_controller

    @property
    def others(self) -> tuple[int, ...]:
        """The brokers that are not the controller."""
        return tuple(each for each in self.brokers if each != self.active_controller)

    def one_and_rest(self) -> tuple[int, tuple[int, ...]]:
        """A broker that is not the controller, and all others."""
        one = self.others[0]
        return one, tuple(each for each in self.brokers if each != one)

    def create(self, partitions: dict[int, tuple[int, ...]]) -> "Administrator":
        """An administrator who has created `t`, all partitions of which are led."""
        administrator = Administrator(self)
        administrator.create_topic("t", partitions)
        for partition in partitions:
            self.settle(of("t", partition), ms=0)
        self.run(500)
        return administrator

    def settle(self, which: TopicPartition = T, *, ms: int = 500) -> None:
        """Someone leads, and all that live have had the time to be in sync."""
        self.run_until(lambda: len(self.leaders(which)) == 1)
        self.run(ms)

    def leaders(self, which: TopicPartition = T) -> list[int]:
        """The brokers that take themselves for the leader."""
        return [node.broker.config.node_id for node in self.up if node.leads(which)]

    def replica(self, node_id: int, which: TopicPartition = T) -> Partition | None:
        """What the broker's process, or its last one, has of the partition."""
        return self.nodes[node_id].replica(which)

    def held(self, node_id: int, which: TopicPartition = T) -> Partition:
        """The replica that a broker must have."""
        found = self.replica(node_id, which)
        assert found is not None
        return found

    def has_log(self, node_id: int, log: str = "t-0") -> bool:
        return log in self.hosts[node_id].disk.logs

    def state(self, which: TopicPartition = T) -> PartitionState:
        """As ZooKeeper has it."""
        data = self.ensemble.data(state_path(self.options.design, which))
        return NO_STATE if data is None else PartitionState.decode(data)

    def assigned(self, partition: int = 0) -> tuple[int, ...]:
        """The replicas of a partition of `t`."""
        data = self.ensemble.data(paths.topic("t"))
        assert data is not None
        return TopicAssignment.decode(data).partitions[partition]

    def step_to(self, is_so: Callable[[], bool]) -> None:
        """To the very moment."""
        end_us = self.world.now_us + 20_000_000
        while not is_so():
            assert self.world.now_us < end_us
            self.world.run_until(self.world.now_us + 20, events_max=2_000_000)

    def write(self, *, partitions: int = 3, interval_ms: int = 20) -> Told:
        """A client that creates `orders`, writes to it and reads it: 1.5 s later."""
        told = Told()
        settings = ClientSettings(
            brokers=self.options.brokers,
            topic=NewTopic(name=TOPIC, partitions=partitions, replication_factor=3),
            timeout_ms=1000,
            interval_ms=interval_ms,
            is_idempotent=True,
        )
        client = Client(
            settings=settings,
            random=self.world.fork("client"),
            next_serial=self.world.sequence,
            judge=_Judge(told),
        )
        self.add(client)
        self.run(1500)
        return told


class Administrator:
    """An administrator writes to ZooKeeper directly."""

    def __init__(self, cluster: Scene) -> None:
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

    def move(self, targets: dict[int, tuple[int, ...]]) -> None:
        """Ask for these replicas of partitions of `t`, or for others while some are on the way."""
        wanted = {("t", partition): each for partition, each in targets.items()}
        data = Reassignments(replicas=wanted).encode()
        kind = Create if self.has_moved() else SetData
        self.do(kind(path=paths.REASSIGN_PARTITIONS, data=data))

    def has_moved(self) -> bool:
        return self.data(paths.REASSIGN_PARTITIONS) is None

    def ask_under(self, root: str, partition: int, replicas: tuple[int, ...] | None) -> str:
        """Ask for it in a node under `root`, whose path is returned. None: without replicas."""
        path = paths.partition_under(root, "t", partition)
        self.do(Create(path=paths.parent(path)))
        data = b"" if replicas is None else ReplicaList(replicas=replicas).encode()
        self.do(Create(path=path, data=data))
        return path

    def assignment(self, topic: str = "t") -> dict[int, tuple[int, ...]]:
        data = self.data(paths.topic(topic))
        assert data is not None
        return dict(TopicAssignment.decode(data).partitions)

    def data(self, path: str) -> bytes | None:
        found = self.do(GetData(path=path))
        return found.data if isinstance(found, Data) else None

    def children(self, path: str) -> tuple[str, ...]:
        return getattr(self.do(GetChildren(path=path)), "names", ())


class Producer:
    """A client that stays with the broker that it was told of, a core."""

    def __init__(self, cluster: Scene) -> None:
        self._cluster = cluster
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

    def told(self, node_id: int, body: object) -> object:
        """The answer, or None."""
        answers = self.ask(node_id, body)
        self._cluster.run_until(lambda: bool(answers))
        return answers[0]

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


def begin(design: Design, *, seed: int = 1, **options: object) -> Scene:
    """A cluster that serves."""
    wanted: dict[str, object] = {"turns_us": AT_ONCE, **options}
    cluster = Scene(seed, ZkOptions(design=design, **wanted))  # type: ignore[arg-type]
    cluster.start()
    cluster.run_until(
        lambda: (
            (cluster.active_controller is not None or not design.has_controller)
            and all(node.broker.serves_clients for node in cluster.up)
        )
    )
    return cluster


def nothing(_message: Message) -> bool:
    return False


def fetches_of(*brokers: int) -> Callable[[Message], bool]:
    """The network takes their fetches away: they stay behind."""
    return lambda message: message.channel == "replica-fetch" and message.source in brokers
