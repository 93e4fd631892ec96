"""`quorumlab topics`: create, list, describe, delete and alter, with Kafka's flags and layout."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import SimpleNamespace
from typing import Any

from controller.metadata.config_keys import WITHOUT_EFFECT
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import ClusterError
from quorumlab.arguments import UsageError
from quorumlab.output import answer, complain, topic_lines
from quorumlab.partition_states import state_lines, with_states
from quorumlab.verbs.common import pairs
from quorumlab.verbs.connecting import check, connected
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
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
    TopicRequest,
)
from wire.messages.partitions import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from wire.primitives import uuid_text

__all__ = ["alter", "create", "delete", "describe", "list_topics"]

TOPIC_RESOURCE = 2
EligibleReplicas = Mapping[tuple[str, int], Mapping[str, Sequence[int]]]
SET, DELETE = 0, 1
DYNAMIC_TOPIC_CONFIG = 1
TIMEOUT_MS = 30_000
_FEATURE = "eligible.leader.replicas.version"


def _name_topic(args: SimpleNamespace, *, is_needed: bool = True) -> None:
    """The name stands alone, or behind `--topic`, as Kafka's tools have it."""
    if args.topic and args.topic_name:
        raise UsageError(f"--topic {args.topic} and {args.topic_name}: name one topic")
    args.topic = args.topic or args.topic_name
    if is_needed and not args.topic:
        raise UsageError("which topic? Name it")


def create(args: SimpleNamespace) -> int:
    _name_topic(args)
    configs = pairs("--config", args.config)
    topic = CreatableTopic(
        name=args.topic,
        num_partitions=-1 if args.partitions is None else args.partitions,
        replication_factor=-1 if args.replication_factor is None else args.replication_factor,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
    with connected(args) as client:
        (result,) = client.ask(request, CreateTopicsResponse).topics
    if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and args.if_not_exists:
        return 0
    check(result.error_code, result.error_message)
    _warn(key for key, _ in configs)
    _tell(args, f"Created topic {args.topic}.", topic_id=uuid_text(result.topic_id))
    return 0


def _tell(args: SimpleNamespace, sentence: str, **more: str) -> None:
    answer(args.format, {"name": args.topic, **more}, [sentence])


def _warn(keys: Iterable[str]) -> None:
    """A setting that is kept and not obeyed looks as if it were."""
    ignored = sorted(WITHOUT_EFFECT.intersection(keys))
    if ignored:
        complain(f"warning: these settings are kept, without an effect: {', '.join(ignored)}")


def _metadata(client: Client, names: list[str] | None) -> MetadataResponse:
    topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return client.ask(request, MetadataResponse)


def _shown(answer: MetadataResponse, args: SimpleNamespace) -> list[MetadataResponseTopic]:
    """Sorts by name; topics that brokers keep for themselves are shown only if asked for."""
    shown = (topic for topic in answer.topics if args.include_internal or not topic.is_internal)
    return sorted(shown, key=lambda topic: topic.name or "")


def list_topics(args: SimpleNamespace) -> int:
    with connected(args) as client:
        names = [topic.name or "" for topic in _shown(_metadata(client, None), args)]
    answer(args.format, names, names)
    return 0


def describe(args: SimpleNamespace) -> int:
    _name_topic(args, is_needed=False)
    names = [args.topic] if args.topic else None
    with connected(args) as client:
        told = _metadata(client, names)
        for topic in told.topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise ClusterError(f"Topic '{topic.name}' does not exist as expected")
            check(topic.error_code, topic.name)
        topics = list(told.topics) if args.topic else _shown(told, args)
        configs = _configs(client, [topic.name or "" for topic in topics])
        eligible = eligible_replicas(client, configs)
        adding = _adding_replicas(client) if args.states else {}
    described = [
        _topic(topic, configs.get(topic.name or "", {}), eligible, args) for topic in topics
    ]
    if args.under_replicated_partitions or args.unavailable_partitions:
        described = [topic for topic in described if topic["partitions"]]
    if args.states:
        described = [with_states(topic, adding) for topic in described]
    lines_of = state_lines if args.states else topic_lines
    answer(args.format, described, chain.from_iterable(map(lines_of, described)))
    return 0


def _adding_replicas(client: Client) -> dict[tuple[str, int], tuple[int, ...]]:
    """Asks which reassignments are going on, by topic and partition."""
    answer = client.ask(ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, partition.partition_index): partition.adding_replicas
        for topic in answer.topics
        for partition in topic.partitions
    }


