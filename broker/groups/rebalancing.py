"""A rebalance begins, waits for members, and ends with a generation.

A group that was empty waits a little for the others to come (KIP-134), one that was not until all
its members have joined again or their rebalance time-out is over. A dynamic member that has not
joined by then is removed. A static member stays in the group, and the leader assigns to it as to
the others (KIP-345): its session time-out, not the rebalance, says how long it may be away. The
leader must have joined. While only static members are left, and none of them has joined, the
rebalance goes on for another time-out, of a second at least.

Source: KIP-62, KIP-134, KIP-345; Kafka's GroupMetadataManager, completeClassicGroupJoin.
"""

from broker.config import GroupConfig
from broker.groups import protocols
from broker.groups.group import Group, GroupState, Outcome
from broker.groups.joiner import joined
from wire.errors import ErrorCode
from wire.messages.groups import SyncGroupResponse

__all__ = ["complete_join", "rebalance", "try_complete_join"]

_AGAIN_MS_MIN = 1000  # members may give a time-out of nothing, and one that is over is due at once


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
    """Begin the next generation: of those that have joined, and of the static members."""
    for member in tuple(group.members.values()):
        if member.join_token is None and not member.is_static:
            group.remove(member.id)
    group.join_limit_ms = None
    if not group.members:
        _begin_empty(group, now_ms, out)
    elif _elect(group):
        _begin(group, now_ms, out)
    else:
        group.phase_deadline_ms = now_ms + max(group.rebalance_timeout_ms, _AGAIN_MS_MIN)
    group.reckon()


def _elect(group: Group) -> bool:
    """The first member that has joined leads, if the present leader has not."""
    present = [member.id for member in group.members.values() if member.join_token is not None]
    if present and group.leader not in present:
        group.leader = present[0]
    return bool(present)


def _begin_empty(group: Group, now_ms: int, out: Outcome) -> None:
    group.generation += 1
    group.protocol = None
    group.phase_deadline_ms = None
    group.become(GroupState.EMPTY, now_ms)
    out.stored = group.stored()


def _begin(group: Group, now_ms: int, out: Outcome) -> None:
    everyone = tuple(group.members.values())
    group.generation += 1
    group.protocol = protocols.select([member.protocols for member in everyone])
    group.phase_deadline_ms = now_ms + group.rebalance_timeout_ms
    group.become(GroupState.COMPLETING_REBALANCE, now_ms)
    for member in everyone:
        if member.join_token is not None:
            out.answers.append((member.join_token, joined(group, member)))
            member.join_token = None
        member.is_new = False
        group.unsynced[member.id] = None
        group.touch(member, now_ms)
