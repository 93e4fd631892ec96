"""SASL with real clients and real sockets, and between the nodes of a cluster."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiokafka
import jwt
import kafka
import kafka.errors
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic
from cryptography.hazmat.primitives.asymmetric import rsa

from quorumlab.config import node_config, parse_properties
from quorumlab.first_records import DEFAULT_RECORDS
from quorumlab.in_process import InProcessCluster
from quorumlab.security.first_credentials import first_credential
from quorumlab.verbs.format import format_node

TOPIC = "t"
SECRET = "alice's, = secret"
PLAIN_USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="n0de" user_node="n0de" user_alice="' + SECRET + '";'
)

pytestmark = pytest.mark.extra  # clusters for each mechanism, and three clients
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKEN_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def settings(directory: Path) -> dict[str, str]:
    keys = directory / "jwks.json"
    public: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(TOKEN_KEY.public_key(), True)
    keys.write_text(json.dumps({"keys": [public | {"kid": "1", "alg": "RS256"}]}))
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plaintext.sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": PLAIN_USERS,
        "listener.name.controller.plain.sasl.jaas.config": PLAIN_USERS,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.plaintext.scram-sha-256.connections.max.reauth.ms": "2000",
        "listener.name.controller.connections.max.reauth.ms": "2000",
    }


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The nodes of a cluster, on a loop and a thread of their own."""
    directory = tmp_path_factory.mktemp("sasl")
    ready: Future[str] = Future()
    over = threading.Event()

    async def live() -> None:
        try:
            async with InProcessCluster(
                directory, controllers=3, brokers=2, settings=settings(directory)
            ) as cluster:
                ready.set_result(cluster.bootstrap_servers)
                await asyncio.to_thread(over.wait)
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    try:
        found = ready.result(60)
        _prepare(found)
        yield found
    finally:
        over.set()
        thread.join()


def _prepare(servers: str) -> None:
    """A topic, and alice as a user of SCRAM."""
    admin = AdminClient(librdkafka(servers, "PLAIN"))
    admin.create_topics([NewTopic(TOPIC, 1, 2)])[TOPIC].result(15)
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        upsertion = UserScramCredentialUpsertion("alice", info, SECRET.encode())
        admin.alter_user_scram_credentials([upsertion])["alice"].result(15)


def librdkafka(servers: str, mechanism: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": SECRET,
        **more,
    }


def token(**claims: Any) -> str:
    now = int(time.time())
    usual = {"sub": "alice", "aud": "kafka", "iat": now, "exp": now + 300}
    return jwt.encode(usual | claims, TOKEN_KEY, "RS256", headers={"kid": "1"})


