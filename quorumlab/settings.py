"""The settings of each core, from the configuration of its node."""

from collections.abc import Collection, Iterable
from pathlib import Path
from random import Random
from uuid import UUID

from broker.config import BrokerConfig, GroupConfig
from controller.config import ControllerConfig
from quorum.core.log_settings import LogSettings
from quorum.core.types import ReplicaKey
from quorum.log.files.log_directories import StorageSettings
from quorum.node.directories import DataDirectories
from quorum.node.listening import Listener
from quorum.raft.config import QuorumConfig, SnapshotSettings
from quorum.raft.voters import Voter, VoterSet
from quorumlab.config import Listener as NamedListener
from quorumlab.config import NodeConfig
from quorumlab.first_records import DEFAULT_RECORDS, FirstRecords
from wire.api_table import ListenerKind
from wire.control_records import VoterEndpoint
from wire.messages.registration import RegisteredListener
from wire.primitives import random_uuid
from wire.zk.designs import Truncation

__all__ = [
    "broker_config",
    "controller_config",
    "driver_listeners",
    "quorum_config",
    "snapshot_settings",
    "storage_settings",
]

PLAINTEXT = 0  # the security protocol of every listener so far
_PREALLOCATED_BYTES = 4 << 20


def driver_listeners(config: NodeConfig) -> list[Listener]:
    return [
        Listener(
            name=listener.name,
            kind=_kind(config, listener.name),
            host=listener.host,
            port=listener.port,
        )
        for listener in config.listeners
    ]


def _kind(config: NodeConfig, listener: str) -> ListenerKind:
    if config.design is not None:
        return ListenerKind.ZOOKEEPER
    is_control = listener == config.controller_listener
    return ListenerKind.CONTROLLER if is_control else ListenerKind.BROKER


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


def _registered(listeners: Iterable[NamedListener]) -> tuple[RegisteredListener, ...]:
    return tuple(
        RegisteredListener(
            name=each.name, host=each.host, port=each.port, security_protocol=PLAINTEXT
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
        listeners=_registered(config.advertised_controllers),
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
    )


def broker_config(
    config: NodeConfig, directories: DataDirectories, *, offline: Collection[UUID] = ()
) -> BrokerConfig:
    """`offline` are those among the directories that turned out to be unreadable."""
    online = [each.directory_id for each in directories.data if each.directory_id not in offline]
    return BrokerConfig(
        node_id=config.node_id,
        cluster_id=directories.cluster_id,
        listeners=_registered(
            each for each in config.advertised if each.name != config.controller_listener
        ),
        inter_broker_listener_name=config.inter_broker_listener,
        log_dirs=tuple(sorted(online)),
        log_dir_paths={
            each.directory_id: str(Path(each.path).absolute()) for each in directories.data
        },
        has_offline_log_dirs=bool(offline) or directories.has_unreadable,
        rack=config.text("broker.rack"),
        listener_kind=_kind(config, config.inter_broker_listener),
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
        auto_create_topics=config.flag("auto.create.topics.enable"),
        properties=tuple(sorted(config.given.items())),
    )


def group_config(config: NodeConfig) -> GroupConfig:
    return GroupConfig(
        initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
        max_size=config.number("group.max.size"),
        offset_metadata_max_bytes=config.number("offset.metadata.max.bytes"),
        commit_timeout_ms=config.number("offsets.commit.timeout.ms"),
        retention_ms=config.number("offsets.retention.minutes") * 60_000,
        retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
        topic_num_partitions=config.number("offsets.topic.num.partitions"),
        topic_replication_factor=config.number("offsets.topic.replication.factor"),
        topic_segment_bytes=config.number("offsets.topic.segment.bytes"),
    )
