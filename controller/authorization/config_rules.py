"""Requests about configs: each resource by itself. Those of brokers are the cluster's.

Source: Kafka's ControllerApis.authorizeAlterResource and ConfigHelper.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from controller.authorization.access import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    TOPIC_DENIED,
    Access,
    Rule,
    Verdict,
    narrowed,
)
from controller.authorization.acl_index import Resource
from controller.authorization.authorizer import CLUSTER
from controller.metadata.configs import Refusal
from controller.metadata.image import ResourceType
from controller.metadata.security import Operation
from wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["RULES"]

_OF_CLUSTER = (ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS)


class _Asked(Protocol):
    """A resource of a request."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


def _denial(access: Access, operation: Operation, asked: _Asked) -> Refusal | None:
    """None: it is allowed, or of no type that anybody could be allowed."""
    name = asked.resource_name
    kind, denial = Resource.TOPIC, TOPIC_DENIED
    if asked.resource_type in _OF_CLUSTER:
        kind, name, denial = Resource.CLUSTER, CLUSTER, CLUSTER_DENIED
    elif asked.resource_type == ResourceType.GROUP:
        kind, denial = Resource.GROUP, GROUP_DENIED
    elif asked.resource_type != ResourceType.TOPIC:
        return None
    if operation is Operation.ALTER_CONFIGS and asked.resource_type == ResourceType.BROKER_LOGGER:
        operation = Operation.CLUSTER_ACTION
    return None if access.may(operation, kind, name) else denial


def _each(operation: Operation, response: type, results: str, result: type) -> Rule:
    """The response has a result for each resource; those that are denied come last."""

    def rule(access: Access, body: Any) -> Verdict:
        denials = [(asked, _denial(access, operation, asked)) for asked in body.resources]
        denied = tuple(
            denial.told(
                result, resource_type=asked.resource_type, resource_name=asked.resource_name
            )
            for asked, denial in denials
            if denial is not None
        )
        allowed = tuple(asked for asked, denial in denials if denial is None)
        return narrowed(body, "resources", allowed, response, results, denied)

    return rule


RULES: Mapping[type, Rule] = {
    AlterConfigsRequest: _each(
        Operation.ALTER_CONFIGS, AlterConfigsResponse, "responses", AlterConfigsResourceResponse
    ),
    DescribeConfigsRequest: _each(
        Operation.DESCRIBE_CONFIGS, DescribeConfigsResponse, "results", DescribeConfigsResult
    ),
    IncrementalAlterConfigsRequest: _each(
        Operation.ALTER_CONFIGS,
        IncrementalAlterConfigsResponse,
        "responses",
        AlterConfigsResourceResponse,
    ),
}
