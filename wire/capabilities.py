"""A client's capabilities: the version of its request says what it can do, or can be told.

A broker asks for a capability by its name and knows no version: only this table does. A client of
the newest versions, and whoever asks without a version, lacks nothing.
"""

from enum import Enum
from functools import cache

from wire.messages.group_offsets import OffsetCommitRequest, OffsetFetchRequest
from wire.messages.groups import DescribeGroupsRequest, JoinGroupRequest, SyncGroupRequest
from wire.messages.producing import ProduceRequest

__all__ = ["NOTHING_LACKING", "Capability", "Lacking", "lacking"]


class Capability(Enum):
    WRITES_MAGIC_2 = "writes-magic-2"  # batches of the present format
    SENDS_ZSTD = "sends-zstd"  # KIP-110
    JOINS_AGAIN_WITH_ITS_ID = "joins-again-with-its-id"  # when told which is its own (KIP-394)
    SKIPS_ASSIGNMENT = "skips-assignment"  # a leader that need not assign (KIP-814)
    NAMES_ITS_PROTOCOL = "names-its-protocol"  # and has to (KIP-559)
    KNOWS_GROUP_ID_NOT_FOUND = "knows-group-id-not-found"
    TAKES_ERROR_OF_GROUP = "takes-error-of-group"  # beside those of its partitions


# By request: since which version.
_SINCE: dict[type, tuple[tuple[Capability, int], ...]] = {
    # Versions 0 to 2 are advertised, since librdkafka asks for them (KAFKA-18659).
    ProduceRequest: ((Capability.WRITES_MAGIC_2, 3), (Capability.SENDS_ZSTD, 7)),
    JoinGroupRequest: (
        (Capability.JOINS_AGAIN_WITH_ITS_ID, 4),
        (Capability.SKIPS_ASSIGNMENT, 9),
    ),
    SyncGroupRequest: ((Capability.NAMES_ITS_PROTOCOL, 5),),
    OffsetCommitRequest: ((Capability.KNOWS_GROUP_ID_NOT_FOUND, 9),),
    DescribeGroupsRequest: ((Capability.KNOWS_GROUP_ID_NOT_FOUND, 6),),
    OffsetFetchRequest: ((Capability.TAKES_ERROR_OF_GROUP, 2),),
}

Lacking = frozenset[Capability]
NOTHING_LACKING: Lacking = frozenset()


def lacking(kind: type, version: int) -> Lacking:
    """Return the capabilities that a client of this kind and version of request lacks."""
    return _lacking(kind, version) if kind in _SINCE else NOTHING_LACKING


@cache
def _lacking(kind: type, version: int) -> Lacking:
    return frozenset(each for each, since in _SINCE[kind] if version < since)
