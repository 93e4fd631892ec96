"""Configs of topics, brokers and groups: describe, alter, list."""

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Throttled, ThrottledOutcome


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


class DescribeConfigsResult(ExplainedOutcome):
    resource_type: int
    resource_name: str
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


class DescribeConfigsResponse(Throttled):
    results: tuple[DescribeConfigsResult, ...] = ()


class LegacyConfig(Message):
    name: str
    value: str | None = None


class LegacyResource(Message):
    resource_type: int
    resource_name: str
    configs: tuple[LegacyConfig, ...]


class AlterConfigsRequest(Message):
    resources: tuple[LegacyResource, ...]
    validate_only: bool = False


class AlterConfigsResourceResponse(ExplainedOutcome):
    resource_type: int
    resource_name: str


class AlterConfigsResponse(Throttled):
    responses: tuple[AlterConfigsResourceResponse, ...]


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


class IncrementalAlterConfigsResponse(Throttled):
    responses: tuple[AlterConfigsResourceResponse, ...]


class ListConfigResourcesRequest(Message):
    resource_types: tuple[int, ...] = ()  # none: all


class ConfigResource(Message):
    resource_name: str
    resource_type: int = 16  # client metrics, the only ones before version 1


class ListConfigResourcesResponse(ThrottledOutcome):
    config_resources: tuple[ConfigResource, ...] = ()
