"""What a role does when its time has come, and what it becomes by it; once a turn, after events."""

from quorum.raft import becoming, electing, following, leading, membership
from quorum.raft.replica import Replica
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached

__all__ = ["next_role"]


def next_role(replica: Replica, role: Role, now_ms: int) -> Role | None:
    """Let the role do what is due; returns the one to change to, None if it stays."""
    match role:
        case Leader():
            return _poll_leader(replica, role, now_ms)
        case Follower():
            if role.fetch_deadline_ms <= now_ms and following.timed_out(replica, role):
                return becoming.campaign(replica, role, now_ms)
            if not replica.peers.busy:
                following.poll(replica, role, now_ms)
            return None
        case Unattached():
            return electing.poll_unattached(replica, role, now_ms)
        case Prospective():
            return electing.poll_prospective(replica, role, now_ms)
        case Candidate():
            return electing.poll_candidate(replica, role, now_ms)
        case Resigned():
            return electing.poll_resigned(replica, role, now_ms)


def _poll_leader(replica: Replica, role: Leader, now_ms: int) -> Role | None:
    gone = None
    if role.change is not None or not replica.is_voter:
        gone = membership.poll(replica, role, now_ms)
    if gone is None and min(role.check_quorum_deadline_ms, role.begin_epoch_due_ms) <= now_ms:
        gone = leading.poll(replica, role, now_ms)
    return gone
