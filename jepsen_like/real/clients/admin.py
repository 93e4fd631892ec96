"""Topics and configs: created, deleted, written, listed, described. In Kafka's own protocol.

A topic is created and deleted through any broker. A config is written at the active controller
itself: a broker passes a request on again when it is in doubt, so that a write might happen twice,
with another one between, and no register does that. A read goes to the node that it names.
"""

from dataclasses import replace

from jepsen_like.history import Kind
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.asking import Nodes, kind_of
from jepsen_like.real.clients.target import Target
from jepsen_like.real.kafka_client import NotConnected
from jepsen_like.real.layout import ClusterError
from jepsen_like.workload import Done, NewTopic, Wish
from jepsen_like.workloads.register import CONFIG
from jepsen_like.workloads.topic_set import PREFIX
from wire.errors import ErrorCode
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.metadata import MetadataRequest, MetadataResponse

__all__ = ["AdminClient", "create_topic"]

_TOPIC = 2  # the type of a resource
_SET = 0
_DYNAMIC_TOPIC_CONFIG = 1  # set on the topic itself, not a default
Ended = tuple[ErrorCode, str | None]


class AdminClient:
    def __init__(self, target: Target, *, timeout_seconds: float) -> None:
        self._timeout_ms = int(timeout_seconds * 1000)
        self._brokers = Nodes(target.brokers, timeout_seconds + 1.0)
        self._controllers = Nodes(target.controllers, timeout_seconds + 1.0)
        self._agent = Agent(target, timeout_seconds=timeout_seconds)
        self._of_brokers = target.brokers

    def invoke(self, wish: Wish) -> Done:
        try:
            return self._invoke(wish)
        except NotConnected:
            return Done(kind=Kind.FAIL, error="not connected")
        except ClusterError as error:
            reads = wish.f.startswith("read")
            return Done(kind=Kind.FAIL if reads else Kind.INFO, error=str(error))

    def close(self) -> None:
        self._brokers.close()
        self._controllers.close()
        self._agent.close()

    def _invoke(self, wish: Wish) -> Done:
        match wish:
            case Wish(f="write", value=[topic, value]):
                return self._changed(wish, self._write(topic, value))
            case Wish(f="add", value=str(name)):
                new = NewTopic(name=name, partitions=1, replication_factor=1)
                return self._changed(wish, create_topic(self._brokers, new, self._timeout_ms))
            case Wish(f="remove", value=str(name)):
                return self._changed(wish, self._delete(name))
            case Wish(f="read" | "read-stale", value=[topic, _], extra={"node": node}):
                return self._describe(topic, node)
            case Wish(f="read" | "read-stale", value=None, extra={"node": node}):
                return self._list(node)
            case Wish(f="read", value=[_, _]):
                return self._agent.invoke(replace(wish, extra={"of": "config"}))
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")

    def _changed(self, wish: Wish, ended: Ended) -> Done:
        code, message = ended
        if code is ErrorCode.NONE:
            return Done(kind=Kind.OK, value=wish.value)
        return Done(kind=kind_of(code), error=f"{code.name}: {message or ''}")

    def _write(self, topic: str, value: int) -> Ended:
        config = AlterableConfig(name=CONFIG, config_operation=_SET, value=str(value))
        resource = AlterConfigsResource(
            resource_type=_TOPIC, resource_name=topic, configs=(config,)
        )
        answer = self._controllers.ask(
            IncrementalAlterConfigsRequest(resources=(resource,)),
            IncrementalAlterConfigsResponse,
            node=self._agent.active_controller(),
        )
        return answer.responses[0].error_code, answer.responses[0].error_message

    def _delete(self, name: str) -> Ended:
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=name),), timeout_ms=self._timeout_ms
        )
        answer = self._brokers.ask(request, DeleteTopicsResponse)
        return answer.responses[0].error_code, answer.responses[0].error_message

    def _describe(self, topic: str, node: int) -> Done:
        resource = DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=topic, configuration_keys=(CONFIG,)
        )
        answer = self._brokers.ask(
            DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse, node=node
        )
        result = answer.results[0]
        if result.error_code is not ErrorCode.NONE:
            return Done(kind=Kind.FAIL, error=result.error_code.name)
        own = [each for each in result.configs if each.config_source == _DYNAMIC_TOPIC_CONFIG]
        value = int(own[0].value or "-1") if own else None
        return Done(kind=Kind.OK, value=[topic, value], extra={"node": node})

    def _list(self, node: int) -> Done:
        if node not in self._of_brokers:
            return self._agent.invoke(Wish(f="topics", extra={"node": node, "prefix": PREFIX}))
        answer = self._brokers.ask(
            MetadataRequest(topics=None, allow_auto_topic_creation=False),
            MetadataResponse,
            node=node,
        )
        names = sorted(
            topic.name
            for topic in answer.topics
            if topic.name is not None and topic.name.startswith(PREFIX)
        )
        return Done(kind=Kind.OK, value=names, extra={"node": node})


def create_topic(brokers: Nodes, new: NewTopic, timeout_ms: int) -> Ended:
    topic = CreatableTopic(
        name=new.name,
        num_partitions=new.partitions,
        replication_factor=new.replication_factor,
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in new.configs.items()
        ),
    )
    answer = brokers.ask(
        CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms), CreateTopicsResponse
    )
    return answer.topics[0].error_code, answer.topics[0].error_message
