"""Small clusters for tests: images, and requests to put to them. For tests only."""

from collections.abc import Sequence
from uuid import UUID

from controller.config import ControllerConfig
from controller.metadata.apply import apply
from controller.metadata.changes import Change, record_count
from controller.metadata.image import MetadataImage
from quorum.core.types import OffsetAndEpoch
from wire import metadata_records as records
from wire.message import replace
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    Feature,
    RegisteredListener,
)

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
CONFIG = ControllerConfig(node_id=3000, cluster_id=CLUSTER_ID)
TOPIC = UUID(int=77 << 64 | 0x1234)
OTHER_TOPIC = UUID(int=78 << 64 | 0x1235)
FEATURES = (Feature(name="metadata.version", min_supported_version=7, max_supported_version=33),)


def directory(broker_id: int) -> UUID:
    return UUID(int=(5000 + broker_id) << 64)


def step(image: MetadataImage, *changes: Change) -> MetadataImage:
    end = image.at.offset + record_count(changes)
    return apply(image, changes, OffsetAndEpoch(end, 1))


def registered(
    broker_id: int, *, epoch: int | None = None, fenced: bool = False, **others: object
) -> records.RegisterBrokerRecord:
    """Broker n has epoch 100 + n and one directory, unless said otherwise."""
    epoch = 100 + broker_id if epoch is None else epoch
    record = records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=broker_id * 1000 + epoch),
        broker_epoch=epoch,
        end_points=(),
        features=(),
        rack=None,
        fenced=fenced,
        log_dirs=(directory(broker_id),),
    )
    return replace(record, **others)


def level(metadata_version: int = 25) -> records.FeatureLevelRecord:
    return records.FeatureLevelRecord(name="metadata.version", feature_level=metadata_version)


def cluster(*brokers: int | records.RegisterBrokerRecord, version: int = 25) -> MetadataImage:
    """Registered brokers at a metadata.version; a number stands for one that is up."""
    made = [registered(b) if isinstance(b, int) else b for b in brokers]
    return step(MetadataImage(), level(version), *made)


def partition(
    index: int = 0,
    replicas: Sequence[int] = (1, 2, 3),
    *,
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    topic_id: UUID = TOPIC,
    **others: object,
) -> records.PartitionRecord:
    isr = replicas if isr is None else isr
    record = records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=tuple(replicas),
        isr=tuple(isr),
        leader=(isr[0] if isr else -1) if leader is None else leader,
        leader_epoch=5,
        partition_epoch=10,
        directories=tuple(directory(replica) for replica in replicas),
    )
    return replace(record, **others)


def with_topic(
    image: MetadataImage,
    *partitions: records.PartitionRecord,
    name: str = "t",
    topic_id: UUID = TOPIC,
) -> MetadataImage:
    made = [replace(record, topic_id=topic_id) for record in partitions]
    return step(image, records.TopicRecord(name=name, topic_id=topic_id), *made)


def fenced(broker_id: int, *, epoch: int | None = None) -> records.BrokerRegistrationChangeRecord:
    epoch = 100 + broker_id if epoch is None else epoch
    return records.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1)


def leaving(broker_id: int) -> records.BrokerRegistrationChangeRecord:
    return records.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=100 + broker_id, in_controlled_shutdown=1
    )


def registration(broker_id: int, **others: object) -> BrokerRegistrationRequest:
    request = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=UUID(int=broker_id + 1),
        listeners=(
            RegisteredListener(name="PLAINTEXT", host="localhost", port=9092, security_protocol=0),
        ),
        features=FEATURES,
        rack=None,
        log_dirs=(directory(broker_id),),
    )
    return replace(request, **others)


def heartbeat(broker_id: int, epoch: int, offset: int, **others: object) -> BrokerHeartbeatRequest:
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=epoch,
        current_metadata_offset=offset,
        want_fence=False,
        want_shut_down=False,
    )
    return replace(request, **others)


def config(
    name: str, value: str | None, *, resource_type: int = 2, resource: str = "t"
) -> records.ConfigRecord:
    return records.ConfigRecord(
        resource_type=resource_type, resource_name=resource, name=name, value=value
    )
