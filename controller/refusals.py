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
    consumer_groups,
    features,
    fetching,
    group_offsets,
    groups,
    log_dirs,
    metadata,
    partitions,
    producing,
    quorum_epochs,
    registration,
    scram_users,
    topics,
    transactions,
    voters,
)
from wire.zk import control_rpc

__all__ = ["REFUSALS", "refuse"]

Refuse = Callable[[Any, ErrorCode, str | None], Any]  # the request, the error, the message


def refuse(request: object, error: ErrorCode, message: str | None) -> Any:
    return REFUSALS[type(request)](request, error, message)


def _whole(response: Callable[..., Any], **others: object) -> Refuse:
    """The response has an error, and may have a message; `others` are fields without a default."""
    tells_why = "error_message" in fields_of(response)

    def answer(_request: object, error: ErrorCode, message: str | None) -> Any:
        why = {"error_message": message} if tells_why else {}
        return response(error_code=error, **why, **others)

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


def _alter_log_dirs(
    request: log_dirs.AlterReplicaLogDirsRequest, error: ErrorCode, _message: str | None
) -> log_dirs.AlterReplicaLogDirsResponse:
    return log_dirs.AlterReplicaLogDirsResponse(
        results=tuple(
            log_dirs.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    log_dirs.AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=error
                    )
                    for index in topic.partitions
                ),
            )
            for directory in request.dirs
            for topic in directory.topics
        )
    )


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
    request: scram_users.AlterUserScramCredentialsRequest, error: ErrorCode, message: str | None
) -> scram_users.AlterUserScramCredentialsResponse:
    deleted = [item.name for item in request.deletions]
    users = dict.fromkeys([*deleted, *(item.name for item in request.upsertions)])
    return scram_users.AlterUserScramCredentialsResponse(
        results=tuple(
            scram_users.AlterUserScramCredentialsResult(
                user=user, error_code=error, error_message=message
            )
            for user in users
        )
    )


