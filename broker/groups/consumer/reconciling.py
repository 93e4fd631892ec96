"""A member goes from what it has towards its target, one step a heartbeat.

    1. What it has and must not keep, it is told to give back (UNREVOKED_PARTITIONS). Until it says
       that it has, nothing else changes for it.
    2. It reaches the epoch of the target, and gets what nobody else has.
    3. Where others still have partitions of its target, it waits (UNRELEASED_PARTITIONS), and gets
       them once they are given back.

What it does not want any more it need not keep until there is another target: it is told to give
that back at once.

A partition thus has one owner at a time. If step 3 did not look at owners:

    (1) partition p moves from member a to member b; b's heartbeat comes first;
    (2) b is given p and commits offset 7; a, which has not heard of the change, still reads p;
    (3) both have p, and a's commit of offset 5 undoes that of b.

Source: KIP-848; Kafka's CurrentAssignmentBuilder.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from broker.groups.consumer.consumer_values import (
    Current,
    MemberState,
    Target,
    TopicPartition,
)
from wire.errors import ErrorCode

__all__ = ["is_free", "next_step", "still_has"]

Owners = Mapping[TopicPartition, str]


def next_step(
    member_id: str,
    current: Current,
    *,
    target: Target,
    epoch: int,
    owners: Owners,
    owned: frozenset[TopicPartition] | None,
    unwanted: frozenset[TopicPartition] = frozenset(),
) -> Current | ErrorCode:
    """What the member has from now on. `epoch` is that of the target; `owned` is what the member
    says that it has, None if it has not said; `unwanted` is of topics that it has left since."""
    match current.state:
        case MemberState.STABLE:
            if current.epoch == epoch:
                return _without(current, unwanted, owned)
        case MemberState.UNREVOKED_PARTITIONS:
            if still_has(owned, current.revoking):
                return _without(current, unwanted, owned)
        case MemberState.UNRELEASED_PARTITIONS:
            pass
        case MemberState.UNKNOWN:  # a later release has written it
            if owned is None or owned:
                return ErrorCode.FENCED_MEMBER_EPOCH
        case _:
            assert_never(current.state)
    wanted = target - unwanted
    return _towards(member_id, current, target=wanted, epoch=epoch, owners=owners, owned=owned)


def _without(
    current: Current,
    unwanted: frozenset[TopicPartition],
    owned: frozenset[TopicPartition] | None,
) -> Current:
    """In its epoch, as it is."""
    gone = {each: since for each, since in current.assigned.items() if each in unwanted}
    if not gone:
        return current
    kept = {each: since for each, since in current.assigned.items() if each not in gone}
    revoking = {**current.revoking, **gone}
    if not still_has(owned, revoking):
        return replace(current, previous_epoch=current.epoch, assigned=kept)
    return _revoking(current, kept, revoking)


def _revoking(
    current: Current, kept: Mapping[TopicPartition, int], revoking: Mapping[TopicPartition, int]
) -> Current:
    return Current(
        epoch=current.epoch,
        previous_epoch=current.epoch,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=kept,
        revoking=revoking,
    )


def _towards(
    member_id: str,
    current: Current,
    *,
    target: Target,
    epoch: int,
    owners: Owners,
    owned: frozenset[TopicPartition] | None,
) -> Current:
    kept = {each: since for each, since in current.assigned.items() if each in target}
    revoking = {each: since for each, since in current.assigned.items() if each not in target}
    if revoking and still_has(owned, revoking):
        return _revoking(current, kept, revoking)
    wanted = target.difference(kept)
    free = {each for each in wanted if is_free(owners.get(each), member_id)}
    has_all = len(free) == len(wanted)
    return Current(
        epoch=epoch,
        previous_epoch=current.epoch,
        state=MemberState.STABLE if has_all else MemberState.UNRELEASED_PARTITIONS,
        assigned=kept | dict.fromkeys(free, epoch),
    )


def is_free(owner: str | None, member_id: str) -> bool:
    """May the member have a partition of that owner? Its own is what it has just given back."""
    return owner is None or owner == member_id


def still_has(
    owned: frozenset[TopicPartition] | None, revoking: Mapping[TopicPartition, int]
) -> bool:
    """A member that does not say what it has still has all of it."""
    return owned is None or any(each in owned for each in revoking)
