"""The values of a group of the consumer protocol, which its records change.

A subscription is what a member says of itself. Its target is what the assignor gives it. Its
current assignment is what it has, or has to give back, and in which epoch each partition was given
to it.

Source: KIP-848, KIP-1251 (epochs of partitions); Kafka's ConsumerGroupMember and MemberState.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from wire.message import Message
from wire.record_schema import Bytes, Int32, Int64, String

__all__ = [
    "JOINS",
    "LEAVES",
    "LEAVES_FOR_A_WHILE",
    "ClassicProtocol",
    "ClassicSide",
    "ConsumerChange",
    "Current",
    "CurrentChange",
    "EpochChange",
    "MemberState",
    "PatternChange",
    "Resolved",
    "Subscription",
    "SubscriptionChange",
    "Target",
    "TargetChange",
    "TargetEpochChange",
    "TopicPartition",
]

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2  # in place of a member's epoch

TopicPartition = tuple[UUID, int]
Target = frozenset[TopicPartition]


class MemberState(Enum):
    """Where a member is on its way to its target. The values are those of Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to give partitions back first
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others have to give back
    UNKNOWN = 127


class ClassicProtocol(Message):
    name: String
    metadata: Bytes


class ClassicSide(Message):
    """A member of the classic protocol says this beside its subscription."""

    session_timeout_ms: Int32
    protocols: tuple[ClassicProtocol, ...]


class Subscription(Message):
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    topic_names: tuple[String, ...] = ()  # sorted
    topic_pattern: String | None = ""
    rebalance_timeout_ms: Int32 = -1
    assignor: String | None = None


class Resolved(Message):
    """The topics that match a pattern, sorted, at a version of the metadata."""

    topics: tuple[String, ...] = ()
    version: Int64 = 0
    timestamp_ms: Int64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Mapping[TopicPartition, int] = field(default_factory=dict)  # since which epoch
    revoking: Mapping[TopicPartition, int] = field(default_factory=dict)


# --- changes: None stands for what is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochChange:
    group_id: str
    epoch: int | None
    metadata_hash: int = 0  # of the topics that are subscribed to


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionChange:
    group_id: str
    member_id: str
    subscription: Subscription | None
    classic: ClassicSide | None = None  # of a member that speaks the classic protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEpochChange:
    group_id: str
    epoch: int | None
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChange:
    group_id: str
    member_id: str
    partitions: Target | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentChange:
    group_id: str
    member_id: str
    current: Current | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternChange:
    group_id: str
    pattern: str
    resolved: Resolved | None


ConsumerChange = (
    EpochChange
    | SubscriptionChange
    | TargetEpochChange
    | TargetChange
    | CurrentChange
    | PatternChange
)
