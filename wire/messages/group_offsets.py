"""Offsets that consumer groups have committed: commit, fetch, delete."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import Outcome, Throttled, ThrottledOutcome
from wire.primitives import ZERO_UUID


class OffsetCommitRequestPartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


class OffsetCommitRequestTopic(Message):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[OffsetCommitRequestPartition, ...]


class OffsetCommitRequest(Message):
    group_id: str
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1  # in versions 2 to 4; -1: the broker's setting
    topics: tuple[OffsetCommitRequestTopic, ...]


class OffsetCommitResponsePartition(Outcome):
    partition_index: int


class OffsetCommitResponseTopic(Message):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[OffsetCommitResponsePartition, ...]


class OffsetCommitResponse(Throttled):
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


class OffsetFetchRequestTopics(Message):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_indexes: tuple[int, ...] = ()


class OffsetFetchRequestGroup(Message):
    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None = None  # None: all


class OffsetFetchRequest(Message):
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    require_stable: bool = False


class OffsetFetchResponsePartitions(Outcome):
    partition_index: int
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str | None = ""


class OffsetFetchResponseTopics(Message):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[OffsetFetchResponsePartitions, ...]


class OffsetFetchResponseGroup(Outcome):
    group_id: str = ""  # absent before version 8, which has one group a response
    topics: tuple[OffsetFetchResponseTopics, ...] = ()


class OffsetFetchResponse(Throttled):
    groups: tuple[OffsetFetchResponseGroup, ...] = ()


class OffsetDeleteRequestPartition(Message):
    partition_index: int


class OffsetDeleteRequestTopic(Message):
    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Message):
    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


OffsetDeleteResponsePartition = OffsetCommitResponsePartition
OffsetDeleteResponseTopic = OffsetCommitResponseTopic


class OffsetDeleteResponse(ThrottledOutcome):
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
