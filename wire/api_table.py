"""The APIs that a node serves, and in which versions: the only place that knows.

The table makes the answers to ApiVersions and docs/compatibility.md; a version that it does not
list is refused. Requests of the ZooKeeper designs (`wire/zk/control_rpc.py`) are no API of Kafka's,
and have keys where Kafka has none.

Source: KIP-35, KIP-511, KIP-584; Kafka 4's ranges, cut to what is served here.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

from wire.errors import ErrorCode
from wire.messages.features import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

__all__ = [
    "APIS",
    "API_VERSIONS_KEY",
    "CONTROL_RPCS",
    "SOFTWARE_NAME_SINCE",
    "Api",
    "ListenerKind",
    "Versions",
    "api_by_key",
    "api_of",
    "api_versions_for",
    "api_versions_response",
    "api_versions_unsupported",
    "camel_case",
    "finalized_features",
    "names_its_software",
]

API_VERSIONS_KEY = 18
SOFTWARE_NAME_SINCE = 3  # the version of ApiVersions from which a client names its software
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def camel_case(name: str) -> str:
    """`create_topics`: `CreateTopics`, as Kafka and the classes of messages are called."""
    return "".join(word.title() for word in name.split("_"))


class ListenerKind(Enum):
    """Brokers and controllers serve different APIs."""

    BROKER = "broker"
    CONTROLLER = "controller"
    ZOOKEEPER = "broker in ZooKeeper mode"  # each of them may be the controller too


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions from `oldest` to `newest`, both inclusive."""

    oldest: int
    newest: int

    def __contains__(self, version: int) -> bool:
        return self.oldest <= version <= self.newest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.oldest, self.newest + 1))

    def __str__(self) -> str:
        return f"{self.oldest}-{self.newest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A row of the table. `name` is that of its module in kio, and in `wire.messages.FAMILIES`."""

    key: int
    name: str
    broker: Versions | None = None  # served on the listeners of brokers; None: not at all
    controller: Versions | None = None
    zookeeper: Versions | None = None  # served in ZooKeeper mode, beside what brokers serve
    forwardable: bool = False  # brokers pass it on to the active controller, in an Envelope
    control_plane: bool = False  # nodes ask it of each other: served before what clients ask
    advertised_oldest: int | None = None  # lower than what is served, to please a client
    asked_newest: int | None = None  # by our clients, if lower than what is served

    @property
    def title(self) -> str:
        """The name in Kafka's own texts: `CreateTopics`."""
        return camel_case(self.name)

    versions: Versions = field(init=False)  # all that this project can read and write
    asked: Versions = field(init=False)  # those in which it asks

    def __post_init__(self) -> None:
        every = (self.broker, self.controller, self.zookeeper)
        ranges = [served for served in every if served is not None]
        oldest, newest = min(each.oldest for each in ranges), max(each.newest for each in ranges)
        object.__setattr__(self, "versions", Versions(oldest, newest))
        asked_newest = newest if self.asked_newest is None else self.asked_newest
        object.__setattr__(self, "asked", Versions(oldest, asked_newest))

    def served(self, listener: ListenerKind) -> Versions | None:
        """The versions served on a listener."""
        match listener:
            case ListenerKind.BROKER:
                return self.broker
            case ListenerKind.CONTROLLER:
                return self.controller
            case ListenerKind.ZOOKEEPER:
                return self.zookeeper or self.broker


def _forwarded(key: int, name: str, served: Versions) -> Api:
    """An API that either kind of node is asked; a broker passes it on."""
    return Api(key=key, name=name, broker=served, controller=served, forwardable=True)


