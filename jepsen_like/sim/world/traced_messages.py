"""One line of a trace for each message of the quorum and of the cluster."""

from wire.errors import ErrorCode
from wire.messages.fetching import FetchedPartition, FetchRequest, FetchResponse
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from wire.messages.producing import ProduceRequest, ProduceResponse
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
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

__all__ = ["describe_body"]


def describe_body(body: object) -> str:
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
            return _describe_cluster(body)


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


def _describe_cluster(body: object) -> str:
    match body:
        case AlterPartitionRequest(topics=(topic, *_)):
            asked = topic.partitions[0]
            members = [member.broker_id for member in asked.new_isr_with_epochs]
            return (
                f"AlterPartition by {body.broker_id} to {members}, leader epoch"
                f" {asked.leader_epoch}, partition epoch {asked.partition_epoch}"
            )
        case AlterPartitionResponse(topics=(answered, *_)):
            result = answered.partitions[0]
            isr, epoch = list(result.isr), result.partition_epoch
            return (
                f"AlterPartition: {_named(result.error_code)}, ISR {isr}, partition epoch {epoch}"
            )
        case BrokerHeartbeatRequest():
            wants = "shut down" if body.want_shut_down else "fence" if body.want_fence else "run"
            return f"Heartbeat of {body.broker_id}@{body.broker_epoch}, wants to {wants}"
        case BrokerHeartbeatResponse():
            state = "fenced" if body.is_fenced else "unfenced"
            return f"Heartbeat: {_named(body.error_code)}, {state}"
        case BrokerRegistrationRequest():
            return f"Registration of {body.broker_id}, before {body.previous_broker_epoch}"
        case BrokerRegistrationResponse():
            return f"Registration: {_named(body.error_code)}, epoch {body.broker_epoch}"
        case _:
            return _describe_produce(body)


def _describe_produce(body: object) -> str:
    match body:
        case ProduceRequest(topic_data=(topic, *_)):
            data = topic.partition_data[0]
            return f"Produce {len(data.records or b'')} bytes to {topic.name}-{data.index}"
        case ProduceResponse(responses=(topic, *_)):
            told = topic.partition_responses[0]
            return f"Produce: {_named(told.error_code)}, at {told.base_offset}"
        case _:
            return type(body).__name__


def _named(error: int) -> str:
    return ErrorCode(error).name
