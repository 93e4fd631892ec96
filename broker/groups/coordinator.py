"""A coordinator serves the groups of one partition of `__consumer_offsets` that this broker leads.

It joins the rules with the log: it loads what the log says, lets events change groups, writes down
what must survive, and answers. Groups live here and are lost with leadership; generations,
assignments and offsets are in the log. Who asks for which group is routed in
broker/requests/coordination.py.

Source: Kafka's GroupCoordinatorShard and CoordinatorRuntime.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker.config import GroupConfig
from broker.coordination.coordinators import KeyTimers
from broker.coordination.state_machine import StateMachine
from broker.coordination.writing import Concluded, nobody_waits
from broker.groups import conversion, joining, members, removal, static, syncing
from broker.groups.consumer.beating import Beat
from broker.groups.consumer.consumer_describing import not_described
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.consumer_groups import Begun, ConsumerGroups, refused, tombstones
from broker.groups.consumer.consumer_values import JOINS, EpochChange
from broker.groups.consumer.heartbeat_checks import Refusal
from broker.groups.consumer.topics import Topics
from broker.groups.contents import Contents, Offsets
from broker.groups.group import Group, GroupState, Outcome, Replacement, restore
from broker.groups.joiner import Joiner, join_refusal
from broker.groups.mixed import of_member
from broker.groups.mixed_groups import MixedGroups
from broker.groups.offset_requests import OffsetRequests, Written
from broker.groups.offsets import TopicIdOf, TopicWith
from broker.groups.pending import Pending
from broker.groups.rebalancing import rebalance
from broker.groups.records import (
    Change,
    GroupChange,
    GroupMetadata,
    OffsetChange,
    encode_change,
)
from broker.groups.removal import AnyGroup
from broker.partition.partition import Partition
from broker.verifying import Verifier
from broker.waiting import Deadlines
from quorum.core.effects import Reply
from quorum.core.outbox import Outbox
from wire.batch import Record
from wire.errors import ErrorCode
from wire.messages.consumer_groups import DescribedConsumerGroup
from wire.messages.groups import (
    HeartbeatRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from wire.transaction_markers import Marker

__all__ = ["Coordinator", "Surroundings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """All coordinators of a broker share these."""

    config: GroupConfig
    deadlines: Deadlines
    outbox: Outbox
    topic_id_of: TopicIdOf
    topic_with: TopicWith
    topics: Topics
    settings: Callable[[str], Mapping[str, str]]  # of a group by its id, without defaults
    verifier: Verifier
    timers: KeyTimers  # by group


class Coordinator:
    def __init__(self, partition: Partition, shared: Surroundings) -> None:
        self.index = partition.index
        self.leader_epoch = partition.leader_epoch
        self.groups: dict[str, Group] = {}
        self._name = partition.name
        self._config = shared.config
        self._shared = shared
        self._machine: StateMachine[Contents, Written] = StateMachine(
            partition,
            Contents(),
            loaded=self._loaded,
            committed=self._committed,
            encode=_encode,
            deadlines=shared.deadlines,
            outbox=shared.outbox,
            timeout_ms=shared.config.commit_timeout_ms,
            load_bytes_max=shared.config.load_bytes_max,
        )
        self._writing = self._machine.writing
        self.consumers = ConsumerGroups(
            config=shared.config,
            topics=shared.topics,
            settings=shared.settings,
            writer=self._writing,
            wake=self._wake_at,
            reply=self._reply,
            changed=self._downgrade,
        )
        self.mixed = MixedGroups(
            self.consumers,
            topics=shared.topics,
            flush=self._writing.flush,
            reply=self._reply,
            changed=self._downgrade,
        )
        self.offset_requests = OffsetRequests(
            index=partition.index,
            config=shared.config,
            topic_id_of=shared.topic_id_of,
            topic_with=shared.topic_with,
            verifier=shared.verifier,
            writing=self._writing,
            groups=self.groups,
            consumers=self.consumers.groups,
            keep=self._keep,
            touched=self._wake,
            error=lambda: self.error,
            reply=self._reply,
            offsets=Offsets(),
        )

    # --- life -------------------------------------------------------------------------------

    @property
    def error(self) -> ErrorCode:
        """NONE: it serves."""
        return self._machine.error

    def progressed(self, now_ms: int) -> None:
        """The high watermark of the partition may have moved."""
        self._machine.progressed(now_ms)

    def close(self, error: ErrorCode, now_ms: int) -> None:
        """This broker does not lead the partition any more."""
        for group in self.groups.values():
            self._shared.timers.set((self.index, group.id), None)
            self._answer(members.close(group, error, now_ms))
        self.groups.clear()
        self.consumers.close()
        self._machine.close(error, now_ms)

    def _loaded(self, contents: Contents, now_ms: int) -> None:
        self.offset_requests.offsets = contents.offsets
        for group_id, metadata in contents.groups.items():
            self.groups[group_id] = restore(group_id, metadata, now_ms)
        self.consumers.load(contents.consumers, now_ms)
        for group_id in contents.offsets.groups():
            self._keep(group_id, now_ms)
        for group in self.groups.values():
            self._wake(group)
        count = len(self.groups) + len(self.consumers.groups)
        if count:
            self._shared.outbox.trace("groups-loaded", partition=self._name, groups=count)

    def _committed(self, written: Written, now_ms: int) -> None:
        """Offsets count from now on; groups themselves are ahead of the log."""
        match written:
            case OffsetChange():
                self.offsets.apply(written)
                if written.committed is not None:
                    self._keep(written.group_id, now_ms)
            case Pending():
                self.offsets.pending.add(written)
                self._keep(written.change.group_id, now_ms)
            case Marker():
                self.offsets.end(written)
            case _:
                pass

    def transaction_ended(self, marker: Marker) -> None:
        """The leader has just appended it."""
        if self.error is not ErrorCode.NOT_COORDINATOR:  # its log could not be read
            self._writing.appended(marker)

    # --- groups -----------------------------------------------------------------------------

    def join(self, joiner: Joiner, now_ms: int) -> None:
        group_id = joiner.request.group_id
        if not self._make_way(group_id, now_ms):
            if self._is_empty(group_id):
                refusal = join_refusal(joiner.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                self._reply(joiner.token, refusal)
            elif self._config.consumer_migration_policy == "disabled":
                refusal = join_refusal(joiner.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
                self._reply(joiner.token, refusal)
            else:
                self.mixed.join(joiner, now_ms)
            return
        if joiner.member_id and group_id not in self.groups:
            refusal = join_refusal(joiner.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            self._reply(joiner.token, refusal)
            return
        group = self._group(group_id, now_ms)
        self._carry_out(group, joining.join(group, joiner, self._config, now_ms), now_ms)

    def sync(self, token: int, request: SyncGroupRequest, now_ms: int) -> None:
        group = self.groups.get(request.group_id)
        if request.group_id in self.mixed.groups:
            self.mixed.sync(token, request, now_ms)
            return
        if group is None:
            self._reply(token, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            return
        self._carry_out(group, syncing.sync(group, token, request, now_ms), now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        group = self.groups.get(request.group_id)
        if request.group_id in self.mixed.groups:
            return self.mixed.heartbeat(request, now_ms)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return members.heartbeat(group, request, now_ms)

    def leave(self, token: int, request: LeaveGroupRequest, now_ms: int) -> None:
        group = self.groups.get(request.group_id)
        if request.group_id in self.mixed.groups:
            self.mixed.leave(token, request.group_id, request.members, now_ms)
            return
        if group is None:
            group = Group(id=request.group_id, state_since_ms=now_ms)  # that nobody is in
        out, results = members.leave(group, request.members, self._config, now_ms)
        self._carry_out(group, out, now_ms)
        self._reply(token, LeaveGroupResponse(members=results))

    # --- from one protocol to the other -----------------------------------------------------

    def _make_way(self, group_id: str, now_ms: int) -> bool:
        """A group of the consumer protocol ends where one of the classic protocol begins, if nobody
        is in it. False: it is still there; if it is empty, that could not be written."""
        group = self.consumers.groups.get(group_id)
        if group is None:
            return True
        is_over = not group.members and self._writing.write(tombstones(group), nobody_waits, now_ms)
        if is_over:
            self.consumers.drop(group_id)
        return is_over

    def beat(self, token: int, beat: Beat, now_ms: int) -> None:
        """A heartbeat of KIP-848. A group of the classic protocol makes way for it, or comes along
        with its members."""
        group = self.groups.get(beat.request.group_id)
        begun = None if group is None else self._begun(group, beat)
        if isinstance(begun, Refusal):
            self._reply(token, refused(begun))
        elif self.consumers.heartbeat(token, beat, now_ms, begun) and group is not None:
            answers = members.close(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
            del self.groups[group.id]
            self._answer(answers)

    def _begun(self, group: Group, beat: Beat) -> Begun | Refusal:
        if beat.request.member_epoch != JOINS:
            text = f"Group {group.id} is not a consumer group."
            return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)
        gone = GroupChange(group_id=group.id, metadata=None)
        if group.state is GroupState.EMPTY:
            return Begun(ConsumerGroup(id=group.id), (gone,))
        refusal = conversion.upgrade_refusal(group, self._config)
        if refusal is not None:
            return refusal
        draft = conversion.upgraded(group, self._shared.topics)
        return Begun(draft.group, (gone, *draft.changes))

    def _downgrade(self, group: ConsumerGroup, now_ms: int) -> None:
        """If only members of the classic protocol are left, they are a group of their own again. If
        that cannot be written, they can stay as they are."""
        if not conversion.is_downgradable(group, self._config):
            return
        metadata = conversion.downgraded(group, self._shared.topics, now_ms)
        change = GroupChange(group_id=group.id, metadata=metadata)
        if not self._writing.write((*tombstones(group), change), nobody_waits, now_ms):
            return
        self.consumers.drop(group.id)
        classic = self.groups[group.id] = restore(group.id, metadata, now_ms)
        for member in classic.members.values():
            member.protocols = of_member(group.members[member.id])
        out = Outcome()
        rebalance(classic, self._config, now_ms, out)
        self._carry_out(classic, out, now_ms)

    def tick(self, group_id: str, now_ms: int) -> None:
        group = self.groups.get(group_id)
        if group_id in self.consumers.groups:
            self.consumers.tick(group_id, now_ms)
        elif group is not None:
            self._carry_out(group, members.tick(group, self._config, now_ms), now_ms)

    def delete(self, group_id: str, concluded: Concluded, now_ms: int) -> None:
        """Forget a group that is empty, with its offsets."""
        if self.any_group(group_id) is None:
            concluded(ErrorCode.GROUP_ID_NOT_FOUND, now_ms)
        elif not self._is_empty(group_id):
            concluded(ErrorCode.NON_EMPTY_GROUP, now_ms)
        else:
            places = self.offset_requests.places(group_id)
            gone = [*removal.tombstones(group_id, places), *self._ends(group_id)]
            if self._writing.write(gone, concluded, now_ms):
                self._forget_group(group_id, now_ms)

    def any_group(self, group_id: str) -> AnyGroup | None:
        return self.groups.get(group_id) or self.consumers.groups.get(group_id)

    def all_groups(self) -> tuple[AnyGroup, ...]:
        return (*self.groups.values(), *self.consumers.groups.values())

    def describe_consumers(self, group_id: str, operations: int) -> DescribedConsumerGroup:
        if group_id in self.groups:
            text = f"Group {group_id} is not a consumer group."
            return not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, text)
        return self.consumers.describe(group_id, operations=operations)

    def _is_empty(self, group_id: str) -> bool:
        if group_id in self.consumers.groups:
            return not self.consumers.groups[group_id].members
        return self.groups[group_id].state is GroupState.EMPTY

    def _ends(self, group_id: str) -> Sequence[Change]:
        """What says that an empty group is over, but for its offsets."""
        group = self.consumers.groups.get(group_id)
        if group is not None:
            return tombstones(group)
        return (GroupChange(group_id=group_id, metadata=None),)

    def _forget_group(self, group_id: str, now_ms: int) -> None:
        if group_id in self.consumers.groups:
            self.consumers.drop(group_id)
        else:
            self._drop(self.groups[group_id], now_ms)

    def _keep(self, group_id: str, now_ms: int) -> None:
        """Whoever has offsets is a group: of the classic protocol, if nothing else is known."""
        if group_id not in self.consumers.groups:
            self._group(group_id, now_ms)

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

    # --- offsets that nobody needs ----------------------------------------------------------

    @property
    def offsets(self) -> Offsets:
        return self.offset_requests.offsets

    def expire(self, now_ms: int) -> None:
        """Forget offsets that nobody needs any more, and groups of which nothing is left.

        A tombstone behind an offset that is being written would take that one, so that a group
        with a change in flight is looked at next time.
        """
        retention_ms = self._config.retention_ms
        written_to = set(map(_group_id, self._writing.in_flight()))
        gone: list[Change] = []
        for group_id in self.offsets.groups():
            self._keep(group_id, now_ms)  # if its tombstone was written, but not all of theirs
        for group in self.all_groups():
            if group.id in written_to:
                continue
            known = self.offset_requests.known(group.id)
            unstable = self.offsets.pending.places(group.id)
            old = removal.expired(group, known, retention_ms=retention_ms, now_ms=now_ms)
            gone += removal.tombstones(group.id, old.keys() - unstable)
            is_left = isinstance(group, ConsumerGroup) or not group.pending
            if len(old) == len(known) and not unstable and is_left and self._is_empty(group.id):
                gone += self._ends(group.id)
        self._forget(gone, now_ms)

    def topics_deleted(self, names: frozenset[str], now_ms: int) -> None:
        """A topic that is created again under the same name begins at its beginning."""
        gone: list[Change] = []
        for group_id in self.offsets.groups():
            places = self.offset_requests.places(group_id)
            gone += removal.tombstones(group_id, (each for each in places if each[0] in names))
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

    def _forget(self, tombstones: Sequence[Change], now_ms: int) -> None:
        """Nobody waits for it. What is refused is tried again at the next check."""
        for part in self._writing.in_batches(tombstones):
            if self._writing.write(part, nobody_waits, now_ms):
                for change in part:
                    if isinstance(change, GroupChange | EpochChange):
                        self._forget_group(change.group_id, now_ms)

    def _wake(self, group: Group) -> None:
        is_ours = self.groups.get(group.id) is group
        if is_ours:
            self._wake_at(group.id, group.wake_ms)

    def _wake_at(self, group_id: str, due_ms: int | None) -> None:
        self._shared.timers.set((self.index, group_id), due_ms)

    def _answer(self, out: Outcome) -> None:
        for token, body in out.answers:
            self._reply(token, body)

    def _reply(self, token: int, body: object) -> None:
        self._shared.outbox.emit(Reply(token=token, body=body))


def _encode(written: Written) -> Record:
    assert not isinstance(written, Marker), "the leader writes it"
    return encode_change(written.change if isinstance(written, Pending) else written)


def _group_id(written: Written) -> str | None:
    """A marker is of no group."""
    match written:
        case Marker():
            return None
        case Pending():
            return written.change.group_id
        case _:
            return written.group_id
