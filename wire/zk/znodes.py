"""What is in ZooKeeper's nodes: values that know their bytes.

Compact JSON with a `version`, its keys in the order in which Apache Kafka 3.9 writes them; the
epoch of the controller is a bare integer. Readers ignore keys that they do not know and take lower
versions, as Kafka's do. What cannot be read at all, because a person wrote it, is `InvalidZnode`.

Where the documents name no payload (nodes of single partitions in `zk-v3`, everything of `zk-v1`
and `zk-v2`) the form is ours, in the same manner: `wire.zk.replica_znodes`.

Source: seed 004, "Ha-related zookeeper structures"; nodes written by Apache Kafka 3.9.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from wire.primitives import ZERO_UUID, parse_uuid, uuid_text
from wire.zk.json_fields import Fields, InvalidZnode, Json, compact, integers

__all__ = [
    "NO_LEADER",
    "BrokerRegistration",
    "ClusterId",
    "ConfigChange",
    "ControllerOwner",
    "EntityConfig",
    "InvalidZnode",
    "PartitionList",
    "PartitionState",
    "ProducerIdBlock",
    "Reassignments",
    "TopicAssignment",
    "TopicPartition",
    "decode_epoch",
    "encode_epoch",
]

TopicPartition = tuple[str, int]
NO_LEADER = -1


def encode_epoch(epoch: int) -> bytes:
    """`/controller_epoch`: no JSON, unlike any other node."""
    return str(epoch).encode()


def decode_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as error:
        raise InvalidZnode(f"an epoch is an integer, not {data[:50]!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOwner:
    """`/controller`: version 1, or 2 with the epoch that a migration to KRaft would set."""

    broker_id: int
    timestamp_ms: int = 0
    version: int = 1

    def encode(self) -> bytes:
        values: dict[str, Json] = {
            "version": self.version,
            "brokerid": self.broker_id,
            "timestamp": str(self.timestamp_ms),
        }
        if self.version >= 2:
            values["kraftControllerEpoch"] = -1
        return compact(values)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """An administrator may write a bare broker id: seed 001, "controller leader election"."""
        if data.strip().isdigit():
            return cls(broker_id=int(data), version=0)
        fields = Fields.of(data)
        return cls(
            broker_id=fields.integer("brokerid"),
            timestamp_ms=fields.integer("timestamp", default=0),
            version=fields.integer("version", default=1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
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
        values: dict[str, Json] = {}
        if self.version >= 5:
            values["features"] = {}
        if self.version >= 4:
            values["listener_security_protocol_map"] = dict(self.protocols)
        if self.version >= 2:
            values["endpoints"] = list(self.endpoints)
        if self.version >= 3 and self.rack is not None:
            values["rack"] = self.rack
        values |= {
            "jmx_port": self.jmx_port,
            "port": self.port,
            "host": self.host,
            "version": self.version,
            "timestamp": str(self.timestamp_ms),
        }
        return compact(values)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.of(data)
        return cls(
            host=fields.text("host"),
            port=fields.integer("port"),
            version=fields.integer("version", default=1),
            endpoints=tuple(fields.texts("endpoints")),
            protocols=fields.text_map("listener_security_protocol_map"),
            rack=fields.optional_text("rack"),
            timestamp_ms=fields.integer("timestamp", default=0),
            jmx_port=fields.integer("jmx_port", default=-1),
        )


Replicas = Mapping[int, tuple[int, ...]]  # by partition; the first is preferred


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """`/brokers/topics/<topic>`. Version 2 has the changes under way, 3 the id of the topic."""

    partitions: Replicas
    version: int = 1
    topic_id: UUID = ZERO_UUID
    adding: Replicas = field(default_factory=dict)
    removing: Replicas = field(default_factory=dict)

    def encode(self) -> bytes:
        partitions: dict[str, Json] = {"partitions": _replicas_json(self.partitions)}
        if self.version < 2:
            return compact({"version": self.version} | partitions)
        if self.version >= 3:
            partitions["topic_id"] = uuid_text(self.topic_id)
        changes: dict[str, Json] = {
            "adding_replicas": _replicas_json(self.adding),
            "removing_replicas": _replicas_json(self.removing),
            "version": self.version,
        }
        return compact(partitions | changes)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.of(data)
        text = fields.optional_text("topic_id")
        return cls(
            partitions=fields.integer_lists("partitions"),
            version=fields.integer("version", default=1),
            topic_id=ZERO_UUID if text is None else fields.checked("topic_id", parse_uuid, text),
            adding=fields.integer_lists("adding_replicas", is_optional=True),
            removing=fields.integer_lists("removing_replicas", is_optional=True),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Leader and ISR of a partition, and whose decision it was.

    The version of the node stands for that of the decision: Kafka's zkVersion.
    """

    leader: int  # NO_LEADER: there is none
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int

    def encode(self) -> bytes:
        return compact(
            {
                "controller_epoch": self.controller_epoch,
                "leader": self.leader,
                "version": 1,
                "leader_epoch": self.leader_epoch,
                "isr": list(self.isr),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.of(data)
        return cls(
            leader=fields.integer("leader"),
            leader_epoch=fields.integer("leader_epoch"),
            isr=fields.integers("isr"),
            controller_epoch=fields.integer("controller_epoch"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionList:
    """`/admin/preferred_replica_election`, and what lies in `/isr_change_notification`."""

    partitions: tuple[TopicPartition, ...]

    def encode(self) -> bytes:
        listed: list[Json] = [
            {"topic": topic, "partition": partition} for topic, partition in self.partitions
        ]
        return compact({"version": 1, "partitions": listed})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        each = Fields.of(data).objects("partitions")
        return cls(partitions=tuple((one.text("topic"), one.integer("partition")) for one in each))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignments:
    """`/admin/reassign_partitions`: the new replicas of partitions."""

    replicas: Mapping[TopicPartition, tuple[int, ...]]

    def encode(self) -> bytes:
        listed: list[Json] = [
            {"topic": topic, "partition": partition, "replicas": list(replicas)}
            for (topic, partition), replicas in self.replicas.items()
        ]
        return compact({"version": 1, "partitions": listed})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        each = Fields.of(data).objects("partitions")
        return cls(
            replicas={
                (one.text("topic"), one.integer("partition")): one.integers("replicas")
                for one in each
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityConfig:
    """`/config/<type>/<name>`."""

    config: Mapping[str, str]

    def encode(self) -> bytes:
        return compact({"version": 1, "config": dict(self.config)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(config=Fields.of(data).text_map("config"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """`/config/changes/config_change_<n>`: which `<type>/<name>` to read again."""

    entity_path: str

    def encode(self) -> bytes:
        return compact({"version": 2, "entity_path": self.entity_path})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(entity_path=Fields.of(data).text("entity_path"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterId:
    """`/cluster/id`; its version is a text."""

    id: str

    def encode(self) -> bytes:
        return compact({"version": "1", "id": self.id})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(id=Fields.of(data).text("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """`/latest_producer_id_block`: who took which ids last. Both ends belong to it."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        return compact(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first),
                "block_end": str(self.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.of(data)
        return cls(
            broker_id=fields.integer("broker"),
            first=fields.integer("block_start"),
            last=fields.integer("block_end"),
        )


def _replicas_json(replicas: Replicas) -> dict[str, Json]:
    return {str(partition): integers(each) for partition, each in replicas.items()}
