"""The configuration of a controller core: who it is, its limits and intervals.

Decides nothing. Names and defaults are Kafka's (`broker.session.timeout.ms` is
`session_timeout_ms`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

from controller.metadata.metadata_version import (
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    OLDEST_SUPPORTED,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from wire.messages.registration import Feature, RegisteredListener
from wire.metadata_records import DEFAULT_METADATA_VERSION, MetadataRecord
from wire.primitives import ZERO_UUID

__all__ = ["SUPPORTED_FEATURES", "ControllerConfig"]

# What a node can live with once it is finalised. A Kafka controller refuses a broker that does not
# list every finalised feature.
SUPPORTED_FEATURES = (
    Feature(
        name=METADATA_VERSION,
        min_supported_version=OLDEST_SUPPORTED,
        max_supported_version=DEFAULT_METADATA_VERSION,
    ),
    Feature(name=KRAFT_VERSION, min_supported_version=0, max_supported_version=1),
    Feature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1),
    # Of brokers and clients: the controllers keep their levels, no more.
    Feature(name=GROUP_VERSION, min_supported_version=0, max_supported_version=1),
    Feature(name=SHARE_VERSION, min_supported_version=0, max_supported_version=2),
    Feature(name=STREAMS_VERSION, min_supported_version=0, max_supported_version=1),
    Feature(name=TRANSACTION_VERSION, min_supported_version=0, max_supported_version=2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    node_id: int
    cluster_id: str
    incarnation_id: UUID = ZERO_UUID  # of this process; zero: it does not register
    listeners: tuple[RegisteredListener, ...] = ()  # as advertised: the controllers' listeners
    features: tuple[Feature, ...] = SUPPORTED_FEATURES

    # Written by the first active controller, into an empty log.
    bootstrap_features: Mapping[str, int] = field(
        default_factory=lambda: MappingProxyType({METADATA_VERSION: DEFAULT_METADATA_VERSION})
    )
    bootstrap_records: tuple[MetadataRecord, ...] = ()  # what else, for example credentials

    # Brokers.
    session_timeout_ms: int = 9000
    heartbeat_interval_ms: int = 2000

    # The log. 0: no NoOpRecord while idle.
    max_idle_interval_ms: int = 500

    # Topics.
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    unclean_election_interval_ms: int = 300_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    # Keys of server.properties, as given, passwords too: the defaults beneath dynamic ones.
    static_configs: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )

    quota_window_count: int = 11  # of controller_mutation_rate
    quota_window_ms: int = 1000

    # Registration with the active controller.
    registration_timeout_ms: int = 2000
    registration_backoff_ms: int = 100
    registration_backoff_max_ms: int = 120_000

    # Requests that wait for their changes to be committed.
    waiting_requests_max: int = 10_000
