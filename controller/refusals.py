"""The answer that says "no" to a whole request, whatever its API.

APIs without a top-level error get it for each thing that they ask for.
"""

from typing import TypeAlias

from wire.errors import ErrorCode
from wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

__all__ = ["WriteRequest", "refuse"]

WriteRequest: TypeAlias = (
    AllocateProducerIdsRequest
    | AlterConfigsRequest
    | AlterPartitionRequest
    | BrokerHeartbeatRequest
    | BrokerRegistrationRequest
    | ControllerRegistrationRequest
    | CreatePartitionsRequest
    | CreateTopicsRequest
    | DeleteTopicsRequest
    | IncrementalAlterConfigsRequest
    | UnregisterBrokerRequest
)


def refuse(request: WriteRequest, error: ErrorCode, message: str) -> object:
    """The response to `request` that carries `error` wherever it can."""
    match request:
        case BrokerHeartbeatRequest():
            return BrokerHeartbeatResponse(error_code=error, should_shut_down=False)
        case BrokerRegistrationRequest():
            return BrokerRegistrationResponse(error_code=error)
        case AlterPartitionRequest():
            return AlterPartitionResponse(error_code=error, topics=())
        case AllocateProducerIdsRequest():
            return AllocateProducerIdsResponse(
                error_code=error, producer_id_start=-1, producer_id_len=0
            )
        case ControllerRegistrationRequest():
            return ControllerRegistrationResponse(error_code=error, error_message=message)
        case UnregisterBrokerRequest():
            return UnregisterBrokerResponse(error_code=error, error_message=message)
        case _:
            return _refuse_each(request, error, message)


def _refuse_each(
    request: CreateTopicsRequest
    | DeleteTopicsRequest
    | CreatePartitionsRequest
    | IncrementalAlterConfigsRequest
    | AlterConfigsRequest,
    error: ErrorCode,
    message: str,
) -> object:
    match request:
        case CreateTopicsRequest():
            topics = tuple(
                CreatableTopicResult(name=topic.name, error_code=error, error_message=message)
                for topic in request.topics
            )
            return CreateTopicsResponse(topics=topics)
        case DeleteTopicsRequest():
            deleted = tuple(
                DeletableTopicResult(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    error_code=error,
                    error_message=message,
                )
                for topic in request.topics
            )
            return DeleteTopicsResponse(responses=deleted)
        case CreatePartitionsRequest():
            extended = tuple(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=error, error_message=message
                )
                for topic in request.topics
            )
            return CreatePartitionsResponse(results=extended)
        case _:
            return _refuse_configs(request, error, message)


def _refuse_configs(
    request: IncrementalAlterConfigsRequest | AlterConfigsRequest, error: ErrorCode, message: str
) -> object:
    if isinstance(request, IncrementalAlterConfigsRequest):
        return IncrementalAlterConfigsResponse(
            responses=tuple(
                IncrementalResourceResponse(
                    error_code=error,
                    error_message=message,
                    resource_type=item.resource_type,
                    resource_name=item.resource_name,
                )
                for item in request.resources
            )
        )
    return AlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=item.resource_type,
                resource_name=item.resource_name,
            )
            for item in request.resources
        )
    )
