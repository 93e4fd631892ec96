"""Planted bugs in who votes: disks that are lost, voters that change (museum R2, R7, R8)."""

from uuid import UUID

from jepsen_like.planted.planting import plant_in
from quorum.core.types import ReplicaKey
from quorum.raft import answering, leading, membership
from quorum.raft.leading import own_progress
from quorum.raft.membership import Refusal
from quorum.raft.replica import Replica
from quorum.raft.roles import Leader, Role
from quorum.raft.voters import VoterSet
from wire.errors import ErrorCode

_progress_of_voters = leading.progress_of_voters
_why_no_change = membership.why_no_change
_poll = membership.poll


# --- who is a voter -------------------------------------------------------------------------


@plant_in("voter", ReplicaKey, "matches", seeds_max=150, found_at=66)
def takes_any_disk_for_the_voters(self: ReplicaKey, other: ReplicaKey) -> bool:
    """Breaks: a voter is a node with its disk: with another disk it is none (R2, KIP-853)."""
    return self.id == other.id


@plant_in("voter", answering, "check_receiver", seeds_max=100, found_at=26)
def votes_in_the_place_of_another_disk(
    replica: Replica, voter_id: int, directory_id: UUID
) -> ErrorCode:
    """Breaks: nobody votes in the place of another disk (R2)."""
    is_us = voter_id in (-1, replica.node_id)
    return ErrorCode.NONE if is_us else ErrorCode.INVALID_VOTER_KEY


@plant_in("voter", Replica, "voters", seeds_max=20, found_at=0)
def counts_voters_once_committed(self: Replica) -> VoterSet:
    """Breaks: voters count from the moment they are written."""
    return self.history.at(self.log.committed_offset).voters


# --- changing them --------------------------------------------------------------------------


@plant_in("voter", membership, "why_no_change", seeds_max=40, found_at=26)
def changes_voters_before_a_commit(replica: Replica, role: Leader) -> Refusal | None:
    """Breaks: no change before a commit in the leader's own epoch (R7)."""
    if role.high_watermark is not None or role.change is not None:
        return _why_no_change(replica, role)
    return None


@plant_in("voter", membership, "why_no_change", seeds_max=40, found_at=21)
def changes_voters_that_are_not_committed(replica: Replica, role: Leader) -> Refusal | None:
    """Breaks: one change at a time (R7)."""
    role.change = None
    refused = _why_no_change(replica, role)
    is_under_way = refused is not None and replica.history.latest.voters_offset >= (
        role.high_watermark or 0
    )
    return None if is_under_way and role.high_watermark is not None else refused


# --- a leader that is removed (R8) ----------------------------------------------------------


@plant_in("voter", leading, "progress_of_voters", seeds_max=60, found_at=29)
def counts_itself_though_removed(replica: Replica, role: Leader) -> dict[int, int]:
    """Breaks: a leader that is being removed does not count itself (R8)."""
    return {**_progress_of_voters(replica, role), replica.node_id: own_progress(replica.log)}


@plant_in("voter", membership, "poll", seeds_max=60, found_at=8)
def leads_on_though_removed(replica: Replica, role: Leader, now_ms: int) -> Role | None:
    """Breaks: a leader whose removal is committed resigns (R8)."""
    is_over = not replica.is_voter and replica.history.latest.voters_offset < (
        role.high_watermark or 0
    )
    return None if is_over else _poll(replica, role, now_ms)


@plant_in("voter", Replica, "may_campaign", seeds_max=100, found_at=8)
def does_not_stand_when_being_removed(self: Replica) -> bool:
    """Breaks: who is being removed stands until that is committed (thesis 4.2.2)."""
    return self.is_voter
