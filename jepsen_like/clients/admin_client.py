"""Clients of what the quorum keeps: topics, configs, the plain register.

A topic is created and deleted through any broker. A config is written at the active controller
itself, once: a broker passes a request on again when it is in doubt, so that a write might happen
twice, with another one between, and no register does that. A read goes to the node that it names,
or to the active controller, which confirms first that it is that.

The requests about topics and configs are built here, and their answers read, for the clients on
sockets as well (`jepsen_like.real.clients.kafka_admin`); who sends a request, and what a missing
answer means, is decided by each client.
"""

from collections.abc import Generator, Sequence
from random import Random
from typing import Any

from controller.committed_reads import ReadCommittedRequest, ReadCommittedResponse
from jepsen_like.clients.steps import Ask, Step, Steps
from jepsen_like.histories.history import Kind, place_of
from jepsen_like.workloads.metadata_workloads import CONFIG, PREFIX
from jepsen_like.workloads.workload import Done, NewTopic, Wish
from quorum.node.register import RegisterRequest, RegisterResponse
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

__all__ = [
    "ALL_TOPICS",
    "AdminClient",
    "RegisterClient",
    "create_topic",
    "creation",
    "deletion",
    "elements_in",
    "kind_of",
    "reassignment",
    "register_in",
    "register_query",
    "register_write",
    "setting",
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


def setting(topic: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=name, config_operation=_SET, value=value)
    resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


def register_write(topic: str, value: int) -> IncrementalAlterConfigsRequest:
    return setting(topic, CONFIG, str(value))


def reassignment(
    key: str, replicas: Sequence[int] | None, timeout_ms: int = 60_000
) -> AlterPartitionReassignmentsRequest:
    """The request to move one partition; without replicas, to cancel what is under way."""
    topic, index = place_of(key)
    wanted = None if replicas is None else tuple(replicas)
    partition = ReassignablePartition(partition_index=index, replicas=wanted)
    topics = (ReassignableTopic(name=topic, partitions=(partition,)),)
    return AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)


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


_CONTROLLERS = 2  # the type of endpoints
# Said before anything is decided. Whatever else a cluster says may come after the deed: the node
# that decided can lose its leadership before it knows what becomes of that (NOT_CONTROLLER), and a
# broker that passes a request on may have passed it on twice (TOPIC_ALREADY_EXISTS).
_DEFINITE = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.INVALID_CONFIG,
    ErrorCode.INVALID_PARTITIONS,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
)


def kind_of(code: ErrorCode) -> Kind:
    """How a change ended that was answered with this code."""
    if code is ErrorCode.NONE:
        return Kind.OK
    return Kind.FAIL if code in _DEFINITE else Kind.INFO


