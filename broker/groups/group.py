"""A group has a state, members and a generation. joining.py, syncing.py and members.py change them.

    Empty               nobody; offsets may be left
    PreparingRebalance  members are expected to join (again)
    CompletingRebalance all know the generation; the leader works out who gets what
    Stable              all can have their assignment
    Dead                deleted, or led by another coordinator: nothing may happen to it any more

Members are in the order in which they joined. The first of them leads, unless it has missed a
rebalance. No two members have one instance id.

Source: Kafka's ClassicGroup and ClassicGroupState; KIP-62 (time-outs), KIP-345 (static members),
KIP-394 (member ids).
"""

from collections.abc import Container
from dataclasses import dataclass, field
from enum import Enum

from broker.groups import protocols
from broker.groups.protocols import CONSUMER, Protocols
from broker.groups.records import GroupMetadata, MemberMetadata
from quorum.core.effects import earliest
from wire.errors import ErrorCode
from wire.messages.groups import JoinGroupRequestProtocol

__all__ = ["Group", "GroupState", "Member", "Outcome", "Replacement", "restore"]


class GroupState(Enum):
    """The names are those that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
_NEXT: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (_PREPARING, GroupState.DEAD),
    _PREPARING: (_COMPLETING, GroupState.EMPTY, GroupState.DEAD),
    _COMPLETING: (GroupState.STABLE, _PREPARING, GroupState.DEAD),
    GroupState.STABLE: (_PREPARING, GroupState.DEAD),
    GroupState.DEAD: (),
}


class AnyTopic(Container[str]):
    def __contains__(self, topic: object) -> bool:
        return True


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    id: str
    instance_id: str | None = None  # a static member's
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    join_token: int | None = None  # its request that waits for the rebalance
    sync_token: int | None = None  # its request that waits for the assignment
    is_new: bool = False  # it has joined, and has not heard so yet
    deadline_ms: int | None = None  # when its session ends; None while a request of it waits

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A static member has a new id in a stable group: who waits for it, and what it was before."""

    joiner_token: int
    can_skip_assignment: bool
    member: Member
    generation: int
    old_id: str
    old_leader: str
    old_protocols: Protocols
    old_session_timeout_ms: int
    old_rebalance_timeout_ms: int


@dataclass(slots=True, kw_only=True)
class Outcome:
    """An event is followed by answers to send, and perhaps by a generation to write down.

    `replacement` says that the generation is written down for the sake of a member's new id.
    """

    answers: list[tuple[int, object]] = field(default_factory=list)  # (token, body)
    stored: GroupMetadata | None = None
    replacement: Replacement | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    id: str
    state: GroupState = GroupState.EMPTY
    state_since_ms: int
    generation: int = 0
    assigned_generation: int = -1  # the last generation that was assigned by its leader; -1: none
    protocol_type: str | None = None  # None: only offsets were ever committed
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_ids: dict[str, str] = field(default_factory=dict)  # member ids, by instance id
    pending: dict[str, int] = field(default_factory=dict)  # ids that nobody has joined with, until
    unsynced: dict[str, None] = field(default_factory=dict)  # who has not asked for its assignment
    phase_deadline_ms: int | None = None  # when joining, or the wait for `unsynced`, ends
    join_limit_ms: int | None = None  # of a rebalance that began empty, and so may be extended
    has_newcomer: bool = False  # since it was last extended
    wake_ms: int | None = None  # not later than the first of all deadlines

    # --- facts ------------------------------------------------------------------------------

    @property
    def have_all_joined(self) -> bool:
        everyone = all(member.join_token is not None for member in self.members.values())
        return everyone and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def is_consumers(self) -> bool:
        return self.protocol_type == CONSUMER

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """An instance id belongs to one member id; earlier ones are fenced (KIP-345)."""
        if instance_id is not None:
            member = self.static_member(instance_id)
            if member is not None and member.id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if member is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_generation(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        error = self.check_member(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def supports(self, protocol_type: str, wanted: Protocols) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(wanted)
        return protocol_type == self.protocol_type and protocols.supports(
            [member.protocols for member in self.members.values()], wanted
        )

    def subscribed_topics(self) -> Container[str]:
        """What its members want: a consumer whose subscription cannot be read may want any."""
        wanted: set[str] = set()
        for member in self.members.values() if self.is_consumers else ():
            subscription = protocols.metadata_under(member.protocols, self.protocol)
            topics = protocols.subscribed_topics(subscription)
            if topics is None:
                return AnyTopic()
            wanted |= topics
        return wanted

    # --- changes ----------------------------------------------------------------------------

    def become(self, state: GroupState, now_ms: int) -> None:
        assert state in _NEXT[self.state], f"{self.id}: {self.state} to {state}"
        self.state = state
        self.state_since_ms = now_ms

    def add(self, member: Member) -> None:
        if not self.members:
            self.leader = member.id
        self.members[member.id] = member
        if member.instance_id is not None:
            assert member.instance_id not in self.static_ids, (self.id, member.instance_id)
            self.static_ids[member.instance_id] = member.id

    def rename(self, member: Member, member_id: str) -> None:
        """A static member keeps its place under another member id."""
        assert member.instance_id is not None, member.id
        old_id, member.id = member.id, member_id
        self.members = {one.id: one for one in self.members.values()}
        self.static_ids[member.instance_id] = member_id
        if old_id in self.unsynced:
            del self.unsynced[old_id]
            self.unsynced[member_id] = None
        if self.leader == old_id:
            self.leader = member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    # --- time -------------------------------------------------------------------------------

    def touch(self, member: Member, now_ms: int) -> None:
        """A sign of life: the session begins anew."""
        self.expect(member, now_ms + member.session_timeout_ms)

    def expect(self, member: Member, deadline_ms: int) -> None:
        member.deadline_ms = deadline_ms
        self.wake_ms = earliest(self.wake_ms, deadline_ms)

    def reckon(self) -> None:
        """Find out anew when something is due."""
        self.wake_ms = earliest(
            self.phase_deadline_ms,
            *self.pending.values(),
            *(member.deadline_ms for member in self.members.values()),
        )

    # --- to and from the log ----------------------------------------------------------------

    def stored(self, assignments: dict[str, bytes] | None = None) -> GroupMetadata:
        """This generation, with what each member is to get."""
        given = assignments or {}
        return GroupMetadata(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            state_since_ms=self.state_since_ms,
            members=tuple(
                MemberMetadata(
                    id=member.id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=protocols.metadata_under(member.protocols, self.protocol),
                    assignment=given.get(member.id, b""),
                )
                for member in self.members.values()
            ),
        )


def restore(group_id: str, metadata: GroupMetadata, now_ms: int) -> Group:
    """The group as its last coordinator wrote it down. Its members have a session to be heard."""
    group = Group(
        id=group_id,
        state=GroupState.STABLE if metadata.members else GroupState.EMPTY,
        state_since_ms=metadata.state_since_ms,
        generation=metadata.generation,
        protocol_type=metadata.protocol_type or None,
        protocol=metadata.protocol,
        leader=metadata.leader,
    )
    for stored in metadata.members:
        spoken = JoinGroupRequestProtocol(
            name=metadata.protocol or "", metadata=stored.subscription
        )
        member = Member(
            id=stored.id,
            instance_id=stored.instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout_ms,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            protocols=(spoken,),
            assignment=stored.assignment,
        )
        group.members[member.id] = member
        if member.instance_id is not None:
            group.static_ids[member.instance_id] = member.id
        group.touch(member, now_ms)
    return group
