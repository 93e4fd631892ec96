"""The requests that a controller serves, one row an API.

Those of `WRITES` change the metadata, and a decision is a function of its `Situation` and of the
request. Any controller answers those of `READS` at once, from what it knows to be committed.

Source: the read events of Kafka's QuorumController, which see the last stable offset and ask nobody
whether the controller is active.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from controller.config import ControllerConfig
from controller.decisions import (
    brokers,
    cluster,
    config_changes,
    elections,
    existing_topics,
    features,
    new_topics,
    quota_changes,
    reassignments,
    replica_reports,
    security_changes,
)
from controller.decisions.brokers import Heard
from controller.decisions.decision import Decision
from controller.decisions.features import Quorum
from controller.decisions.reassignments import list_reassignments
from controller.liveness import Liveness
from controller.metadata.describe_configs import describe_configs
from controller.metadata.image import MetadataImage
from controller.metadata.security import AUTHORIZER, describe_acls
from controller.quotas.mutations import Allowance
from quorum.core.application import MetadataLog
from wire.messages import registration as messages
from wire.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from wire.messages.client_quotas import AlterClientQuotasRequest
from wire.messages.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from wire.messages.features import ApiVersionsRequest, UpdateFeaturesRequest
from wire.messages.log_dirs import AssignReplicasToDirsRequest
from wire.messages.metadata import DescribeClusterRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from wire.messages.producing import AllocateProducerIdsRequest
from wire.messages.scram_users import AlterUserScramCredentialsRequest
from wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

__all__ = ["READS", "WRITES", "CommittedView", "Situation", "timeout_ms"]

_TIMEOUT_MS = 60_000  # of requests that name none


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a decision of the active controller may rest on."""

    head: MetadataImage  # all that has been decided, committed or not
    config: ControllerConfig
    random: Random
    quorum: Quorum
    next_offset: int  # of the next record of the log
    liveness: Liveness
    allowance: Allowance  # of the client that asks
    now_ms: int


def timeout_ms(body: object, config: ControllerConfig) -> int:
    """How long an answer may wait. A heartbeat must be over before the next one is due."""
    if isinstance(body, messages.BrokerHeartbeatRequest):
        return config.heartbeat_interval_ms // 2
    return max(0, min(getattr(body, "timeout_ms", _TIMEOUT_MS), _TIMEOUT_MS))


def _heartbeat(
    at: Situation, request: messages.BrokerHeartbeatRequest
) -> Decision[messages.BrokerHeartbeatResponse]:
    heard = Heard(
        shutdown_offset=at.liveness.shutdown_offset(request.broker_id),
        lowest_active_offset=at.liveness.lowest_active_offset(at.head),
    )
    return brokers.decide_heartbeat(at.head, request, at.config, heard)


def _register_broker(
    at: Situation, request: messages.BrokerRegistrationRequest
) -> Decision[messages.BrokerRegistrationResponse]:
    return brokers.decide_registration(
        at.head,
        request,
        at.config,
        next_offset=at.next_offset,
        has_live_session=at.liveness.is_live(request.broker_id, at.now_ms),
        kraft_version=at.quorum.kraft_version,
    )


WRITES: Mapping[type, Callable[[Situation, Any], Decision[Any]]] = {
    AllocateProducerIdsRequest: lambda at, body: cluster.decide_allocate_producer_ids(
        at.head, body
    ),
    AlterClientQuotasRequest: lambda at, body: quota_changes.decide_alter_client_quotas(
        at.head, body
    ),
    AlterConfigsRequest: lambda at, body: config_changes.decide_alter_configs(at.head, body),
    AlterPartitionReassignmentsRequest: lambda at, body: reassignments.decide_alter_reassignments(
        at.head, body, at.config
    ),
    AlterPartitionRequest: lambda at, body: replica_reports.decide_alter_partition(
        at.head, body, at.config
    ),
    AlterUserScramCredentialsRequest: lambda at, body: (
        security_changes.decide_alter_scram_credentials(at.head, body)
    ),
    AssignReplicasToDirsRequest: lambda at, body: replica_reports.decide_assign_replicas(
        at.head, body, at.config
    ),
    messages.BrokerHeartbeatRequest: _heartbeat,
    messages.BrokerRegistrationRequest: _register_broker,
    messages.ControllerRegistrationRequest: lambda at, body: cluster.decide_controller_registration(
        at.head, body
    ),
    CreateAclsRequest: lambda at, body: security_changes.decide_create_acls(
        at.head, body, at.config, at.random
    ),
    CreatePartitionsRequest: lambda at, body: existing_topics.decide_create_partitions(
        at.head, body, at.random, at.allowance
    ),
    CreateTopicsRequest: lambda at, body: new_topics.decide_create_topics(
        at.head, body, at.config, at.random, at.allowance
    ),
    DeleteAclsRequest: lambda at, body: security_changes.decide_delete_acls(
        at.head, body, at.config
    ),
    DeleteTopicsRequest: lambda at, body: existing_topics.decide_delete_topics(
        at.head, body, at.config, at.allowance
    ),
    ElectLeadersRequest: lambda at, body: elections.decide_elect_leaders(at.head, body, at.config),
    IncrementalAlterConfigsRequest: lambda at, body: (
        config_changes.decide_incremental_alter_configs(at.head, body, at.config)
    ),
    messages.UnregisterBrokerRequest: lambda at, body: brokers.decide_unregister(
        at.head, body, at.config
    ),
    UpdateFeaturesRequest: lambda at, body: features.decide_update_features(
        at.head, body, at.config, at.quorum
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedView:
    """What an answer may rest on."""

    image: MetadataImage  # committed
    config: ControllerConfig
    log: MetadataLog


READS: Mapping[type, Callable[[CommittedView, Any], object]] = {
    ApiVersionsRequest: lambda known, _: cluster.describe_versions(
        known.image, known.config, kraft_version=known.log.kraft_version
    ),
    DescribeAclsRequest: lambda known, body: describe_acls(
        known.image, body, has_authorizer=AUTHORIZER in known.config.static_configs
    ),
    DescribeClusterRequest: lambda known, body: cluster.describe_controllers(
        known.image, body, known.config, leader_id=known.log.leader.leader_id
    ),
    DescribeConfigsRequest: lambda known, body: describe_configs(
        known.image, body, node_id=known.config.node_id, static=known.config.static_configs
    ),
    ListPartitionReassignmentsRequest: lambda known, body: list_reassignments(known.image, body),
}
