"""A cluster of TLS on every listener: real clients, peers, and certificates that change."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, KafkaProducer

from quorumlab.in_process import InProcessCluster
from tests.wire.security.certificates import Certified, authority, certified
from tests.wire.security.tls_nodes import until

pytestmark = pytest.mark.extra  # five nodes that speak TLS, and three clients

ALICE = certified("CN=alice,OU=users", hosts=())
TOPIC = "t"


def tls_settings(path: Path, **others: str) -> dict[str, str]:
    """Every node has the same certificate, and shows it to the others."""
    (path / "node.pem").write_text(certified("CN=node,OU=nodes").pem)
    (path / "authority.pem").write_text(authority().certificate_pem)
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(path / "authority.pem"),
        "ssl.client.auth": "required",
        **others,
    }


def clients_files(path: Path, who: Certified = ALICE) -> tuple[str, str, str]:
    """Where the authority, the certificate and the key are."""
    (path / "alice.crt").write_text(who.certificate_pem)
    (path / "alice.key").write_text(who.key_pem())
    return str(path / "authority.pem"), str(path / "alice.crt"), str(path / "alice.key")


def librdkafka(servers: str, path: Path) -> dict[str, str | int | float | bool]:
    trusted, certificate, key = clients_files(path)
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SSL",
        "ssl.ca.location": trusted,
        "ssl.certificate.location": certificate,
        "ssl.key.location": key,
    }


def create_topic(servers: str, path: Path, *, replicas: int) -> None:
    admin = AdminClient(librdkafka(servers, path))
    admin.create_topics([NewTopic(TOPIC, 1, replicas)])[TOPIC].result(20)


def with_librdkafka(servers: str, path: Path) -> bytes:
    settings = librdkafka(servers, path)
    producer = Producer(settings)
    producer.produce(TOPIC, b"confluent")
    assert producer.flush(20) == 0
    consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert isinstance(value, bytes)
        return value
    finally:
        consumer.close()


def with_kafka_python(servers: str, path: Path) -> list[bytes]:
    trusted, certificate, key = clients_files(path)
    settings: dict[str, Any] = {
        "bootstrap_servers": servers,
        "security_protocol": "SSL",
        "ssl_cafile": trusted,
        "ssl_certfile": certificate,
        "ssl_keyfile": key,
    }
    producer = KafkaProducer(**settings)
    producer.send(TOPIC, b"kafka-python").get(20)
    producer.close()
    consumer = KafkaConsumer(
        TOPIC, auto_offset_reset="earliest", consumer_timeout_ms=10_000, **settings
    )
    try:
        found = []
        for record in consumer:
            found.append(record.value)
            if record.value == b"kafka-python":
                break
        return found
    finally:
        consumer.close()


async def with_aiokafka(servers: str, path: Path) -> bytes:
    trusted, certificate, key = clients_files(path)
    context = ssl.create_default_context(cafile=trusted)
    context.load_cert_chain(certificate, key)
    settings: dict[str, Any] = {
        "bootstrap_servers": servers,
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait(TOPIC, b"aiokafka")
    async with AIOKafkaConsumer(TOPIC, auto_offset_reset="earliest", **settings) as consumer:
        found = await asyncio.wait_for(consumer.getone(), 20)
        value: bytes = found.value
        return value


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 120))


def test_clients_brokers_and_controllers_speak_tls(tmp_path: Path) -> None:
    async def test() -> None:
        async with InProcessCluster(
            tmp_path / "cluster", controllers=3, brokers=2, settings=tls_settings(tmp_path)
        ) as cluster:
            servers = cluster.bootstrap_servers
            await asyncio.to_thread(create_topic, servers, tmp_path, replicas=2)
            assert await asyncio.to_thread(with_librdkafka, servers, tmp_path) == b"confluent"
            assert await with_aiokafka(servers, tmp_path) == b"confluent"
            found = await asyncio.to_thread(with_kafka_python, servers, tmp_path)
            assert found == [b"confluent", b"aiokafka", b"kafka-python"]
            await cluster.stop(1)  # the other one has a replica of all that, and leads now
            assert await with_aiokafka(servers, tmp_path) == b"confluent"

    run(test)


def test_a_certificate_changes_under_living_connections(tmp_path: Path) -> None:
    """Kafka's tools set the same path again for a file that has changed."""
    lines: list[str] = []
    key = "listener.name.plaintext.ssl.keystore.location"

    async def alter(cluster: InProcessCluster, values: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in values.items()
        ]
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=entries)
        admin = AdminClient(librdkafka(cluster.bootstrap_servers, tmp_path))
        told = len(lines)
        await asyncio.to_thread(
            lambda: admin.incremental_alter_configs([resource])[resource].result(20)
        )
        await until(lambda: any("security" in line for line in lines[told:]))

    async def shown(cluster: InProcessCluster) -> bytes:
        context = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        context.load_cert_chain(*clients_files(tmp_path)[1:])
        host, port = cluster.bootstrap_servers.split(",")[0].split(":")
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return certificate

    async def test() -> None:
        async with InProcessCluster(
            tmp_path / "cluster",
            controllers=1,
            brokers=1,
            settings={**tls_settings(tmp_path), "ssl.allow.dn.changes": "true"},
            say=lines.append,
        ) as cluster:
            await asyncio.to_thread(create_topic, cluster.bootstrap_servers, tmp_path, replicas=1)
            first = await shown(cluster)
            settings = librdkafka(cluster.bootstrap_servers, tmp_path)
            producer = Producer(settings | {"allow.auto.create.topics": "false"})
            producer.produce(TOPIC, b"before")
            assert await asyncio.to_thread(producer.flush, 20) == 0

            path = str(tmp_path / "node.pem")
            (tmp_path / "node.pem").write_text(certified("CN=node,OU=second").pem)
            assert await shown(cluster) == first  # nobody has said that it changed
            await alter(cluster, {key: path})
            second = await shown(cluster)
            assert second != first
            own = certified("CN=node,OU=third").pem
            (tmp_path / "node.pem").write_text(own)
            await alter(cluster, {key: path})
            third = await shown(cluster)
            assert third not in (first, second)

            following = authority("CN=next authority")
            foreign = certified("CN=node,OU=fourth", by=following)
            told = len(lines)
            for content, words in (("no certificate", path), (foreign.pem, "cannot connect")):
                (tmp_path / "node.pem").write_text(content)
                with pytest.raises(KafkaException) as refused:
                    await alter(cluster, {key: path})
                assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
                assert words in refused.value.args[0].str()
            assert lines[told:] == [], "nothing has changed"
            assert await shown(cluster) == third
            producer.produce(TOPIC, b"after")
            assert await asyncio.to_thread(producer.flush, 20) == 0

            both = tmp_path / "both.pem"
            both.write_text(authority().certificate_pem + following.certificate_pem)
            (tmp_path / "node.pem").write_text(own)
            await alter(cluster, {key.replace("key", "trust"): str(both)})
            (tmp_path / "node.pem").write_text(foreign.pem)
            await alter(cluster, {key: path})  # the authority of before had to be trusted first

    run(test)
