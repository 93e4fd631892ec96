"""A coordinator serves the groups of one partition of `__consumer_offsets` that this broker leads.

It joins the rules with the log: it loads what the log says, lets events change groups, writes down
what must survive, and answers. Groups live here and are lost with leadership; generations,
assignments and offsets are in the log. Who asks for which group is routed in
broker/requests/coordination.py.

Source: Kafka's GroupCoordinatorShard and CoordinatorRuntime.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.config import GroupConfig
from broker.groups import joining, members, offsets, removal, static, syncing
from broker.groups.group import Group, GroupState, Outcome, Replacement, restore
from broker.groups.joiner import Joiner, join_refusal
from broker.groups.loading import Loading, apply_offset
from broker.groups.offsets import GroupOffsets, TopicIdOf, TopicWith
from broker.groups.records import Change, GroupChange, GroupMetadata, OffsetChange
from broker.groups.timers import Timers
from broker.groups.writing import Concluded, Writing
from broker.partition.partition import Partition
from broker.waiting import Deadlines
from quorum.core.effects import Event, Reply
from quorum.core.outbox import Outbox
from wire.capabilities import Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from wire.messages.groups import (
    HeartbeatRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["Coordinator", "Surroundings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """All coordinators of a broker share these."""

    config: GroupConfig
    deadlines: Deadlines
    outbox: Outbox
    topic_id_of: TopicIdOf
    topic_with: TopicWith
    timers: Timers[tuple[int, str]]  # by partition and group: when its coordinator is to `tick`


class Coordinator:
    def __init__(self, partition: Partition, shared: Surroundings) -> None:
        self.index = partition.index
        self.leader_epoch = partition.leader_epoch
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, GroupOffsets] = {}  # by group: what is committed
        self.error: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # NONE: it serves
        self._name = partition.name
        self._config = shared.config
        self._shared = shared
        self._writing = Writing(
            partition,
            deadlines=shared.deadlines,
            timeout_ms=shared.config.commit_timeout_ms,
        )
        self._loading = Loading(partition, bytes_max=shared.config.load_bytes_max)

    # --- life -------------------------------------------------------------------------------

    def progressed(self, now_ms: int) -> None:
        """The high watermark of the partition may have moved."""
        self._load(now_ms)
        for write in self._writing.committed():
            for change in write.changes:
                self._committed(change, now_ms)
            write.conclude(ErrorCode.NONE, now_ms)

    def close(self, error: ErrorCode, now_ms: int) -> None:
        """This broker does not lead the partition any more."""
        self.error = error
        self._loading.cancel()
        for group in self.groups.values():
            self._shared.timers.set((self.index, group.id), None)
            self._answer(members.close(group, error, now_ms))
        self.groups.clear()
        self._writing.close(error, now_ms)

    def _load(self, now_ms: int) -> None:
        contents = self._loading.go_on(self._piece_read)
        if contents is None:
            return
        self.offsets = contents.offsets
        for group_id, metadata in contents.groups.items():
            self.groups[group_id] = restore(group_id, metadata, now_ms)
        for group_id in contents.offsets:
            self._group(group_id, now_ms)
        self.error = ErrorCode.NONE
        for group in self.groups.values():
            self._wake(group)
        if self.groups:
            count = len(self.groups)
            self._shared.outbox.trace("groups-loaded", partition=self._name, groups=count)

    def _piece_read(self, event: Event, now_ms: int) -> None:
        problem = self._loading.take(event)
        if problem is None:
            self._load(now_ms)
            return
        self.error = ErrorCode.NOT_COORDINATOR
        self._shared.outbox.trace("groups-not-loaded", partition=self._name, reason=problem)

    # --- groups -----------------------------------------------------------------------------

    def join(self, joiner: Joiner, now_ms: int) -> None:
        group_id = joiner.request.group_id
        if joiner.member_id and group_id not in self.groups:
            refusal = join_refusal(joiner.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            self._reply(joiner.token, refusal)
            return
        group = self._group(group_id, now_ms)
        self._carry_out(group, joining.join(group, joiner, self._config, now_ms), now_ms)

    def sync(self, token: int, request: SyncGroupRequest, now_ms: int) -> None:
        group = self.groups.get(request.group_id)
        if group is None:
            self._reply(token, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            return
        self._carry_out(group, syncing.sync(group, token, request, now_ms), now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        group = self.groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return members.heartbeat(group, request, now_ms)

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> LeaveGroupResponse:
        group = self.groups.get(request.group_id)
        if group is None:
            group = Group(id=request.group_id, state_since_ms=now_ms)  # that nobody is in
        out, results = members.leave(group, request.members, self._config, now_ms)
        self._carry_out(group, out, now_ms)
        return LeaveGroupResponse(members=results)

    def tick(self, group_id: str, now_ms: int) -> None:
        group = self.groups.get(group_id)
        if group is not None:
            self._carry_out(group, members.tick(group, self._config, now_ms), now_ms)

    def delete(self, group_id: str, concluded: Concluded, now_ms: int) -> None:
        """Forget a group that is empty, with its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            concluded(ErrorCode.GROUP_ID_NOT_FOUND, now_ms)
        elif group.state is not GroupState.EMPTY:
            concluded(ErrorCode.NON_EMPTY_GROUP, now_ms)
        else:
            tombstones = removal.tombstones(group_id, self.offsets.get(group_id, {}))
            gone: list[Change] = [*tombstones, GroupChange(group_id=group_id, metadata=None)]
            if self._writing.write(gone, concluded, now_ms):
                self._drop(group, now_ms)

    def _group(self, group_id: str, now_ms: int) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(id=group_id, state_since_ms=now_ms)
        return group

    def _drop(self, group: Group, now_ms: int) -> None:
        """Its tombstone is in the log: from here on the name stands for a new group."""
        members.close(group, ErrorCode.UNKNOWN_MEMBER_ID, now_ms)
        del self.groups[group.id]
        self._shared.timers.set((self.index, group.id), None)

    # --- offsets ----------------------------------------------------------------------------

    def commit(
        self, token: int, request: OffsetCommitRequest, lacking: Lacking, now_ms: int
    ) -> None:
        group = self.groups.get(request.group_id)
        topic_with = self._shared.topic_with
        error = offsets.check_commit(group, request, lacking)
        if error is not ErrorCode.NONE:
            self._reply(token, offsets.refused_commit(request, error, topic_with))
            return
        member = None if group is None else group.members.get(request.member_id)
        if group is not None and member is not None and member.join_token is None:
            group.touch(member, now_ms)
            self._wake(group)
        changes, response = offsets.commit(request, self._config, topic_with, now_ms)
        if changes:
            self._group(request.group_id, now_ms)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            refused = offsets.refused_commit(request, error, topic_with)
            self._reply(token, response if is_done else refused)

        self._write(changes, concluded, now_ms)

    def fetch(
        self,
        asked: OffsetFetchRequestGroup,
        *,
        lacking: Lacking,
        require_stable: bool,
        answer: Callable[[OffsetFetchResponseGroup], None],
        now_ms: int,
    ) -> None:
        """With `require_stable`, what is being committed is waited for (KIP-447)."""

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            if error is ErrorCode.NONE:
                known = self.offsets.get(asked.group_id, {})
                answer(offsets.fetch(known, asked, self._shared.topic_id_of))
            else:
                answer(offsets.refused_fetch(asked, error, lacking))

        if require_stable:
            self._writing.flush(concluded, now_ms)
        else:
            concluded(ErrorCode.NONE, now_ms)

    def delete_offsets(self, token: int, request: OffsetDeleteRequest, now_ms: int) -> None:
        group_id = request.group_id
        known = self.offsets.get(group_id, {})
        group = self.groups.get(group_id)
        topic_with = self._shared.topic_with
        changes, response = removal.delete_offsets(group, known, request, topic_with)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            refused = OffsetDeleteResponse(error_code=error)
            self._reply(token, response if is_done else refused)

        self._write(changes, concluded, now_ms)

    def expire_offsets(self, now_ms: int) -> None:
        """Forget offsets that nobody needs any more, and groups of which nothing is left."""
        retention_ms = self._config.retention_ms
        gone: list[Change] = []
        for group_id in self.offsets:
            self._group(group_id, now_ms)  # if its tombstone was written, but not all of theirs
        for group in self.groups.values():
            known = self.offsets.get(group.id, {})
            old = removal.expired(group, known, retention_ms=retention_ms, now_ms=now_ms)
            gone += removal.tombstones(group.id, old)
            is_over = len(old) == len(known) and not group.pending
            if is_over and group.state is GroupState.EMPTY:
                gone.append(GroupChange(group_id=group.id, metadata=None))
        self._forget(gone, now_ms)

    def topics_deleted(self, names: frozenset[str], now_ms: int) -> None:
        """A topic that is created again under the same name begins at its beginning."""
        gone: list[Change] = []
        for group_id, known in self.offsets.items():
            old = {place: committed for place, committed in known.items() if place[0] in names}
            gone += removal.tombstones(group_id, old)
        self._forget(gone, now_ms)

    # --- carrying out -----------------------------------------------------------------------

    def _carry_out(self, group: Group, out: Outcome, now_ms: int) -> None:
        self._answer(out)
        self._wake(group)
        if out.stored is not None:
            self._store(group, out.stored, out.replacement, now_ms)

    def _store(
        self,
        group: Group,
        metadata: GroupMetadata,
        replacement: Replacement | None,
        now_ms: int,
    ) -> None:
        """Write a generation down; its members hear of it once it is committed."""

        def concluded(error: ErrorCode, now_ms: int) -> None:
            if replacement is not None:
                out = static.replacement_stored(group, replacement, error, now_ms)
            elif error is ErrorCode.NONE:
                out = syncing.assigned(group, metadata, now_ms)
            else:
                out = syncing.assignment_failed(group, metadata, error, self._config, now_ms)
            self._carry_out(group, out, now_ms)

        change = GroupChange(group_id=group.id, metadata=metadata)
        self._writing.write((change,), concluded, now_ms)

    def _committed(self, change: Change, now_ms: int) -> None:
        """Offsets count from now on; groups themselves are ahead of the log."""
        if isinstance(change, OffsetChange):
            apply_offset(self.offsets, change)
            if change.committed is not None:
                self._group(change.group_id, now_ms)

    def _write(self, changes: Sequence[Change], concluded: Concluded, now_ms: int) -> None:
        if changes:
            self._writing.write(changes, concluded, now_ms)
        else:
            concluded(ErrorCode.NONE, now_ms)

    def _forget(self, tombstones: Sequence[Change], now_ms: int) -> None:
        """Nobody waits for it. What is refused is tried again at the next check."""
        for part in removal.parts(tombstones, bytes_max=self._writing.bytes_max):
            if self._writing.write(part, _nobody_waits, now_ms):
                for change in part:
                    if isinstance(change, GroupChange):
                        self._drop(self.groups[change.group_id], now_ms)

    def _wake(self, group: Group) -> None:
        is_ours = self.groups.get(group.id) is group
        if is_ours:
            self._shared.timers.set((self.index, group.id), group.wake_ms)

    def _answer(self, out: Outcome) -> None:
        for token, body in out.answers:
            self._reply(token, body)

    def _reply(self, token: int, body: object) -> None:
        self._shared.outbox.emit(Reply(token=token, body=body))


def _nobody_waits(_error: ErrorCode, _now_ms: int) -> None:
    """See `_forget`."""