APIS: tuple[Api, ...] = (
    # librdkafka turns compression off unless versions 0 to 2 are offered; Kafka 4 offers and
    # refuses them too (KAFKA-18659).
    Api(key=0, name="produce", broker=Versions(3, 13), advertised_oldest=0),
    Api(key=1, name="fetch", broker=Versions(4, 18), controller=Versions(12, 18)),
    Api(key=2, name="list_offsets", broker=Versions(1, 10)),
    Api(key=3, name="metadata", broker=Versions(0, 13)),
    # From version 10 on, these two name topics by id only (KIP-848); our clients know names.
    Api(key=8, name="offset_commit", broker=Versions(2, 10), asked_newest=9),
    Api(key=9, name="offset_fetch", broker=Versions(1, 10), asked_newest=9),
    Api(key=10, name="find_coordinator", broker=Versions(0, 6)),
    Api(key=11, name="join_group", broker=Versions(0, 9)),
    Api(key=12, name="heartbeat", broker=Versions(0, 4)),
    Api(key=13, name="leave_group", broker=Versions(0, 5)),
    Api(key=14, name="sync_group", broker=Versions(0, 5)),
    Api(key=15, name="describe_groups", broker=Versions(0, 6)),
    Api(key=16, name="list_groups", broker=Versions(0, 5)),
    Api(key=17, name="sasl_handshake", broker=Versions(0, 1), controller=Versions(0, 1)),
    Api(key=18, name="api_versions", broker=Versions(0, 4), controller=Versions(0, 4)),
    _forwarded(19, "create_topics", Versions(2, 7)),
    _forwarded(20, "delete_topics", Versions(1, 6)),
    Api(key=21, name="delete_records", broker=Versions(0, 2)),
    Api(key=22, name="init_producer_id", broker=Versions(0, 5)),
    Api(key=23, name="offset_for_leader_epoch", broker=Versions(2, 4)),
    # Brokers alone ask several transactions at once, from version 4 on.
    Api(key=24, name="add_partitions_to_txn", broker=Versions(0, 5)),
    Api(key=25, name="add_offsets_to_txn", broker=Versions(0, 4)),
    Api(key=26, name="end_txn", broker=Versions(0, 5)),
    Api(key=27, name="write_txn_markers", broker=Versions(1, 2), control_plane=True),
    Api(key=28, name="txn_offset_commit", broker=Versions(0, 5)),
    Api(key=29, name="describe_acls", broker=Versions(1, 3), controller=Versions(1, 3)),
    _forwarded(30, "create_acls", Versions(1, 3)),
    _forwarded(31, "delete_acls", Versions(1, 3)),
    Api(key=32, name="describe_configs", broker=Versions(1, 4), controller=Versions(1, 4)),
    _forwarded(33, "alter_configs", Versions(0, 2)),
    Api(key=34, name="alter_replica_log_dirs", broker=Versions(1, 2)),
    Api(key=35, name="describe_log_dirs", broker=Versions(1, 5)),
    Api(key=36, name="sasl_authenticate", broker=Versions(0, 2), controller=Versions(0, 2)),
    _forwarded(37, "create_partitions", Versions(0, 3)),
    Api(key=42, name="delete_groups", broker=Versions(0, 2)),
    _forwarded(43, "elect_leaders", Versions(0, 2)),
    _forwarded(44, "incremental_alter_configs", Versions(0, 1)),
    _forwarded(45, "alter_partition_reassignments", Versions(0, 1)),
    _forwarded(46, "list_partition_reassignments", Versions(0, 0)),
    Api(key=47, name="offset_delete", broker=Versions(0, 0)),
    Api(key=48, name="describe_client_quotas", broker=Versions(0, 1)),
    _forwarded(49, "alter_client_quotas", Versions(0, 1)),
    Api(key=50, name="describe_user_scram_credentials", broker=Versions(0, 0)),
    _forwarded(51, "alter_user_scram_credentials", Versions(0, 0)),
    Api(key=52, name="vote", controller=Versions(0, 2), control_plane=True),
    Api(key=53, name="begin_quorum_epoch", controller=Versions(0, 1), control_plane=True),
    Api(key=54, name="end_quorum_epoch", controller=Versions(0, 1), control_plane=True),
    _forwarded(55, "describe_quorum", Versions(0, 2)),
    Api(key=56, name="alter_partition", controller=Versions(2, 3), control_plane=True),
    _forwarded(57, "update_features", Versions(0, 2)),
    Api(key=58, name="envelope", controller=Versions(0, 0), zookeeper=Versions(0, 0)),
    Api(key=59, name="fetch_snapshot", controller=Versions(0, 1), control_plane=True),
    Api(key=60, name="describe_cluster", broker=Versions(0, 2), controller=Versions(0, 2)),
    Api(key=61, name="describe_producers", broker=Versions(0, 0)),
    Api(key=62, name="broker_registration", controller=Versions(0, 4), control_plane=True),
    Api(key=63, name="broker_heartbeat", controller=Versions(0, 2), control_plane=True),
    _forwarded(64, "unregister_broker", Versions(0, 0)),
    Api(key=65, name="describe_transactions", broker=Versions(0, 0)),
    Api(key=66, name="list_transactions", broker=Versions(0, 2)),
    Api(
        key=67,
        name="allocate_producer_ids",
        controller=Versions(0, 0),
        zookeeper=Versions(0, 0),
        forwardable=True,
        control_plane=True,
    ),
    Api(key=68, name="consumer_group_heartbeat", broker=Versions(0, 1)),
    Api(key=69, name="consumer_group_describe", broker=Versions(0, 1)),
    Api(key=70, name="controller_registration", controller=Versions(0, 0), control_plane=True),
    Api(key=73, name="assign_replicas_to_dirs", controller=Versions(0, 0), control_plane=True),
    Api(key=74, name="list_config_resources", broker=Versions(0, 1)),
    Api(key=75, name="describe_topic_partitions", broker=Versions(0, 0)),
    _forwarded(80, "add_raft_voter", Versions(0, 1)),
    _forwarded(81, "remove_raft_voter", Versions(0, 0)),
    Api(key=82, name="update_raft_voter", controller=Versions(0, 0), control_plane=True),
)


