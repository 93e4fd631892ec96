"""The levels of metadata.version that the rules ask for, and the names of the features.

Which version of each record a level writes is the wire's table (`wire.metadata_records`).

Source: Kafka's MetadataVersion, Feature and TransactionVersion; KIP-584, KIP-1022 (dependencies).
"""

from collections.abc import Mapping
from types import MappingProxyType

METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"
KRAFT_VERSION = "kraft.version"

OLDEST = 1  # 3.0-IV1: what a log without a level means
RECOVERY_STATE = 3  # 3.2-IV0: leaders that recover from an unclean election (KIP-704)
OLDEST_SUPPORTED = 7  # 3.3-IV3: the lowest that Kafka 4 supports
ZK_MIGRATION_STATE = 8  # 3.4-IV0
SCRAM = 11  # 3.5-IV2
NO_EPOCH_BUMP_ON_SHRINK = 12  # 3.6-IV0: a smaller ISR leaves the leader epoch alone
TRANSACTIONS = 13  # 3.6-IV1: of the metadata log (KIP-868)
CONTROLLER_REGISTRATION = 15  # 3.7-IV0 (KIP-919)
DIRECTORIES = 17  # 3.7-IV2 (KIP-858)
ELIGIBLE_LEADERS = 23  # 4.0-IV1 (KIP-966)

# The levels that changed the format of a record, or added one.
FORMATS_CHANGED = frozenset({1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30})
# What a level of a feature needs of others.
DEPENDENCIES: Mapping[tuple[str, int], Mapping[str, int]] = MappingProxyType(
    {
        (ELR_VERSION, 1): {METADATA_VERSION: ELIGIBLE_LEADERS},
        (KRAFT_VERSION, 1): {METADATA_VERSION: 21},  # 3.9-IV0
    }
)
