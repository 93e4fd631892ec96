"""CreateTopics, DeleteTopics and CreatePartitions: Kafka's checks in Kafka's order."""

from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pytest

from controller.config import ControllerConfig
from controller.decisions.decision import Decision
from controller.decisions.existing_topics import decide_create_partitions, decide_delete_topics
from controller.decisions.new_topics import decide_create_topics
from controller.metadata.image import MetadataImage, ResourceType
from tests.controller.clusters import (
    CONFIG,
    OTHER_TOPIC,
    TOPIC,
    cluster,
    directory,
    partition,
    registered,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from wire.metadata_records import PartitionRecord, RemoveTopicRecord, TopicRecord
from wire.primitives import ZERO_UUID


def topic(
    name: str = "new", partitions: int = 1, factor: int = 1, **others: object
) -> CreatableTopic:
    made = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    return replace_message(made, **others)


def configs(**values: str | None) -> tuple[CreatableTopicConfig, ...]:
    return tuple(
        CreatableTopicConfig(name=name.replace("_", "."), value=value)
        for name, value in values.items()
    )


def assigned(*replicas: tuple[int, ...], first: int = 0) -> dict[str, Any]:
    return {
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(replicas, first)
        ),
    }


def create(
    image: MetadataImage,
    *topics: CreatableTopic,
    config: ControllerConfig = CONFIG,
    validate_only: bool = False,
) -> Decision[CreateTopicsResponse]:
    request = CreateTopicsRequest(topics=topics, validate_only=validate_only)
    return decide_create_topics(image, request, config, Random(3))


def result(decision: Decision[CreateTopicsResponse]) -> CreatableTopicResult:
    (only,) = decision.response.topics
    return only


BASE = with_topic(
    cluster(1, 2, registered(3, fenced=True), registered(4, in_controlled_shutdown=True)),
    partition(0, (1,)),
    name="a.b",
)
BAD_CONFIG = configs(retention_ms="soon")

# In the order of the checks: each row would also fail every later one that it can.
IN_ORDER = [
    ("internal", topic("__cluster_metadata", 0, 0, configs=BAD_CONFIG), "INVALID_REQUEST"),
    ("empty name", topic("", 0, 0, configs=BAD_CONFIG), "INVALID_TOPIC_EXCEPTION"),
    ("dot", topic(".", 0, 0, configs=BAD_CONFIG), "INVALID_TOPIC_EXCEPTION"),
    ("dots", topic("..", 0, 0, configs=BAD_CONFIG), "INVALID_TOPIC_EXCEPTION"),
    ("long name", topic("x" * 250, 0, 0, configs=BAD_CONFIG), "INVALID_TOPIC_EXCEPTION"),
    ("illegal character", topic("a/b", 0, 0, configs=BAD_CONFIG), "INVALID_TOPIC_EXCEPTION"),
    ("line break", topic("a\n", 0, 0, configs=BAD_CONFIG), "INVALID_TOPIC_EXCEPTION"),
    ("exists", topic("a.b", 0, 0, configs=BAD_CONFIG), "TOPIC_ALREADY_EXISTS"),
    ("collision", topic("a_b", 0, 0, configs=BAD_CONFIG), "INVALID_TOPIC_EXCEPTION"),
    ("null config", topic("n", 0, 0, configs=configs(retention_ms=None)), "INVALID_CONFIG"),
    ("unknown config", topic("n", 0, 0, configs=configs(no_such="1")), "INVALID_CONFIG"),
    ("invalid config", topic("n", 0, 0, configs=BAD_CONFIG), "INVALID_CONFIG"),
    (
        "factor and assignment",
        topic("n", 5, 5, assignments=assigned((9,))["assignments"]),
        "INVALID_REQUEST",
    ),
    (
        "count and assignment",
        topic("n", 5, -1, assignments=assigned((9,))["assignments"]),
        "INVALID_REQUEST",
    ),
    ("empty assignment", topic("n", **assigned(())), "INVALID_REPLICA_ASSIGNMENT"),
    ("broker twice", topic("n", **assigned((1, 1))), "INVALID_REPLICA_ASSIGNMENT"),
    ("unknown broker", topic("n", **assigned((9,))), "INVALID_REPLICA_ASSIGNMENT"),
    ("unequal factors", topic("n", **assigned((1,), (1, 2))), "INVALID_REPLICA_ASSIGNMENT"),
    ("nobody is up", topic("n", **assigned((3, 4))), "INVALID_REPLICA_ASSIGNMENT"),
    ("gap", topic("n", **assigned((1,), first=1)), "INVALID_REPLICA_ASSIGNMENT"),
    ("factor 0", topic("n", 0, 0), "INVALID_REPLICATION_FACTOR"),
    ("factor -2", topic("n", 0, -2), "INVALID_REPLICATION_FACTOR"),
    ("0 partitions", topic("n", 0, 9), "INVALID_PARTITIONS"),
    ("-2 partitions", topic("n", -2, 9), "INVALID_PARTITIONS"),
    ("too many partitions", topic("n", 100_000, 9), "POLICY_VIOLATION"),
    ("factor 4 of 3 that can", topic("n", 1, 4), "INVALID_REPLICATION_FACTOR"),
    ("fine, with a fenced broker", topic("n", 1, 3), "NONE"),
    ("fine, assigned", topic("n", **assigned((1, 3), (2, 1))), "NONE"),
    ("fine, by default", topic("n", -1, -1), "NONE"),
    ("name that is long enough", topic("x" * 249), "NONE"),
]


