"""Topics and configs: created, deleted, written, listed, described. In Kafka's own protocol.

A topic is created and deleted through any broker. A config is written at the active controller
itself: a broker passes a request on again when it is in doubt, so that a write might happen twice,
with another one between, and no register does that. A read goes to the node that it names.
"""

from dataclasses import replace

from jepsen_like.clients.topic_requests import (
    ALL_TOPICS,
    creation,
    deletion,
    elements_in,
    register_in,
    register_query,
    register_write,
)
from jepsen_like.histories.history import Kind
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.node_requests import Nodes, kind_of
from jepsen_like.real.clients.target import Target
from jepsen_like.real.kafka_client import NotConnected
from jepsen_like.real.layout import ClusterError
from jepsen_like.workloads.topic_set import PREFIX
from jepsen_like.workloads.workload import Done, NewTopic, Wish
from wire.errors import ErrorCode
from wire.messages.configs import DescribeConfigsResponse, IncrementalAlterConfigsResponse
from wire.messages.metadata import MetadataResponse
from wire.messages.topics import CreateTopicsResponse, DeleteTopicsResponse

__all__ = ["AdminClient", "create_topic"]

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
        answer = self._controllers.ask(
            register_write(topic, value),
            IncrementalAlterConfigsResponse,
            node=self._agent.active_controller(),
        )
        return answer.responses[0].error_code, answer.responses[0].error_message

    def _delete(self, name: str) -> Ended:
        answer = self._brokers.ask(deletion(name, self._timeout_ms), DeleteTopicsResponse)
        return answer.responses[0].error_code, answer.responses[0].error_message

    def _describe(self, topic: str, node: int) -> Done:
        answer = self._brokers.ask(register_query(topic), DescribeConfigsResponse, node=node)
        return register_in(answer, topic, node)

    def _list(self, node: int) -> Done:
        if node not in self._of_brokers:
            return self._agent.invoke(Wish(f="topics", extra={"node": node, "prefix": PREFIX}))
        return elements_in(self._brokers.ask(ALL_TOPICS, MetadataResponse, node=node), node)


def create_topic(brokers: Nodes, new: NewTopic, timeout_ms: int) -> Ended:
    answer = brokers.ask(creation(new, timeout_ms), CreateTopicsResponse)
    return answer.topics[0].error_code, answer.topics[0].error_message
