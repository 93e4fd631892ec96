"""The first half of a rebalance: members join, and a generation begins.

A group that was empty waits a little for the others to come (KIP-134), one that was not until all
its members have joined again or their rebalance time-out is over; who has not joined by then is
out. Members get an id first and join with it (KIP-394), so that a request whose answer was lost
leaves no ghost behind.

Source: KIP-62, KIP-134, KIP-394; Kafka's GroupMetadataManager, classicGroupJoin.
"""

from dataclasses import dataclass

from broker.groups import protocols
from broker.groups.config import GroupConfig
from broker.groups.group import Group, GroupState, Member, Outcome
from wire.errors import ErrorCode
from wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from wire.messages.sync_group import SyncGroupResponse

__all__ = ["Joiner", "complete_join", "join", "join_refusal", "rebalance", "try_complete_join"]

_PENDING_MAX = 10_000  # ids given out; whoever only asks for ids must not fill the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Joiner:
    """A JoinGroup request and where it comes from."""

    token: int
    request: JoinGroupRequest
    client_id: str
    client_host: str
    new_id: str  # for a member that has none
    needs_id: bool  # the client knows MEMBER_ID_REQUIRED

    @property
    def member_id(self) -> str:
        return self.request.member_id


def join_refusal(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id)


def join(group: Group, joiner: Joiner, config: GroupConfig, now_ms: int) -> Outcome:
    """A member wants to take part in the next generation, or has not heard of this one."""
    out = Outcome()
    refusal = _refusal(group, joiner, config)
    if refusal is not None:
        out.answers.append((joiner.token, refusal))
    elif not joiner.member_id and joiner.needs_id:
        group.pending[joiner.new_id] = now_ms + joiner.request.session_timeout_ms
        group.reckon()
        required = join_refusal(joiner.new_id, ErrorCode.MEMBER_ID_REQUIRED)
        out.answers.append((joiner.token, required))
    elif joiner.member_id in group.members:
        _rejoin(group, group.members[joiner.member_id], joiner, config, now_ms, out)
    else:
        _add(group, joiner, config, now_ms)
        rebalance(group, config, now_ms, out)
    return out


# --- who may join ---------------------------------------------------------------------------


