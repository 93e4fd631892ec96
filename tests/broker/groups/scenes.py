"""Groups in each of their states, made the way that members make them."""

from broker.config import GroupConfig
from broker.groups import joining, syncing
from broker.groups import members as membership
from broker.groups.group import Group, GroupState, Outcome
from broker.groups.joiner import Joiner
from wire.errors import ErrorCode
from wire.messages.groups import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

NOW = 1_000_000
CONFIG = GroupConfig(initial_rebalance_delay_ms=3000)
SESSION_MS = 10_000
REBALANCE_MS = 60_000
# Version 0 of a subscription: to the topic "t", and nothing more.
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def protocols(*names: str) -> tuple[JoinGroupRequestProtocol, ...]:
    return tuple(JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION) for name in names)


def joiner(
    token: int,
    member_id: str = "",
    *,
    new_id: str = "",
    names: tuple[str, ...] = ("range",),
    protocol_type: str = "consumer",
    needs_id: bool = False,
    instance_id: str | None = None,
    can_skip: bool = True,
) -> Joiner:
    return Joiner(
        token=token,
        request=JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=protocols(*names),
        ),
        client_id="client",
        client_host="/127.0.0.1",
        new_id=new_id,
        needs_id=needs_id,
        can_skip_assignment=can_skip,
    )


def join(group: Group, who: Joiner, now_ms: int = NOW, config: GroupConfig = CONFIG) -> Outcome:
    return joining.join(group, who, config, now_ms)


def tick(group: Group, now_ms: int) -> Outcome:
    return membership.tick(group, CONFIG, now_ms)


def sync_request(
    member_id: str,
    generation: int,
    *assigned: str,
    protocol: str | None = None,
    instance_id: str | None = None,
) -> SyncGroupRequest:
    """A leader's if it assigns: to each its own id, in bytes."""
    return SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_name=protocol,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=id_, assignment=id_.encode()) for id_ in assigned
        ),
    )


def sync(group: Group, token: int, request: SyncGroupRequest, now_ms: int = NOW) -> Outcome:
    return syncing.sync(group, token, request, now_ms)


def group_in(state: GroupState, *member_ids: str, static: bool = False) -> Group:
    """A group of the members, the first of which leads, in generation 1 if they have begun one.

    The instance id of the static member "a" is "A", and so on.
    Preparing: from a stable group, since "a" (or the first) has said that it wants another one.
    """
    members = member_ids or ("a", "b")
    group = Group(id="g", state_since_ms=NOW)
    if state is GroupState.EMPTY:
        return group
    for token, id_ in enumerate(members):
        join(group, joiner(token, new_id=id_, instance_id=id_.upper() if static else None))
    tick(group, NOW + 3000)
    tick(group, NOW + 6000)
    if state is GroupState.COMPLETING_REBALANCE:
        return group
    for token, id_ in enumerate(members[1:], 1):
        sync(group, token, sync_request(id_, 1))
    out = sync(group, 0, sync_request(members[0], 1, *members))
    assert out.stored is not None
    syncing.assigned(group, out.stored, NOW)
    if state is GroupState.PREPARING_REBALANCE:
        join(group, joiner(100, members[0]))
    elif state is GroupState.DEAD:
        membership.close(group, ErrorCode.NOT_COORDINATOR, NOW)
    assert group.state is state
    return group