@pytest.mark.parametrize(
    ("asked", "expected"), [row[1:] for row in IN_ORDER], ids=[row[0] for row in IN_ORDER]
)
def test_first_check_that_fails_names_the_error(asked: CreatableTopic, expected: str) -> None:
    decision = create(BASE, asked)
    assert result(decision).error_code is ErrorCode[expected], result(decision)
    assert bool(decision.changes) == (expected == "NONE")
    assert (result(decision).error_message is None) == (expected == "NONE")


def test_topic_named_twice_is_created_by_neither() -> None:
    decision = create(BASE, topic("n"), topic("n", 3), topic("m"))
    codes = {item.name: item.error_code for item in decision.response.topics}
    assert codes == {"n": ErrorCode.INVALID_REQUEST, "m": ErrorCode.NONE}


def test_partition_assigned_twice() -> None:
    twice = assigned((1,))["assignments"]
    asked = topic("n", -1, -1, assignments=(*twice, *twice))
    assert result(create(BASE, asked)).error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_created_topic_is_recorded_and_described() -> None:
    asked = topic("n", 2, 2, configs=configs(retention_ms="5"))
    decision = create(BASE, asked)
    assert decision.is_atomic
    after = step(BASE, *decision.changes)
    made = after.topic("n")
    answer = result(decision)
    assert made is not None
    assert made.id == answer.topic_id != ZERO_UUID
    assert (answer.num_partitions, answer.replication_factor) == (2, 2)
    assert after.config(ResourceType.TOPIC, "n") == {"retention.ms": "5"}
    for _, state in after.partitions_of(made.id):
        assert (state.leader, state.leader_epoch, state.partition_epoch) == (state.isr[0], 0, 0)
        assert state.isr == state.replicas
        assert state.directories == tuple(map(directory, state.replicas))
    described = {item.name: item for item in answer.configs or ()}
    assert (described["retention.ms"].value, described["retention.ms"].config_source) == ("5", 1)
    assert (described["segment.ms"].value, described["segment.ms"].config_source) == (
        "604800000",
        5,
    )


def test_fenced_replica_is_not_in_sync_at_first() -> None:
    decision = create(BASE, topic("n", **assigned((3, 2, 1))))
    (record,) = (item for item in decision.changes if isinstance(item, PartitionRecord))
    assert (record.replicas, record.isr, record.leader) == ((3, 2, 1), (2, 1), 2)


def test_defaults_come_from_the_config() -> None:
    config = replace(CONFIG, num_partitions=3, default_replication_factor=2)
    answer = result(create(BASE, topic("n", -1, -1), config=config))
    assert (answer.num_partitions, answer.replication_factor) == (3, 2)


def test_validate_only_answers_the_same_and_records_nothing() -> None:
    decision = create(BASE, topic("n", 2, 2), validate_only=True)
    assert decision.changes == ()
    assert result(decision).num_partitions == 2


def test_request_is_bounded_as_a_whole() -> None:
    decision = create(BASE, *(topic(f"n{number}", 3000) for number in range(4)))
    assert decision.changes == ()
    assert {item.error_code for item in decision.response.topics} == {ErrorCode.POLICY_VIOLATION}


# --- delete -------------------------------------------------------------------------------------


def delete(image: MetadataImage, *states: DeleteTopicState) -> Decision[object]:
    request = DeleteTopicsRequest(topics=states, timeout_ms=1000)
    return decide_delete_topics(image, request, CONFIG)  # type: ignore[return-value]  # covariant


def deleted(decision: Decision[object]) -> tuple[DeletableTopicResult, ...]:
    return decision.response.responses  # type: ignore[attr-defined,no-any-return]


BY_NAME = DeleteTopicState(name="a.b", topic_id=ZERO_UUID)
BY_ID = DeleteTopicState(name=None, topic_id=TOPIC)


