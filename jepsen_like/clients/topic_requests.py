"""What clients ask about topics and their configs, and what they read in the answers.

Built and read here once; who sends it, and what a missing answer means, is each client's business.
"""

from jepsen_like.histories.history import Kind
from jepsen_like.workloads.register import CONFIG
from jepsen_like.workloads.topic_set import PREFIX
from jepsen_like.workloads.workload import Done, NewTopic
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
)
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

__all__ = [
    "ALL_TOPICS",
    "creation",
    "deletion",
    "elements_in",
    "register_in",
    "register_query",
    "register_write",
]

_TOPIC = 2  # the type of a resource
_SET = 0
_DYNAMIC_TOPIC_CONFIG = 1  # set on the topic itself, not a default

ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False)


def creation(new: NewTopic, timeout_ms: int) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=new.name,
        num_partitions=new.partitions,
        replication_factor=new.replication_factor,
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in new.configs.items()
        ),
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms)


def deletion(name: str, timeout_ms: int) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=timeout_ms)


def register_write(topic: str, value: int) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=CONFIG, config_operation=_SET, value=str(value))
    resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


def register_query(topic: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=(CONFIG,)
    )
    return DescribeConfigsRequest(resources=(resource,))


def register_in(answer: DescribeConfigsResponse, topic: str, node: int) -> Done:
    """The register's value as `node` told it; None before any write."""
    result = answer.results[0]
    if result.error_code is not ErrorCode.NONE:
        return Done(kind=Kind.FAIL, error=ErrorCode(result.error_code).name)
    own = [each for each in result.configs if each.config_source == _DYNAMIC_TOPIC_CONFIG]
    value = int(own[0].value or "-1") if own else None
    return Done(kind=Kind.OK, value=[topic, value], extra={"node": node})


def elements_in(answer: MetadataResponse, node: int) -> Done:
    """The elements of the set, as `node` lists its topics."""
    known = (topic.name or "" for topic in answer.topics)
    names = sorted(name for name in known if name.startswith(PREFIX))
    return Done(kind=Kind.OK, value=names, extra={"node": node})
