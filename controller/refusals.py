"""The answer that refuses a whole request: one row an API.

An API without an error of its own answers with it for each thing that the request asks for.
"""

from collections.abc import Callable, Mapping
from typing import Any

from wire.errors import ErrorCode
from wire.message import element_type, fields_of
from wire.messages import (
    acls,
    client_quotas,
    configs,
    features,
    log_dirs,
    partitions,
    producing,
    registration,
    scram,
    topics,
)

__all__ = ["REFUSALS", "refuse"]

Refuse = Callable[[Any, ErrorCode, str | None], Any]  # the request, the error, the message


def refuse(request: object, error: ErrorCode, message: str | None) -> Any:
    return REFUSALS[type(request)](request, error, message)


def _whole(response: Callable[..., Any]) -> Refuse:
    """The response has an error, and may have a message."""
    tells_why = "error_message" in fields_of(response)

    def answer(_request: object, error: ErrorCode, message: str | None) -> Any:
        why = {"error_message": message} if tells_why else {}
        return response(error_code=error, **why)

    return answer


def _each(response: Callable[..., Any], results: str, asked: str, *named_by: str) -> Refuse:
    """The response has a result for each item of the request's field `asked`; the fields `named_by`
    of the item say which one is meant."""
    result = element_type(fields_of(response)[results].type)

    def answer(request: object, error: ErrorCode, message: str | None) -> Any:
        why = {"error_code": error, "error_message": message}
        named = (
            {name: getattr(item, name) for name in named_by} for item in getattr(request, asked)
        )
        return response(**{results: tuple(result(**why, **each) for each in named)})

    return answer


def _alter_reassignments(
    request: partitions.AlterPartitionReassignmentsRequest, error: ErrorCode, message: str | None
) -> partitions.AlterPartitionReassignmentsResponse:
    return partitions.AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=message,
        responses=tuple(
            partitions.ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    partitions.ReassignablePartitionResponse(
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


def _alter_scram(
    request: scram.AlterUserScramCredentialsRequest, error: ErrorCode, message: str | None
) -> scram.AlterUserScramCredentialsResponse:
    deleted = [item.name for item in request.deletions]
    users = dict.fromkeys([*deleted, *(item.name for item in request.upsertions)])
    return scram.AlterUserScramCredentialsResponse(
        results=tuple(
            scram.AlterUserScramCredentialsResult(
                user=user, error_code=error, error_message=message
            )
            for user in users
        )
    )


def _elect_leaders(
    request: partitions.ElectLeadersRequest, error: ErrorCode, message: str | None
) -> partitions.ElectLeadersResponse:
    return partitions.ElectLeadersResponse(
        error_code=error,
        replica_election_results=tuple(
            partitions.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    partitions.PartitionElectionResult(
                        partition_id=index, error_code=error, error_message=message
                    )
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


_OF_CONFIGS = "responses", "resources", "resource_type", "resource_name"

REFUSALS: Mapping[type, Refuse] = {
    acls.CreateAclsRequest: _each(acls.CreateAclsResponse, "results", "creations"),
    acls.DeleteAclsRequest: _each(acls.DeleteAclsResponse, "filter_results", "filters"),
    client_quotas.AlterClientQuotasRequest: _each(
        client_quotas.AlterClientQuotasResponse, "entries", "entries", "entity"
    ),
    configs.AlterConfigsRequest: _each(configs.AlterConfigsResponse, *_OF_CONFIGS),
    configs.IncrementalAlterConfigsRequest: _each(
        configs.IncrementalAlterConfigsResponse, *_OF_CONFIGS
    ),
    features.UpdateFeaturesRequest: _whole(features.UpdateFeaturesResponse),
    log_dirs.AssignReplicasToDirsRequest: _whole(log_dirs.AssignReplicasToDirsResponse),
    partitions.AlterPartitionReassignmentsRequest: _alter_reassignments,
    partitions.AlterPartitionRequest: _whole(partitions.AlterPartitionResponse),
    partitions.ElectLeadersRequest: _elect_leaders,
    producing.AllocateProducerIdsRequest: _whole(producing.AllocateProducerIdsResponse),
    registration.BrokerHeartbeatRequest: _whole(registration.BrokerHeartbeatResponse),
    registration.BrokerRegistrationRequest: _whole(registration.BrokerRegistrationResponse),
    registration.ControllerRegistrationRequest: _whole(registration.ControllerRegistrationResponse),
    registration.UnregisterBrokerRequest: _whole(registration.UnregisterBrokerResponse),
    scram.AlterUserScramCredentialsRequest: _alter_scram,
    topics.CreatePartitionsRequest: _each(
        topics.CreatePartitionsResponse, "results", "topics", "name"
    ),
    topics.CreateTopicsRequest: _each(topics.CreateTopicsResponse, "topics", "topics", "name"),
    topics.DeleteTopicsRequest: _each(
        topics.DeleteTopicsResponse, "responses", "topics", "name", "topic_id"
    ),
}
