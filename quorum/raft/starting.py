"""How a replica begins: what its disk lets it be, and whether the disk has all that it must.

Source: KIP-595, KIP-630; Kafka's QuorumState.initialize and KafkaRaftLog.
"""

from quorum.core.types import ElectionState
from quorum.raft import becoming
from quorum.raft.replica import Replica
from quorum.raft.roles import Resigned, Role, Unattached

__all__ = ["initial_role", "prepare_log"]


def initial_role(replica: Replica, election: ElectionState, now_ms: int) -> Role:
    """What a replica is after a restart: never a leader (KAFKA-10527), even of its own epoch.

    A leader may have lost records that it had not synced, so (epoch, offset) could come to name
    two different records. A log that already holds records of an epoch in which we voted for
    ourselves says the same: we led it.
    """
    timer_ms = replica.election_deadline_ms(now_ms)
    epoch, leader_id, voted = election.epoch, election.leader_id, election.voted
    log_epoch = replica.log.last_epoch
    if epoch < log_epoch:
        return Unattached(epoch=log_epoch, election_deadline_ms=timer_ms)
    if leader_id == replica.node_id:
        return Resigned(
            epoch=epoch,
            voted=voted,
            election_deadline_ms=now_ms + replica.election_timeout_ms(),
            unacknowledged={voter.node_id: voter for voter in replica.other_voters()},
        )
    is_own_vote = voted is not None and voted.matches(replica.key)
    may_have_led = epoch <= log_epoch or replica.is_sole_voter  # its own vote was enough
    if is_own_vote and leader_id is None and replica.is_voter and not may_have_led:
        return becoming.candidate_in(replica, epoch, now_ms)  # answers may have been lost
    endpoint = None if leader_id is None else replica.voters.endpoint_of(leader_id)
    unattached = Unattached(
        epoch=epoch, leader_id=leader_id, voted=voted, election_deadline_ms=timer_ms
    )
    if leader_id is None or endpoint is None:
        return unattached
    return becoming.follow(
        replica, unattached, epoch=epoch, leader_id=leader_id, endpoint=endpoint, now_ms=now_ms
    )


def prepare_log(replica: Replica) -> str | None:
    """Bring the log in line with its newest snapshot; why this node cannot start, if it cannot.

    A crash may come between a snapshot of the leader's and the log's reset to it.
    """
    log = replica.log
    latest = log.latest_snapshot
    if latest is not None and not log.holds(latest.id):
        replica.reset(latest)
    elif log.start_offset > 0 and (latest is None or latest.id.offset < log.start_offset):
        return (
            f"the metadata log begins at {log.start_offset}, and no snapshot has what came before:"
            " restore the .checkpoint file, or clear the directory so that the node fetches it all"
        )
    return None
