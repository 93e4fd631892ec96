"""Our rules against a real Kafka: its error codes, and its metadata logs."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from controller.decisions.brokers import decide_unregister
from controller.decisions.config_changes import decide_incremental_alter_configs
from controller.decisions.elections import decide_elect_leaders
from controller.decisions.existing_topics import decide_create_partitions, decide_delete_topics
from controller.decisions.new_topics import decide_create_topics
from controller.decisions.reassignments import decide_alter_reassignments
from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import decode_changes
from controller.metadata.describe import describe
from controller.metadata.image import MetadataImage
from tests.controller.clusters import CONFIG, OTHER_TOPIC, cluster, partition, with_topic
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from wire.messages.registration import UnregisterBrokerRequest
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = json.loads((GOLDEN / "admin_errors.json").read_text())["cases"]

# Where we differ on purpose. Kafka's broker checks dynamic configs and its controller does not,
# so the same request has two answers there; we check once, on the controller.
OURS: dict[tuple[str, str | None, int | None], int] = {
    # An unknown operation makes Kafka's controller resign (-1); it is the client's mistake.
    ("IncrementalAlterConfigs", "exists", 9): 42,
}

# One broker, and the topics that the cases speak of.
BASE = with_topic(cluster(1), partition(0, (1,)), name="exists")
BASE = with_topic(BASE, partition(0, (1,)), name="a.b", topic_id=OTHER_TOPIC)


def create_topics(case: dict[str, Any]) -> Any:
    asked = case["request"]
    topic = CreatableTopic(
        name=asked["name"],
        num_partitions=asked["num_partitions"],
        replication_factor=asked["replication_factor"],
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=int(index), broker_ids=tuple(brokers))
            for index, brokers in asked.get("assignments", {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value)
            for name, value in asked.get("configs", {}).items()
        ),
    )
    times = 2 if asked.get("same_topic_twice_in_the_request") else 1
    request = CreateTopicsRequest(topics=(topic,) * times)
    return decide_create_topics(BASE, request, CONFIG, Random(1)).response.topics[0]


def delete_topics(case: dict[str, Any]) -> Any:
    asked = case["request"]
    state = DeleteTopicState(name=asked["name"], topic_id=UUID(asked["topic_id"]))
    request = DeleteTopicsRequest(topics=(state,), timeout_ms=1000)
    return decide_delete_topics(BASE, request, CONFIG).response.responses[0]


def create_partitions(case: dict[str, Any]) -> Any:
    asked = case["request"]
    given = asked.get("assignments")
    topic = CreatePartitionsTopic(
        name=asked["name"],
        count=asked["count"],
        assignments=None
        if given is None
        else tuple(CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in given),
    )
    request = CreatePartitionsRequest(topics=(topic,), timeout_ms=1000, validate_only=False)
    return decide_create_partitions(BASE, request, Random(1)).response.results[0]


def incremental_alter_configs(case: dict[str, Any]) -> Any:
    asked = case["request"]
    resource = AlterConfigsResource(
        resource_type=asked["resource_type"],
        resource_name=asked["resource_name"],
        configs=tuple(
            AlterableConfig(
                name=change["name"], config_operation=change["op"], value=change["value"]
            )
            for change in asked["changes"]
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return decide_incremental_alter_configs(BASE, request, CONFIG).response.responses[0]


def unregister_broker(case: dict[str, Any]) -> Any:
    request = UnregisterBrokerRequest(broker_id=case["request"]["broker_id"])
    return decide_unregister(BASE, request, CONFIG).response


def reassign(case: dict[str, Any]) -> Any:
    asked = case["request"]
    wanted = asked["replicas"]
    partition = ReassignablePartition(
        partition_index=asked["partition"], replicas=None if wanted is None else tuple(wanted)
    )
    topic = ReassignableTopic(name=asked["name"], partitions=(partition,))
    request = AlterPartitionReassignmentsRequest(topics=(topic,))
    response = decide_alter_reassignments(BASE, request, CONFIG).response
    return response.responses[0].partitions[0]


def elect(case: dict[str, Any]) -> Any:
    asked = case["request"]
    topic = TopicPartitions(topic=asked["topic"], partitions=(asked["partition"],))
    request = ElectLeadersRequest(election_type=asked["election_type"], topic_partitions=(topic,))
    response = decide_elect_leaders(BASE, request, CONFIG).response
    return response.replica_election_results[0].partition_result[0]


DECIDE = {
    "CreateTopics": create_topics,
    "DeleteTopics": delete_topics,
    "CreatePartitions": create_partitions,
    "IncrementalAlterConfigs": incremental_alter_configs,
    "UnregisterBroker": unregister_broker,
    "AlterPartitionReassignments": reassign,
    "ElectLeaders": elect,
}
SAYS_THE_SAME = ("AlterPartitionReassignments", "ElectLeaders")  # Kafka's tools print it


def grouped() -> Iterator[Any]:
    """Each request once, with the codes that it got on Kafka's two listeners."""
    codes: dict[str, tuple[dict[str, Any], set[int]]] = {}
    for case in CASES:
        if case["api"] in DECIDE:
            key = json.dumps([case["api"], case["request"]])
            _, found = codes.setdefault(key, (case, set()))
            found.add(case["results"][-1]["error_code"])
    for number, (case, found) in enumerate(codes.values()):
        # The first two create what the others meet.
        if number >= 2:
            asked = case["request"]
            name = asked.get("name") or asked.get("resource_name") or asked.get("topic") or "none"
            yield pytest.param(case, found, id=f"{case['api']}-{number}-{name[:20]}")