@pytest.mark.parametrize("state", [BY_NAME, BY_ID], ids=["name", "id"])
def test_topic_is_deleted(state: DeleteTopicState) -> None:
    decision = delete(BASE, state)
    assert decision.changes == (RemoveTopicRecord(topic_id=TOPIC),)
    (answer,) = deleted(decision)
    assert (answer.name, answer.topic_id) == ("a.b", TOPIC)
    assert answer.error_code is ErrorCode.NONE
    assert not step(BASE, *decision.changes).topics.by_id


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (DeleteTopicState(name="a.b", topic_id=TOPIC), "INVALID_REQUEST"),
        (DeleteTopicState(name=None, topic_id=ZERO_UUID), "INVALID_REQUEST"),
        (DeleteTopicState(name="x", topic_id=ZERO_UUID), "UNKNOWN_TOPIC_OR_PARTITION"),
        (DeleteTopicState(name=None, topic_id=OTHER_TOPIC), "UNKNOWN_TOPIC_ID"),
    ],
)
def test_topic_that_is_not_deleted(state: DeleteTopicState, expected: str) -> None:
    decision = delete(BASE, state)
    assert decision.changes == ()
    assert deleted(decision)[0].error_code is ErrorCode[expected]


def test_topic_named_twice_is_not_deleted() -> None:
    decision = delete(BASE, BY_NAME, BY_ID)
    assert decision.changes == ()
    assert [item.error_code for item in deleted(decision)] == [ErrorCode.INVALID_REQUEST] * 2


def test_deletion_can_be_switched_off() -> None:
    config = replace(CONFIG, delete_topic_enable=False)
    request = DeleteTopicsRequest(topics=(BY_NAME,), timeout_ms=1000)
    decision = decide_delete_topics(BASE, request, config)
    assert decision.response.responses[0].error_code is ErrorCode.TOPIC_DELETION_DISABLED
    assert decision.changes == ()


# --- more partitions ----------------------------------------------------------------------------


def extend(
    image: MetadataImage,
    count: int,
    *assignments: tuple[int, ...],
    name: str = "t",
    is_assigned: bool = False,
    validate_only: bool = False,
) -> tuple[CreatePartitionsTopicResult, tuple[object, ...]]:
    given = tuple(CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments)
    wanted = CreatePartitionsTopic(
        name=name, count=count, assignments=given if given or is_assigned else None
    )
    request = CreatePartitionsRequest(
        topics=(wanted,), timeout_ms=1000, validate_only=validate_only
    )
    decision = decide_create_partitions(image, request, Random(1))
    return decision.response.results[0], decision.changes


PAIR = with_topic(
    cluster(1, 2, registered(3, fenced=True)), partition(0, (1, 2)), partition(1, (2, 1))
)


@pytest.mark.parametrize(
    ("count", "assignments", "expected"),
    [
        (2, ((1, 9),), "INVALID_PARTITIONS"),
        (1, ((1, 9),), "INVALID_PARTITIONS"),
        (-1, (), "INVALID_PARTITIONS"),
        (4, ((1, 9),), "INVALID_REPLICA_ASSIGNMENT"),
        (3, ((1, 9),), "INVALID_REPLICA_ASSIGNMENT"),
        (3, ((1,),), "INVALID_REPLICA_ASSIGNMENT"),
        (3, ((3, 3),), "INVALID_REPLICA_ASSIGNMENT"),
        (20_000, (), "POLICY_VIOLATION"),
        (3, ((1, 3),), "NONE"),
        (5, (), "NONE"),
    ],
)
def test_more_partitions_are_checked_in_order(
    count: int, assignments: tuple[tuple[int, ...], ...], expected: str
) -> None:
    answer, changes = extend(PAIR, count, *assignments)
    assert answer.error_code is ErrorCode[expected]
    assert bool(changes) == (expected == "NONE")


def test_new_partitions_follow_the_old_ones() -> None:
    _, changes = extend(PAIR, 4)
    assert [c.partition_id for c in changes if isinstance(c, PartitionRecord)] == [2, 3]
    assert all(len(c.replicas) == 2 for c in changes if isinstance(c, PartitionRecord))


def test_unknown_topic_gets_no_partitions() -> None:
    answer, _ = extend(PAIR, 4, name="x")
    assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_empty_assignment_is_too_short() -> None:
    answer, _ = extend(PAIR, 4, is_assigned=True)
    assert answer.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_validate_only_adds_no_partitions() -> None:
    answer, changes = extend(PAIR, 4, validate_only=True)
    assert (answer.error_code, changes) == (ErrorCode.NONE, ())


def test_ids_of_topics_differ() -> None:
    decision = create(BASE, topic("n"), topic("m"))
    ids = {c.topic_id for c in decision.changes if isinstance(c, TopicRecord)}
    assert len(ids) == 2
    assert UUID(int=0) not in ids
