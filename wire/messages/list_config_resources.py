"""ListConfigResources (API key 74), as Kafka's message of version 1 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = ["ConfigResource", "ListConfigResourcesRequest", "ListConfigResourcesResponse"]


class ListConfigResourcesRequest(Message):
    resource_types: tuple[int, ...] = ()  # none: all


class ConfigResource(Message):
    resource_name: str
    resource_type: int = 16  # client metrics, the only ones before version 1


class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    config_resources: tuple[ConfigResource, ...] = ()
