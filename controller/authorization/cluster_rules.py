"""Requests about the cluster as a whole: one operation on it, or no answer but the error.

What nodes ask each other wants CLUSTER_ACTION.

Source: Kafka's KafkaApis, ControllerApis, AclApis and AuthHelper.
"""

from collections.abc import Mapping
from typing import Any

from controller.authorization.access import CLUSTER_DENIED, Access, Narrowed, Rule, Verdict, refused
from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages import log_dirs, metadata, partitions, producing, quorum_epochs, registration
from wire.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from wire.messages.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from wire.messages.configs import ListConfigResourcesRequest
from wire.messages.features import UpdateFeaturesRequest
from wire.messages.fetching import FetchSnapshotRequest
from wire.messages.scram_users import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)
from wire.messages.voters import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from wire.zk import control_rpc

__all__ = ["RULES", "cluster_operations"]


def _wants(operation: Operation) -> Rule:
    def rule(access: Access, body: object) -> Verdict:
        return None if access.may_cluster(operation) else refused(body, CLUSTER_DENIED)

    return rule


def cluster_operations(access: Access) -> int:
    """The bits that describing APIs answer. Nothing is told to who may not look."""
    may_look = access.may_any(Operation.DESCRIBE)
    return access.subject.operations(Resource.CLUSTER) if may_look else 0


def _describe_cluster(access: Access, body: metadata.DescribeClusterRequest) -> Verdict:
    """A broker tells everybody. Controllers want ALTER, as Kafka's do (KIP-919)."""
    if access.is_control and not access.may_cluster(Operation.ALTER):
        return refused(body, CLUSTER_DENIED)
    if not body.include_cluster_authorized_operations:
        return None
    operations = cluster_operations(access)

    def amend(answer: Any) -> Any:
        is_refusal = answer.error_code is not ErrorCode.NONE
        return answer if is_refusal else replace(answer, cluster_authorized_operations=operations)

    return Narrowed(body, amend)


_ALTER = _wants(Operation.ALTER)
_ALTER_CONFIGS = _wants(Operation.ALTER_CONFIGS)
_CLUSTER_ACTION = _wants(Operation.CLUSTER_ACTION)
_DESCRIBE = _wants(Operation.DESCRIBE)
_DESCRIBE_CONFIGS = _wants(Operation.DESCRIBE_CONFIGS)

RULES: Mapping[type, Rule] = {
    AddRaftVoterRequest: _ALTER,
    AlterClientQuotasRequest: _ALTER_CONFIGS,
    AlterUserScramCredentialsRequest: _ALTER,
    CreateAclsRequest: _ALTER,
    DeleteAclsRequest: _ALTER,
    DescribeAclsRequest: _DESCRIBE,
    DescribeClientQuotasRequest: _DESCRIBE_CONFIGS,
    DescribeQuorumRequest: _DESCRIBE,
    DescribeUserScramCredentialsRequest: _DESCRIBE,
    FetchSnapshotRequest: _CLUSTER_ACTION,
    ListConfigResourcesRequest: _DESCRIBE_CONFIGS,
    RemoveRaftVoterRequest: _ALTER,
    UpdateFeaturesRequest: _ALTER,
    UpdateRaftVoterRequest: _CLUSTER_ACTION,
    control_rpc.AlterIsrRequest: _CLUSTER_ACTION,
    control_rpc.ControlledShutdownRequest: _CLUSTER_ACTION,
    control_rpc.LeaderAndIsrRequest: _CLUSTER_ACTION,
    control_rpc.StopReplicaRequest: _CLUSTER_ACTION,
    control_rpc.UpdateMetadataRequest: _CLUSTER_ACTION,
    log_dirs.AlterReplicaLogDirsRequest: _ALTER,
    log_dirs.AssignReplicasToDirsRequest: _CLUSTER_ACTION,
    log_dirs.DescribeLogDirsRequest: _DESCRIBE,
    metadata.DescribeClusterRequest: _describe_cluster,
    partitions.AlterPartitionReassignmentsRequest: _ALTER,
    partitions.AlterPartitionRequest: _CLUSTER_ACTION,
    partitions.ElectLeadersRequest: _ALTER,
    partitions.ListPartitionReassignmentsRequest: _DESCRIBE,
    producing.AllocateProducerIdsRequest: _CLUSTER_ACTION,
    quorum_epochs.BeginQuorumEpochRequest: _CLUSTER_ACTION,
    quorum_epochs.EndQuorumEpochRequest: _CLUSTER_ACTION,
    quorum_epochs.VoteRequest: _CLUSTER_ACTION,
    registration.BrokerHeartbeatRequest: _CLUSTER_ACTION,
    registration.BrokerRegistrationRequest: _CLUSTER_ACTION,
    registration.ControllerRegistrationRequest: _CLUSTER_ACTION,
    registration.UnregisterBrokerRequest: _ALTER,
}
