"""Members join in the first half of a rebalance.

Dynamic members get an id first and join with it (KIP-394), so that a request whose answer was lost
leaves no ghost behind. Static members are known by their instance ids, and need none first.

Source: KIP-62, KIP-345, KIP-394; Kafka's GroupMetadataManager, classicGroupJoin.
"""

from broker.config import GroupConfig
from broker.groups import static
from broker.groups.group import Group, GroupState, Member, Outcome
from broker.groups.joiner import Joiner, join_refusal, joined
from broker.groups.rebalancing import rebalance
from wire.errors import ErrorCode
from wire.messages.groups import JoinGroupResponse

__all__ = ["join"]

_PENDING_MAX = 10_000  # ids given out; whoever only asks for ids must not fill the memory


def join(group: Group, joiner: Joiner, config: GroupConfig, now_ms: int) -> Outcome:
    """A member wants to take part in the next generation, or has not heard of this one."""
    out = Outcome()
    place = _static_place(group, joiner)
    refusal = _refusal(group, joiner, config)
    if refusal is not None:
        out.answers.append((joiner.token, refusal))
    elif place is not None:
        return static.return_of(group, place, joiner, config, now_ms)
    elif not joiner.member_id and joiner.instance_id is None and joiner.needs_id:
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


def _static_place(group: Group, joiner: Joiner) -> Member | None:
    """The static member whose process has been started again, and sends this."""
    return None if joiner.member_id else group.static_member(joiner.instance_id)


# --- who may join ---------------------------------------------------------------------------


def _refusal(group: Group, joiner: Joiner, config: GroupConfig) -> JoinGroupResponse | None:
    if not _has_room(group, joiner, config):
        group.remove(joiner.member_id)
        return join_refusal("", ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports(joiner.request.protocol_type, joiner.request.protocols):
        return join_refusal(joiner.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_pending = joiner.member_id in group.pending and joiner.instance_id is None
    if not joiner.member_id or is_pending:
        return None
    error = group.check_member(joiner.member_id, joiner.instance_id)
    return None if error is ErrorCode.NONE else join_refusal(joiner.member_id, error)


def _has_room(group: Group, joiner: Joiner, config: GroupConfig) -> bool:
    """While members join again, those count that have: the last ones to come are too many."""
    place = _static_place(group, joiner)
    member_id = joiner.member_id if place is None else place.id
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
        instance_id=joiner.instance_id,
        client_id=joiner.client_id,
        client_host=joiner.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=joiner.rebalance_timeout_ms,
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
        out.answers.append((joiner.token, joined(group, member)))
        return
    if member.join_token is not None:  # an earlier request, on another connection: it is given up
        again = join_refusal(member.id, ErrorCode.REBALANCE_IN_PROGRESS)
        out.answers.append((member.join_token, again))
    member.protocols = joiner.request.protocols
    member.session_timeout_ms = joiner.request.session_timeout_ms
    member.rebalance_timeout_ms = joiner.rebalance_timeout_ms
    member.join_token = joiner.token
    if not member.is_new:
        member.deadline_ms = None
    rebalance(group, config, now_ms, out)
