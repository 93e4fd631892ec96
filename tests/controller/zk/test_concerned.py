"""A request looks at the partitions of the topics that it is about, however many there are."""

from uuid import uuid4

import pytest

from controller.metadata.znode_image import topic_id_of
from controller.zk.concerned import concerned
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignableTopic,
)
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

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
    assert concerned(body, KNOWN, MOVING) == names
