"""The payloads of ZooKeeper's nodes: values that encode and decode themselves.

They are compact JSON with a `version`, the keys in the order in which Apache Kafka 3.9 writes them;
the epoch of the controller is a bare integer. Readers ignore unknown keys and take lower versions,
as Kafka's do. A payload that cannot be decoded raises `InvalidZnode`.

For some nodes the documents give the contents but not the form, which is then ours, in the same
manner: the nodes of single partitions under `/admin` in `zk-v3`; in `zk-v1` and `zk-v2` the leader,
ISR and replicas of a partition, and the state changes that a leader sends to a broker. `zk-v1` has
no epochs: they are NO_EPOCH there, and not written.

Source: seed 004, "Ha-related zookeeper structures"; nodes written by Apache Kafka 3.9; seed 000,
paths 5 and 6; seed 002; the place of the epoch of `zk-v2` is reconstructed.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Self
from uuid import UUID

from msgspec import MsgspecError, convert, field, json, to_builtins

from wire.message import Message
from wire.primitives import ZERO_UUID, parse_uuid, uuid_text

TopicPartition = tuple[str, int]
NO_LEADER = -1


class InvalidZnode(ValueError):
    """The message says what was expected, and where."""


class Znode(Message):
    """A payload in JSON: an object of the version and then the fields, in their order."""

    VERSION: ClassVar[int | str] = 1

    def encode(self) -> bytes:
        return json.encode({"version": self.VERSION} | to_builtins(self))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Numbers may be texts, as Kafka writes its timestamps. Raises InvalidZnode."""
        try:
            return convert(cls.adapted(json.decode(data)), cls, strict=False, str_keys=True)
        except (MsgspecError, ValueError, RecursionError) as error:
            raise InvalidZnode(f"{cls.__name__}: {error}: {data[:50]!r}") from error

    @classmethod
    def adapted(cls, values: Any) -> Any:
        """The values of the JSON object, with those replaced that JSON has no type for."""
        return values


def encode_epoch(epoch: int) -> bytes:
    """`/controller_epoch`: no JSON, unlike any other node."""
    return str(epoch).encode()


def decode_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as error:
        raise InvalidZnode(f"an epoch is an integer, not {data[:50]!r}") from error


class ControllerOwner(Znode, rename={"broker_id": "brokerid", "timestamp_ms": "timestamp"}):
    """`/controller`: version 1, or 2 with the epoch that a migration to KRaft would set."""

    broker_id: int
    timestamp_ms: int = 0
    version: int = 1

    def encode(self) -> bytes:
        values: dict[str, Any] = {
            "version": self.version,
            "brokerid": self.broker_id,
            "timestamp": str(self.timestamp_ms),
        }
        if self.version >= 2:
            values["kraftControllerEpoch"] = -1
        return json.encode(values)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """An administrator may write a bare broker id: seed 001, "controller leader election"."""
        if data.strip().isdigit():
            return cls(broker_id=int(data), version=0)
        return super().decode(data)


class BrokerRegistration(
    Znode, rename={"protocols": "listener_security_protocol_map", "timestamp_ms": "timestamp"}
):
    """`/brokers/ids/<id>`: where a broker listens. The czxid of the node is its epoch.

    `host` and `port` are those of the first PLAINTEXT endpoint. Version 1 has nothing else;
    endpoints, as "LISTENER://host:port", come with 2, the rack with 3, the protocols of listeners
    with 4, features with 5.
    """

    host: str
    port: int
    version: int = 1
    endpoints: tuple[str, ...] = ()
    protocols: Mapping[str, str] = field(default_factory=dict)  # by listener
    rack: str | None = None
    timestamp_ms: int = 0
    jmx_port: int = -1

    def encode(self) -> bytes:
        values: dict[str, Any] = {}
        if self.version >= 5:
            values["features"] = {}
        if self.version >= 4:
            values["listener_security_protocol_map"] = self.protocols
        if self.version >= 2:
            values["endpoints"] = self.endpoints
        if self.version >= 3 and self.rack is not None:
            values["rack"] = self.rack
        values |= {
            "jmx_port": self.jmx_port,
            "port": self.port,
            "host": self.host,
            "version": self.version,
            "timestamp": str(self.timestamp_ms),
        }
        return json.encode(values)


Replicas = Mapping[int, tuple[int, ...]]  # by partition; the first is preferred


