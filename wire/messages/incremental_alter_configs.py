"""IncrementalAlterConfigs (API key 44), as Kafka's message of version 1 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterableConfig",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
]


class AlterableConfig(Message):
    name: str
    config_operation: int  # 0 set, 1 delete, 2 append, 3 subtract
    value: str | None = None


class AlterConfigsResource(Message):
    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...]


class IncrementalAlterConfigsRequest(Message):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: int
    resource_name: str


class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