def _describe_scram(
    request: scram_users.DescribeUserScramCredentialsRequest, error: ErrorCode, message: str | None
) -> scram_users.DescribeUserScramCredentialsResponse:
    """As Kafka, which names no user."""
    nobody = scram_users.DescribeUserScramCredentialsResult(
        user="", error_code=error, error_message=message
    )
    return scram_users.DescribeUserScramCredentialsResponse(
        error_code=error, error_message=message, results=(nobody,) * len(request.users or ())
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


def _find_coordinator(
    request: groups.FindCoordinatorRequest, error: ErrorCode, message: str | None
) -> groups.FindCoordinatorResponse:
    return groups.FindCoordinatorResponse(
        coordinators=tuple(
            groups.FoundCoordinator(key=key, error_code=error, error_message=message)
            for key in request.coordinator_keys
        )
    )


def _offsets(
    response: type, topic: type, partition: type, *, named_by: tuple[str, ...] = ("name",)
) -> Refuse:
    """For a request that commits offsets, in a transaction or not."""

    def answer(request: Any, error: ErrorCode, _message: str | None) -> Any:
        return response(
            topics=tuple(
                topic(
                    **{name: getattr(asked, name) for name in named_by},
                    partitions=tuple(
                        partition(partition_index=each.partition_index, error_code=error)
                        for each in asked.partitions
                    ),
                )
                for asked in request.topics
            )
        )

    return answer


def _write_markers(
    request: transactions.WriteTxnMarkersRequest, error: ErrorCode, _message: str | None
) -> transactions.WriteTxnMarkersResponse:
    return transactions.WriteTxnMarkersResponse(
        markers=tuple(
            transactions.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    transactions.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            transactions.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


_OF_CONFIGS = "responses", "resources", "resource_type", "resource_name"

REFUSALS: Mapping[type, Refuse] = {
    acls.CreateAclsRequest: _each(acls.CreateAclsResponse, "results", "creations"),
    acls.DeleteAclsRequest: _each(acls.DeleteAclsResponse, "filter_results", "filters"),
    acls.DescribeAclsRequest: _whole(acls.DescribeAclsResponse),
    client_quotas.DescribeClientQuotasRequest: _whole(
        client_quotas.DescribeClientQuotasResponse, entries=None
    ),
    client_quotas.AlterClientQuotasRequest: _each(
        client_quotas.AlterClientQuotasResponse, "entries", "entries", "entity"
    ),
    configs.AlterConfigsRequest: _each(configs.AlterConfigsResponse, *_OF_CONFIGS),
    configs.IncrementalAlterConfigsRequest: _each(
        configs.IncrementalAlterConfigsResponse, *_OF_CONFIGS
    ),
    configs.ListConfigResourcesRequest: _whole(configs.ListConfigResourcesResponse),
    control_rpc.AlterIsrRequest: _whole(control_rpc.AlterIsrResponse),
    control_rpc.ControlledShutdownRequest: _whole(control_rpc.ControlledShutdownResponse),
    control_rpc.LeaderAndIsrRequest: _whole(control_rpc.LeaderAndIsrResponse),
    control_rpc.StopReplicaRequest: _whole(control_rpc.StopReplicaResponse),
    control_rpc.UpdateMetadataRequest: _whole(control_rpc.UpdateMetadataResponse),
    features.UpdateFeaturesRequest: _whole(features.UpdateFeaturesResponse),
    fetching.FetchRequest: _whole(fetching.FetchResponse),
    fetching.FetchSnapshotRequest: _whole(fetching.FetchSnapshotResponse),
    group_offsets.OffsetCommitRequest: _offsets(
        group_offsets.OffsetCommitResponse,
        group_offsets.OffsetCommitResponseTopic,
        group_offsets.OffsetCommitResponsePartition,
        named_by=("name", "topic_id"),
    ),
    group_offsets.OffsetDeleteRequest: _whole(group_offsets.OffsetDeleteResponse),
    groups.FindCoordinatorRequest: _find_coordinator,
    consumer_groups.ConsumerGroupHeartbeatRequest: _whole(
        consumer_groups.ConsumerGroupHeartbeatResponse
    ),
    groups.HeartbeatRequest: _whole(groups.HeartbeatResponse),
    groups.JoinGroupRequest: _whole(groups.JoinGroupResponse, member_id=""),
    groups.LeaveGroupRequest: _whole(groups.LeaveGroupResponse),
    groups.SyncGroupRequest: _whole(groups.SyncGroupResponse),
    log_dirs.AlterReplicaLogDirsRequest: _alter_log_dirs,
    log_dirs.DescribeLogDirsRequest: _whole(log_dirs.DescribeLogDirsResponse),
    log_dirs.AssignReplicasToDirsRequest: _whole(log_dirs.AssignReplicasToDirsResponse),
    metadata.DescribeClusterRequest: _whole(metadata.DescribeClusterResponse),
    partitions.ListPartitionReassignmentsRequest: _whole(
        partitions.ListPartitionReassignmentsResponse
    ),
    partitions.AlterPartitionReassignmentsRequest: _alter_reassignments,
    partitions.AlterPartitionRequest: _whole(partitions.AlterPartitionResponse),
    partitions.ElectLeadersRequest: _elect_leaders,
    producing.AllocateProducerIdsRequest: _whole(producing.AllocateProducerIdsResponse),
    producing.InitProducerIdRequest: _whole(producing.InitProducerIdResponse),
    quorum_epochs.BeginQuorumEpochRequest: _whole(quorum_epochs.BeginQuorumEpochResponse),
    quorum_epochs.EndQuorumEpochRequest: _whole(quorum_epochs.EndQuorumEpochResponse),
    quorum_epochs.VoteRequest: _whole(quorum_epochs.VoteResponse),
    registration.BrokerHeartbeatRequest: _whole(registration.BrokerHeartbeatResponse),
    registration.BrokerRegistrationRequest: _whole(registration.BrokerRegistrationResponse),
    registration.ControllerRegistrationRequest: _whole(registration.ControllerRegistrationResponse),
    registration.UnregisterBrokerRequest: _whole(registration.UnregisterBrokerResponse),
    scram_users.AlterUserScramCredentialsRequest: _alter_scram,
    scram_users.DescribeUserScramCredentialsRequest: _describe_scram,
    topics.CreatePartitionsRequest: _each(
        topics.CreatePartitionsResponse, "results", "topics", "name"
    ),
    topics.CreateTopicsRequest: _each(topics.CreateTopicsResponse, "topics", "topics", "name"),
    topics.DeleteTopicsRequest: _each(
        topics.DeleteTopicsResponse, "responses", "topics", "name", "topic_id"
    ),
    transactions.AddOffsetsToTxnRequest: _whole(transactions.AddOffsetsToTxnResponse),
    transactions.AddPartitionsToTxnRequest: _whole(transactions.AddPartitionsToTxnResponse),
    transactions.EndTxnRequest: _whole(transactions.EndTxnResponse),
    transactions.TxnOffsetCommitRequest: _offsets(
        transactions.TxnOffsetCommitResponse,
        transactions.TxnOffsetCommitResponseTopic,
        transactions.TxnOffsetCommitResponsePartition,
    ),
    transactions.WriteTxnMarkersRequest: _write_markers,
    voters.AddRaftVoterRequest: _whole(voters.AddRaftVoterResponse),
    voters.DescribeQuorumRequest: _whole(voters.DescribeQuorumResponse),
    voters.RemoveRaftVoterRequest: _whole(voters.RemoveRaftVoterResponse),
    voters.UpdateRaftVoterRequest: _whole(voters.UpdateRaftVoterResponse),
}
