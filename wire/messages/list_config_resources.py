"""ListConfigResources (API key 74), as Kafka's message of version 1 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = ["ConfigResource", "ListConfigResourcesRequest", "ListConfigResourcesResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesRequest:
    resource_types: tuple[int, ...] = ()  # none: all


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    resource_name: str
    resource_type: int = 16  # client metrics, the only ones before version 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    config_resources: tuple[ConfigResource, ...] = ()
