"""The settings of each core, from the configuration of its node."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from random import Random
from uuid import UUID

from broker.config import BrokerConfig, GroupConfig, TransactionConfig
from broker.groups.consumer.assignors import ASSIGNORS
from broker.groups.conversion import MIGRATION_POLICIES
from controller.config import ControllerConfig
from controller.metadata.image import MetadataImage
from controller.quotas.connection_rates import ConnectionRates, ListenerRates
from controller.quotas.sampled_rate import Windows
from controller.quotas.throttle import ClientThrottle
from quorum.core.log_settings import LogSettings
from quorum.core.types import ReplicaKey
from quorum.log.files.log_directories import StorageSettings
from quorum.node.directories import DataDirectories
from quorum.raft.config import QuorumConfig, SnapshotSettings
from quorum.raft.voters import Voter, VoterSet
from quorumlab.config import ConfigError, NodeConfig
from quorumlab.config import Listener as NamedListener
from quorumlab.first_records import DEFAULT_RECORDS, FirstRecords
from quorumlab.security.driver_listeners import listener_kind
from wire.control_records import VoterEndpoint
from wire.messages.registration import RegisteredListener
from wire.primitives import random_uuid
from wire.zk.designs import Truncation

__all__ = [
    "broker_config",
    "client_throttle",
    "controller_config",
    "is_guarded",
    "quorum_config",
    "snapshot_settings",
    "storage_settings",
]

_PREALLOCATED_BYTES = 4 << 20


def is_guarded(config: NodeConfig) -> bool:
    """Has the node a door, at which it is decided who may do what?"""
    return bool(config.text("authorizer.class.name") or config.text("quorumlab.node.principals"))


def storage_settings(config: NodeConfig) -> StorageSettings:
    preallocates = config.flag("quorumlab.metadata.log.preallocate")
    # A node with partitions serves clients with the thread that would wait for the disk.
    inline_sync_ms = 0 if config.is_broker else config.number("quorumlab.inline.sync.max.ms")
    return StorageSettings(
        metadata=LogSettings(
            segment_bytes=config.number("metadata.log.segment.bytes"),
            segment_ms=config.number("metadata.log.segment.ms"),
            preallocate_bytes=_PREALLOCATED_BYTES if preallocates else 0,
        ),
        partitions=LogSettings(
            segment_bytes=config.number("log.segment.bytes"),
            segment_ms=config.number("log.roll.ms"),
        ),
        voters=tuple(voter.node_id for voter in config.voters),
        descriptors_max=config.number("quorumlab.open.files.max"),
        inline_sync_seconds=inline_sync_ms / 1000,
    )


def snapshot_settings(config: NodeConfig) -> SnapshotSettings:
    return SnapshotSettings(
        bytes_between=config.number("metadata.log.max.record.bytes.between.snapshots"),
        interval_ms=config.number("metadata.log.max.snapshot.interval.ms"),
        retention_bytes=config.number("metadata.max.retention.bytes"),
        retention_ms=config.number("metadata.max.retention.ms"),
    )


def quorum_config(config: NodeConfig, *, cluster_id: str, directory_id: UUID) -> QuorumConfig:
    # Static voters are known by id alone: their directory ids are not in the configuration.
    voters = VoterSet.of(Voter(ReplicaKey(voter.node_id), voter) for voter in config.voters)
    return QuorumConfig(
        node_id=config.node_id,
        directory_id=directory_id,
        cluster_id=cluster_id,
        voters=voters,
        bootstrap_servers=config.bootstrap_servers,
        listener_name=config.controller_listener,
        listeners=tuple(
            VoterEndpoint(name=listener.name, host=listener.host, port=listener.port)
            for listener in config.advertised_controllers
        ),
        auto_join=config.flag("controller.quorum.auto.join.enable"),
        syncs=config.is_controller,
        election_timeout_ms=config.number("controller.quorum.election.timeout.ms"),
        fetch_timeout_ms=config.number("controller.quorum.fetch.timeout.ms"),
        election_backoff_max_ms=config.number("controller.quorum.election.backoff.max.ms"),
        request_timeout_ms=config.number("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=config.number("controller.quorum.retry.backoff.ms"),
        snapshots=snapshot_settings(config),
    )


def _registered(
    config: NodeConfig, listeners: Iterable[NamedListener]
) -> tuple[RegisteredListener, ...]:
    return tuple(
        RegisteredListener(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=config.protocols[each.name],
        )
        for each in listeners
    )


def controller_config(
    config: NodeConfig, *, cluster_id: str, random: Random, first: FirstRecords = DEFAULT_RECORDS
) -> ControllerConfig:
    return ControllerConfig(
        node_id=config.node_id,
        cluster_id=cluster_id,
        bootstrap_features=first.levels,
        bootstrap_records=first.others,
        incarnation_id=random_uuid(random),
        listeners=_registered(config, config.advertised_controllers),
        session_timeout_ms=config.number("broker.session.timeout.ms"),
        heartbeat_interval_ms=config.number("broker.heartbeat.interval.ms"),
        max_idle_interval_ms=config.number("metadata.max.idle.interval.ms"),
        num_partitions=config.number("num.partitions"),
        default_replication_factor=config.number("default.replication.factor"),
        delete_topic_enable=config.flag("delete.topic.enable"),
        unclean_election_interval_ms=config.number("unclean.leader.election.interval.ms"),
        auto_leader_rebalance_enable=config.flag("auto.leader.rebalance.enable"),
        leader_imbalance_check_interval_ms=(
            config.number("leader.imbalance.check.interval.seconds") * 1000
        ),
        static_configs=config.given,
        quota_window_count=config.number("controller.quota.window.num"),
        quota_window_ms=config.number("controller.quota.window.size.seconds") * 1000,
    )


def client_throttle(config: NodeConfig, image: Callable[[], MetadataImage]) -> ClientThrottle:
    windows = Windows(
        count=config.number("quota.window.num"),
        length_ms=config.number("quota.window.size.seconds") * 1000,
    )
    control = set(config.controller_listeners)
    for_clients = {each.name for each in config.listeners} - control
    protected = control | ({config.inter_broker_listener} if len(for_clients) > 1 else set())
    rates = ListenerRates(
        node_id=config.node_id,
        static=config.given,
        protected=frozenset(protected if for_clients else ()),
    )
    return ClientThrottle(image, windows, ConnectionRates(windows, rates))


def broker_config(
    config: NodeConfig, directories: DataDirectories, *, offline: Collection[UUID] = ()
) -> BrokerConfig:
    """`offline` are those among the directories that turned out to be unreadable."""
    online = [each.directory_id for each in directories.data if each.directory_id not in offline]
    return BrokerConfig(
        node_id=config.node_id,
        cluster_id=directories.cluster_id,
        listeners=_registered(config, config.advertised_brokers),
        inter_broker_listener_name=config.inter_broker_listener,
        log_dirs=tuple(sorted(online)),
        log_dir_paths={
            each.directory_id: str(Path(each.path).absolute()) for each in directories.data
        },
        has_offline_log_dirs=bool(offline) or directories.has_unreadable,
        rack=config.text("broker.rack"),
        listener_kind=listener_kind(config, config.inter_broker_listener),
        is_dataless=config.flag("quorumlab.broker.dataless"),
        follows_by_epoch=(
            config.design is None or config.design.truncation is Truncation.LEADER_EPOCH
        ),
        previous_broker_epoch=-1 if offline else directories.previous_broker_epoch,
        heartbeat_interval_ms=config.number("broker.heartbeat.interval.ms"),
        session_timeout_ms=config.number("broker.session.timeout.ms"),
        initial_registration_timeout_ms=config.number("initial.broker.registration.timeout.ms"),
        controlled_shutdown_enable=config.flag("controlled.shutdown.enable"),
        log_dir_failure_timeout_ms=config.number("log.dir.failure.timeout.ms"),
        log_retention_check_interval_ms=config.number("log.retention.check.interval.ms"),
        log_cleaner_enable=config.flag("log.cleaner.enable"),
        controlled_shutdown_timeout_ms=config.number("quorumlab.controlled.shutdown.timeout.ms"),
        replica_lag_time_max_ms=config.number("replica.lag.time.max.ms"),
        replica_fetch_wait_max_ms=config.number("replica.fetch.wait.max.ms"),
        replica_fetch_min_bytes=config.number("replica.fetch.min.bytes"),
        replica_fetch_max_bytes=config.number("replica.fetch.max.bytes"),
        replica_fetch_response_max_bytes=config.number("replica.fetch.response.max.bytes"),
        replica_fetch_backoff_ms=config.number("replica.fetch.backoff.ms"),
        high_watermark_checkpoint_interval_ms=config.number(
            "replica.high.watermark.checkpoint.interval.ms"
        ),
        fetch_max_bytes=config.number("fetch.max.bytes"),
        session_cache_slots=config.number("max.incremental.fetch.session.cache.slots"),
        groups=group_config(config),
        transactions=transaction_config(config),
        auto_create_topics=config.flag("auto.create.topics.enable"),
        properties=tuple(sorted(config.given.items())),
    )


def group_config(config: NodeConfig) -> GroupConfig:
    session_ms, session_range_ms = _ranged(config, "session.timeout.ms")
    heartbeat_ms, heartbeat_range_ms = _ranged(config, "heartbeat.interval.ms")
    _, assignment_range_ms = _ranged(config, "assignment.interval.ms")
    if heartbeat_ms >= session_ms:
        key = "group.consumer.heartbeat.interval.ms"
        raise ConfigError(f"{key} must be less than group.consumer.session.timeout.ms")
    return GroupConfig(
        initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
        max_size=config.number("group.max.size"),
        consumer_session_timeout_ms=session_ms,
        consumer_session_timeout_range_ms=session_range_ms,
        consumer_heartbeat_interval_ms=heartbeat_ms,
        consumer_heartbeat_interval_range_ms=heartbeat_range_ms,
        consumer_assignment_interval_range_ms=assignment_range_ms,
        consumer_max_size=config.number("group.consumer.max.size"),
        consumer_migration_policy=_migration_policy(config),
        consumer_assignors=_assignors(config),
        offset_metadata_max_bytes=config.number("offset.metadata.max.bytes"),
        commit_timeout_ms=config.number("offsets.commit.timeout.ms"),
        retention_ms=config.number("offsets.retention.minutes") * 60_000,
        retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
        topic_num_partitions=config.number("offsets.topic.num.partitions"),
        topic_replication_factor=config.number("offsets.topic.replication.factor"),
        topic_segment_bytes=config.number("offsets.topic.segment.bytes"),
    )


def _ranged(config: NodeConfig, name: str) -> tuple[int, tuple[int, int]]:
    """The default of all groups, and what one of them may have instead.

    Source: Kafka's GroupCoordinatorConfig.
    """
    key, low, high = (f"group.consumer.{limit}{name}" for limit in ("", "min.", "max."))
    value, least, most = map(config.number, (key, low, high))
    if most < least:
        raise ConfigError(f"{high} must be greater than or equal to {low}")
    if value < least:
        raise ConfigError(f"{key} must be greater than or equal to {low}")
    if value > most:
        raise ConfigError(f"{key} must be less than or equal to {high}")
    return value, (least, most)


def _assignors(config: NodeConfig) -> tuple[str, ...]:
    """Kafka has classes of one's own there, too: they are none of ours."""
    key = "group.consumer.assignors"
    named = tuple(filter(None, (each.strip() for each in (config.text(key) or "").split(","))))
    unknown = [each for each in named if each not in ASSIGNORS]
    if unknown or not named:
        raise ConfigError(f"{key}: {', '.join(unknown) or 'nothing'}: {', '.join(ASSIGNORS)} exist")
    return named


def _migration_policy(config: NodeConfig) -> str:
    key = "group.consumer.migration.policy"
    policy = (config.text(key) or "").lower()
    if policy not in MIGRATION_POLICIES:
        raise ConfigError(f"{key}: {policy!r} is none of {', '.join(MIGRATION_POLICIES)}")
    return policy


def transaction_config(config: NodeConfig) -> TransactionConfig:
    topic = "transaction.state.log"
    return TransactionConfig(
        max_timeout_ms=config.number("transaction.max.timeout.ms"),
        time_out_check_interval_ms=config.number(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        expiration_ms=config.number("transactional.id.expiration.ms"),
        expiration_check_interval_ms=config.number(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        topic_num_partitions=config.number(f"{topic}.num.partitions"),
        topic_replication_factor=config.number(f"{topic}.replication.factor"),
        topic_min_isr=config.number(f"{topic}.min.isr"),
        topic_segment_bytes=config.number(f"{topic}.segment.bytes"),
    )
