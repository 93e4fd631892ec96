"""Three controllers of ours as processes, asked over the Kafka protocol on their own listener.

A put is a topic's configuration (IncrementalAlterConfigs): one ConfigRecord in the metadata log,
acknowledged once it is committed. The topics lie on a broker that is only registered, by us.
"""

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Self
from uuid import UUID

from benchmarks.peers.load import CONFIG, REQUESTS_PREPARED, TOPICS, Load, Sample, drive, topics
from controller.config import SUPPORTED_FEATURES
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.kafka_client import Client, NoAnswer
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.shape import Shape
from quorumlab import __version__
from wire.apis import encode_request, encode_response
from wire.errors import ErrorCode
from wire.framing import with_length
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    RegisteredListener,
)
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from wire.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumPartitionResult,
    QuorumTopic,
)

__all__ = [
    "Quorum",
    "QuorumInline",
    "alter_configs",
    "encoded_answer",
    "encoded_request",
    "leader_of",
    "register_topics",
]

_READY_SECONDS = 20.0
_TIMEOUT_SECONDS = 15.0
_ALTER_CONFIGS, _VERSION = 44, 1
_TOPIC = 2  # the resource type
_SET = 0
_BROKER_ID = 1
_LENGTH = struct.Struct(">i")
NO_SETTINGS: Mapping[str, str] = {}
_ONE_PUT = Load(name="", in_flight=1, puts=1, seconds=0.0, first_value=2_000_000_000)
_SETTINGS = {
    "default.replication.factor": "1",
    "broker.session.timeout.ms": "3600000",  # nobody sends the broker's heartbeats
}