@pytest.mark.parametrize(("case", "codes"), list(grouped()))
def test_error_code_is_kafkas(case: dict[str, Any], codes: set[int]) -> None:
    asked = case["request"]
    operation = asked["changes"][0]["op"] if "changes" in asked else None
    ours = OURS.get((case["api"], asked.get("resource_name"), operation))
    answer = DECIDE[case["api"]](case)
    assert answer.error_code in ({ours} if ours is not None else codes), answer.error_message
    if case["api"] in SAYS_THE_SAME:
        assert answer.error_message == case["results"][-1]["error_message"]


def logs() -> list[Path]:
    return sorted(GOLDEN.glob("*/node-*/__cluster_metadata-0")) + sorted(
        GOLDEN.glob("standalone/*/__cluster_metadata-0")
    )


def applied(directory: Path) -> MetadataImage:
    image = MetadataImage()
    for segment in sorted(directory.glob("*.log")):
        for batch in decode_changes(segment.read_bytes()):
            image, _ = apply_with_delta(image, batch)
    return image


@pytest.mark.parametrize("directory", logs(), ids=lambda path: "/".join(path.parts[-3:-1]))
def test_metadata_log_of_a_real_kafka_can_be_applied(directory: Path) -> None:
    image = applied(directory)
    assert image.transaction is None
    if any(segment.stat().st_size for segment in directory.glob("*.log")):
        assert image.at.offset > 0
    for topic in image.topics.by_id.values():
        for _, state in image.partitions_of(topic.id):
            assert set(state.isr) <= set(state.replicas)
            assert state.leader == -1 or state.leader in state.isr


def test_nodes_of_a_real_kafka_come_to_one_image() -> None:
    images = [applied(path) for path in logs() if path.parts[-3] == "kraft3"]
    assert len(images) == 3
    image = images[0]
    assert all(describe(each) == describe(image) for each in images)
    assert sorted(image.topics.by_name) == ["safe", "six"]
    assert {name: topic.partition_count for name, topic in image.topics.by_name.items()} == {
        "safe": 3,
        "six": 7,
    }
    assert image.config(2, "safe")["min.insync.replicas"] == "2"
    assert sorted(image.brokers) == sorted(image.controllers) == [1, 2, 3]
