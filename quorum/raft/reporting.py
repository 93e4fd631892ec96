"""What a follower tells its leader of itself as a voter, unasked (KIP-853).

A voter whose listeners or versions are not what the voters' record says has it corrected. With
static voters no record says anything, so each tells every new leader once: that is what an upgrade
to kraft.version 1 will write. An observer that may join by itself asks to be added, and before that
to have its former self removed, whose disk is gone (KIP-1186).

Such a question takes the place of a Fetch, of which one at a time is in flight.

Source: KIP-853, KIP-1186; Kafka's KafkaRaftClient.pollFollower.
"""

from quorum.core.types import Endpoint
from quorum.raft.replica import VOTE_CHANNEL, Replica
from quorum.raft.responses import CommonFields
from quorum.raft.roles import Follower
from quorum.raft.voters import Voter
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    KRaftVersionFeature,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

__all__ = ["ReportResponse", "common_fields", "report", "reported"]

Report = UpdateRaftVoterRequest | AddRaftVoterRequest | RemoveRaftVoterRequest
ReportResponse = UpdateRaftVoterResponse | AddRaftVoterResponse | RemoveRaftVoterResponse


def report(replica: Replica, role: Follower, now_ms: int) -> bool:
    """Tell the leader what it should know, if it is time. Was anything sent?"""
    leader = role.leader_endpoint
    hears_leader = role.has_fetched and not role.is_leader_silent
    if role.report_due_ms > now_ms or not hears_leader:
        return False
    if not replica.peers.is_free(leader.node_id, now_ms):
        return False
    role.report_due_ms = now_ms + replica.config.report_interval_ms
    body = _due(replica, role)
    if body is None:
        return False
    role.reporting = replica.ask(leader, VOTE_CHANNEL, body)
    return True


def _due(replica: Replica, role: Follower) -> Report | None:
    own = replica.config.as_voter
    if own is None:
        return None
    known = replica.voters.get(replica.node_id)
    if replica.is_voter:
        is_known = role.has_reported if replica.kraft_version == 0 else known == own
        return None if is_known else _update(replica, role, own)
    if not replica.config.auto_join or replica.kraft_version == 0:
        return None
    if known is not None:
        return RemoveRaftVoterRequest(
            cluster_id=replica.config.cluster_id,
            voter_id=known.key.id,
            voter_directory_id=known.key.directory_id,
        )
    return AddRaftVoterRequest(
        cluster_id=replica.config.cluster_id,
        timeout_ms=replica.config.request_timeout_ms,
        voter_id=own.key.id,
        voter_directory_id=own.key.directory_id,
        listeners=_listeners(own),
        ack_when_committed=False,  # our own Fetch, which waits for the answer, may commit it
    )


def _update(replica: Replica, role: Follower, own: Voter) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=replica.config.cluster_id,
        current_leader_epoch=role.epoch,
        voter_id=own.key.id,
        voter_directory_id=own.key.directory_id,
        listeners=_listeners(own),
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=own.kraft_versions.min_supported_version,
            max_supported_version=own.kraft_versions.max_supported_version,
        ),
    )


def _listeners(voter: Voter) -> tuple[Listener, ...]:
    return tuple(
        Listener(name=each.name, host=each.host, port=each.port) for each in voter.listeners
    )


def reported(replica: Replica, role: Follower, answer: ReportResponse | None) -> None:
    """The leader has answered, or not. Whatever it said, the next time to look is set."""
    role.reporting = None
    if answer is None:
        return
    if answer.error_code is ErrorCode.NONE:
        role.has_reported = True
        return
    replica.outbox.trace("voter_report_refused", by=role.leader_id, error=answer.error_code.name)


def common_fields(answer: ReportResponse) -> CommonFields:
    """What an answer says of the leader, as answers to other questions do."""
    if not isinstance(answer, UpdateRaftVoterResponse):
        return CommonFields(error=answer.error_code)
    leader = answer.current_leader
    endpoint = Endpoint(leader.leader_id, leader.host, leader.port) if leader.host else None
    return CommonFields(
        error=answer.error_code,
        epoch=leader.leader_epoch,
        leader_id=leader.leader_id,
        endpoint=endpoint,
    )
