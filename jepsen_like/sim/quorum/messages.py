"""What the simulator reads out of the quorum's messages; every other body says nothing to it."""

from jepsen_like.sim.cluster.messages import describe_cluster_body
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
)
from wire.messages.quorum_epochs import (
    BeginPartition,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndPartition,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)

__all__ = ["describe_body", "fetching_voter"]


def fetching_voter(body: object) -> int:
    """Who asks here for what only a leader gives, records or a snapshot; -1 if nobody does."""
    match body:
        case FetchRequest(replica_state=state):
            return state.replica_id
        case FetchSnapshotRequest(replica_id=replica_id):
            return replica_id
        case _:
            return -1


def describe_body(body: object) -> str:
    """One line for people."""
    match body:
        case VoteRequest(topics=(topic, *_)):
            vote = topic.partitions[0]
            kind = "PreVote" if vote.pre_vote else "Vote"
            log = f"{vote.last_offset}@{vote.last_offset_epoch}"
            return f"{kind} for {vote.replica_id} in epoch {vote.replica_epoch}, log {log}"
        case VoteResponse(topics=(voted, *_)):
            result = voted.partitions[0]
            answer = "granted" if result.vote_granted else "refused"
            return f"{answer}, {_known(result.leader_id, result.leader_epoch, result.error_code)}"
        case FetchRequest(topics=(fetched, *_), replica_state=state):
            fetch = fetched.partitions[0]
            place = f"{fetch.fetch_offset}@{fetch.last_fetched_epoch}"
            return f"Fetch by {state.replica_id} in epoch {fetch.current_leader_epoch} from {place}"
        case FetchResponse(responses=(answered, *_)):
            return _describe_fetched(answered.partitions[0])
        case BeginQuorumEpochRequest(topics=(began, *_)):
            return f"BeginQuorumEpoch {_led(began.partitions[0])}"
        case EndQuorumEpochRequest(topics=(ended, *_)):
            return f"EndQuorumEpoch {_led(ended.partitions[0])}"
        case BeginQuorumEpochResponse(topics=(one, *_)) | EndQuorumEpochResponse(topics=(one, *_)):
            told = one.partitions[0]
            return _known(told.leader_id, told.leader_epoch, told.error_code)
        case _:
            return describe_cluster_body(body)


def _describe_fetched(data: FetchedPartition) -> str:
    known = _known(data.current_leader.leader_id, data.current_leader.leader_epoch, data.error_code)
    diverging = data.diverging_epoch
    if diverging.end_offset >= 0:
        return f"diverging: epoch {diverging.epoch} ends at {diverging.end_offset}, {known}"
    return f"{len(data.records or b'')} bytes, hw {data.high_watermark}, {known}"


def _led(partition: BeginPartition | EndPartition) -> str:
    return f"{partition.leader_id} leads epoch {partition.leader_epoch}"


def _known(leader_id: int, epoch: int, error: ErrorCode) -> str:
    text = f"leader {leader_id} of epoch {epoch}"
    return text if error == ErrorCode.NONE else f"{text}, {ErrorCode(error).name}"