def _configs(client: Client, names: list[str]) -> dict[str, dict[str, str | None]]:
    """Asks for what was set for each topic itself, without defaults."""
    resources = (
        DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name) for name in names
    )
    request = DescribeConfigsRequest(resources=tuple(resources))
    answer = client.ask(request, DescribeConfigsResponse)
    return {
        result.resource_name: {
            config.name: config.value
            for config in result.configs
            if config.config_source == DYNAMIC_TOPIC_CONFIG
        }
        for result in answer.results
    }


def _topic(
    topic: MetadataResponseTopic,
    configs: dict[str, str | None],
    eligible: EligibleReplicas,
    args: SimpleNamespace,
) -> dict[str, Any]:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "partition_count": len(partitions),
        "replication_factor": len(partitions[0].replica_nodes) if partitions else 0,
        "configs": configs,
        "partitions": [
            {
                "partition": partition.partition_index,
                "leader": partition.leader_id if partition.leader_id >= 0 else None,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replica_nodes),
                "isr": list(partition.isr_nodes),
                "offline_replicas": list(partition.offline_replicas),
                **eligible.get((topic.name or "", partition.partition_index), {}),
            }
            for partition in partitions
            if _is_wanted(partition, args)
        ],
    }


def _is_wanted(partition: MetadataResponsePartition, args: SimpleNamespace) -> bool:
    if args.unavailable_partitions:
        return partition.leader_id < 0
    if args.under_replicated_partitions:
        return len(partition.isr_nodes) < len(partition.replica_nodes)
    return True


def delete(args: SimpleNamespace) -> int:
    _name_topic(args)
    topic = DeleteTopicState(name=args.topic)
    request = DeleteTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
    with connected(args) as client:
        (result,) = client.ask(request, DeleteTopicsResponse).responses
    unknown = result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if unknown and args.if_exists:
        return 0
    if unknown:
        raise ClusterError(f"Topic '{args.topic}' does not exist as expected")
    check(result.error_code, result.error_message)
    _tell(args, f"Deleted topic {args.topic}.")
    return 0


def alter(args: SimpleNamespace) -> int:
    _name_topic(args)
    settings = pairs("--config", args.config)
    changes: list[tuple[str, int, str | None]] = [(key, SET, value) for key, value in settings]
    changes += [(key, DELETE, None) for key in args.delete_config]
    if args.partitions is None and not changes:
        raise UsageError("topics alter: give --partitions, --config or --delete-config")
    with connected(args) as client:
        if args.partitions is not None:
            _add_partitions(client, args.topic, args.partitions)
        if changes:
            _alter_configs(client, args.topic, changes)
            _warn(key for key, _ in settings)
    _tell(args, f"Altered topic {args.topic}.")
    return 0


def _add_partitions(client: Client, name: str, count: int) -> None:
    topic = CreatePartitionsTopic(name=name, count=count)
    request = CreatePartitionsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
    (result,) = client.ask(request, CreatePartitionsResponse).results
    check(result.error_code, result.error_message)


def _alter_configs(client: Client, name: str, changes: list[tuple[str, int, str | None]]) -> None:
    configs = tuple(
        AlterableConfig(name=key, config_operation=kind, value=value)
        for key, kind, value in changes
    )
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    answer = client.ask(request, IncrementalAlterConfigsResponse)
    check(answer.responses[0].error_code, answer.responses[0].error_message)


# --- eligible leader replicas ----------------------------------------------------------------


def eligible_replicas(client: Client, topics: Iterable[str]) -> EligibleReplicas:
    """`elr` and `last_known_elr` by topic and partition; nothing where the feature is off."""
    if not client.finalized.get(_FEATURE):
        return {}
    found: dict[tuple[str, int], Mapping[str, Sequence[int]]] = {}
    asked = tuple(TopicRequest(name=name) for name in sorted(topics))
    cursor: Cursor | None = None
    while asked:
        answer = client.ask(
            DescribeTopicPartitionsRequest(topics=asked, cursor=cursor),
            DescribeTopicPartitionsResponse,
        )
        for topic in answer.topics:
            if topic.error_code == ErrorCode.NONE:  # else it was deleted meanwhile
                found |= {
                    (topic.name or "", partition.partition_index): {
                        "elr": list(partition.eligible_leader_replicas or ()),
                        "last_known_elr": list(partition.last_known_elr or ()),
                    }
                    for partition in topic.partitions
                }
        following = answer.next_cursor
        if following is None:
            break
        cursor = Cursor(topic_name=following.topic_name, partition_index=following.partition_index)
        asked = tuple(each for each in asked if each.name >= following.topic_name)
    return found
