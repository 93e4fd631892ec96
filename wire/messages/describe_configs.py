"""DescribeConfigs (API key 32), as Kafka's message of version 4 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "DescribeConfigsRequest",
    "DescribeConfigsResource",
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
]


class DescribeConfigsResource(Message):
    resource_type: int
    resource_name: str
    configuration_keys: tuple[str, ...] | None = None  # None: all


class DescribeConfigsRequest(Message):
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(Message):
    name: str
    value: str | None = None
    source: int


class DescribeConfigsResourceResult(Message):
    name: str
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: int = 0
    documentation: str | None = None


class DescribeConfigsResult(Message):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: int
    resource_name: str
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


class DescribeConfigsResponse(Message):
    throttle_time_ms: int = 0
    results: tuple[DescribeConfigsResult, ...] = ()
