"""What the answers of peers have in common: an error, an epoch, and the leader they know.

Source: KIP-595; the NodeEndpoints of KIP-853.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from quorum.core.types import NO_EPOCH, Endpoint
from quorum.raft.voters import KRAFT_VERSION
from wire.control_records import KRaftVersionRange
from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import NodeEndpoint
from wire.messages.features import ApiVersionsResponse
from wire.messages.fetching import (
    FetchedPartition,
    FetchResponse,
    FetchSnapshotResponse,
    PartitionSnapshotResult,
)
from wire.messages.quorum_epochs import (
    BeginQuorumEpochResponse,
    EndQuorumEpochResponse,
    VoteResponse,
)

__all__ = [
    "CommonFields",
    "KnownLeader",
    "PeerResponse",
    "common_fields",
    "news_of",
    "only_partition",
    "versions_of",
]

P = TypeVar("P", covariant=True)


class _Topic(Protocol[P]):
    @property
    def partitions(self) -> Sequence[P]: ...


PeerResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
)


class KnownLeader(Message):
    """What every answer says about the leader, so that whoever asked the wrong node learns."""

    leader_id: int = -1  # not known
    epoch: int = NO_EPOCH  # not known: the peer did not get as far as to say
    endpoint: Endpoint | None = None


class CommonFields(KnownLeader):
    """What an answer to any of our requests says."""

    error: ErrorCode


def common_fields(response: PeerResponse, source: Endpoint) -> CommonFields:
    """Tolerates an answer without our partition: it says nothing. `source` is who was asked."""
    if response.error_code is not ErrorCode.NONE:
        return CommonFields(error=response.error_code)
    if isinstance(response, FetchResponse | FetchSnapshotResponse):
        return _fetch_common_fields(response, source)
    for topic in response.topics[:1]:
        for partition in topic.partitions[:1]:
            return CommonFields(
                error=partition.error_code,
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                endpoint=_endpoint(partition.leader_id, response.node_endpoints),
            )
    return CommonFields(error=ErrorCode.INVALID_REQUEST)


def _fetch_common_fields(
    response: FetchResponse | FetchSnapshotResponse, source: Endpoint
) -> CommonFields:
    """Only a leader serves either: where an old version names no endpoints, it is the source."""
    partition: FetchedPartition | PartitionSnapshotResult | None
    if isinstance(response, FetchResponse):
        partition = only_partition(response.responses)
    else:
        partition = only_partition(response.topics)
    if partition is None:
        return CommonFields(error=ErrorCode.INVALID_REQUEST)
    leader = partition.current_leader
    endpoint = _endpoint(leader.leader_id, response.node_endpoints)
    if endpoint is None and partition.error_code is ErrorCode.NONE:
        endpoint = Endpoint(leader.leader_id, source.host, source.port)
    return CommonFields(
        error=partition.error_code,
        epoch=leader.leader_epoch,
        leader_id=leader.leader_id,
        endpoint=endpoint,
    )


def news_of(response: FetchResponse, *, leader_id: int, epoch: int) -> FetchedPartition | None:
    """What the leader of this epoch answers without an error; None if it says anything else."""
    answer = only_partition(response.responses)
    if answer is None or not (response.error_code is answer.error_code is ErrorCode.NONE):
        return None
    leader = answer.current_leader
    return answer if (leader.leader_id, leader.leader_epoch) == (leader_id, epoch) else None


def only_partition(topics: Sequence[_Topic[P]]) -> P | None:
    """The partition that a peer answers about; None if it answers about none."""
    return topics[0].partitions[0] if topics and topics[0].partitions else None


def _endpoint(leader_id: int, nodes: Sequence[NodeEndpoint]) -> Endpoint | None:
    for node in nodes:
        if node.node_id == leader_id:
            return Endpoint(leader_id, node.host, node.port)
    return None


def versions_of(body: ApiVersionsResponse) -> KRaftVersionRange:
    """Those that a node says it knows; one that does not say knows of static voters only."""
    for feature in body.supported_features:
        if feature.name == KRAFT_VERSION:
            return KRaftVersionRange(
                min_supported_version=feature.min_version,
                max_supported_version=feature.max_version,
            )
    return KRaftVersionRange(min_supported_version=0, max_supported_version=0)
