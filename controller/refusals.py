"""The answer that says "no" to a whole request: one function an API.

APIs without a top-level error get it for each thing that they ask for.
"""

from wire.errors import ErrorCode
from wire.messages.acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntryData,
)
from wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.configs import AlterConfigsResourceResponse as IncrementalResourceResponse
from wire.messages.features import UpdateFeaturesRequest, UpdateFeaturesResponse
from wire.messages.log_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionElectionResult,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from wire.messages.producing import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from wire.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

__all__ = [
    "allocate_producer_ids",
    "alter_client_quotas",
    "alter_configs",
    "alter_partition",
    "alter_partition_reassignments",
    "alter_user_scram_credentials",
    "assign_replicas_to_dirs",
    "broker_heartbeat",
    "broker_registration",
    "controller_registration",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_topics",
    "elect_leaders",
    "incremental_alter_configs",
    "unregister_broker",
    "update_features",
]


def allocate_producer_ids(
    _request: AllocateProducerIdsRequest, error: ErrorCode, _message: str
) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error, producer_id_start=-1, producer_id_len=0)


def alter_client_quotas(
    request: AlterClientQuotasRequest, error: ErrorCode, message: str
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=tuple(
            AlteredEntryData(error_code=error, error_message=message, entity=entry.entity)
            for entry in request.entries
        )
    )


def alter_configs(
    request: AlterConfigsRequest, error: ErrorCode, message: str
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=item.resource_type,
                resource_name=item.resource_name,
            )
            for item in request.resources
        )
    )


def alter_partition(
    _request: AlterPartitionRequest, error: ErrorCode, _message: str
) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error, topics=())


def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, error: ErrorCode, message: str
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=message,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=asked.partition_index,
                        error_code=error,
                        error_message=message,
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, error: ErrorCode, message: str
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys(
        [item.name for item in request.deletions] + [item.name for item in request.upsertions]
    )
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=user, error_code=error, error_message=message)
            for user in users
        )
    )


def assign_replicas_to_dirs(
    _request: AssignReplicasToDirsRequest, error: ErrorCode, _message: str
) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=error)


def broker_heartbeat(
    _request: BrokerHeartbeatRequest, error: ErrorCode, _message: str
) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error, should_shut_down=False)


def broker_registration(
    _request: BrokerRegistrationRequest, error: ErrorCode, _message: str
) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error)


def controller_registration(
    _request: ControllerRegistrationRequest, error: ErrorCode, message: str
) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(error_code=error, error_message=message)


def create_acls(request: CreateAclsRequest, error: ErrorCode, message: str) -> CreateAclsResponse:
    result = AclCreationResult(error_code=error, error_message=message)
    return CreateAclsResponse(results=(result,) * len(request.creations))


def create_partitions(
    request: CreatePartitionsRequest, error: ErrorCode, message: str
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=message)
            for topic in request.topics
        )
    )


def create_topics(
    request: CreateTopicsRequest, error: ErrorCode, message: str
) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=topic.name, error_code=error, error_message=message)
            for topic in request.topics
        )
    )


def delete_acls(request: DeleteAclsRequest, error: ErrorCode, message: str) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=error, error_message=message)
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))


def delete_topics(
    request: DeleteTopicsRequest, error: ErrorCode, message: str
) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=error,
                error_message=message,
            )
            for topic in request.topics
        )
    )


def elect_leaders(
    request: ElectLeadersRequest, error: ErrorCode, message: str
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionElectionResult(
                        partition_id=index, error_code=error, error_message=message
                    )
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, error: ErrorCode, message: str
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            IncrementalResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=item.resource_type,
                resource_name=item.resource_name,
            )
            for item in request.resources
        )
    )


def unregister_broker(
    _request: UnregisterBrokerRequest, error: ErrorCode, message: str
) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error, error_message=message)


def update_features(
    _request: UpdateFeaturesRequest, error: ErrorCode, message: str
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error, error_message=message)
