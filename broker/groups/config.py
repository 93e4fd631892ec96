"""What the coordinator of groups is told: its limits and times, and its topic.

Decides nothing. Names and defaults are Kafka's (`group.initial.rebalance.delay.ms` is
`initial_rebalance_delay_ms`).

Source: Kafka's GroupCoordinatorConfig.
"""

from dataclasses import dataclass

from wire.primitives import INT32_MAX

__all__ = ["GroupConfig"]

_DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    # Groups.
    initial_rebalance_delay_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = INT32_MAX  # members of a group
    new_member_join_timeout_ms: int = 300_000  # Kafka's, and no key of its own

    # Offsets.
    offset_metadata_max_bytes: int = 4096
    commit_timeout_ms: int = 5000  # offsets.commit.timeout.ms: of every write
    retention_ms: int = 7 * _DAY_MS  # offsets.retention.minutes
    retention_check_interval_ms: int = 600_000
    load_bytes_max: int = 128 << 10  # a piece: what may stop the event loop for 10 to 30 ms

    # The topic of offsets.
    topic_num_partitions: int = 50
    topic_replication_factor: int = 3
    topic_segment_bytes: int = 100 << 20