def _refusal(group: Group, joiner: Joiner, config: GroupConfig) -> JoinGroupResponse | None:
    if not _has_room(group, joiner.member_id, config):
        group.remove(joiner.member_id)
        return join_refusal("", ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports(joiner.request.protocol_type, joiner.request.protocols):
        return join_refusal(joiner.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not joiner.member_id or joiner.member_id in group.pending:
        return None
    error = group.check_member(joiner.member_id)
    return None if error is ErrorCode.NONE else join_refusal(joiner.member_id, error)


def _has_room(group: Group, member_id: str, config: GroupConfig) -> bool:
    """While members join again, those count that have: the last ones to come are too many."""
    if not member_id and len(group.pending) >= _PENDING_MAX:
        return False
    match group.state:
        case GroupState.EMPTY:
            return True
        case GroupState.PREPARING_REBALANCE:
            waiting = [m.id for m in group.members.values() if m.join_token is not None]
            return member_id in waiting or len(waiting) < config.max_size
        case _:
            return member_id in group.members or len(group.members) < config.max_size


def _add(group: Group, joiner: Joiner, config: GroupConfig, now_ms: int) -> None:
    request = joiner.request
    member = Member(
        id=joiner.member_id or joiner.new_id,
        client_id=joiner.client_id,
        client_host=joiner.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        protocols=request.protocols,
        join_token=joiner.token,
        is_new=True,
    )
    if not group.members:
        group.protocol_type = request.protocol_type
    group.pending.pop(member.id, None)
    group.add(member)
    group.has_newcomer = True
    # It cannot send heartbeats before it knows the generation, and nobody tells us if it is gone.
    group.expect(member, now_ms + config.new_member_join_timeout_ms)


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    given = request.rebalance_timeout_ms
    return request.session_timeout_ms if given < 0 else given


def _rejoin(
    group: Group,
    member: Member,
    joiner: Joiner,
    config: GroupConfig,
    now_ms: int,
    out: Outcome,
) -> None:
    """A member joins again: because it was told to, or wants a rebalance, or has heard nothing."""
    same = member.protocols == joiner.request.protocols
    has_missed_answer = same and (
        group.state is GroupState.COMPLETING_REBALANCE
        or (group.state is GroupState.STABLE and group.leader != member.id)
    )
    if has_missed_answer:
        out.answers.append((joiner.token, _joined(group, member)))
        return
    if member.join_token is not None:  # an earlier request, on another connection: it is given up
        again = join_refusal(member.id, ErrorCode.REBALANCE_IN_PROGRESS)
        out.answers.append((member.join_token, again))
    member.protocols = joiner.request.protocols
    member.session_timeout_ms = joiner.request.session_timeout_ms
    member.rebalance_timeout_ms = _rebalance_timeout_ms(joiner.request)
    member.join_token = joiner.token
    if not member.is_new:
        member.deadline_ms = None
    rebalance(group, config, now_ms, out)


# --- the rebalance --------------------------------------------------------------------------


def rebalance(group: Group, config: GroupConfig, now_ms: int, out: Outcome) -> None:
    """Members have changed: begin a rebalance, or end the one that all have joined by now."""
    if group.state is GroupState.PREPARING_REBALANCE:
        try_complete_join(group, now_ms, out)
        return
    if group.state is GroupState.COMPLETING_REBALANCE:
        _cancel_syncs(group, now_ms, out)
    group.unsynced.clear()
    began_empty = group.state is GroupState.EMPTY
    group.become(GroupState.PREPARING_REBALANCE, now_ms)
    group.has_newcomer = False
    if began_empty:
        group.join_limit_ms = now_ms + group.rebalance_timeout_ms
        group.phase_deadline_ms = now_ms + config.initial_rebalance_delay_ms
    else:
        group.join_limit_ms = None
        group.phase_deadline_ms = now_ms + group.rebalance_timeout_ms
        try_complete_join(group, now_ms, out)
    group.reckon()


def try_complete_join(group: Group, now_ms: int, out: Outcome) -> None:
    """Unless somebody is missing, or may still come for the first time."""
    is_waited_for = group.join_limit_ms is not None or not group.have_all_joined
    if group.state is GroupState.PREPARING_REBALANCE and not is_waited_for:
        complete_join(group, now_ms, out)


def _cancel_syncs(group: Group, now_ms: int, out: Outcome) -> None:
    """Nobody gets an assignment of a generation that is over before it was complete."""
    for member in group.members.values():
        member.assignment = b""
        if member.sync_token is not None:
            over = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            out.answers.append((member.sync_token, over))
            member.sync_token = None
            if member.join_token is None:
                group.touch(member, now_ms)


def complete_join(group: Group, now_ms: int, out: Outcome) -> None:
    """Begin the next generation, of those who have joined."""
    for member in tuple(group.members.values()):
        if member.join_token is None:
            group.remove(member.id)
    group.generation += 1
    group.join_limit_ms = None
    if not group.members:
        group.protocol = None
        group.phase_deadline_ms = None
        group.become(GroupState.EMPTY, now_ms)
        out.stored = group.stored()
    else:
        everyone = tuple(group.members.values())
        group.protocol = protocols.select([member.protocols for member in everyone])
        group.phase_deadline_ms = now_ms + group.rebalance_timeout_ms
        group.become(GroupState.COMPLETING_REBALANCE, now_ms)
        for member in everyone:
            assert member.join_token is not None, member.id
            out.answers.append((member.join_token, _joined(group, member)))
            member.join_token = None
            member.is_new = False
            group.unsynced[member.id] = None
            group.touch(member, now_ms)
    group.reckon()


def _joined(group: Group, member: Member) -> JoinGroupResponse:
    """The present generation; the leader alone is told who is in it."""
    known: tuple[JoinGroupResponseMember, ...] = ()
    if member.id == group.leader:
        known = tuple(
            JoinGroupResponseMember(
                member_id=other.id,
                metadata=protocols.metadata_under(other.protocols, group.protocol),
            )
            for other in group.members.values()
        )
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.id,
        members=known,
    )
