"""Bugs to plant: each a one-line change of a shipped rule, for as long as a `with` lasts.

A simulator is only worth something if it finds what is known to be wrong. Each plant replaces one
named function of `quorum` by a version that forgets one clause; tests/sim/test_catches.py demands
that it is found within `seeds_max` seeds. docs/simulation.md has the record of how these bounds
were set, and why the survivors survive: what another rule guards too cannot be found alone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from quorum import electing, fetch, following, heeding, leading, outbox, raft, roles, vote, voters
from quorum.epochs import EpochCache
from quorum.fetch import Diverging, Valid
from quorum.log import ReplicaLog
from quorum.replica import Replica
from quorum.roles import Candidate, Follower, Leader, Prospective, Role, Unattached
from quorum.types import ElectionState, OffsetAndEpoch, ReplicaKey
from wire.errors import ErrorCode

__all__ = ["PLANTS", "SURVIVORS", "Plant", "planted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    breaks: str  # the rule, in a few words
    holder: ModuleType | type  # of the function
    name: str
    replacement: Callable[..., Any]
    seeds_max: int = 0  # found within so many seeds; 0 for a survivor


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Run with the planted bug `name`; None plants nothing."""
    if name is None:
        yield
        return
    plant = PLANTS.get(name) or SURVIVORS[name]
    shipped = getattr(plant.holder, plant.name)
    setattr(plant.holder, plant.name, plant.replacement)
    try:
        yield
    finally:
        setattr(plant.holder, plant.name, shipped)


# What a plant calls of the rule that it replaces.
_election_of = roles.election_of
_initial_role = raft.initial_role
_progress_of_voters = leading.progress_of_voters
_candidate = electing.candidate
_heed = heeding.heed
_follow = following.follow
_poll_leader = leading.poll
_truncation_point = fetch.truncation_point


# --- votes ----------------------------------------------------------------------------------


def _answers_before_saving(saved_by: int, stored: int) -> bool:
    return False


def _forgets_its_vote(role: Role, node_id: int) -> ElectionState:
    return replace(_election_of(role, node_id), voted=None)


