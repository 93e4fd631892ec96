"""The requests that change the metadata: who decides each of them, and how it is refused.

One row an API. A decision is a function of its `Situation` and of the request; refusals say "no" to
a whole request, before anything is decided.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from controller import refusals
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
from controller.liveness import Liveness
from controller.metadata.image import MetadataImage
from wire.errors import ErrorCode
from wire.messages.acls import CreateAclsRequest, DeleteAclsRequest
from wire.messages.client_quotas import AlterClientQuotasRequest
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.features import UpdateFeaturesRequest
from wire.messages.log_dirs import AssignReplicasToDirsRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ElectLeadersRequest,
)
from wire.messages.producing import AllocateProducerIdsRequest
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    UnregisterBrokerRequest,
)
from wire.messages.scram import AlterUserScramCredentialsRequest
from wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

__all__ = ["WRITES", "Situation", "Write", "timeout_ms"]

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
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    decide: Callable[[Situation, Any], Decision[Any]]
    refuse: Callable[[Any, ErrorCode, str], object]


def timeout_ms(body: object, config: ControllerConfig) -> int:
    """How long an answer may wait. A heartbeat must be over before the next one is due."""
    match body:
        case (
            CreateTopicsRequest()
            | DeleteTopicsRequest()
            | CreatePartitionsRequest()
            | AlterPartitionReassignmentsRequest()
            | ElectLeadersRequest()
            | UpdateFeaturesRequest()
        ):
            return max(0, min(body.timeout_ms, _TIMEOUT_MS))
        case BrokerHeartbeatRequest():
            return config.heartbeat_interval_ms // 2
        case _:
            return _TIMEOUT_MS


def _heartbeat(at: Situation, request: BrokerHeartbeatRequest) -> Decision[BrokerHeartbeatResponse]:
    heard = Heard(
        shutdown_offset=at.liveness.shutdown_offset(request.broker_id),
        lowest_active_offset=at.liveness.lowest_active_offset(at.head),
    )
    return brokers.decide_heartbeat(at.head, request, at.config, heard)


def _register_broker(
    at: Situation, request: BrokerRegistrationRequest
) -> Decision[BrokerRegistrationResponse]:
    return brokers.decide_registration(
        at.head,
        request,
        at.config,
        next_offset=at.next_offset,
        has_live_session=at.liveness.is_live(request.broker_id, at.now_ms),
        kraft_version=at.quorum.kraft_version,
    )


WRITES: Mapping[type, Write] = {
    AllocateProducerIdsRequest: Write(
        decide=lambda at, body: cluster.decide_allocate_producer_ids(at.head, body),
        refuse=refusals.allocate_producer_ids,
    ),
    AlterClientQuotasRequest: Write(
        decide=lambda at, body: quota_changes.decide_alter_client_quotas(at.head, body),
        refuse=refusals.alter_client_quotas,
    ),
    AlterConfigsRequest: Write(
        decide=lambda at, body: config_changes.decide_alter_configs(at.head, body),
        refuse=refusals.alter_configs,
    ),
    AlterPartitionReassignmentsRequest: Write(
        decide=lambda at, body: reassignments.decide_alter_reassignments(at.head, body, at.config),
        refuse=refusals.alter_partition_reassignments,
    ),
    AlterPartitionRequest: Write(
        decide=lambda at, body: replica_reports.decide_alter_partition(at.head, body, at.config),
        refuse=refusals.alter_partition,
    ),
    AlterUserScramCredentialsRequest: Write(
        decide=lambda at, body: security_changes.decide_alter_scram_credentials(at.head, body),
        refuse=refusals.alter_user_scram_credentials,
    ),
    AssignReplicasToDirsRequest: Write(
        decide=lambda at, body: replica_reports.decide_assign_replicas(at.head, body, at.config),
        refuse=refusals.assign_replicas_to_dirs,
    ),
    BrokerHeartbeatRequest: Write(decide=_heartbeat, refuse=refusals.broker_heartbeat),
    BrokerRegistrationRequest: Write(decide=_register_broker, refuse=refusals.broker_registration),
    ControllerRegistrationRequest: Write(
        decide=lambda at, body: cluster.decide_controller_registration(at.head, body),
        refuse=refusals.controller_registration,
    ),
    CreateAclsRequest: Write(
        decide=lambda at, body: security_changes.decide_create_acls(
            at.head, body, at.config, at.random
        ),
        refuse=refusals.create_acls,
    ),
    CreatePartitionsRequest: Write(
        decide=lambda at, body: existing_topics.decide_create_partitions(at.head, body, at.random),
        refuse=refusals.create_partitions,
    ),
    CreateTopicsRequest: Write(
        decide=lambda at, body: new_topics.decide_create_topics(
            at.head, body, at.config, at.random
        ),
        refuse=refusals.create_topics,
    ),
    DeleteAclsRequest: Write(
        decide=lambda at, body: security_changes.decide_delete_acls(at.head, body, at.config),
        refuse=refusals.delete_acls,
    ),
    DeleteTopicsRequest: Write(
        decide=lambda at, body: existing_topics.decide_delete_topics(at.head, body, at.config),
        refuse=refusals.delete_topics,
    ),
    ElectLeadersRequest: Write(
        decide=lambda at, body: elections.decide_elect_leaders(at.head, body, at.config),
        refuse=refusals.elect_leaders,
    ),
    IncrementalAlterConfigsRequest: Write(
        decide=lambda at, body: config_changes.decide_incremental_alter_configs(
            at.head, body, at.config
        ),
        refuse=refusals.incremental_alter_configs,
    ),
    UnregisterBrokerRequest: Write(
        decide=lambda at, body: brokers.decide_unregister(at.head, body, at.config),
        refuse=refusals.unregister_broker,
    ),
    UpdateFeaturesRequest: Write(
        decide=lambda at, body: features.decide_update_features(
            at.head, body, at.config, at.quorum
        ),
        refuse=refusals.update_features,
    ),
}
