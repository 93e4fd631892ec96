"""A broker is given this configuration when it starts: who it is, its limits and its intervals.

Nothing is decided here. Names and defaults are Kafka's (`broker.heartbeat.interval.ms` is
`heartbeat_interval_ms`), so that `quorumlab.config` can fill it from server.properties.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

from controller.config import SUPPORTED_FEATURES
from wire.api_table import ListenerKind
from wire.messages.registration import Feature, RegisteredListener
from wire.primitives import INT32_MAX

__all__ = ["OWNER", "BrokerConfig", "GroupConfig", "TransactionConfig"]

_DAY_MS = 24 * 3_600_000
OWNER = "broker"  # of the core's tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """These are the limits and times of the coordinators of groups."""

    # Groups.
    initial_rebalance_delay_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = INT32_MAX  # members of a group
    new_member_join_timeout_ms: int = 300_000  # Kafka's, and no key of its own

    # Groups in which the coordinator assigns: group.consumer.*
    consumer_session_timeout_ms: int = 45_000
    consumer_session_timeout_range_ms: tuple[int, int] = (45_000, 60_000)  # what groups may set
    consumer_heartbeat_interval_ms: int = 5000
    consumer_heartbeat_interval_range_ms: tuple[int, int] = (5000, 15_000)
    consumer_assignment_interval_range_ms: tuple[int, int] = (0, 15_000)
    consumer_max_size: int = INT32_MAX
    consumer_migration_policy: str = "bidirectional"
    consumer_assignors: tuple[str, ...] = ("uniform", "range")  # the first, if none is asked for

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """These are the limits and times of the coordinators of transactions."""

    max_timeout_ms: int = 900_000  # transaction.max.timeout.ms: of a producer's transactions
    time_out_check_interval_ms: int = 10_000
    expiration_ms: int = 7 * _DAY_MS  # transactional.id.expiration.ms
    expiration_check_interval_ms: int = 3_600_000
    write_timeout_ms: int = 30_000  # a client does not wait for longer
    load_bytes_max: int = 128 << 10  # as that of groups

    # The topic of transactions: transaction.state.log.*
    topic_num_partitions: int = 50
    topic_replication_factor: int = 3
    topic_min_isr: int = 2
    topic_segment_bytes: int = 100 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    node_id: int
    cluster_id: str
    listeners: tuple[RegisteredListener, ...]  # as advertised; without the controllers' listener
    inter_broker_listener_name: str = "PLAINTEXT"
    log_dirs: tuple[UUID, ...]  # those that are online when the process starts
    log_dir_paths: Mapping[UUID, str] = field(default_factory=lambda: MappingProxyType({}))
    has_offline_log_dirs: bool = False  # others could not be read
    rack: str | None = None
    features: tuple[Feature, ...] = SUPPORTED_FEATURES
    listener_kind: ListenerKind = ListenerKind.BROKER
    previous_broker_epoch: int = -1  # from .kafka_cleanshutdown; -1: the last stop was not clean

    # Life-cycle.
    heartbeat_interval_ms: int = 2000
    session_timeout_ms: int = 9000  # the ceiling of backoff, and the timeout of a heartbeat
    initial_registration_timeout_ms: int = 60_000
    controlled_shutdown_enable: bool = True  # False: stop at once, whatever this broker leads
    controlled_shutdown_timeout_ms: int = 300_000  # Kafka waits five minutes for the controller
    log_dir_failure_timeout_ms: int = 30_000  # for the controller to hear of it

    # It is told of its replicas, and has none: no logs, no fetches. So that the control plane can
    # be measured alone.
    is_dataless: bool = False

    # Replication.
    # False: followers know of no leader epochs. They take back all above their high watermark
    # before they follow, and ask without saying what they have (before KIP-101).
    follows_by_epoch: bool = True
    replica_lag_time_max_ms: int = 30_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_min_bytes: int = 1
    replica_fetch_max_bytes: int = 1 << 20
    replica_fetch_response_max_bytes: int = 10 << 20
    replica_fetch_backoff_ms: int = 1000
    replica_socket_timeout_ms: int = 30_000
    high_watermark_checkpoint_interval_ms: int = 5000
    controller_retry_backoff_ms: int = 50  # AlterPartition after a top-level error
    log_retention_check_interval_ms: int = 300_000
    log_cleaner_enable: bool = True

    # Clients.
    fetch_max_bytes: int = 55 << 20
    session_cache_slots: int = 1000  # max.incremental.fetch.session.cache.slots
    session_eviction_ms: int = 120_000  # min.incremental.fetch.session.eviction.ms
    parked_requests_max: int = 10_000
    hold_max_ms: int = 30_000  # requests that arrive before the broker first runs
    forward_timeout_ms: int = 60_000

    groups: GroupConfig = field(default_factory=GroupConfig)
    transactions: TransactionConfig = field(default_factory=TransactionConfig)

    # Topics.
    auto_create_topics: bool = True
    num_partitions: int = -1  # of auto-created topics; -1: what the controller's default is
    default_replication_factor: int = -1
    # Settings of server.properties under Kafka's names. They are the static level below the
    # dynamic ones of the metadata log, and what DescribeConfigs shows.
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