def _votes_twice(
    role: Role, candidate: ReplicaKey, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    match role:
        case Unattached() | Prospective():
            return role.leader_id is None and last.is_at_least(ours)
        case _:
            return False


def _any_log_will_do(candidates: OffsetAndEpoch, ours: OffsetAndEpoch) -> bool:
    return True


def _compares_offsets_first(candidates: OffsetAndEpoch, ours: OffsetAndEpoch) -> bool:
    return candidates >= ours


def _grants_pre_votes_while_following(
    role: Role, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    return not isinstance(role, Leader) and last.is_at_least(ours)


def _stands_without_new_epoch(replica: Replica, previous: Role, now_ms: int) -> Candidate:
    return replace(_candidate(replica, previous, now_ms), epoch=previous.epoch)


def _majority_is_half(voter_count: int) -> int:
    return max(1, voter_count // 2)


def _resumes_leadership(replica: Replica, election: ElectionState, now_ms: int) -> Role:
    if election.leader_id == replica.node_id:
        votes: dict[int, bool | None] = dict.fromkeys(replica.voters.ids, True)
        was = Candidate(
            epoch=election.epoch, voted=replica.key, election_deadline_ms=now_ms, votes=votes
        )
        return leading.leader(replica, was, now_ms)
    return _initial_role(replica, election, now_ms)


# --- epochs ---------------------------------------------------------------------------------


def _ignores_later_epochs(replica: Replica, role: Role, *, epoch: int, **news: Any) -> object:
    return None if epoch > role.epoch else _heed(replica, role, epoch=epoch, **news)


def _serves_fetches_of_any_epoch(requested: int, current: int, *, is_leader: bool) -> ErrorCode:
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _never_checks_quorum(replica: Replica, role: Leader, now_ms: int) -> Role | None:
    role.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
    return _poll_leader(replica, role, now_ms)


def _hears_majority_in_one(heard_count: int, voter_count: int) -> bool:
    return True


def _begins_without_a_record(replica: Replica, role: Leader, now_ms: int) -> None:
    pass


# --- counting -------------------------------------------------------------------------------


def _counts_itself_twice(replica: Replica, role: Leader) -> dict[int, int]:
    ends = _progress_of_voters(replica, role)
    return {**ends, -1: ends[replica.node_id]}


def _counts_before_own_sync(own: ReplicaLog) -> int:
    return own.end_offset


def _counts_half(ends: Mapping[int, int]) -> int:
    return sorted(ends.values(), reverse=True)[(len(ends) - 1) // 2]


def _commits_earlier_epochs(offset: int, epoch_start_offset: int) -> bool:
    return offset > 0


# --- replication ----------------------------------------------------------------------------


def _acknowledges_before_sync(own: ReplicaLog) -> bool:
    return True


def _trusts_every_position(
    epochs: EpochCache, *, end_offset: int, fetch_offset: int, last_fetched_epoch: int
) -> Valid | Diverging:
    if fetch_offset <= end_offset:
        return Valid()
    return Diverging(epoch=last_fetched_epoch, end_offset=end_offset)


def _truncates_too_far(epochs: EpochCache, *, end_offset: int, diverging: Diverging) -> int:
    return max(0, _truncation_point(epochs, end_offset=end_offset, diverging=diverging) - 1)


def _truncates_to_the_leaders_offset(
    epochs: EpochCache, *, end_offset: int, diverging: Diverging
) -> int:
    return min(diverging.end_offset, end_offset)


def _truncates_what_is_committed(own: ReplicaLog, offset: int) -> bool:
    return False


def _forgets_vote_when_following(replica: Replica, previous: Role, **leader: Any) -> Follower:
    return replace(_follow(replica, previous, **leader), voted=None)


PLANTS: dict[str, Plant] = {
    "answers_before_saving": Plant(
        breaks="a vote is durable before the answer leaves",
        holder=outbox,
        name="waits_for",
        replacement=_answers_before_saving,
        seeds_max=10,
    ),
    "forgets_its_vote": Plant(
        breaks="quorum-state holds the vote",
        holder=raft,
        name="election_of",
        replacement=_forgets_its_vote,
        seeds_max=10,
    ),
    "votes_twice": Plant(
        breaks="one vote an epoch",
        holder=vote,
        name="grants_vote",
        replacement=_votes_twice,
        seeds_max=25,
    ),
    "any_log_will_do": Plant(
        breaks="votes only for a log as complete as its own",
        holder=OffsetAndEpoch,
        name="is_at_least",
        replacement=_any_log_will_do,
        seeds_max=20,
    ),
    "compares_offsets_first": Plant(
        breaks="logs are compared by epoch, then by offset",
        holder=OffsetAndEpoch,
        name="is_at_least",
        replacement=_compares_offsets_first,
        seeds_max=150,
    ),
    "grants_pre_votes_while_following": Plant(
        breaks="who hears its leader refuses pre-votes",
        holder=vote,
        name="grants_pre_vote",
        replacement=_grants_pre_votes_while_following,
        seeds_max=15,
    ),
    "stands_without_new_epoch": Plant(
        breaks="a candidate begins an epoch",
        holder=electing,
        name="candidate",
        replacement=_stands_without_new_epoch,
        seeds_max=5,
    ),
    "majority_is_half": Plant(
        breaks="a majority is more than half (votes, and who is heard)",
        holder=voters,
        name="majority_count",
        replacement=_majority_is_half,
        seeds_max=15,
    ),
    "resumes_leadership": Plant(
        breaks="a restarted leader does not resume its epoch",
        holder=raft,
        name="initial_role",
        replacement=_resumes_leadership,
        seeds_max=10,
    ),
    "ignores_later_epochs": Plant(
        breaks="a later epoch in an answer is adopted",
        holder=heeding,
        name="heed",
        replacement=_ignores_later_epochs,
        seeds_max=10,
    ),
    "never_checks_quorum": Plant(
        breaks="a leader that hears no majority resigns",
        holder=leading,
        name="poll",
        replacement=_never_checks_quorum,
        seeds_max=100,
    ),
    "hears_majority_in_one": Plant(
        breaks="a majority is heard when a majority has fetched",
        holder=leading,
        name="hears_majority",
        replacement=_hears_majority_in_one,
        seeds_max=300,
    ),
    "begins_without_a_record": Plant(
        breaks="a leader begins its epoch with a record",
        holder=leading,
        name="enter",
        replacement=_begins_without_a_record,
        seeds_max=5,
    ),
    "counts_itself_twice": Plant(
        breaks="the leader counts itself once",
        holder=leading,
        name="progress_of_voters",
        replacement=_counts_itself_twice,
        seeds_max=25,
    ),
    "counts_before_own_sync": Plant(
        breaks="the leader counts itself only after its own sync",
        holder=leading,
        name="own_progress",
        replacement=_counts_before_own_sync,
        seeds_max=15,
    ),
    "counts_half": Plant(
        breaks="committed is what more than half hold",
        holder=voters,
        name="majority_offset",
        replacement=_counts_half,
        seeds_max=25,
    ),
    "commits_earlier_epochs": Plant(
        breaks="only records of its own epoch are committed by counting",
        holder=leading,
        name="may_commit",
        replacement=_commits_earlier_epochs,
        seeds_max=10,
    ),
    "acknowledges_before_sync": Plant(
        breaks="a follower syncs before its next Fetch",
        holder=following,
        name="acknowledges",
        replacement=_acknowledges_before_sync,
        seeds_max=10,
    ),
    "trusts_every_position": Plant(
        breaks="the leader checks the epoch of the fetcher's last record",
        holder=fetch,
        name="check_fetch_position",
        replacement=_trusts_every_position,
        seeds_max=20,
    ),
    "truncates_too_far": Plant(
        breaks="truncation keeps what the logs have in common",
        holder=fetch,
        name="truncation_point",
        replacement=_truncates_too_far,
        seeds_max=20,
    ),
    "truncates_to_the_leaders_offset": Plant(
        breaks="an epoch that never wrote here says nothing of our offsets (KIP-279)",
        holder=fetch,
        name="truncation_point",
        replacement=_truncates_to_the_leaders_offset,
        seeds_max=60,
    ),
    "forgets_vote_when_following": Plant(
        breaks="a follower remembers the vote of its epoch",
        holder=following,
        name="follow",
        replacement=_forgets_vote_when_following,
        seeds_max=60,
    ),
}

# Changes of a rule that break nothing by themselves; why, says docs/simulation.md.
SURVIVORS: dict[str, Plant] = {
    "serves_fetches_of_any_epoch": Plant(
        breaks="fetches of another epoch are fenced",
        holder=fetch,
        name="check_leader_epoch",
        replacement=_serves_fetches_of_any_epoch,
    ),
    "truncates_what_is_committed": Plant(
        breaks="what is committed is never truncated",
        holder=following,
        name="is_committed",
        replacement=_truncates_what_is_committed,
    ),
}