def by_confluent(servers: str, mechanism: str, value: bytes) -> list[bytes]:
    config = librdkafka(servers, mechanism)
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda _config: (token(), time.time() + 300)
    producer = Producer(config)
    producer.produce(TOPIC, value)
    assert producer.flush(15) == 0
    consumer = Consumer({**config, "group.id": f"g-{mechanism}", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    found: list[bytes] = []
    until = time.monotonic() + 15
    while value not in found and time.monotonic() < until:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value() or b"")
    consumer.close()
    return found


def by_kafka_python(servers: str, mechanism: str, value: bytes) -> list[bytes]:
    config = {
        "bootstrap_servers": servers.split(","),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": SECRET,
    }
    producer = kafka.KafkaProducer(**config)
    producer.send(TOPIC, value).get(15)
    producer.close()
    consumer = kafka.KafkaConsumer(
        TOPIC, **config, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    found: list[bytes] = []
    for message in consumer:
        found.append(message.value)
        if message.value == value:
            break
    consumer.close()
    return found


def by_aiokafka(servers: str, mechanism: str, value: bytes) -> list[bytes]:
    config = {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": SECRET,
    }

    async def main() -> list[bytes]:
        found: list[bytes] = []
        async with aiokafka.AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait(TOPIC, value)
        async with aiokafka.AIOKafkaConsumer(
            TOPIC, auto_offset_reset="earliest", **config
        ) as consumer:
            while value not in found:
                found.append((await consumer.getone()).value)
        return found

    return asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("run", [by_confluent, by_kafka_python, by_aiokafka])
def test_clients_produce_and_consume(
    servers: str, run: Callable[[str, str, bytes], list[bytes]], mechanism: str
) -> None:
    value = f"{run.__name__} {mechanism}".encode()
    assert value in run(servers, mechanism, value)


def test_tokens_of_the_key_set_are_taken(servers: str) -> None:
    assert b"token" in by_confluent(servers, "OAUTHBEARER", b"token")


def refusals(config: dict[str, Any]) -> set[str]:
    """What a client hears that must not get in."""
    told: list[KafkaError] = []
    client = Producer({**config, "error_cb": told.append})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)
    client.poll(0)
    failures = [each.str() for each in told if each.code() == KafkaError._AUTHENTICATION]
    return {
        text.partition("SASL authentication error: ")[2].partition(" (")[0] for text in failures
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_and_an_unknown_user_hear_the_same(servers: str, mechanism: str) -> None:
    wrong = refusals(librdkafka(servers, mechanism, **{"sasl.password": "other"}))
    unknown = refusals(librdkafka(servers, mechanism, **{"sasl.username": "bob"}))
    assert len(wrong) == 1
    assert wrong == unknown


@pytest.mark.parametrize("claims", [{"aud": "others"}, {"exp": 1}, {"sub": ""}])
def test_other_tokens_are_refused(servers: str, claims: dict[str, Any]) -> None:
    config = librdkafka(servers, "OAUTHBEARER")
    config["oauth_cb"] = lambda _: (token(**claims), time.time() + 300)
    assert refusals(config) == {'{"status":"invalid_token"}'}


def test_a_session_is_renewed_on_its_connection(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Sessions of SCRAM-SHA-256 end after two seconds, and those of nodes at controllers, too."""
    told: list[KafkaError] = []
    producer = Producer(librdkafka(servers, "SCRAM-SHA-256", error_cb=told.append))
    until = time.monotonic() + 5
    while time.monotonic() < until:
        producer.produce(TOPIC, b"renewed")
        producer.flush(5)
        time.sleep(0.1)
    assert told == []
    assert [each.getMessage() for each in caplog.records if each.name.startswith("wire")] == []


def test_users_of_plain_change_while_a_broker_runs(servers: str) -> None:
    """The sessions of before live on; what cannot be used is refused, and changes nothing."""
    (first, _) = servers.split(",")
    old = librdkafka(first, "PLAIN")
    admin = AdminClient({**old, "sasl.username": "node", "sasl.password": "n0de"})

    def change(users: str) -> None:
        key = "listener.name.plaintext.plain.sasl.jaas.config"
        entry = ConfigEntry(key, users, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(15)

    with pytest.raises(KafkaException, match="needs the login module PlainLoginModule"):
        change("ScramLoginModule required;")
    living = Producer(old)
    assert TOPIC in living.list_topics(timeout=5).topics
    change(PLAIN_USERS.replace(SECRET, "new"))
    new = AdminClient({**old, "sasl.password": "new"})
    assert TOPIC in new.list_topics(timeout=15).topics
    assert len(refusals(old)) == 1
    assert TOPIC in living.list_topics(timeout=5).topics
    change(PLAIN_USERS)


def test_nodes_use_the_scram_users_that_the_cluster_was_formatted_with(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    given = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    }
    for name in ("plaintext", "controller"):
        key = f"listener.name.{name}.scram-sha-256.sasl.jaas.config"
        given[key] = f'{module} username="node" password="n0de";'

    async def main() -> None:
        cluster = InProcessCluster(tmp_path, controllers=1, brokers=2, settings=given)
        users = tuple(
            first_credential(f"SCRAM-SHA-256=[name={name},password={password}]")
            for name, password in (("node", "n0de"), ("alice", "secret"))
        )
        first = replace(DEFAULT_RECORDS, others=users)
        for node in cluster.layout.nodes:
            config = node_config(parse_properties(cluster.layout.properties(node, given)))
            cluster_id = cluster.layout.cluster_id
            format_node(config, cluster_id, ignore_formatted=False, first=first)
        async with cluster:
            password = {"sasl.password": "secret"}
            shown = librdkafka(cluster.bootstrap_servers, "SCRAM-SHA-256", **password)
            admin = AdminClient(shown)
            made = admin.create_topics([NewTopic(TOPIC, 1, 2)])[TOPIC]
            await asyncio.to_thread(made.result, 15)

    asyncio.run(asyncio.wait_for(main(), 60))
