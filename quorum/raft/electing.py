"""Elections: a replica without a leader waits, asks for pre-votes, campaigns, and wins or yields.

Each `poll_*` sends what is due in its role, and returns the next role if the replica changes it.
`vote` decides the votes that this replica grants to others.

    Unattached --timer--> Prospective --majority would--> Candidate --majority did--> Leader
                               |                              |
                               +-- Follower or Unattached     +-- backoff, Prospective

Source: Raft thesis 3.4 and 9.6; KIP-595, KIP-996; Kafka's KafkaRaftClient.poll*.
"""

from collections.abc import Iterable
from random import Random

from quorum.core.effects import Failure, earliest
from quorum.raft import becoming, discovering, leading, voters
from quorum.raft.messages import end_request, vote_request
from quorum.raft.replica import VOTE_CHANNEL, Replica
from quorum.raft.roles import Candidate, Follower, Prospective, Resigned, Role, Unattached
from quorum.raft.voters import VoteResult

__all__ = [
    "ask_again",
    "deadline_ms",
    "election_backoff_ms",
    "poll_candidate",
    "poll_prospective",
    "poll_resigned",
    "poll_unattached",
    "record_vote",
    "rejoin",
    "tell_resigned",
]

_BACKOFF_STEP_MS = 100  # Kafka's RETRY_BACKOFF_BASE_MS
_BACKOFF_DOUBLINGS_MAX = 20


# --- what the roles do by themselves ---------------------------------------------------------


def poll_unattached(replica: Replica, role: Unattached, now_ms: int) -> Role | None:
    is_due = role.election_deadline_ms is not None and role.election_deadline_ms <= now_ms
    if is_due or replica.is_sole_voter:
        return becoming.campaign(replica, role, now_ms)
    discovering.discover(replica, role.epoch, now_ms)
    return None


def poll_prospective(replica: Replica, role: Prospective, now_ms: int) -> Role | None:
    result = voters.vote_result(role.votes)
    if result is VoteResult.WON:
        return becoming.candidate(replica, role, now_ms)
    if result is VoteResult.LOST or role.election_deadline_ms <= now_ms:
        return _step_back(replica, role, now_ms)
    _ask_for_votes(replica, role, now_ms)
    return None


def _step_back(replica: Replica, role: Prospective, now_ms: int) -> Role:
    """The others hear from a leader, or do not answer: return to the role before the pre-vote."""
    return rejoin(replica, role, now_ms) or Unattached(
        epoch=role.epoch,
        leader_id=role.leader_id,
        voted=role.voted,
        election_deadline_ms=now_ms + replica.election_timeout_ms(),
    )


def rejoin(replica: Replica, role: Prospective, now_ms: int) -> Follower | None:
    """Follow the leader that it was about to depose; None without its id or its endpoint."""
    if role.leader_id is None or role.leader_endpoint is None:
        return None
    return becoming.follow(
        replica,
        role,
        epoch=role.epoch,
        leader_id=role.leader_id,
        endpoint=role.leader_endpoint,
        now_ms=now_ms,
    )


def poll_candidate(replica: Replica, role: Candidate, now_ms: int) -> Role | None:
    if role.backoff_until_ms is not None:
        return (
            becoming.prospective(replica, role, now_ms) if role.backoff_until_ms <= now_ms else None
        )
    match voters.vote_result(role.votes):
        case VoteResult.WON if not replica.outbox.is_saving_election:
            return leading.leader(replica, role, now_ms)
        case VoteResult.WON:
            pass  # a sole voter, whose vote for itself a crash could take back
        case VoteResult.LOST:
            role.retries += 1
            role.backoff_until_ms = now_ms + election_backoff_ms(
                replica.random, role.retries, replica.config.election_backoff_max_ms
            )
            return poll_candidate(replica, role, now_ms)
        case VoteResult.PENDING if voters.is_split(role.votes):
            _wait_less(replica, role)
        case VoteResult.PENDING:
            pass
    if role.election_deadline_ms <= now_ms:
        role.retries += 1
        return becoming.prospective(replica, role, now_ms)
    _ask_for_votes(replica, role, now_ms)
    return None


def _wait_less(replica: Replica, role: Candidate) -> None:
    """Two candidates have split the votes, and who has not answered may be dead, or its disk hang.

    Kafka waits a whole election time-out for it, and its random part. Here a tenth of the time-out,
    for votes that are on their way, and its random part are enough.
    """
    if not role.is_split:
        role.is_split = True
        role.election_deadline_ms -= replica.config.election_timeout_ms * 9 // 10


