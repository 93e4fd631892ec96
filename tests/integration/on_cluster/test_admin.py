"""Topic administration through the clients' own AdminClients, and the errors that they get."""

import secrets
import time
from functools import partial

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    PartitionMetadata,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.integration.waiting import wait


@pytest.fixture
def admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


def fresh() -> str:
    return f"admin-{secrets.token_hex(4)}"


def refusal(future: object) -> str:
    with pytest.raises(KafkaException) as caught:
        future.result(15)  # type: ignore[attr-defined]  # confluent_kafka's future has no type
    return str(caught.value.args[0].name())


def test_create_list_delete(admin: AdminClient) -> None:
    name = fresh()
    admin.create_topics([NewTopic(name, 4, 3)])[name].result(15)
    wait(lambda: name in admin.list_topics(timeout=10).topics, "the topic, on the broker asked")
    topic = admin.list_topics(timeout=10).topics[name]
    assert sorted(topic.partitions) == [0, 1, 2, 3]
    assert all(len(partition.replicas) == 3 for partition in topic.partitions.values())
    admin.delete_topics([name])[name].result(15)
    wait(lambda: name not in admin.list_topics(timeout=10).topics, "no topic, on the broker asked")


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "error"),
    [
        ("a b", 1, 1, "TOPIC_EXCEPTION"),
        ("x" * 250, 1, 1, "TOPIC_EXCEPTION"),
        ("too-many-replicas", 1, 9, "INVALID_REPLICATION_FACTOR"),
        ("no-partitions", 0, 1, "INVALID_PARTITIONS"),
    ],
)
def test_create_refuses_with_kafkas_code(
    admin: AdminClient, name: str, partitions: int, replicas: int, error: str
) -> None:
    assert error in refusal(admin.create_topics([NewTopic(name, partitions, replicas)])[name])


def test_create_refuses_what_exists(admin: AdminClient, topic: str) -> None:
    assert refusal(admin.create_topics([NewTopic(topic, 1, 1)])[topic]) == "TOPIC_ALREADY_EXISTS"


def test_partitions_can_be_added(admin: AdminClient, topic: str) -> None:
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(15)
    wait(
        lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 5,
        "five partitions",
    )


def test_config_can_be_set_read_and_deleted(admin: AdminClient, topic: str) -> None:
    def value() -> str | None:
        (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        entry = future.result(15)["retention.ms"]
        return str(entry.value)

    def reads(expected: str) -> bool:
        return value() == expected

    assert value() == "604800000"
    for operation, expected in (
        (AlterConfigOpType.SET, "12345"),
        (AlterConfigOpType.DELETE, "604800000"),
    ):
        entry = ConfigEntry("retention.ms", "12345", incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        (future,) = admin.incremental_alter_configs([resource]).values()
        future.result(15)
        wait(partial(reads, expected), f"retention.ms={expected}")


def test_kafka_python_creates_and_deletes(servers: str) -> None:
    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewTopic as OtherTopic

    name = fresh()
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        admin.create_topics([OtherTopic(name=name, num_partitions=2, replication_factor=3)])
        wait(lambda: name in admin.list_topics(), "the topic, on the broker asked")
        admin.delete_topics([name])
        wait(lambda: name not in admin.list_topics(), "no topic, on the broker asked")
    finally:
        admin.close()


def test_replicas_are_put_in_another_order_and_the_first_elected(
    admin: AdminClient, servers: str, topic: str
) -> None:
    """Reassigned by one client, elected by another: at once, since no replica moves."""
    from kafka import TopicPartition as OtherPartition
    from kafka.admin import KafkaAdminClient

    def described() -> PartitionMetadata:
        return admin.list_topics(topic, timeout=10).topics[topic].partitions[0]

    before = described()
    order = sorted(before.replicas, key=lambda broker: broker == before.leader)
    other = KafkaAdminClient(bootstrap_servers=servers)
    try:
        partition = OtherPartition(topic, 0)
        assert other.alter_partition_reassignments({partition: order}) == {partition: None}
        assert other.list_partition_reassignments([partition]) == {}
    finally:
        other.close()
    wanted = TopicPartition(topic, 0)
    elected = admin.elect_leaders(ElectionType.PREFERRED, [wanted]).result(15)
    assert elected == {wanted: None}
    again = admin.elect_leaders(ElectionType.PREFERRED, [wanted]).result(15)[wanted]
    assert again.name() == "ELECTION_NOT_NEEDED"
    # A broker that was not asked may hear of it a little later.
    deadline = time.monotonic() + 10
    while (described().replicas, described().leader) != (order, order[0]):
        assert time.monotonic() < deadline, (described(), order)


def test_describe_cluster_names_every_broker(admin: AdminClient) -> None:
    described = admin.describe_cluster().result(15)
    assert sorted(node.id for node in described.nodes) == [1, 2, 3]
