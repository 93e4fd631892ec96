"""Builds the role that a replica begins: what it keeps of the role before, and its first timer.

`electing` decides when a replica changes its role, and `transitions` which changes there are. How
a leader begins and ends is in `leading`.

Source: Raft thesis 3.4 and 9.6; KIP-595, KIP-996; Kafka's QuorumState.
"""

from quorum.core.types import Endpoint, ReplicaKey
from quorum.raft.replica import Replica
from quorum.raft.roles import Candidate, Follower, Prospective, Role, Unattached

__all__ = [
    "campaign",
    "candidate",
    "candidate_in",
    "follow",
    "prospective",
    "unattached",
]


def unattached(
    replica: Replica,
    previous: Role,
    *,
    epoch: int,
    leader_id: int | None = None,
    voted: ReplicaKey | None = None,
    now_ms: int,
) -> Unattached:
    """A replica that already waits for its election timer keeps its deadline.

    Otherwise a row of candidates, each with a later epoch, could postpone its campaign for ever.
    """
    deadline_ms: int | None = None
    if replica.may_campaign and isinstance(previous, Unattached | Prospective | Candidate):
        deadline_ms = previous.election_deadline_ms
    if deadline_ms is None:
        deadline_ms = replica.election_deadline_ms(now_ms)
    return Unattached(
        epoch=epoch, leader_id=leader_id, voted=voted, election_deadline_ms=deadline_ms
    )


def prospective(
    replica: Replica, previous: Unattached | Follower | Candidate, now_ms: int
) -> Prospective:
    """Ask for pre-votes in the present epoch, before a new one is begun (thesis 9.6)."""
    endpoint = previous.leader_endpoint if isinstance(previous, Follower) else None
    return Prospective(
        epoch=previous.epoch,
        leader_id=None if isinstance(previous, Candidate) else previous.leader_id,
        leader_endpoint=endpoint,
        voted=previous.voted,
        election_deadline_ms=now_ms + replica.election_timeout_ms(),
        votes=_own_vote_only(replica),
        retries=previous.retries if isinstance(previous, Candidate) else 0,
    )


def candidate(replica: Replica, previous: Role, now_ms: int) -> Candidate:
    """Begin an epoch, with one vote: its own (thesis 3.4)."""
    retries = previous.retries if isinstance(previous, Prospective) else 0
    return candidate_in(replica, previous.epoch + 1, now_ms, retries=retries)


def candidate_in(replica: Replica, epoch: int, now_ms: int, *, retries: int = 0) -> Candidate:
    """Campaign in this epoch: a new one, or after a restart that in which it voted for itself."""
    return Candidate(
        epoch=epoch,
        voted=replica.key,
        election_deadline_ms=now_ms + replica.election_timeout_ms(),
        votes=_own_vote_only(replica),
        retries=retries,
    )


def campaign(replica: Replica, previous: Unattached | Follower, now_ms: int) -> Role:
    """The election timer has run out. A sole voter has nobody to ask for pre-votes."""
    if replica.is_sole_voter:
        return candidate(replica, previous, now_ms)
    return prospective(replica, previous, now_ms)


def _own_vote_only(replica: Replica) -> dict[int, bool | None]:
    return {
        voter_id: True if voter_id == replica.node_id else None for voter_id in replica.voters.ids
    }


def follow(
    replica: Replica,
    previous: Role,
    *,
    epoch: int,
    leader_id: int,
    endpoint: Endpoint,
    now_ms: int,
) -> Follower:
    assert leader_id != replica.node_id, "a replica does not follow itself"
    return Follower(
        epoch=epoch,
        leader_id=leader_id,
        leader_endpoint=endpoint,
        voted=previous.voted if previous.epoch == epoch else None,
        fetch_deadline_ms=now_ms + replica.fetch_timeout_ms(),
        report_due_ms=now_ms + replica.config.report_interval_ms,
    )
