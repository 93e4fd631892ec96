"""A static member that comes back keeps its place (KIP-345).

A static member has an instance id, which outlives its process; its member id does not. A process
that has been started again joins with the instance id alone. It gets a new member id in the place
of the old one, with the old assignment:

1. Whatever the old member id waits for, and asks from now on, is answered FENCED_INSTANCE_ID. If
   two processes have one instance id, the earlier one must stop.
2. A stable group goes on without a rebalance, unless the member's protocols make another one the
   choice of all. A rebalance that has begun includes the member under its new id. While the leader
   assigns, a rebalance begins again: the leader knows only the old id.
3. In a stable group the new id is told once it is committed. Otherwise the next coordinator would
   fence the new process with the id of the old one:
      (1) process P has been told id p2, which is not committed;
      (2) the coordinator dies, and the next one loads p1;
      (3) P's heartbeat with p2 is answered FENCED_INSTANCE_ID, although no other process exists.
   If it cannot be committed, P hears of an error and the group is as it was, with p1. An id that
   a rebalance tells is committed with the assignments, as in Kafka: until then this may happen.

A leader that comes back must not assign: nobody would ask for it. A client that knows
skip_assignment is told that it leads, and who the members are (KIP-814). An older one is told that
the old id leads, so that it takes itself for a follower.

Source: KIP-345, KIP-814; Kafka's GroupMetadataManager,
updateStaticMemberThenRebalanceOrCompleteJoin.
"""

from broker.config import GroupConfig
from broker.groups import protocols
from broker.groups.group import Group, GroupState, Member, Outcome, Replacement
from broker.groups.joiner import Joiner, join_refusal, joined
from broker.groups.rebalancing import rebalance, try_complete_join
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.groups import JoinGroupResponse, SyncGroupResponse

__all__ = ["replacement_stored", "return_of"]


def return_of(
    group: Group, member: Member, joiner: Joiner, config: GroupConfig, now_ms: int
) -> Outcome:
    """The static member joins without a member id: its process has been started again."""
    out = Outcome()
    replacement = Replacement(
        joiner_token=joiner.token,
        can_skip_assignment=joiner.can_skip_assignment,
        member=member,
        generation=group.generation,
        old_id=member.id,
        old_leader=group.leader or "",
        old_protocols=member.protocols,
        old_session_timeout_ms=member.session_timeout_ms,
        old_rebalance_timeout_ms=member.rebalance_timeout_ms,
    )
    _fence(member, out)
    group.rename(member, joiner.new_id)
    member.protocols = joiner.request.protocols
    member.session_timeout_ms = joiner.request.session_timeout_ms
    member.rebalance_timeout_ms = joiner.rebalance_timeout_ms
    member.join_token = joiner.token
    member.is_new = False
    member.deadline_ms = None
    match group.state:
        case GroupState.STABLE if _keeps_protocol(group):
            assignments = {one.id: one.assignment for one in group.members.values()}
            out.stored = group.stored(assignments)
            out.replacement = replacement
        case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
            rebalance(group, config, now_ms, out)
        case _:
            try_complete_join(group, now_ms, out)
    return out


def replacement_stored(
    group: Group, replacement: Replacement, error: ErrorCode, now_ms: int
) -> Outcome:
    """The new member id is committed, or could not be."""
    out = Outcome()
    member = replacement.member
    if not _is_awaited(group, replacement):
        return out
    if error is ErrorCode.NONE:
        answer = _returned(group, replacement)
    else:
        group.rename(member, replacement.old_id)
        member.protocols = replacement.old_protocols
        member.session_timeout_ms = replacement.old_session_timeout_ms
        member.rebalance_timeout_ms = replacement.old_rebalance_timeout_ms
        answer = _failed(group, replacement, error)
    out.answers.append((replacement.joiner_token, answer))
    member.join_token = None
    group.touch(member, now_ms)
    return out


def _fence(member: Member, out: Outcome) -> None:
    """Another process has taken the member's place: requests of the old one end here."""
    fenced = ErrorCode.FENCED_INSTANCE_ID
    if member.join_token is not None:
        out.answers.append((member.join_token, join_refusal(member.id, fenced)))
    if member.sync_token is not None:
        out.answers.append((member.sync_token, SyncGroupResponse(error_code=fenced)))
    member.join_token = member.sync_token = None


def _keeps_protocol(group: Group) -> bool:
    return group.protocol == protocols.select([one.protocols for one in group.members.values()])


def _is_awaited(group: Group, replacement: Replacement) -> bool:
    """A rebalance that began meanwhile answers the member, or another process has its place."""
    return (
        group.state is GroupState.STABLE
        and group.generation == replacement.generation
        and replacement.member.join_token == replacement.joiner_token
    )


def _returned(group: Group, replacement: Replacement) -> JoinGroupResponse:
    member = replacement.member
    if replacement.can_skip_assignment:
        return joined(group, member, skip_assignment=member.id == group.leader)
    return replace(joined(group, member), leader=replacement.old_leader, members=())


def _failed(group: Group, replacement: Replacement, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=replacement.old_leader,
        member_id="",
    )
