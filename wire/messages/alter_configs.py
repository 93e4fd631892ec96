"""AlterConfigs (API key 33), as Kafka's message of version 2 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterConfigsResponse",
    "AlterableConfig",
]


class AlterableConfig(Message):
    name: str
    value: str | None = None


class AlterConfigsResource(Message):
    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...]


class AlterConfigsRequest(Message):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: int
    resource_name: str


class AlterConfigsResponse(Message):
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
