"""Who may commit and fetch offsets of a consumer group: members, in their epoch.

A member may have been told another epoch while its commit was under way. It counts nevertheless,
for each partition that the member has had since that epoch or before (KIP-1251).

Source: KIP-848; Kafka's ConsumerGroup.validateOffsetCommit and validateOffsetFetch.
"""

from collections.abc import Callable, Iterable
from typing import Protocol
from uuid import UUID

from broker.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from broker.verifying import Place
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetCommitRequest, OffsetFetchRequestGroup
from wire.messages.transactions import TxnOffsetCommitRequest

__all__ = ["check_commit", "check_fetch", "check_transactional_commit", "stale_places"]


def check_commit(group: ConsumerGroup, request: OffsetCommitRequest, lacking: Lacking) -> ErrorCode:
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    is_old = Capability.KNOWS_GROUP_ID_NOT_FOUND in lacking  # and STALE_MEMBER_EPOCH, since 9
    member = group.members.get(request.member_id)
    if is_old and member is not None and member.classic is None:
        return ErrorCode.UNSUPPORTED_VERSION
    return _check_epoch(group, request.member_id, epoch)


def check_transactional_commit(group: ConsumerGroup, request: TxnOffsetCommitRequest) -> ErrorCode:
    epoch = request.generation_id
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    if epoch == -1 and not request.member_id and request.group_instance_id is None:
        return ErrorCode.NONE  # a producer from before KIP-447
    return _check_epoch(group, request.member_id, epoch)


def _check_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> ErrorCode:
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return wrong_epoch(member) if epoch > member.epoch else ErrorCode.NONE


def wrong_epoch(member: ConsumerMember) -> ErrorCode:
    """In the words of its protocol."""
    is_classic = member.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH


class _Topic(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Iterable["_Partition"]: ...


class _Partition(Protocol):
    @property
    def partition_index(self) -> int: ...


def stale_places(
    group: ConsumerGroup | None,
    member_id: str,
    epoch: int,
    topics: Iterable[_Topic],
    topic_with: Callable[[str, int], UUID | None],
) -> dict[Place, ErrorCode]:
    """Where the commit of a member comes too late: another member may have read on."""
    member = None if group is None else group.members.get(member_id)
    if member is None or epoch == member.epoch:
        return {}
    since = {**member.current.revoking, **member.current.assigned}
    found = {}
    for topic in topics:
        for partition in topic.partitions:
            index = partition.partition_index
            topic_id = topic_with(topic.name, index)
            first = None if topic_id is None else since.get((topic_id, index))
            if first is None or epoch < first:
                found[topic.name, index] = wrong_epoch(member)
    return found


def check_fetch(group: ConsumerGroup, asked: OffsetFetchRequestGroup) -> ErrorCode:
    """Whoever names no member may ask."""
    if asked.member_id is None and asked.member_epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(asked.member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if asked.member_epoch == member.epoch else wrong_epoch(member)
