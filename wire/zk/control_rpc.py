"""Requests between the controller and brokers of the ZooKeeper designs, and their responses.

LeaderAndISR and StopReplica have seed 000's fields in their order, then those that seed 001 adds,
with defaults for the designs that do not have them: controller epoch, broker generation, replicas,
and whether a stopped replica loses its log. `request_type_id` and `version_id` are those of the
frame's header. UpdateMetadata and ControlledShutdown are named by seed 001 without their fields:
these are those of Apache Kafka's, as far as anything here uses them. AlterIsr is seed 003's, nested
as it is written there and without a field more.

On the wire: msgpack, an array of the fields in their order. A peer of another release may send
fewer (the rest have their defaults) or more (the rest are ignored). The API keys are in
`wire.api_table`.
"""

from collections.abc import Mapping
from typing import TypeVar

from wire.errors import ErrorCode
from wire.message import Message

T = TypeVar("T")
NO_EPOCH = -1  # of a design that does not send it
LEADER_DURING_DELETION = -2  # in UpdateMetadata: the topic is being deleted


class _Value(Message, array_like=True):
    """A struct that msgspec packs as an array."""


class TopicPartition(_Value, kw_only=False, order=True):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LeaderAndIsr(_Value):
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


class PartitionError(_Value):
    topic: str
    partition: int
    error_code: ErrorCode


# --- controller to broker -------------------------------------------------------------------


class LeaderAndIsrRequest(_Value):
    client_id: int  # the broker id of the controller
    ack_timeout_ms: int
    is_init: bool = False  # the first command of a controller: it names all that the broker has
    partitions: tuple[LeaderAndIsr, ...] = ()
    controller_epoch: int = NO_EPOCH
    broker_generation: int = NO_EPOCH  # czxid of the znode of the broker that is meant


class LeaderAndIsrResponse(_Value):
    error_code: ErrorCode = ErrorCode.NONE
    results: tuple[PartitionError, ...] = ()


class StopReplicaRequest(_Value):
    client_id: int
    ack_timeout_ms: int
    partitions: tuple[TopicPartition, ...] = ()
    delete_partitions: bool = True  # seed 000's stopReplica always does
    controller_epoch: int = NO_EPOCH
    broker_generation: int = NO_EPOCH


class StopReplicaResponse(_Value):
    error_code: ErrorCode = ErrorCode.NONE
    results: tuple[PartitionError, ...] = ()


class ListenerAddress(_Value):
    listener: str
    host: str
    port: int


class LiveBroker(_Value):
    id: int
    listeners: tuple[ListenerAddress, ...]
    rack: str | None = None
    generation: int = NO_EPOCH


class UpdateMetadataRequest(_Value):
    """It has all live brokers, and the partitions that changed."""

    client_id: int
    ack_timeout_ms: int
    live_brokers: tuple[LiveBroker, ...] = ()
    partitions: tuple[LeaderAndIsr, ...] = ()
    controller_epoch: int = NO_EPOCH
    broker_generation: int = NO_EPOCH
    is_full: bool = False  # topics that it does not name were deleted, maybe unheard


class UpdateMetadataResponse(_Value):
    error_code: ErrorCode = ErrorCode.NONE


# --- broker to controller -------------------------------------------------------------------


class ControlledShutdownRequest(_Value):
    broker_id: int
    broker_generation: int = NO_EPOCH


class ControlledShutdownResponse(_Value):
    """`remaining` are the partitions that the broker still leads: it asks again."""

    error_code: ErrorCode = ErrorCode.NONE
    remaining: tuple[TopicPartition, ...] = ()


class WantedIsr(_Value):
    """Seed 003's LeaderAndIsr: the ISR that a leader wants, at the version that it knows."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    current_zk_version: int


class AlterIsrPartition(_Value):
    partition: int
    leader_and_isr: WantedIsr


class AlterIsrTopic(_Value):
    topic: str
    partitions: tuple[AlterIsrPartition, ...]


class AlterIsrRequest(_Value):
    broker_id: int
    broker_epoch: int
    topics: tuple[AlterIsrTopic, ...] = ()

    @classmethod
    def of(
        cls, broker_id: int, broker_epoch: int, wanted: Mapping[TopicPartition, WantedIsr]
    ) -> "AlterIsrRequest":
        topics = tuple(
            AlterIsrTopic(
                topic=topic,
                partitions=tuple(
                    AlterIsrPartition(partition=number, leader_and_isr=each)
                    for number, each in partitions
                ),
            )
            for topic, partitions in _by_topic(wanted).items()
        )
        return cls(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)

    @property
    def wanted(self) -> dict[TopicPartition, WantedIsr]:
        return {
            TopicPartition(topic.topic, each.partition): each.leader_and_isr
            for topic in self.topics
            for each in topic.partitions
        }


class AlterIsrPartitionError(_Value):
    partition: int
    error_code: ErrorCode


class AlterIsrTopicErrors(_Value):
    topic: str
    partitions: tuple[AlterIsrPartitionError, ...]


class AlterIsrResponse(_Value):
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[AlterIsrTopicErrors, ...] = ()

    @classmethod
    def of(cls, errors: Mapping[TopicPartition, ErrorCode]) -> "AlterIsrResponse":
        topics = tuple(
            AlterIsrTopicErrors(
                topic=topic,
                partitions=tuple(
                    AlterIsrPartitionError(partition=number, error_code=error)
                    for number, error in partitions
                ),
            )
            for topic, partitions in _by_topic(errors).items()
        )
        return cls(topics=topics)

    @property
    def errors(self) -> dict[TopicPartition, ErrorCode]:
        return {
            TopicPartition(topic.topic, each.partition): each.error_code
            for topic in self.topics
            for each in topic.partitions
        }


def _by_topic(values: Mapping[TopicPartition, T]) -> dict[str, list[tuple[int, T]]]:
    grouped: dict[str, list[tuple[int, T]]] = {}
    for of, each in values.items():
        grouped.setdefault(of.topic, []).append((of.partition, each))
    return grouped
