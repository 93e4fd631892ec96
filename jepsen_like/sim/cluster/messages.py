"""What a trace says of the messages between brokers, controllers and clients: one line each."""

from wire.errors import ErrorCode
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from wire.messages.producing import ProduceRequest, ProduceResponse
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

__all__ = ["describe_cluster_body"]


def describe_cluster_body(body: object) -> str:
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
