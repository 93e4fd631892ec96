"""A request looks at the partitions of the topics that it is about, however many there are."""

from uuid import uuid4

import pytest

from controller.zk.admin_requests import topics_of
from controller.zk.zk_metadata import topic_id_of
from wire.messages.configs import IncrementalAlterConfigsRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignableTopic,
    TopicPartitions,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

KNOWN = ("clicks", "moved", "orders")
MOVING = {"moved"}
NAMED = (TopicPartitions(topic="orders", partitions=(0,)),)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (CreateTopicsRequest(topics=(CreatableTopic(name="new"),)), []),
        (CreateTopicsRequest(topics=(CreatableTopic(name="orders"),)), ["orders"]),
        (
            CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="orders", count=9),)),
            ["orders"],
        ),
        (
            DeleteTopicsRequest(
                topics=(
                    DeleteTopicState(topic_id=topic_id_of("clicks")),
                    DeleteTopicState(topic_id=uuid4()),
                    DeleteTopicState(name="orders"),
                )
            ),
            ["clicks", "orders"],
        ),
        (
            AlterPartitionReassignmentsRequest(
                topics=(ReassignableTopic(name="orders", partitions=()),)
            ),
            ["moved", "orders"],
        ),
        (ListPartitionReassignmentsRequest(), ["moved"]),
        (ElectLeadersRequest(topic_partitions=NAMED), ["orders"]),
        (ElectLeadersRequest(), [*KNOWN]),
        (IncrementalAlterConfigsRequest(resources=()), []),
    ],
)
def test_names_the_topics_that_are_there_and_meant(body: object, names: list[str]) -> None:
    assert topics_of(body, KNOWN, MOVING) == names