class TopicAssignment(Znode, rename={"adding": "adding_replicas", "removing": "removing_replicas"}):
    """`/brokers/topics/<topic>`. Version 2 has the changes under way, 3 the id of the topic."""

    partitions: Replicas
    version: int = 1
    topic_id: UUID = ZERO_UUID
    adding: Replicas = field(default_factory=dict)
    removing: Replicas = field(default_factory=dict)

    def encode(self) -> bytes:
        partitions: dict[str, Any] = {"partitions": self.partitions}
        if self.version < 2:
            return json.encode({"version": self.version} | partitions)
        if self.version >= 3:
            partitions["topic_id"] = uuid_text(self.topic_id)
        changes: dict[str, Any] = {
            "adding_replicas": self.adding,
            "removing_replicas": self.removing,
            "version": self.version,
        }
        return json.encode(partitions | changes)

    @classmethod
    def adapted(cls, values: Any) -> Any:
        match values:
            case {"topic_id": str(text)}:
                return values | {"topic_id": parse_uuid(text)}
            case {"topic_id": None}:
                return values | {"topic_id": ZERO_UUID}
        return values


class PartitionState(Znode):
    """Leader and ISR of a partition, and the epoch of the controller that decided them.

    The version of the node is Kafka's zkVersion.
    """

    controller_epoch: int
    leader: int  # NO_LEADER: there is none
    leader_epoch: int
    isr: tuple[int, ...]

    def encode(self) -> bytes:
        values = to_builtins(self)
        first = {name: values.pop(name) for name in ("controller_epoch", "leader")}
        return json.encode(first | {"version": self.VERSION} | values)


class _Partition(Message):
    topic: str
    partition: int


class _Replicas(_Partition):
    replicas: tuple[int, ...]


class _Partitions(Znode):
    partitions: tuple[_Partition, ...]


class _Moves(Znode):
    partitions: tuple[_Replicas, ...]


class PartitionList(Message):
    """`/admin/preferred_replica_election`, and what lies in `/isr_change_notification`."""

    partitions: tuple[TopicPartition, ...]

    def encode(self) -> bytes:
        named = tuple(_Partition(topic=topic, partition=index) for topic, index in self.partitions)
        return _Partitions(partitions=named).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        listed = _Partitions.decode(data).partitions
        return cls(partitions=tuple((each.topic, each.partition) for each in listed))


class Reassignments(Message):
    """`/admin/reassign_partitions`: the new replicas of partitions."""

    replicas: Mapping[TopicPartition, tuple[int, ...]]

    def encode(self) -> bytes:
        moves = tuple(
            _Replicas(topic=topic, partition=partition, replicas=replicas)
            for (topic, partition), replicas in self.replicas.items()
        )
        return _Moves(partitions=moves).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        moves = _Moves.decode(data).partitions
        return cls(replicas={(each.topic, each.partition): each.replicas for each in moves})


class EntityConfig(Znode):
    """`/config/<type>/<name>`."""

    config: Mapping[str, str] = field(default_factory=dict)


class ConfigChange(Znode):
    """`/config/changes/config_change_<n>`: the `<type>/<name>` to read again."""

    VERSION = 2
    entity_path: str


class ClusterId(Znode):
    """`/cluster/id`; its version is a text."""

    VERSION = "1"
    id: str


class ProducerIdBlock(
    Znode, rename={"broker_id": "broker", "first": "block_start", "last": "block_end"}
):
    """`/latest_producer_id_block`: the last block and its broker. Both ends are inclusive."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        block = {"block_start": str(self.first), "block_end": str(self.last)}
        return json.encode({"version": self.VERSION, "broker": self.broker_id, **block})


NO_EPOCH = -1


class ReplicaList(Znode):
    """The replicas of a partition, present or future; the first is the preferred one."""

    replicas: tuple[int, ...]


class PartitionLeader(Znode, omit_defaults=True):
    """The ephemeral node of the replica that won the election."""

    leader: int
    leader_epoch: int = NO_EPOCH


class PartitionIsr(Znode, omit_defaults=True):
    """The in-sync replicas, and the epoch of the leader that wrote them."""

    isr: tuple[int, ...]
    leader_epoch: int = NO_EPOCH


class StateChangeKind(Enum):
    START_REPLICA = "start-replica"
    CLOSE_REPLICA = "close-replica"


class StateChange(Znode, rename={"kind": "request"}):
    """One request in the queue of a broker."""

    kind: StateChangeKind
    topic: str
    partition: int
    leader_epoch: int
