"""Identities: which node a request claims to come from, and who may be that node.

`quorumlab.node.principals` binds nodes to principals. A node that is bound is spoken for by its own
principals only, and a principal that is bound speaks for its own nodes only, super user or not.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wire.messages.fetching import FetchRequest, FetchSnapshotRequest
from wire.messages.log_dirs import AssignReplicasToDirsRequest
from wire.messages.partitions import AlterPartitionRequest
from wire.messages.producing import AllocateProducerIdsRequest
from wire.messages.quorum_epochs import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
from wire.messages.voters import UpdateRaftVoterRequest
from wire.security.principals import Principal
from wire.zk import control_rpc

__all__ = ["CLAIMS", "Identities"]

Claim = Callable[[Any], Iterable[int]]  # the nodes that a request speaks for


def _of_partitions(name: str) -> Claim:
    """The field of that name of each partition."""
    return lambda body: (
        getattr(partition, name) for topic in body.topics for partition in topic.partitions
    )


def _broker(body: Any) -> Iterable[int]:
    return (body.broker_id,)


def _commander(body: Any) -> Iterable[int]:
    return (body.client_id,)


CLAIMS: Mapping[type, Claim] = {
    AllocateProducerIdsRequest: _broker,
    AlterPartitionRequest: _broker,
    AssignReplicasToDirsRequest: _broker,
    BeginQuorumEpochRequest: _of_partitions("leader_id"),
    BrokerHeartbeatRequest: _broker,
    BrokerRegistrationRequest: _broker,
    ControllerRegistrationRequest: lambda body: (body.controller_id,),
    EndQuorumEpochRequest: _of_partitions("leader_id"),
    FetchRequest: lambda body: (body.replica_state.replica_id,),
    FetchSnapshotRequest: lambda body: (body.replica_id,),
    UpdateRaftVoterRequest: lambda body: (body.voter_id,),
    VoteRequest: _of_partitions("replica_id"),
    control_rpc.AlterIsrRequest: _broker,
    control_rpc.ControlledShutdownRequest: _broker,
    control_rpc.LeaderAndIsrRequest: _commander,
    control_rpc.StopReplicaRequest: _commander,
    control_rpc.UpdateMetadataRequest: _commander,
}


class Identities:
    """`bound`: the principals of each node that is bound."""

    def __init__(self, bound: Mapping[int, frozenset[Principal]]) -> None:
        self._bound = bound
        self.are_bound = bool(bound)
        self._principals = frozenset[Principal]().union(*bound.values())

    def are_own(self, principal: Principal, body: object) -> bool:
        """May the principal speak for all that the request claims to be?"""
        claim = CLAIMS.get(type(body)) if self._bound else None
        if claim is None:
            return True
        is_bound = principal in self._principals
        for node_id in claim(body):
            owners = self._bound.get(node_id)
            if owners is None and claim is _commander:
                return False  # commands come from nodes that are bound, if any is
            if node_id >= 0 and (is_bound if owners is None else principal not in owners):
                return False
        return True