def _control_rpc(key: int, name: str) -> Api:
    return Api(key=key, name=name, zookeeper=Versions(0, 0), control_plane=True)


# Kafka's keys of old, and that of what AlterIsr has become, in a range that Kafka does not use.
CONTROL_RPCS: tuple[Api, ...] = (
    _control_rpc(20_004, "leader_and_isr"),
    _control_rpc(20_005, "stop_replica"),
    _control_rpc(20_006, "update_metadata"),
    _control_rpc(20_007, "controlled_shutdown"),
    _control_rpc(20_056, "alter_isr"),
)

_BY_KEY = {api.key: api for api in (*APIS, *CONTROL_RPCS)}
_BY_TITLE = {api.title: api for api in _BY_KEY.values()}


def api_by_key(key: int) -> Api | None:
    """The row of an API key."""
    return _BY_KEY.get(key)


def _api_of(message_class: type) -> Api:
    """The row of a canonical request or response class."""
    return _BY_TITLE[message_class.__name__.removesuffix("Request").removesuffix("Response")]


api_of: Callable[[type], Api] = cache(_api_of)


# --- answers to ApiVersions ------------------------------------------------------------------


def api_versions_for(listener: ListenerKind) -> tuple[ApiVersion, ...]:
    """The ranges that a listener tells its clients, by API key."""
    return tuple(
        ApiVersion(
            api_key=api.key,
            min_version=served.oldest if api.advertised_oldest is None else api.advertised_oldest,
            max_version=served.newest,
        )
        for api in (*APIS, *CONTROL_RPCS)
        if (served := api.served(listener)) is not None
    )


def api_versions_response(
    listener: ListenerKind,
    *,
    supported: tuple[SupportedFeatureKey, ...] = (),
    finalized: tuple[FinalizedFeatureKey, ...] = (),
    finalized_epoch: int = -1,
    controller: tuple[ApiVersion, ...] | None = None,
) -> ApiVersionsResponse:
    """The answer to ApiVersions. Forwardable APIs are cut to what the `controller` can take.

    Its ranges are None while the controller is not known: then nothing is cut.
    """
    ranges = api_versions_for(listener)
    if controller is not None:
        ranges = _intersect_forwardable(ranges, {api.api_key: api for api in controller})
    return ApiVersionsResponse(
        api_keys=ranges,
        supported_features=supported,
        finalized_features=finalized,
        finalized_features_epoch=finalized_epoch,
    )


def finalized_features(levels: Mapping[str, int]) -> tuple[FinalizedFeatureKey, ...]:
    """ApiVersions does not tell level 0, which is the same as not having the feature."""
    return tuple(
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(levels.items())
        if level > 0
    )


def _intersect_forwardable(
    ranges: tuple[ApiVersion, ...], controller: dict[int, ApiVersion]
) -> tuple[ApiVersion, ...]:
    common = []
    for own in ranges:
        if not _row(own.api_key).forwardable:
            common.append(own)
            continue
        other = controller.get(own.api_key)
        if other is None:
            continue
        oldest = max(own.min_version, other.min_version)
        newest = min(own.max_version, other.max_version)
        if oldest <= newest:
            common.append(ApiVersion(api_key=own.api_key, min_version=oldest, max_version=newest))
    return tuple(common)


def _row(api_key: int) -> Api:
    api = api_by_key(api_key)
    assert api is not None, api_key
    return api


def names_its_software(request: ApiVersionsRequest) -> bool:
    """Do name and version of the client's software look as KIP-511 wants them?"""
    software = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(text) is not None for text in software)


def api_versions_unsupported() -> ApiVersionsResponse:
    """Answers a request in a version that we lack: in version 0, which every client can read."""
    own = _row(API_VERSIONS_KEY).versions
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(
            ApiVersion(api_key=API_VERSIONS_KEY, min_version=own.oldest, max_version=own.newest),
        ),
    )
