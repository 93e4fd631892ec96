"""The groups of the consumer protocol that one coordinator has.

It joins the rules with the log: what a heartbeat changes is written down, counts for the next one
at once, and is answered when it is committed. If it cannot be written, nothing has happened.

Source: Kafka's GroupMetadataManager and CoordinatorRuntime.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from broker.config import GroupConfig
from broker.coordination.writing import Concluded, nobody_waits
from broker.groups.consumer.beating import (
    Beat,
    Beaten,
    Given,
    fence,
    follow_patterns,
    heartbeat,
    leave,
)
from broker.groups.consumer.consumer_describing import describe_consumers, not_described
from broker.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from broker.groups.consumer.consumer_records import by_topic
from broker.groups.consumer.consumer_values import (
    JOINS,
    ConsumerChange,
    CurrentChange,
    EpochChange,
    PatternChange,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
)
from broker.groups.consumer.drafts import Draft
from broker.groups.consumer.heartbeat_checks import Refusal
from broker.groups.consumer.member_sessions import Sessions
from broker.groups.consumer.topic_patterns import SLICE_MS
from broker.groups.consumer.topics import Topics
from quorum.core.effects import earliest
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    AssignedPartitions,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    MemberAssignment,
)

__all__ = ["ASSIGNMENT_INTERVAL", "Begun", "ConsumerGroups", "Writer", "refused", "tombstones"]

ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"
_RETRY_MS = 500  # if a change of members, or of topics, could not be written


class Writer(Protocol):
    def write(self, changes: Sequence[Any], concluded: Concluded, now_ms: int) -> bool: ...
    def flush(self, concluded: Concluded, now_ms: int) -> None: ...


class Begun(NamedTuple):
    """A group that replaces one of the classic protocol with the first heartbeat."""

    group: ConsumerGroup
    changes: Sequence[Any]  # that are written before all others


class ConsumerGroups:
    def __init__(
        self,
        *,
        config: GroupConfig,
        topics: Topics,
        settings: Callable[[str], Mapping[str, str]],
        writer: Writer,
        wake: Callable[[str, int | None], None],
        reply: Callable[[int, object], None],
        changed: Callable[[ConsumerGroup, int], None],
    ) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self._config = config
        self._topics = topics
        self._settings = settings  # of a group by its id, without defaults
        self._writer = writer
        self._wake = wake
        self._reply = reply
        self._changed = changed  # members have gone
        self._sessions: dict[str, Sessions] = {}
        self._seen: dict[str, object] = {}  # the snapshot of topics that the group has followed
        self._matching: dict[str, int] = {}  # groups with patterns still: when to go on

    # --- life -------------------------------------------------------------------------------

    def load(self, groups: Mapping[str, ConsumerGroup], now_ms: int) -> None:
        """Members have a session to be heard."""
        for group in groups.values():
            self.groups[group.id] = group
            self._sessions[group.id] = Sessions()
            self._begin_sessions(group, now_ms)

    def close(self) -> None:
        for group_id in tuple(self.groups):
            self.drop(group_id)

    def drop(self, group_id: str) -> None:
        """It is led elsewhere, or its tombstones are in the log."""
        del self.groups[group_id]
        self._sessions.pop(group_id, None)
        self._seen.pop(group_id, None)
        self._matching.pop(group_id, None)
        self._wake(group_id, None)

    # --- members ----------------------------------------------------------------------------

    def heartbeat(self, token: int, beat: Beat, now_ms: int, begun: Begun | None = None) -> bool:
        """Is it taken? Then a group of this name is of this protocol."""
        group_id, epoch = beat.request.group_id, beat.request.member_epoch
        group = self.groups.get(group_id) if begun is None else begun.group
        if group is None and epoch != JOINS:
            text = f"Consumer group {group_id} not found."
            self._reply(token, refused(Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)))
            return False
        group = group or ConsumerGroup(id=group_id)
        if epoch < JOINS:
            beaten = leave(group, beat.request, self.given(group_id, now_ms))
        else:
            beaten = heartbeat(group, beat, self.given(group_id, now_ms))
        if isinstance(beaten, Refusal):
            self._reply(token, refused(beaten))
            return False
        answer = _left(beaten, epoch) if epoch < JOINS else self._answer(beaten)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            self._reply(token, answer if is_done else refused(Refusal(error, None)))

        before = () if begun is None else begun.changes
        if not self.write(beaten.draft, concluded, now_ms, before=before):
            return False
        if epoch >= JOINS:
            self.heard(beaten.draft, beaten.member_id, now_ms)
        else:
            self._sessions[group_id].stopped_revoking(beaten.member_id)
            self._changed(beaten.draft.group, now_ms)
        return True

    def write(
        self, draft: Draft, concluded: Concluded, now_ms: int, *, before: Sequence[Any] = ()
    ) -> bool:
        """Write down what the draft changes: then the group is what the draft says."""
        changes = [*before, *draft.changes]
        if not changes:
            self._writer.flush(concluded, now_ms)  # what is told may not be committed yet
            is_written = True
        else:
            is_written = self._writer.write(changes, concluded, now_ms)
        if is_written:
            self._take(draft, now_ms)
        return is_written

    def _answer(self, beaten: Beaten) -> ConsumerGroupHeartbeatResponse:
        group = beaten.draft.group
        member = group.members[beaten.member_id]
        return ConsumerGroupHeartbeatResponse(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._setting(
                group.id,
                "consumer.heartbeat.interval.ms",
                self._config.consumer_heartbeat_interval_ms,
                self._config.consumer_heartbeat_interval_range_ms,
            ),
            assignment=_assignment(member) if beaten.tells_assignment else None,
        )

    def given(self, group_id: str, now_ms: int) -> Given:
        is_stale = self._seen.get(group_id) != self._topics.snapshot
        return Given(
            topics=self._topics,
            config=self._config,
            assignment_interval_ms=self._setting(
                group_id,
                ASSIGNMENT_INTERVAL,
                0,
                self._config.consumer_assignment_interval_range_ms,
            ),
            is_stale=is_stale,
            now_ms=now_ms,
        )

    def _take(self, draft: Draft, now_ms: int) -> None:
        before, group = self.groups.get(draft.group.id), draft.group
        self.groups[group.id] = group
        sessions = self._sessions.setdefault(group.id, Sessions())
        if before is None:
            self._begin_sessions(group, now_ms)
        elif draft.changes:
            for member_id in before.members.keys() - group.members.keys():
                sessions.forget(member_id)

    def _begin_sessions(self, group: ConsumerGroup, now_ms: int) -> None:
        for member in group.members.values():
            self.touch(group.id, member, now_ms)

    def touch(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """A sign of life."""
        sessions = self._sessions[group_id]
        if member.classic is None:
            timeout_ms = self._session_timeout_ms(group_id)
        else:
            timeout_ms = member.classic.session_timeout_ms
        sessions.touch(member, timeout_ms=timeout_ms, now_ms=now_ms)
        self._set_timer(group_id)

    def owes(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """A member of the classic protocol has to join or to sync, in its own time."""
        due_ms = now_ms + member.subscription.rebalance_timeout_ms
        self._sessions[group_id].expect(member.id, due_ms)
        self._set_timer(group_id)

    def owes_nothing(self, group_id: str, member_id: str) -> None:
        self._sessions[group_id].stopped_revoking(member_id)

    def heard(self, draft: Draft, member_id: str, now_ms: int) -> None:
        """The group has followed what is so, with a request of the member."""
        self._looked(draft, now_ms)
        self.touch(draft.group.id, draft.group.members[member_id], now_ms)

    def _looked(self, draft: Draft, now_ms: int) -> None:
        """At the topics; to be continued, if patterns are still being matched."""
        group_id = draft.group.id
        if draft.is_matching:
            self._matching[group_id] = now_ms + SLICE_MS
        else:
            self._seen[group_id] = self._topics.snapshot
            self._matching.pop(group_id, None)

    def _session_timeout_ms(self, group_id: str) -> int:
        default = self._config.consumer_session_timeout_ms
        range_ms = self._config.consumer_session_timeout_range_ms
        return self._setting(group_id, "consumer.session.timeout.ms", default, range_ms)

    def _setting(self, group_id: str, name: str, default: int, range_: tuple[int, int]) -> int:
        """The group's own value, in the range of this broker, which may be younger.

        Source: Kafka's GroupConfig.evaluate.
        """
        value = self._settings(group_id).get(name)
        return default if value is None else min(max(int(value), range_[0]), range_[1])

    def describe(self, group_id: str, *, operations: int) -> DescribedConsumerGroup:
        group = self.groups.get(group_id)
        if group is None:
            text = f"Group {group_id} not found."
            return not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, text)
        assignor = self._config.consumer_assignors[0]
        return describe_consumers(
            group, self._topics, default_assignor=assignor, operations=operations
        )

    # --- time -------------------------------------------------------------------------------

    def tick(self, group_id: str, now_ms: int) -> None:
        """Members that are silent, or keep what is not theirs, have gone."""
        if self._matching.get(group_id, now_ms + 1) <= now_ms:
            self._match(group_id, now_ms)
        sessions = self._sessions[group_id]
        overdue = sessions.overdue(now_ms)
        if overdue:
            draft = fence(self.groups[group_id], overdue, self.given(group_id, now_ms))
            if not self.write(draft, nobody_waits, now_ms):
                for member_id in overdue:
                    sessions.postpone(member_id, now_ms + _RETRY_MS)
        sessions.reckon()
        self._set_timer(group_id)
        if overdue:
            self._changed(self.groups[group_id], now_ms)

    def _match(self, group_id: str, now_ms: int) -> None:
        self._matching[group_id] = now_ms + _RETRY_MS
        draft = follow_patterns(self.groups[group_id], self.given(group_id, now_ms))
        if self.write(draft, nobody_waits, now_ms):
            self._looked(draft, now_ms)

    def _set_timer(self, group_id: str) -> None:
        sessions_ms = self._sessions[group_id].wake_ms
        self._wake(group_id, earliest(sessions_ms, self._matching.get(group_id)))


def tombstones(group: ConsumerGroup) -> tuple[ConsumerChange, ...]:
    """The records that remove a group and its members, in Kafka's order."""
    id_, members, patterns = group.id, sorted(group.members), sorted(group.patterns)
    return (
        *(CurrentChange(group_id=id_, member_id=each, current=None) for each in members),
        *(TargetChange(group_id=id_, member_id=each, partitions=None) for each in members),
        TargetEpochChange(group_id=group.id, epoch=None),
        *(SubscriptionChange(group_id=id_, member_id=each, subscription=None) for each in members),
        *(PatternChange(group_id=group.id, pattern=each, resolved=None) for each in patterns),
        EpochChange(group_id=group.id, epoch=None),
    )


def _assignment(member: ConsumerMember) -> MemberAssignment:
    return MemberAssignment(
        topic_partitions=tuple(
            AssignedPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(member.current.assigned).items()
        )
    )


def _left(beaten: Beaten, epoch: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(member_id=beaten.member_id, member_epoch=epoch)


def refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
