"""What a controller of the ZooKeeper designs and brokers ask each other, as values.

Seed 000's LeaderAndISR and StopReplica, field by field; what seed 001 adds stands behind them, with
a default that says "this design has it not": controller epoch, broker generation, replicas, and
whether a stopped replica loses its log. `request_type_id` and `version_id` are those of the frame's
header. UpdateMetadata and ControlledShutdown are named by seed 001 without their fields: these are
those of Apache Kafka's, as far as anything here uses them. AlterIsr is seed 003's.

On the wire: `wire.zk.packing`. The API keys are in `wire.api_table`.
"""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "LEADER_DURING_DELETION",
    "NO_EPOCH",
    "AlterIsrRequest",
    "AlterIsrResponse",
    "ControlledShutdownRequest",
    "ControlledShutdownResponse",
    "LeaderAndIsr",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "ListenerAddress",
    "LiveBroker",
    "PartitionError",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "TopicPartition",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
]

NO_EPOCH = -1  # of a design that does not send it
LEADER_DURING_DELETION = -2  # in UpdateMetadata: the topic is being deleted


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsr:
    """Leader and ISR of one partition, as they stand in ZooKeeper at `zk_version`."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int  # incremented on each leadership change
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...] = ()  # seed 001's designs; seed 000 does not send them

    @property
    def of(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionError:
    topic: str
    partition: int
    error_code: ErrorCode


# --- controller to broker -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrRequest:
    client_id: int  # the broker id of the controller
    ack_timeout_ms: int
    is_init: bool = False  # the first command of a controller: it names all that the broker has
    partitions: tuple[LeaderAndIsr, ...] = ()
    controller_epoch: int = NO_EPOCH
    broker_generation: int = NO_EPOCH  # czxid of the znode of the broker that is meant


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrResponse:
    error_code: ErrorCode = ErrorCode.NONE
    results: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaRequest:
    client_id: int
    ack_timeout_ms: int
    partitions: tuple[TopicPartition, ...] = ()
    delete_partitions: bool = True  # seed 000's stopReplica always does
    controller_epoch: int = NO_EPOCH
    broker_generation: int = NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaResponse:
    error_code: ErrorCode = ErrorCode.NONE
    results: tuple[PartitionError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerAddress:
    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBroker:
    id: int
    listeners: tuple[ListenerAddress, ...]
    rack: str | None = None
    generation: int = NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataRequest:
    """All live brokers, and the partitions that changed."""

    client_id: int
    ack_timeout_ms: int
    live_brokers: tuple[LiveBroker, ...] = ()
    partitions: tuple[LeaderAndIsr, ...] = ()
    controller_epoch: int = NO_EPOCH
    broker_generation: int = NO_EPOCH
    is_full: bool = False  # topics that it does not name were deleted, maybe unheard


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataResponse:
    error_code: ErrorCode = ErrorCode.NONE


# --- broker to controller -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdownRequest:
    broker_id: int
    broker_generation: int = NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdownResponse:
    """`remaining` are the partitions that the broker still leads: it asks again."""

    error_code: ErrorCode = ErrorCode.NONE
    remaining: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterIsrRequest:
    """`zk_version` of a partition is the document's CurrentZkVersion."""

    broker_id: int
    broker_epoch: int
    partitions: tuple[LeaderAndIsr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterIsrResponse:
    error_code: ErrorCode = ErrorCode.NONE
    results: tuple[PartitionError, ...] = ()
