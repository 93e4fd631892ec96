"""AlterConfigs (API key 33), as Kafka's message of version 2 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterConfigsResponse",
    "AlterableConfig",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterableConfig:
    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResource:
    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequest:
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResourceResponse:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: int
    resource_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResponse:
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
