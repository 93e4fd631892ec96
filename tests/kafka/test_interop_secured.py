"""Encrypted clusters of our nodes and Apache Kafka's, of which either has the controller.

Between nodes there is TLS, and both sides show certificates; clients show a password over TLS, and
both sides ask the authorizer. The layout and the secrets are those of `quorumlab up`.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from jepsen_like.real.kafka_client import Client, NotAuthenticated
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.client_properties import client_settings_of
from quorumlab.config import parse_properties
from quorumlab.verbs.secured_cluster import secure
from tests.kafka.interop import RELEASE, KafkaBesideUs, log_bytes, needs_kafka, wait
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

pytestmark = needs_kafka

TOPIC, ALICE, SECRET = "orders", "alice", "alice's secret"
BROKERS = (1, 2)  # the first one is the controller, too
SETTINGS = {
    "broker.session.timeout.ms": "4000",  # two cores may have a Java machine to serve
    "offsets.topic.num.partitions": "1",
}
SECONDS = 20


class SecuredBesideUs(KafkaBesideUs):
    """The broker of Kafka's runs from the server.properties that `up --security` writes."""

    @cached_property
    def administrator(self) -> dict[str, Any]:
        """What librdkafka is told."""
        text = self.cluster.layout.security_files.librdkafka.read_text()
        return {**parse_properties(text), "log_level": 0}

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self.administrator)

    @property
    def alice(self) -> dict[str, Any]:
        return {**self.administrator, "sasl.username": ALICE, "sasl.password": SECRET}

    def prepare(self) -> None:
        """Format what is Kafka's, the administrator's password with it, by Kafka's tool."""
        user = f"[name=admin,password={self.administrator['sasl.password']}]"
        for node_id in self.kafka:
            shutil.rmtree(self.cluster.layout.node(node_id).data, ignore_errors=True)
        self.format(*(("--add-scram", f"SCRAM-SHA-512={user}") if 1 in self.kafka else ()))

    def asking(self, broker: int, who: Mapping[str, Any]) -> Client:
        """A client of this broker alone."""
        node = self.cluster.layout.node(broker)
        return Client([(node.host, node.port)], settings=client_settings_of(kafkas_words(who)))


def kafkas_words(who: Mapping[str, Any]) -> dict[str, str]:
    """What Kafka's tools are told."""
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    name, password = who["sasl.username"], who["sasl.password"]
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": who["ssl.ca.location"],
        "sasl.mechanism": who["sasl.mechanism"],
        "sasl.jaas.config": f'{login} username="{name}" password="{password}";',
    }


@contextmanager
def running(path: Path, kafkas: int) -> Iterator[SecuredBesideUs]:
    cluster = LocalCluster.create(
        path / "cluster",
        controllers=1,
        brokers=2,
        combined=True,
        security="sasl_ssl",
        settings=SETTINGS,
        release_version=RELEASE,
    )
    secure(cluster)
    mixed = SecuredBesideUs(cluster, [kafkas])
    mixed.prepare()
    with mixed.running(*BROKERS):
        yield mixed


def created(at: Client, name: str, *replicas: int) -> ErrorCode:
    """One partition on each of these brokers."""
    assignments = tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=(broker,))
        for index, broker in enumerate(replicas)
    )
    request = CreateTopicsRequest(topics=(CreatableTopic(name=name, assignments=assignments),))
    return at.ask(request, CreateTopicsResponse).topics[0].error_code


def let_alice_in(mixed: SecuredBesideUs) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(ALICE, info, SECRET.encode())
    mixed.admin.alter_user_scram_credentials([user])[ALICE].result(SECONDS)
    entries = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{ALICE}",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for kind, name in ((ResourceType.TOPIC, TOPIC), (ResourceType.GROUP, "hers"))
    ]
    for made in mixed.admin.create_acls(entries).values():
        made.result(SECONDS)


def write(
    who: Mapping[str, Any], topic: str, values: Sequence[bytes] = (b"1",)
) -> list[int | None]:
    """To both partitions. The codes of errors; None where it was acknowledged."""
    told: list[int | None] = []
    producer = Producer({**who, "enable.idempotence": True})
    for partition, value in product((0, 1), values):
        producer.produce(
            topic,
            value,
            partition=partition,
            on_delivery=lambda error, _: told.append(None if error is None else error.code()),
        )
    assert producer.flush(SECONDS) == 0
    return told


def read(who: Mapping[str, Any], count: int) -> set[tuple[int, bytes]]:
    consumer = Consumer({**who, "group.id": "hers", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    found: set[tuple[int, bytes]] = set()

    def is_all() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.add((message.partition() or 0, message.value() or b""))
        return len(found) == count

    wait(is_all, f"{count} records")
    consumer.close()
    return found


def replicate(mixed: SecuredBesideUs, asked: int) -> None:
    """Each partition also to the broker that has it not, which has to come in sync."""
    targets = tuple(
        ReassignablePartition(partition_index=index, replicas=replicas)
        for index, replicas in enumerate(((1, 2), (2, 1)))
    )
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=TOPIC, partitions=targets),)
    )
    with mixed.asking(asked, mixed.administrator) as client:
        answer = client.ask(request, AlterPartitionReassignmentsResponse)
    assert answer.error_code == ErrorCode.NONE
    wait(lambda: {len(row["isr"]) for row in mixed.partitions(TOPIC)} == {2}, "both in sync")


@pytest.mark.parametrize("kafkas", BROKERS[::-1], ids=["our controller", "Kafka's controller"])
def test_a_secured_cluster_of_both(kafkas: int, tmp_path: Path) -> None:
    with running(tmp_path, kafkas) as mixed:
        let_alice_in(mixed)
        for broker in BROKERS:  # each of which forwards it, with the name of who asks
            with mixed.asking(broker, mixed.administrator) as client:
                assert created(client, f"others-{broker}", 1, 2) is ErrorCode.NONE
            wait(partial(is_refused, mixed, broker), "alice is known there")
        with mixed.asking(kafkas, mixed.administrator) as client:
            assert created(client, TOPIC, 1, 2) is ErrorCode.NONE

        values = [b"%d" % number for number in range(20)]
        wait(lambda: write(mixed.alice, TOPIC, values[:1]) == [None, None], "what alice may do")
        refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert write(mixed.alice, "others-1") == [refused, refused]
        replicate(mixed, asked=kafkas)
        assert write(mixed.alice, TOPIC, values[1:]) == [None] * 38
        assert read(mixed.alice, 40) == set(product((0, 1), values))
        nodes = [mixed.cluster.layout.node(broker) for broker in BROKERS]
        mixed.cluster.stop_all()  # ours first, which is not to wait for what is gone
    for partition in (0, 1):
        ours, theirs = (log_bytes(node.data / f"{TOPIC}-{partition}") for node in nodes)
        assert ours == theirs


def is_refused(mixed: SecuredBesideUs, broker: int) -> bool:
    """Alice, who logs in there, may create no topic."""
    try:
        with mixed.asking(broker, mixed.alice) as client:
            assert created(client, "hers", 1) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    except NotAuthenticated:  # it has not heard of her yet
        return False
    return True
