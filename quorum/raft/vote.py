"""Vote rules: may this replica grant its vote, or its pre-vote?

Pure. Does not send, persist or change role: see `raft_node` for the order of checks.

Source: Raft thesis 3.4 and 3.6.1, 9.6 for pre-vote; KIP-996; Kafka's canGrantVote of each state
for the cases by role.
"""

from quorum.core.types import EPOCH_MAX, OffsetAndEpoch, ReplicaKey
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from wire.errors import ErrorCode
from wire.messages.quorum_epochs import VotePartition

__all__ = ["check_vote", "grants_pre_vote", "grants_vote"]


def check_vote(ask: VotePartition, epoch: int) -> ErrorCode:
    """What is wrong with a request for a vote, before it is judged at `epoch`."""
    if ask.last_offset < 0 or ask.last_offset_epoch < 0:
        return ErrorCode.INVALID_REQUEST
    # A candidate campaigns in an epoch after all that wrote to its log; a pre-vote has
    # not begun one.
    last_epoch_max = ask.replica_epoch if ask.pre_vote else ask.replica_epoch - 1
    if ask.last_offset_epoch > last_epoch_max:
        return ErrorCode.INVALID_REQUEST
    if ask.replica_epoch < epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    is_invalid = ask.replica_id < 0 or ask.replica_epoch > EPOCH_MAX
    return ErrorCode.INVALID_REQUEST if is_invalid else ErrorCode.NONE


def grants_vote(
    role: Role, candidate: ReplicaKey, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    """One vote an epoch, first come first served, and only for a log as complete as ours.

    Thesis 3.4 and 3.6.1. A repeated request is granted again: the first answer may have been
    lost. Its log is judged again, too, although a candidate asks only when its log is durable:
    where the vote was saved without the directory id, this may be another disk, and an empty one.
    Where a leader is known, the epoch has been decided.
    """
    match role:
        case Unattached() | Prospective():
            if role.voted is not None and not role.voted.matches(candidate):
                return False
            is_open = role.voted is not None or role.leader_id is None
            return is_open and last.is_at_least(ours)
        case Candidate() | Leader() | Follower() | Resigned():
            return False


def grants_pre_vote(role: Role, *, last: OffsetAndEpoch, ours: OffsetAndEpoch) -> bool:
    """Would we vote for a candidate with this log, in an epoch after ours?

    KIP-996. A follower that has heard from its leader refuses: so a replica that was cut off does
    not depose a leader that the others hear. One that has not yet may grant it: else two
    followers of a dead leader could refuse each other for ever (KAFKA-17641).
    """
    match role:
        case Leader():
            return False
        case Follower() if role.has_fetched:
            return False
        case Unattached() | Prospective() | Candidate() | Follower() | Resigned():
            return last.is_at_least(ours)
