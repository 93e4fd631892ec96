"""Members stay, leave, or are not heard of any more, and the group follows.

Source: KIP-62 (session and rebalance time-outs), KIP-345 (static members); Kafka's
GroupMetadataManager.
"""

from broker.config import GroupConfig
from broker.groups.group import Group, GroupState, Member, Outcome
from broker.groups.joiner import join_refusal
from broker.groups.rebalancing import complete_join, rebalance, try_complete_join
from wire.errors import ErrorCode
from wire.messages.groups import HeartbeatRequest, MemberIdentity, MemberResponse, SyncGroupResponse

__all__ = ["close", "heartbeat", "leave", "tick"]


def heartbeat(group: Group, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
    """It is how a member learns that it should join again."""
    error = group.check_generation(
        request.member_id, request.group_instance_id, request.generation_id
    )
    if error is not ErrorCode.NONE:
        return error
    member = group.members[request.member_id]
    if member.join_token is None and member.sync_token is None:
        group.touch(member, now_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    group: Group, leaving: tuple[MemberIdentity, ...], config: GroupConfig, now_ms: int
) -> tuple[Outcome, tuple[MemberResponse, ...]]:
    """Members say that they go, or an administrator removes static ones by their instance ids
    alone; ids that nobody joined with may be given back, too."""
    out = Outcome()
    results = []
    has_lost_member = False
    for identity in leaving:
        error = ErrorCode.NONE
        if identity.member_id in group.pending:
            group.remove(identity.member_id)
        else:
            found = _leaving(group, identity)
            if isinstance(found, Member):
                has_lost_member = True
                _remove(group, found, out)
            else:
                error = found
        results.append(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=error,
            )
        )
    _regroup(group, config, now_ms, out, has_lost_member=has_lost_member)
    return out, tuple(results)


def _leaving(group: Group, identity: MemberIdentity) -> Member | ErrorCode:
    if not identity.member_id:
        return group.static_member(identity.group_instance_id) or ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(identity.member_id, identity.group_instance_id)
    return group.members[identity.member_id] if error is ErrorCode.NONE else error


def tick(group: Group, config: GroupConfig, now_ms: int) -> Outcome:
    """Sessions, ids that were never used, and phases whose time is over."""
    out = Outcome()
    for member_id in [id_ for id_, until_ms in group.pending.items() if until_ms <= now_ms]:
        group.remove(member_id)
    silent = [
        member
        for member in group.members.values()
        if member.deadline_ms is not None and member.deadline_ms <= now_ms
    ]
    for member in silent:
        _remove(group, member, out)
    _regroup(group, config, now_ms, out, has_lost_member=bool(silent))
    if group.phase_deadline_ms is not None and group.phase_deadline_ms <= now_ms:
        _end_phase(group, config, now_ms, out)
    group.reckon()
    return out


def _remove(group: Group, member: Member, out: Outcome) -> None:
    """Whatever it waits for, it will not be told: if it is still there, it joins as a new one."""
    _dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID, out)
    group.remove(member.id)


def _dismiss(member: Member, error: ErrorCode, out: Outcome) -> None:
    if member.join_token is not None:
        member_id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else member.id
        out.answers.append((member.join_token, join_refusal(member_id, error)))
    if member.sync_token is not None:
        out.answers.append((member.sync_token, SyncGroupResponse(error_code=error)))
    member.join_token = member.sync_token = None


def _regroup(
    group: Group, config: GroupConfig, now_ms: int, out: Outcome, *, has_lost_member: bool
) -> None:
    """Members or pending ids have gone: perhaps all that are left have joined."""
    if has_lost_member and group.state is not GroupState.EMPTY:
        rebalance(group, config, now_ms, out)
    else:
        try_complete_join(group, now_ms, out)


def _end_phase(group: Group, config: GroupConfig, now_ms: int, out: Outcome) -> None:
    """The members that have not joined, or not asked for their assignment, in the group's time."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        for member_id in tuple(group.unsynced):
            _remove(group, group.members[member_id], out)
        rebalance(group, config, now_ms, out)
        return
    limit_ms = group.join_limit_ms
    if limit_ms is not None and group.has_newcomer and now_ms < limit_ms:
        group.has_newcomer = False
        group.phase_deadline_ms = min(now_ms + config.initial_rebalance_delay_ms, limit_ms)
        return
    complete_join(group, now_ms, out)


def close(group: Group, error: ErrorCode, now_ms: int) -> Outcome:
    """Nothing happens here any more: the group is gone, or has another coordinator."""
    out = Outcome()
    for member in group.members.values():
        _dismiss(member, error, out)
    group.become(GroupState.DEAD, now_ms)
    return out