def poll_resigned(replica: Replica, role: Resigned, now_ms: int) -> Role | None:
    """Tell every voter until each has acknowledged or the epoch is over; then leave the epoch.

    It does not campaign at once, unless it is the only voter: the successors that it named go
    first.
    """
    if replica.is_sole_voter:
        return becoming.candidate(replica, role, now_ms)
    if role.election_deadline_ms <= now_ms:
        return Unattached(
            epoch=role.epoch + 1, election_deadline_ms=replica.election_deadline_ms(now_ms)
        )
    tell_resigned(replica, role, now_ms)
    return None


def tell_resigned(replica: Replica, role: Resigned, now_ms: int) -> None:
    own = replica.endpoint
    if own is None:
        role.unacknowledged.clear()  # without an endpoint it cannot name itself as the leader
        return
    body = end_request(replica.config, epoch=role.epoch, preferred=role.preferred, leader=own)
    for voter_id in _free(replica, role.unacknowledged, now_ms):
        replica.ask(role.unacknowledged[voter_id], VOTE_CHANNEL, body)


def _ask_for_votes(replica: Replica, role: Prospective | Candidate, now_ms: int) -> None:
    for voter_id in _free(replica, _unanswered(role), now_ms):
        voter = replica.voters.get(voter_id)
        assert voter is not None, voter_id
        body = vote_request(
            replica.config,
            voter.key,
            epoch=role.epoch,
            last=replica.log.end,
            pre_vote=isinstance(role, Prospective),
        )
        replica.ask(voter.endpoint, VOTE_CHANNEL, body)


def _unanswered(role: Prospective | Candidate) -> list[int]:
    return [voter_id for voter_id, vote in role.votes.items() if vote is None]


def _free(replica: Replica, node_ids: Iterable[int], now_ms: int) -> list[int]:
    return [node_id for node_id in node_ids if replica.peers.is_free(node_id, now_ms)]


# --- answers --------------------------------------------------------------------------------


def record_vote(role: Prospective | Candidate, voter_id: int, *, granted: bool) -> None:
    """Count a voter once: votes are kept by voter, so a repeated answer changes nothing."""
    if voter_id in role.votes:
        role.votes[voter_id] = granted


def ask_again(role: Prospective, voter_id: int) -> None:
    """Ask a voter a second time that refused our pre-vote and now asks for pre-votes itself.

    It refused because it followed a leader, which it does no longer. Ours is the longer log, since
    we refuse the voter, too: without a second question both would wait for an election time-out in
    vain. The voter asks once a round, so this ends.
    """
    if role.votes.get(voter_id) is False:
        role.votes[voter_id] = None


def not_asked(
    replica: Replica, role: Prospective, failure: Failure, now_ms: int
) -> Candidate | None:
    """Campaign at once if a voter's release knows no pre-votes, as that release does (KIP-996)."""
    return (
        becoming.candidate(replica, role, now_ms)
        if failure is Failure.UNSUPPORTED_VERSION
        else None
    )


def election_backoff_ms(random: Random, retries: int, backoff_max_ms: int) -> int:
    """A random pause from a range that grows with every election lost, up to the maximum.

    Kafka caps the pause, not the range: after some losses all candidates wait for the maximum, in
    step again.
    """
    doublings = min(_BACKOFF_DOUBLINGS_MAX, max(0, retries - 1))
    return random.randrange(min(_BACKOFF_STEP_MS * (2 << doublings), backoff_max_ms) + 1)


# --- timers ---------------------------------------------------------------------------------


def deadline_ms(
    replica: Replica, role: Unattached | Prospective | Candidate | Resigned
) -> int | None:
    match role:
        case Unattached():
            due = [role.election_deadline_ms, discovering.discovery_due_ms(replica)]
        case Candidate() if role.backoff_until_ms is not None:
            due = [role.backoff_until_ms]
        case Prospective() | Candidate():
            due = [role.election_deadline_ms, *map(replica.peers.free_at_ms, _unanswered(role))]
        case Resigned():
            due = [
                role.election_deadline_ms,
                *map(replica.peers.free_at_ms, role.unacknowledged),
            ]
    return earliest(*due)
