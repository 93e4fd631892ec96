"""The levels of metadata.version, those that the rules ask for, and the names of the features.

Which version of each record a level writes is the wire's table (`wire.metadata_records`).

Source: Kafka's MetadataVersion, Feature and TransactionVersion; KIP-584, KIP-1022 (dependencies).
"""

from collections.abc import Mapping
from types import MappingProxyType

METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"
TRANSACTION_VERSION = "transaction.version"
KRAFT_VERSION = "kraft.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

OLDEST = 1  # 3.0-IV1: what a log without a level means
RECOVERY_STATE = 3  # 3.2-IV0: leaders that recover from an unclean election (KIP-704)
OLDEST_SUPPORTED = 7  # 3.3-IV3: the lowest that Kafka 4 supports
ZK_MIGRATION_STATE = 8  # 3.4-IV0
SCRAM = 11  # 3.5-IV2
NO_EPOCH_BUMP_ON_SHRINK = 12  # 3.6-IV0: a smaller ISR leaves the leader epoch alone
TRANSACTIONS = 13  # 3.6-IV1: of the metadata log (KIP-868)
CONTROLLER_REGISTRATION = 15  # 3.7-IV0 (KIP-919)
DIRECTORIES = 17  # 3.7-IV2 (KIP-858)
GROUP_VERSION_1 = 22  # 4.0-IV0: a new cluster begins with it (KIP-848)
ELIGIBLE_LEADERS = 23  # 4.0-IV1 (KIP-966)
TRANSACTION_VERSION_2 = 24  # 4.0-IV2: a new cluster begins with it (KIP-890)
CORDONED_DIRECTORIES = 30  # 4.3-IV0 (KIP-1066)
CIDR_HOSTS = 32  # 4.4-IV1: an ACL's host may be a network
CONTROLLER_REMOVAL = 33  # 4.4-IV2: UnregisterController

# The levels that changed the format of a record, or added one, or what a field may say.
FORMATS_CHANGED = frozenset({1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
# What a level of a feature needs of others.
DEPENDENCIES: Mapping[tuple[str, int], Mapping[str, int]] = MappingProxyType(
    {
        (ELR_VERSION, 1): {METADATA_VERSION: ELIGIBLE_LEADERS},
        (KRAFT_VERSION, 1): {METADATA_VERSION: 21},  # 3.9-IV0
    }
)
# What a release of Kafka calls each level. `4.3` alone means the highest of that release.
LEVEL_NAMES: Mapping[int, str] = MappingProxyType(
    {
        7: "3.3-IV3",
        8: "3.4-IV0",
        9: "3.5-IV0",
        10: "3.5-IV1",
        11: "3.5-IV2",
        12: "3.6-IV0",
        13: "3.6-IV1",
        14: "3.6-IV2",
        15: "3.7-IV0",
        16: "3.7-IV1",
        17: "3.7-IV2",
        18: "3.7-IV3",
        19: "3.7-IV4",
        20: "3.8-IV0",
        21: "3.9-IV0",
        22: "4.0-IV0",
        23: "4.0-IV1",
        24: "4.0-IV2",
        25: "4.0-IV3",
        26: "4.1-IV0",
        27: "4.1-IV1",
        28: "4.2-IV0",
        29: "4.2-IV1",
        30: "4.3-IV0",
        31: "4.4-IV0",
        32: "4.4-IV1",
        33: "4.4-IV2",
    }
)
NEWEST = max(LEVEL_NAMES)
# Features of Kafka that a quorum may finalise beside our nodes; what they stand for is not served.
NOT_SERVED: Mapping[str, str] = MappingProxyType(
    {SHARE_VERSION: "share groups (KIP-932)", STREAMS_VERSION: "streams groups (KIP-1071)"}
)


def level_of_release(name: str) -> int | None:
    """`4.3-IV0` is one level, `4.3` and `4.3.1` are the highest of 4.3; None if it is unknown."""
    for level, known in LEVEL_NAMES.items():
        if name == known:
            return level
    release = ".".join(name.split(".")[:2])
    found = [level for level, known in LEVEL_NAMES.items() if known.partition("-")[0] == release]
    return max(found, default=None)
