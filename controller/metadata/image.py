"""The cluster's metadata as one value: what the log up to an offset says.

`controller.metadata.apply` makes the successor of an image; images share what did not change, so
that holding several (committed, not yet committed, being described) costs little. Mappings in an
image are never changed in place.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from controller.metadata import metadata_version as levels
from controller.metadata.delta import ConfigResource, MetadataDelta
from controller.metadata.partitions import PartitionState, PartitionTable
from controller.metadata.topics import TopicImage, Topics
from quorum.core.types import NO_EPOCH, OffsetAndEpoch
from wire import metadata_records as records
from wire.primitives import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

__all__ = [
    "CLUSTER_DEFAULT",
    "BrokerImage",
    "ControllerImage",
    "MetadataImage",
    "OpenTransaction",
    "QuotaEntities",
    "ResourceType",
    "quota_entity",
]

_EMPTY_LOG = OffsetAndEpoch(0, NO_EPOCH)
_NOTHING: Mapping[Any, Any] = MappingProxyType({})
QuotaEntities = tuple[
    records.QuotaEntity, ...
]  # one or two, by type: a user, a client id, an address
CLUSTER_DEFAULT = ""  # the broker resource whose configs hold for every broker


def quota_entity(entities: Iterable[records.QuotaEntity]) -> QuotaEntities:
    """The entities in the order in which they are a key."""
    return tuple(sorted(entities, key=lambda entity: entity.entity_type))


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    id: int
    incarnation_id: UUID  # of the process
    epoch: int
    end_points: tuple[records.BrokerEndpoint, ...]
    features: Mapping[str, records.BrokerFeature]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[UUID, ...]  # online; empty if the broker told none
    cordoned_log_dirs: tuple[UUID, ...] | None = None  # get no new replicas; None: never told
    # Of its RegisterBroker record, or of the last one in the snapshot that it came with.
    registered_at_offset: int = field(compare=False)

    @property
    def is_active(self) -> bool:
        """May it lead, be in an ISR, and get new replicas?"""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_replicas(self) -> bool:
        """Has it a directory that is not cordoned? (KIP-1066)"""
        cordoned = self.cordoned_log_dirs or ()
        return not self.log_dirs or not set(self.log_dirs) <= set(cordoned)

    def has_online(self, directory: UUID) -> bool:
        """Is this directory usable there? A broker that never named its directories is taken to
        have it."""
        if directory == DIRECTORY_LOST:
            return False
        if directory in (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED):
            return True
        return not self.log_dirs or directory in self.log_dirs


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerImage:
    """A controller process that has registered (KIP-919)."""

    id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    end_points: tuple[records.BrokerEndpoint, ...]
    features: Mapping[str, records.BrokerFeature]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenTransaction:
    """A metadata transaction whose end is not in the log yet (KIP-868)."""

    before: "MetadataImage"
    delta: MetadataDelta  # what it changed so far


class MetadataImage(NamedTuple):
    """The metadata at `at`, whose offset is that of the next record.

    A tuple, because every batch makes one: `_replace` costs a quarter of a dataclass's `replace`.
    """

    at: OffsetAndEpoch = _EMPTY_LOG
    features: Mapping[str, int] = _NOTHING
    brokers: Mapping[int, BrokerImage] = _NOTHING
    controllers: Mapping[int, ControllerImage] = _NOTHING
    topics: Topics = Topics()
    partitions: PartitionTable = PartitionTable()
    configs: Mapping[ConfigResource, Mapping[str, str]] = _NOTHING
    next_producer_id: int = 0
    client_quotas: Mapping[QuotaEntities, Mapping[str, float]] = _NOTHING
    acls: Mapping[UUID, records.AccessControlEntryRecord] = _NOTHING
    scram_credentials: Mapping[tuple[str, int], records.UserScramCredentialRecord] = (
        _NOTHING  # by user and mechanism
    )
    delegation_tokens: Mapping[str, records.DelegationTokenRecord] = _NOTHING
    transaction: OpenTransaction | None = None
    lacks: str = ""  # the first thing in the log that this release does not know
    lacks_acls: bool = False  # may an ACL, or the removal of one, be among what it lacks?

    @property
    def beyond_us(self) -> str:
        """Why nothing may be decided on it, and no snapshot made of it; empty if it is whole.

        It may be followed all the same: the log keeps what the image lacks.
        """
        if not self.lacks and self.metadata_version > levels.NEWEST:
            return f"metadata.version {self.metadata_version}: known are up to {levels.NEWEST}"
        return self.lacks

    @property
    def stable(self) -> "MetadataImage":
        """What may be shown: without the changes of a transaction that is still open."""
        return self if self.transaction is None else self.transaction.before

    @property
    def metadata_version(self) -> int:
        return self.features.get(levels.METADATA_VERSION, levels.OLDEST)

    @property
    def has_directories(self) -> bool:
        """May records name directories? (KIP-858)"""
        return self.metadata_version >= levels.DIRECTORIES

    @property
    def has_eligible_leaders(self) -> bool:
        """May records name eligible leader replicas, and do elections use them? (KIP-966)"""
        is_on = self.features.get(levels.ELR_VERSION, 0) > 0
        return is_on and self.metadata_version >= levels.ELIGIBLE_LEADERS

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.by_name.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        return self.topics.by_id.get(topic_id)

    def partition(self, topic_id: UUID, index: int) -> PartitionState | None:
        topic = self.topics.by_id.get(topic_id)
        row = None if topic is None else topic.row(index)
        return None if row is None else self.partitions.state(row)

    def partitions_of(self, topic_id: UUID) -> Iterator[tuple[int, PartitionState]]:
        """Each partition of a topic with its index, ascending; none if there is no such topic."""
        topic = self.topics.by_id.get(topic_id)
        if topic is not None:
            for index, row in topic.partitions():
                yield index, self.partitions.state(row)

    def partitions_with(self, broker_id: int) -> Iterator[tuple[UUID, int, PartitionState]]:
        """Each partition that has a replica on the broker: topic id, index, state."""
        return self.partitions.partitions(self.partitions.rows_with_replica(broker_id))

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """What was set for this resource, without defaults."""
        return self.configs.get((resource_type, name), {})

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def is_acceptable(self, broker_id: int, directory: UUID) -> bool:
        """Could this broker lead a partition whose replica lies in `directory`?"""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active and broker.has_online(directory)
