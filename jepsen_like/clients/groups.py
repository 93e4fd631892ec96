"""What one process does for consumer groups: it joins, commits offsets, and asks for them.

Nothing is asked twice: a commit that was repeated could count after a later one. `fail` is said
only of what the coordinator refused before it wrote anything; NOT_COORDINATOR is no such refusal,
since who has written and lost its leadership says so as well.

A member commits with its generation, and looks before that whether it still is one; who is none
commits without. Members share nothing out here: who commits what is the workload's business.

Source: KIP-62, KIP-394; Kafka's ConsumerCoordinator.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jepsen_like.clients.steps import Ask, Clock, Leaders, Steps
from jepsen_like.histories.history import Kind, Value, key_of, place_of
from jepsen_like.workloads.workload import Done
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from wire.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["Groups"]

_NO_GENERATION = -1
_NO_OFFSET = -1
_SESSION_MS = 6_000  # group.min.session.timeout.ms
_NO_MEMBER = "no member any more"
_PROTOCOL_TYPE = "chaos"
_PROTOCOL = "none"  # nothing is shared out by it
_NEVER_WRITTEN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.UNKNOWN_MEMBER_ID,
)


@dataclass(slots=True)
class _Member:
    id: str = ""
    generation: int = _NO_GENERATION


@dataclass(slots=True, kw_only=True)
class Groups:
    leaders: Leaders
    clock: Clock
    timeout_ms: int  # of an operation, and for others to join
    request_timeout_ms: int
    _coordinators: dict[str, int] = field(default_factory=dict)  # by group
    _members: dict[str, _Member] = field(default_factory=dict)  # what we are in each group

    # --- members ----------------------------------------------------------------------------

    def join(self, group: str) -> Steps[Done]:
        coordinator = yield from self._find(group)
        if coordinator is None:
            return _failed("no coordinator is known")
        member = self._members.setdefault(group, _Member())
        told = yield from self._join(group, coordinator, member)
        if isinstance(told, JoinGroupResponse) and told.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            member.id = told.member_id
            told = yield from self._join(group, coordinator, member)
        if not isinstance(told, JoinGroupResponse) or told.error_code is not ErrorCode.NONE:
            return self._left(group, told)
        body = SyncGroupRequest(
            group_id=group,
            generation_id=told.generation_id,
            member_id=member.id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
        )
        synced = yield self._ask(coordinator, body, self.timeout_ms)
        if not isinstance(synced, SyncGroupResponse) or synced.error_code is not ErrorCode.NONE:
            return self._left(group, synced)
        member.generation = told.generation_id
        return Done(kind=Kind.OK, value=group, extra={"generation": member.generation})

    def _join(self, group: str, coordinator: int, member: _Member) -> Steps[object]:
        body = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=self.timeout_ms,
            member_id=member.id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b""),),
        )
        told = yield self._ask(coordinator, body, self.timeout_ms + self.request_timeout_ms)
        return told

    def _left(self, group: str, told: object) -> Done:
        """Forget the member, so that it joins as a new one; but keep it while others rejoin: it
        still is a member, and a new one would make them wait for one that never comes.
        """
        code: ErrorCode | None = None
        if isinstance(told, JoinGroupResponse | SyncGroupResponse | HeartbeatResponse):
            code = ErrorCode(told.error_code)
        if code is not ErrorCode.REBALANCE_IN_PROGRESS:
            del self._members[group]
            self._coordinators.pop(group, None)
        return _failed("no answer" if code is None else code.name)

    # --- offsets ----------------------------------------------------------------------------

    def commit(self, group: str, offsets: Mapping[str, int]) -> Steps[Done]:
        coordinator = yield from self._find(group)
        if coordinator is None:
            return _failed("no coordinator is known")
        member = self._members.get(group, _Member())
        if member.generation != _NO_GENERATION:
            refused = yield from self._heartbeat(group, coordinator, member)
            if refused is not None:
                return refused
        body = _commit(group, member, offsets)
        told = yield self._ask(coordinator, body, self.request_timeout_ms)
        extra = {} if member.generation == _NO_GENERATION else {"generation": member.generation}
        if not isinstance(told, OffsetCommitResponse):
            return Done(kind=Kind.INFO, error="no answer", extra=extra)
        codes = {each.error_code for topic in told.topics for each in topic.partitions}
        if codes == {ErrorCode.NONE}:
            return Done(kind=Kind.OK, value=dict(offsets), extra=extra)
        self._coordinators.pop(group, None)
        kind = Kind.FAIL if codes.issubset(_NEVER_WRITTEN) else Kind.INFO
        return Done(kind=kind, error=_names(codes), extra=extra)

    def _heartbeat(self, group: str, coordinator: int, member: _Member) -> Steps[Done | None]:
        """The refusal if the member may not commit now; nothing was asked for yet."""
        body = HeartbeatRequest(
            group_id=group, generation_id=member.generation, member_id=member.id
        )
        told = yield self._ask(coordinator, body, self.request_timeout_ms)
        code = told.error_code if isinstance(told, HeartbeatResponse) else None
        if code is ErrorCode.NONE:
            return None
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            return _failed(code.name)  # we are still a member, and join again
        return replace(self._left(group, told), error=_NO_MEMBER)

    def committed(self, group: str, keys: Sequence[str]) -> Steps[Done]:
        """None where nothing is committed."""
        coordinator = yield from self._find(group)
        if coordinator is None:
            return _failed("no coordinator is known")
        topics = tuple(
            OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in _by_topic(keys).items()
        )
        asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
        body = OffsetFetchRequest(groups=(asked,), require_stable=True)
        told = yield self._ask(coordinator, body, self.request_timeout_ms)
        if isinstance(told, OffsetFetchResponse) and not (codes := _refusals(told)):
            return Done(kind=Kind.OK, value=_offsets(told), extra={"node": coordinator})
        self._coordinators.pop(group, None)
        return _failed(_names(codes) if isinstance(told, OffsetFetchResponse) else "no answer")

    # --- the coordinator --------------------------------------------------------------------

    def _find(self, group: str) -> Steps[int | None]:
        until_ms = self.clock() + self.request_timeout_ms
        while group not in self._coordinators and self.clock() < until_ms:
            told = yield self._ask(
                self.leaders.any_broker(),
                FindCoordinatorRequest(coordinator_keys=(group,)),
                max(1, until_ms - self.clock()),
            )
            if isinstance(told, FindCoordinatorResponse):
                found = told.coordinators[0]
                if found.error_code is ErrorCode.NONE:
                    self._coordinators[group] = found.node_id
                    break
            yield self.leaders.pause()
        return self._coordinators.get(group)

    @staticmethod
    def _ask(node: int, body: object, timeout_ms: int) -> Ask:
        return Ask(node=node, body=body, timeout_ms=timeout_ms)


def _failed(error: str) -> Done:
    return Done(kind=Kind.FAIL, error=error)


def _names(codes: Collection[ErrorCode]) -> str:
    return ", ".join(sorted(ErrorCode(code).name for code in codes))


def _commit(group: str, member: _Member, offsets: Mapping[str, int]) -> OffsetCommitRequest:
    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offsets[key_of(topic, index)]
                )
                for index in indexes
            ),
        )
        for topic, indexes in _by_topic(offsets).items()
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.id,
        topics=topics,
    )


def _refusals(told: OffsetFetchResponse) -> set[ErrorCode]:
    of_group = told.groups[0]
    codes = {each.error_code for topic in of_group.topics for each in topic.partitions}
    return {of_group.error_code, *codes} - {ErrorCode.NONE}


def _offsets(told: OffsetFetchResponse) -> dict[str, Value]:
    return {
        key_of(topic.name, each.partition_index): (
            None if each.committed_offset == _NO_OFFSET else each.committed_offset
        )
        for topic in told.groups[0].topics
        for each in topic.partitions
    }


def _by_topic(keys: Iterable[str]) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for key in keys:
        topic, index = place_of(key)
        found.setdefault(topic, []).append(index)
    return found