class AdminClient:
    def __init__(
        self,
        brokers: Sequence[int],
        controllers: Sequence[int],
        *,
        random: Random,
        timeout_ms: int,
    ) -> None:
        self._brokers = tuple(brokers)
        self._controllers = tuple(controllers)
        self._random = random
        self._timeout_ms = timeout_ms

    def perform(self, wish: Wish) -> Steps[Done]:
        match wish:
            case Wish(f="write", value=[topic, value]):
                done = yield from self._write(topic, value)
            case Wish(f="add", value=str(name)):
                new = NewTopic(name=name, partitions=1, replication_factor=1)
                error = yield from create_topic(new, self._any_broker(), self._timeout_ms)
                done = _changed(error)
            case Wish(f="remove", value=str(name)):
                done = yield from self._delete(name)
            case Wish(f="read" | "read-stale", value=[topic, _], extra={"node": node}):
                done = yield from self._describe(topic, node)
            case Wish(f="read" | "read-stale", value=None, extra={"node": node}):
                done = yield from self._list(node)
            case Wish(f="read", value=[topic, _]):
                done = yield from self._read_committed(topic)
            case _:
                done = Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")
        if done.kind is Kind.OK and done.value is None:
            return Done(kind=Kind.OK, value=wish.value)
        return done

    def _any_broker(self) -> int:
        return self._random.choice(self._brokers)

    def _active_controller(self) -> Steps[int | None]:
        """As some controller knows it."""
        asked = self._random.choice(self._controllers)
        told = yield Ask(
            node=asked,
            body=DescribeClusterRequest(endpoint_type=_CONTROLLERS),
            timeout_ms=self._timeout_ms // 4,
        )
        is_known = isinstance(told, DescribeClusterResponse) and told.controller_id >= 0
        return told.controller_id if is_known else None  # type: ignore[attr-defined]

    def _write(self, topic: str, value: int) -> Steps[Done]:
        node = yield from self._active_controller()
        if node is None:
            return Done(kind=Kind.FAIL, error="no controller is known to be active")
        body = register_write(topic, value)
        told = yield Ask(node=node, body=body, timeout_ms=self._timeout_ms)
        if not isinstance(told, IncrementalAlterConfigsResponse):
            return _changed(None)
        return _changed(told.responses[0].error_code)

    def _delete(self, name: str) -> Steps[Done]:
        body = deletion(name, self._timeout_ms)
        told = yield Ask(node=self._any_broker(), body=body, timeout_ms=self._timeout_ms)
        if not isinstance(told, DeleteTopicsResponse):
            return _changed(None)
        return _changed(told.responses[0].error_code)

    # --- reads ------------------------------------------------------------------------------

    def _read_committed(self, topic: str) -> Steps[Done]:
        node = yield from self._active_controller()
        if node is None:
            return Done(kind=Kind.FAIL, error="no controller is known to be active")
        body = ReadCommittedRequest(topic=topic, config=CONFIG, timeout_ms=self._timeout_ms)
        told = yield Ask(node=node, body=body, timeout_ms=self._timeout_ms)
        if not isinstance(told, ReadCommittedResponse):
            return Done(kind=Kind.FAIL, error="no answer")
        if told.error is not ErrorCode.NONE:
            return Done(kind=Kind.FAIL, error=told.error.name)
        value = None if told.value is None else int(told.value)
        extra = {"node": node, "offset": told.offset, "epoch": told.epoch}
        return Done(kind=Kind.OK, value=[topic, value], extra=extra)

    def _describe(self, topic: str, node: int) -> Steps[Done]:
        told = yield Ask(node=node, body=register_query(topic), timeout_ms=self._timeout_ms)
        if not isinstance(told, DescribeConfigsResponse):
            return Done(kind=Kind.FAIL, error="no answer")
        return register_in(told, topic, node)

    def _list(self, node: int) -> Steps[Done]:
        told = yield Ask(node=node, body=ALL_TOPICS, timeout_ms=self._timeout_ms)
        if not isinstance(told, MetadataResponse):
            return Done(kind=Kind.FAIL, error="no answer")
        return elements_in(told, node)


def _changed(error: ErrorCode | None) -> Done:
    """How a change has ended that was answered so; None: it was not answered."""
    if error is None:
        return Done(kind=Kind.INFO, error="no answer")
    if error is ErrorCode.NONE:
        return Done(kind=Kind.OK)
    return Done(kind=kind_of(error), error=ErrorCode(error).name)


def create_topic(
    new: NewTopic, node: int, timeout_ms: int
) -> Generator[Step, Any, ErrorCode | None]:
    """None: no answer."""
    told = yield Ask(node=node, body=creation(new, timeout_ms), timeout_ms=timeout_ms)
    return told.topics[0].error_code if isinstance(told, CreateTopicsResponse) else None


class RegisterClient:
    def __init__(self, voters: Sequence[int], *, random: Random, timeout_ms: int) -> None:
        self._voters = tuple(voters)
        self._random = random
        self._timeout_ms = timeout_ms
        self._leader: int | None = None  # as it was last told

    def perform(self, wish: Wish) -> Steps[Done]:
        match wish:
            case Wish(f="read" | "write" as f, value=[key, value]):
                asked = RegisterRequest(f=f, key=key, value=value, timeout_ms=self._timeout_ms)
            case Wish(f="cas", value=[key, [old, new]]):
                asked = RegisterRequest(
                    f="cas", key=key, old=old, value=new, timeout_ms=self._timeout_ms
                )
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")
        node = self._random.choice(self._voters) if self._leader is None else self._leader
        told: Any = yield Ask(node=node, body=asked, timeout_ms=self._timeout_ms)
        if not isinstance(told, RegisterResponse):
            self._leader = None
            kind = Kind.FAIL if asked.f == "read" else Kind.INFO
            return Done(kind=kind, error="no answer")
        if told.outcome != "ok":
            self._leader = told.leader_id if not told.has_seen else self._leader
            extra = {"seen": told.seen} if told.has_seen else {}
            return Done(kind=Kind(told.outcome), error=told.error, extra=extra)
        self._leader = node
        value = [asked.key, told.value] if asked.f == "read" else wish.value
        return Done(kind=Kind.OK, value=value, extra={"node": node})