class Quorum:
    name = "quorumlab"
    durable = "fsync on a majority"
    warm_up_seconds = 0.5

    def __init__(self, directory: Path, settings: Mapping[str, str] = NO_SETTINGS) -> None:
        """Time-outs are Kafka's defaults, as the other systems have theirs, unless given."""
        layout = Shape(controllers=3, brokers=0).lay_out(directory, free_ports())
        self.cluster = LocalCluster(layout, {**_SETTINGS, **settings})
        self._killed: NodeLayout | None = None

    @staticmethod
    def missing() -> str | None:
        return None

    @staticmethod
    def version() -> str:
        return __version__

    def __enter__(self) -> Self:
        try:
            self.start()
            leader, _ = self.leader()
            register_topics(leader.host, leader.port, self.cluster.layout.cluster_id)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the controllers, and wait until they are ready."""
        self.cluster.start_all()
        self.cluster.wait_ready()

    def stop(self) -> None:
        self.cluster.stop_all()

    def measure(self, load: Load) -> Sample:
        leader, _ = self.leader()
        client = AlterConfigs(leader.host, leader.port, load)
        try:
            return drive(client, load)
        finally:
            client.close()

    def committed(self) -> int:
        return self.leader()[1].high_watermark

    def processes(self) -> list[int]:
        return [process.pid for process in self.cluster.running().values()]

    def kill_leader(self) -> None:
        self._killed = self.leader()[0]
        self.cluster.kill(self._killed.id)

    def try_put(self, number: int) -> bool:
        """Ask each node that lives for one put; whether one of them acknowledged it."""
        body = alter_configs(_ONE_PUT, number)
        for node in self.cluster.layout.controllers:
            if node != self._killed and _is_done(node, body):
                return True
        return False

    def restore(self) -> None:
        """Start the node that was killed, and wait until it is ready."""
        assert self._killed is not None
        self.cluster.start(self._killed.id)
        self.cluster.wait_ready()
        self._killed = None

    def leader(self) -> tuple[NodeLayout, QuorumPartitionResult]:
        return leader_of(self.cluster)


class QuorumInline(Quorum):
    """Syncs may stop a controller for 50 ms: they run inline on a disk that is often slow, too."""

    name = "quorumlab inline"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, {"quorumlab.inline.sync.max.ms": "50"})


class AlterConfigs:
    """The Client of `drive`: requests and the answers they must get, both encoded ahead."""

    def __init__(self, host: str, port: int, load: Load) -> None:
        self._socket = socket.create_connection((host, port), _TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        numbers = range(REQUESTS_PREPARED)
        self._requests = [encoded_request(load, number) for number in numbers]
        self._answers = [encoded_answer(load, number) for number in numbers]
        self._buffer = bytearray()
        self._next_answer = count()

    def send(self, number: int) -> None:
        self._socket.sendall(self._requests[number % REQUESTS_PREPARED])

    def receive(self) -> Sequence[int]:
        done: list[int] = []
        while not done:
            part = self._socket.recv(1 << 16)
            assert part, "the controller closed the connection"
            self._buffer += part
            done = self._take()
        return done

    def close(self) -> None:
        self._socket.close()

    def _take(self) -> list[int]:
        """Whole answers, in the order of the requests."""
        done = []
        buffer, position = self._buffer, 0
        while position + _LENGTH.size <= len(buffer):
            end = position + _LENGTH.size + _LENGTH.unpack_from(buffer, position)[0]
            if end > len(buffer):
                break
            number = next(self._next_answer)
            expected = self._answers[number % REQUESTS_PREPARED]
            assert buffer[position:end] == expected, f"refused: {bytes(buffer[position:end])!r}"
            done.append(number)
            position = end
        del buffer[:position]
        return done


def alter_configs(load: Load, number: int) -> IncrementalAlterConfigsRequest:
    value = AlterableConfig(
        name=CONFIG, config_operation=_SET, value=str(load.first_value + number)
    )
    resources = tuple(
        AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=(value,))
        for topic in topics(load, number)
    )
    return IncrementalAlterConfigsRequest(resources=resources)


def encoded_request(load: Load, number: int) -> bytes:
    """The frame of request `number`, whose correlation id it is."""
    body = alter_configs(load, number)
    return b"".join(with_length(encode_request(body, _VERSION, number, "benchmark")))


def encoded_answer(load: Load, number: int) -> bytes:
    """The frame that acknowledges every put of request `number`, in its order."""
    answers = tuple(
        AlterConfigsResourceResponse(resource_type=_TOPIC, resource_name=topic)
        for topic in topics(load, number)
    )
    body = IncrementalAlterConfigsResponse(responses=answers)
    return b"".join(with_length(encode_response(body, _ALTER_CONFIGS, _VERSION, number)))


def register_topics(host: str, port: int, cluster_id: str, *, has_broker: bool = False) -> None:
    """Create the topics of the load, on a broker that is only registered unless there is one."""
    with Client([(host, port)]) as client:
        if not has_broker:
            _register_broker(client, cluster_id)
        wanted = tuple(
            CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS
        )
        created = client.ask(CreateTopicsRequest(topics=wanted), CreateTopicsResponse)
    refused = [topic for topic in created.topics if topic.error_code is not ErrorCode.NONE]
    assert not refused, refused[0]


def leader_of(cluster: LocalCluster) -> tuple[NodeLayout, QuorumPartitionResult]:
    """The active controller, and how its quorum is."""
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        for node in cluster.layout.controllers:
            described = _describe(node)
            if described is not None:
                return node, described
        time.sleep(0.05)
    raise RuntimeError(f"no active controller after {_READY_SECONDS:.0f} s")


def _describe(node: NodeLayout) -> QuorumPartitionResult | None:
    """The state of the quorum, if this node leads it."""
    partitions = (QuorumPartition(partition_index=0),)
    topic = QuorumTopic(topic_name="__cluster_metadata", partitions=partitions)
    try:
        with Client([(node.host, node.port)], timeout_seconds=2.0) as client:
            answer = client.ask(DescribeQuorumRequest(topics=(topic,)), DescribeQuorumResponse)
    except NoAnswer:
        return None
    if answer.error_code is not ErrorCode.NONE:
        return None
    partition = answer.topics[0].partitions[0]
    return partition if partition.error_code is ErrorCode.NONE else None


def _is_done(node: NodeLayout, body: IncrementalAlterConfigsRequest) -> bool:
    try:
        with Client([(node.host, node.port)], timeout_seconds=1.0) as client:
            answer = client.ask(body, IncrementalAlterConfigsResponse)
    except NoAnswer:
        return False
    return all(each.error_code is ErrorCode.NONE for each in answer.responses)


def _register_broker(client: Client, cluster_id: str) -> None:
    """One broker that does not exist, unfenced by one heartbeat, so that topics can be placed."""
    registration = BrokerRegistrationRequest(
        broker_id=_BROKER_ID,
        cluster_id=cluster_id,
        incarnation_id=UUID(int=0xB),
        listeners=(RegisteredListener(name="PLAINTEXT", host="127.0.0.1", port=9092),),
        features=SUPPORTED_FEATURES,
        log_dirs=(UUID(int=0xD1),),
    )
    deadline = time.monotonic() + _READY_SECONDS
    registered = client.ask(registration, BrokerRegistrationResponse)
    while registered.error_code is ErrorCode.NOT_CONTROLLER and time.monotonic() < deadline:
        time.sleep(0.05)  # it leads, and has not yet written that it does (Kafka's)
        registered = client.ask(registration, BrokerRegistrationResponse)
    assert registered.error_code is ErrorCode.NONE, registered
    heartbeat = BrokerHeartbeatRequest(
        broker_id=_BROKER_ID,
        broker_epoch=registered.broker_epoch,
        current_metadata_offset=registered.broker_epoch,
    )
    answer = client.ask(heartbeat, BrokerHeartbeatResponse)
    assert answer.error_code is ErrorCode.NONE, answer
    assert not answer.is_fenced, answer
