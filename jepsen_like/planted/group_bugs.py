"""Planted bugs of consumer groups: their generations, and who may commit and is told what."""

from dataclasses import replace

from broker.groups import offsets, rebalancing, syncing
from broker.groups.consumer import consumer_offsets
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.contents import Contents
from broker.groups.group import Group, Member, Outcome
from broker.groups.records import Change, GroupChange, GroupMetadata
from jepsen_like.planted.planting import plant_in
from wire.capabilities import Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetCommitRequest

_apply = Contents.apply
_assigned = syncing.assigned
_check_commit = offsets.check_commit
_complete_join = rebalancing.complete_join


@plant_in("group", offsets, "check_commit", seeds_max=20, found_at=0)
def accepts_commits_of_earlier_generations(
    group: Group | None, request: OffsetCommitRequest, lacking: Lacking
) -> ErrorCode:
    """Breaks: a member's commit must name the current generation."""
    error = _check_commit(group, request, lacking)
    return ErrorCode.NONE if error is ErrorCode.ILLEGAL_GENERATION else error


@plant_in("group", offsets, "check_commit", seeds_max=20, found_at=0)
def accepts_commits_of_former_members(
    group: Group | None, request: OffsetCommitRequest, lacking: Lacking
) -> ErrorCode:
    """Breaks: only a current member may commit as a member."""
    error = _check_commit(group, request, lacking)
    return ErrorCode.NONE if error is ErrorCode.UNKNOWN_MEMBER_ID else error


@plant_in("group", Contents, "apply", seeds_max=20, found_at=7)
def begins_generations_anew(self: Contents, change: Change) -> None:
    """Breaks: a coordinator counts on from the generation that it finds in the log."""
    if isinstance(change, GroupChange) and change.metadata is not None:
        change = replace(change, metadata=replace(change.metadata, generation=0))
    _apply(self, change)


@plant_in("group", rebalancing, "complete_join", seeds_max=20, found_at=0)
def rebalances_in_the_same_generation(group: Group, now_ms: int, out: Outcome) -> None:
    """Breaks: a rebalance begins a generation of its own."""
    group.generation = max(group.generation - 1, 0)
    _complete_join(group, now_ms, out)


@plant_in("group", syncing, "assigned", seeds_max=20, found_at=15)
def tells_nobody_who_waits(group: Group, metadata: GroupMetadata, now_ms: int) -> Outcome:
    """Breaks: members that wait for their assignment are told it once it is committed."""
    _assigned(group, metadata, now_ms)
    return Outcome()


@plant_in("group", syncing, "assigned", seeds_max=20, found_at=0)
def keeps_the_assignment_before(group: Group, metadata: GroupMetadata, now_ms: int) -> Outcome:
    """Breaks: an assignment replaces the one of the generation before, for every member."""
    known = {member.id: member.assignment for member in group.members.values()}
    members = (
        replace(member, assignment=known.get(member.id) or member.assignment)
        for member in metadata.members
    )
    return _assigned(group, replace(metadata, members=tuple(members)), now_ms)


@plant_in("consumer", consumer_offsets, "check_commit", seeds_max=20, found_at=0)
def accepts_commits_of_fenced_consumers(
    group: ConsumerGroup, request: OffsetCommitRequest, lacking: Lacking
) -> ErrorCode:
    """Breaks: only a member may commit for a group in which the coordinator assigns (KIP-848)."""
    return ErrorCode.NONE


# Kafka's coordinator does this. A leader has to be answered late and to assign otherwise the second
# time, the coordinator has to move after that, and a member to ask again in the same generation.


@plant_in("group_survivors", syncing, "may_assign")
def takes_every_assignment_of_a_leader(group: Group, member: Member) -> bool:
    """Breaks: a leader assigns once in a generation."""
    return member.id == group.leader
