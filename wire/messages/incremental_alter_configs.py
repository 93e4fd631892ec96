"""IncrementalAlterConfigs (API key 44), as Kafka's message of version 1 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterableConfig",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterableConfig:
    name: str
    config_operation: int  # 0 set, 1 delete, 2 append, 3 subtract
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResource:
    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsRequest:
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResourceResponse:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: int
    resource_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
