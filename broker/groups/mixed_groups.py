"""Requests of the classic protocol to groups of the consumer protocol, which one coordinator has.

The rules are in mixed.py. Whoever joins is answered once it is committed; what a member has is told
when it syncs.

Source: Kafka's GroupMetadataManager, classicGroup*ToConsumerGroup.
"""

from collections.abc import Callable, Iterable, Mapping

from broker.groups.consumer.beating import fence
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.consumer_groups import ConsumerGroups
from broker.groups.consumer.heartbeat_checks import Refusal, member_of
from broker.groups.consumer.topics import Topics
from broker.groups.joiner import Joiner, join_refusal
from broker.groups.mixed import check_heartbeat, check_sync, join, joined_consumers, synced
from wire.errors import ErrorCode
from wire.messages.groups import (
    HeartbeatRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["MixedGroups"]


class MixedGroups:
    def __init__(
        self,
        consumers: ConsumerGroups,
        *,
        topics: Topics,
        flush: Callable[[Callable[[ErrorCode, int], None], int], None],
        reply: Callable[[int, object], None],
        changed: Callable[[ConsumerGroup, int], None],
    ) -> None:
        self.groups: Mapping[str, ConsumerGroup] = consumers.groups
        self._consumers = consumers
        self._topics = topics
        self._flush = flush
        self._reply = reply
        self._changed = changed

    def join(self, joiner: Joiner, now_ms: int) -> None:
        group_id = joiner.request.group_id
        out = join(self.groups[group_id], joiner, self._consumers.given(group_id, now_ms))
        if isinstance(out, ErrorCode):
            self._reply(joiner.token, join_refusal(joiner.member_id, out))
            return
        if not joiner.member_id and joiner.instance_id is None and joiner.needs_id:
            required = join_refusal(joiner.new_id, ErrorCode.MEMBER_ID_REQUIRED)
            self._reply(joiner.token, required)
            return
        member = out.draft.group.members[out.member_id]
        answer = joined_consumers(member)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            self._reply(joiner.token, answer if is_done else join_refusal(member.id, error))

        if self._consumers.write(out.draft, concluded, now_ms):
            self._consumers.heard(out.draft, member.id, now_ms)
            self._consumers.owes_nothing(group_id, member.id)
            self._consumers.owes(group_id, member, now_ms)  # a SyncGroup
            self._changed(out.draft.group, now_ms)

    def sync(self, token: int, request: SyncGroupRequest, now_ms: int) -> None:
        member = check_sync(self.groups[request.group_id], request)
        if isinstance(member, ErrorCode):
            self._reply(token, SyncGroupResponse(error_code=member))
            return
        answer = synced(member, self._topics)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            self._reply(token, answer if is_done else SyncGroupResponse(error_code=error))

        self._consumers.owes_nothing(request.group_id, member.id)
        self._consumers.touch(request.group_id, member, now_ms)
        self._flush(concluded, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        member, error = check_heartbeat(self.groups[request.group_id], request)
        if member is not None:
            self._consumers.touch(request.group_id, member, now_ms)
            if error is ErrorCode.REBALANCE_IN_PROGRESS:
                self._consumers.owes(request.group_id, member, now_ms)  # a JoinGroup
        return error

    def leave(
        self, token: int, group_id: str, leaving: Iterable[MemberIdentity], now_ms: int
    ) -> None:
        """Members of either protocol may be removed, by their ids or instance ids."""
        group = self.groups[group_id]
        gone: dict[str, None] = {}
        results = []
        for identity in leaving:
            member_id, instance_id = identity.member_id, identity.group_instance_id
            if not member_id and instance_id is not None:
                member_id = group.static_ids.get(instance_id, "")
            found = member_of(group, member_id, instance_id)
            error = found.error if isinstance(found, Refusal) else ErrorCode.NONE
            if error is ErrorCode.NONE:
                gone[member_id] = None
            results.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=instance_id,
                    error_code=error,
                )
            )
        answer = LeaveGroupResponse(members=tuple(results))

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            self._reply(token, answer if is_done else LeaveGroupResponse(error_code=error))

        if not gone:
            self._reply(token, answer)
            return
        draft = fence(group, gone, self._consumers.given(group_id, now_ms))
        if self._consumers.write(draft, concluded, now_ms):
            self._changed(draft.group, now_ms)
