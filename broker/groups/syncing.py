"""In the second half of a rebalance the leader says who gets what, and members ask for their part.

Nobody hears of an assignment before it is committed, so that the next coordinator knows it too.

Source: KIP-62; Kafka's GroupMetadataManager, classicGroupSync.
"""

from broker.config import GroupConfig
from broker.groups.group import Group, GroupState, Member, Outcome
from broker.groups.rebalancing import rebalance
from broker.groups.records import GroupMetadata
from wire.errors import ErrorCode
from wire.messages.groups import SyncGroupRequest, SyncGroupResponse

__all__ = ["assigned", "assignment_failed", "may_assign", "sync"]


def sync(group: Group, token: int, request: SyncGroupRequest, now_ms: int) -> Outcome:
    """A member asks for its assignment; the leader's request has them all."""
    out = Outcome()
    error = _refusal(group, request)
    if error is not ErrorCode.NONE:
        out.answers.append((token, SyncGroupResponse(error_code=error)))
        return out
    member = group.members[request.member_id]
    _has_synced(group, member)
    if group.state is GroupState.STABLE:
        out.answers.append((token, _assignment(group, member)))
        group.touch(member, now_ms)
        return out
    if member.sync_token is not None:  # an earlier request, on another connection: it is given up
        again = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        out.answers.append((member.sync_token, again))
    member.sync_token = token
    member.deadline_ms = None
    if may_assign(group, member):
        group.assigned_generation = group.generation
        out.stored = group.stored({part.member_id: part.assignment for part in request.assignments})
    return out


def _refusal(group: Group, request: SyncGroupRequest) -> ErrorCode:
    error = group.check_generation(
        request.member_id, request.group_instance_id, request.generation_id
    )
    if error is not ErrorCode.NONE:
        return error
    if request.protocol_type not in (None, group.protocol_type) or (
        request.protocol_name not in (None, group.protocol)
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def may_assign(group: Group, member: Member) -> bool:
    """Is this the leader, and has it not assigned in this generation yet?

    A leader whose answer was late may join again and send another assignment. If it were taken:

    1. members are told the first assignment; the log ends with the second;
    2. the next coordinator loads the second, and tells it to a member that asks again;
    3. a partition has two owners in one generation.
    """
    return member.id == group.leader and group.assigned_generation != group.generation


def _has_synced(group: Group, member: Member) -> None:
    group.unsynced.pop(member.id, None)
    if not group.unsynced:
        group.phase_deadline_ms = None


def _assignment(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


# --- the assignment in the log --------------------------------------------------------------


def assigned(group: Group, metadata: GroupMetadata, now_ms: int) -> Outcome:
    """The generation that `metadata` describes is committed, with what everybody gets."""
    out = Outcome()
    if not _is_awaited(group, metadata):
        return out
    given = {member.id: member.assignment for member in metadata.members}
    group.become(GroupState.STABLE, now_ms)
    for member in group.members.values():
        member.assignment = given.get(member.id, b"")
        if member.sync_token is not None:
            out.answers.append((member.sync_token, _assignment(group, member)))
            member.sync_token = None
            group.touch(member, now_ms)
    return out


def assignment_failed(
    group: Group, metadata: GroupMetadata, error: ErrorCode, config: GroupConfig, now_ms: int
) -> Outcome:
    """It could not be written, or not in time: whoever waits hears so, and all join again."""
    out = Outcome()
    if not _is_awaited(group, metadata):
        return out
    for member in group.members.values():
        if member.sync_token is not None:
            out.answers.append((member.sync_token, SyncGroupResponse(error_code=error)))
            member.sync_token = None
            group.touch(member, now_ms)
    rebalance(group, config, now_ms, out)
    return out


def _is_awaited(group: Group, metadata: GroupMetadata) -> bool:
    """Another member may have joined meanwhile: then the next generation is under way."""
    return (
        group.state is GroupState.COMPLETING_REBALANCE and group.generation == metadata.generation
    )
