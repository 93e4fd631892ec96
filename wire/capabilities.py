"""A client's capabilities: the version of its request says what it can do, or can be told.

A broker asks for a capability by its name and knows no version: only this table does. A client of
the newest versions, and whoever asks without a version, lacks nothing.
"""

from enum import Enum
from functools import cache

from wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from wire.messages.group_offsets import OffsetCommitRequest, OffsetFetchRequest
from wire.messages.groups import DescribeGroupsRequest, JoinGroupRequest, SyncGroupRequest
from wire.messages.producing import InitProducerIdRequest, ProduceRequest
from wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

__all__ = ["NOTHING_LACKING", "Capability", "Lacking", "lacking"]


class Capability(Enum):
    WRITES_MAGIC_2 = "writes-magic-2"  # batches of the present format
    SENDS_ZSTD = "sends-zstd"  # KIP-110
    ADDS_TO_TRANSACTION = "adds-to-transaction"  # by writing (KIP-890)
    KNOWS_TRANSACTION_ABORTABLE = "knows-transaction-abortable"  # KIP-890
    JOINS_AGAIN_WITH_ITS_ID = "joins-again-with-its-id"  # when told which is its own (KIP-394)
    SKIPS_ASSIGNMENT = "skips-assignment"  # a leader that need not assign (KIP-814)
    MAKES_ITS_MEMBER_ID = "makes-its-member-id"  # KIP-1082
    NAMES_ITS_PROTOCOL = "names-its-protocol"  # and has to (KIP-559)
    KNOWS_GROUP_ID_NOT_FOUND = "knows-group-id-not-found"
    NAMES_TOPICS_BY_ID = "names-topics-by-id"  # and is told of them by it
    TAKES_ERROR_OF_GROUP = "takes-error-of-group"  # beside those of its partitions
    KNOWS_PRODUCER_FENCED = "knows-producer-fenced"  # KIP-588
    TAKES_NEXT_EPOCH = "takes-next-epoch"  # when it ends a transaction (KIP-890)
    ASKS_AS_BROKER = "asks-as-broker"  # for the producers that write to it (KIP-890)
    KNOWS_LOAD_IN_PROGRESS = "knows-load-in-progress"  # of a coordinator
    KNOWS_THROTTLING_QUOTA_EXCEEDED = "knows-throttling-quota-exceeded"  # KIP-599


# By request: since which version.
_SINCE: dict[type, tuple[tuple[Capability, int], ...]] = {
    # Versions 0 to 2 are advertised, since librdkafka asks for them (KAFKA-18659).
    ProduceRequest: (
        (Capability.WRITES_MAGIC_2, 3),
        (Capability.SENDS_ZSTD, 7),
        (Capability.KNOWS_TRANSACTION_ABORTABLE, 11),
        (Capability.ADDS_TO_TRANSACTION, 12),
    ),
    JoinGroupRequest: (
        (Capability.JOINS_AGAIN_WITH_ITS_ID, 4),
        (Capability.SKIPS_ASSIGNMENT, 9),
    ),
    ConsumerGroupHeartbeatRequest: ((Capability.MAKES_ITS_MEMBER_ID, 1),),
    SyncGroupRequest: ((Capability.NAMES_ITS_PROTOCOL, 5),),
    OffsetCommitRequest: (
        (Capability.KNOWS_GROUP_ID_NOT_FOUND, 9),
        (Capability.NAMES_TOPICS_BY_ID, 10),
    ),
    DescribeGroupsRequest: ((Capability.KNOWS_GROUP_ID_NOT_FOUND, 6),),
    OffsetFetchRequest: (
        (Capability.TAKES_ERROR_OF_GROUP, 2),
        (Capability.NAMES_TOPICS_BY_ID, 10),
    ),
    InitProducerIdRequest: ((Capability.KNOWS_PRODUCER_FENCED, 4),),
    AddPartitionsToTxnRequest: (
        (Capability.KNOWS_PRODUCER_FENCED, 2),
        (Capability.ASKS_AS_BROKER, 4),
    ),
    AddOffsetsToTxnRequest: ((Capability.KNOWS_PRODUCER_FENCED, 2),),
    EndTxnRequest: ((Capability.KNOWS_PRODUCER_FENCED, 2), (Capability.TAKES_NEXT_EPOCH, 5)),
    TxnOffsetCommitRequest: (
        (Capability.KNOWS_LOAD_IN_PROGRESS, 2),
        (Capability.KNOWS_TRANSACTION_ABORTABLE, 4),
        (Capability.ADDS_TO_TRANSACTION, 5),
    ),
    CreateTopicsRequest: ((Capability.KNOWS_THROTTLING_QUOTA_EXCEEDED, 6),),
    CreatePartitionsRequest: ((Capability.KNOWS_THROTTLING_QUOTA_EXCEEDED, 3),),
    DeleteTopicsRequest: ((Capability.KNOWS_THROTTLING_QUOTA_EXCEEDED, 5),),
}

Lacking = frozenset[Capability]
NOTHING_LACKING: Lacking = frozenset()


def lacking(kind: type, version: int) -> Lacking:
    """Return the capabilities that a client of this kind and version of request lacks."""
    return _lacking(kind, version) if kind in _SINCE else NOTHING_LACKING


@cache
def _lacking(kind: type, version: int) -> Lacking:
    return frozenset(each for each, since in _SINCE[kind] if version < since)
