"""The cluster as a whole: its first records, producer ids, registered controllers, its description.

Source: KIP-730 (producer ids), KIP-919 (controllers as bootstrap servers).
"""

from collections.abc import Iterable

from controller.config import ControllerConfig
from controller.decisions.decision import Decision, refused
from controller.decisions.eligible_leaders import settle_min_isr
from controller.metadata import alter_partition
from controller.metadata import metadata_version as levels
from controller.metadata.changes import Change
from controller.metadata.configs import Refusal
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from controller.metadata.security import ON_CLUSTER
from wire import metadata_records as records
from wire.api_table import ListenerKind, api_versions_response, finalized_features
from wire.errors import ErrorCode
from wire.message import values_of
from wire.messages import registration as messages
from wire.messages.features import ApiVersionsResponse, SupportedFeatureKey
from wire.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from wire.messages.producing import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wire.primitives import INT64_MAX, OPERATIONS_OMITTED

__all__ = [
    "bootstrap_changes",
    "decide_allocate_producer_ids",
    "decide_controller_registration",
    "describe_controllers",
    "describe_versions",
    "recorded_endpoints",
    "recorded_features",
]

_PRODUCER_ID_BLOCK = 1000  # ids a broker gets at a time
_NO_MIGRATION = 0
_BROKERS, _CONTROLLERS = 1, 2  # DescribeCluster's endpoint types


def bootstrap_changes(config: ControllerConfig) -> tuple[Change, ...]:
    """What the first active controller writes into an empty log, metadata.version first."""
    features = dict(config.bootstrap_features)
    level = features.pop(METADATA_VERSION)
    changes: list[Change] = [
        records.FeatureLevelRecord(name=name, feature_level=each)
        for name, each in ((METADATA_VERSION, level), *sorted(features.items()))
    ]
    changes += config.bootstrap_records
    if features.get(ELR_VERSION, 0) > 0:
        changes += settle_min_isr(MetadataImage(), config)
    if level >= levels.ZK_MIGRATION_STATE:
        changes.append(records.ZkMigrationStateRecord(zk_migration_state=_NO_MIGRATION))
    if level >= levels.TRANSACTIONS:
        begin = records.BeginTransactionRecord(name="Bootstrap records")
        changes = [begin, *changes, records.EndTransactionRecord()]
    return tuple(changes)


def decide_allocate_producer_ids(
    image: MetadataImage, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    """Give a broker a block of ids that nobody had and nobody else will have."""
    start = image.next_producer_id
    if alter_partition.has_stale_broker_epoch(image, request.broker_id, request.broker_epoch):
        error = ErrorCode.STALE_BROKER_EPOCH
    elif start > INT64_MAX - _PRODUCER_ID_BLOCK:
        error = ErrorCode.UNKNOWN_SERVER_ERROR  # the ids of 2**63 / 1000 blocks are used up
    else:
        record = records.ProducerIdsRecord(
            broker_id=request.broker_id,
            broker_epoch=request.broker_epoch,
            next_producer_id=start + _PRODUCER_ID_BLOCK,
        )
        response = AllocateProducerIdsResponse(
            producer_id_start=start, producer_id_len=_PRODUCER_ID_BLOCK
        )
        return Decision(response=response, changes=(record,))
    refusal = AllocateProducerIdsResponse(error_code=error, producer_id_start=0, producer_id_len=0)
    return Decision(response=refusal)


def recorded_endpoints(
    listeners: Iterable[messages.RegisteredListener],
) -> tuple[records.BrokerEndpoint, ...]:
    return tuple(records.BrokerEndpoint(**values_of(each)) for each in listeners)


def recorded_features(features: Iterable[messages.Feature]) -> tuple[records.BrokerFeature, ...]:
    return tuple(records.BrokerFeature(**values_of(each)) for each in features)


def decide_controller_registration(
    image: MetadataImage, request: messages.ControllerRegistrationRequest
) -> Decision[messages.ControllerRegistrationResponse]:
    if image.metadata_version < levels.CONTROLLER_REGISTRATION:
        message = f"metadata.version {image.metadata_version} has no controller registrations."
        return refused(request, Refusal(ErrorCode.UNSUPPORTED_VERSION, message))
    record = records.RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=recorded_endpoints(request.listeners),
        features=recorded_features(request.features),
    )
    response = messages.ControllerRegistrationResponse(error_message=None)
    return Decision(response=response, changes=(record,))


def describe_controllers(
    image: MetadataImage,
    request: DescribeClusterRequest,
    config: ControllerConfig,
    *,
    leader_id: int | None,
) -> DescribeClusterResponse:
    """The registered controllers, on their first listener each."""
    if request.endpoint_type != _CONTROLLERS:
        is_known = request.endpoint_type == _BROKERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if is_known
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=(
                "This is a controller: ask for endpoint type 2, or ask a broker for brokers."
            ),
        )
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=config.cluster_id,
        controller_id=-1 if leader_id is None else leader_id,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=controller.id,
                host=controller.end_points[0].host,
                port=controller.end_points[0].port,
            )
            for _, controller in sorted(image.controllers.items())
            if controller.end_points
        ),
        cluster_authorized_operations=(
            ON_CLUSTER if request.include_cluster_authorized_operations else OPERATIONS_OMITTED
        ),
    )


def describe_versions(
    image: MetadataImage, config: ControllerConfig, *, kraft_version: int
) -> ApiVersionsResponse:
    """What this controller serves and supports, and what the cluster has finalised."""
    return api_versions_response(
        ListenerKind.CONTROLLER,
        supported=tuple(
            SupportedFeatureKey(
                name=feature.name,
                min_version=feature.min_supported_version,
                max_version=feature.max_supported_version,
            )
            for feature in config.features
        ),
        finalized=finalized_features({**image.features, KRAFT_VERSION: kraft_version}),
        finalized_epoch=image.at.offset - 1,
    )
