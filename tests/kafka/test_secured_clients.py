"""Every client that people have, on one cluster of `up --security sasl_ssl`, by the files of `up`.

kafka-python, aiokafka, kcat and Kafka's own tools: each writes a record and reads, in a group of
its own, what all have written; those that can administer topics, users and ACLs do.
"""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.verbs.secured_cluster import secure
from tests.kafka.interop import needs_kafka, tool, tools, wait

pytestmark = [*needs_kafka, pytest.mark.skipif(not shutil.which("kcat"), reason="no kcat")]

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
TOPIC, ALICE = "everybodys", "alice"
SECONDS = 20
WRITTEN = {b"kafka-python", b"aiokafka", b"kcat", b"console"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What holds the `data` of a cluster."""
    path = tmp_path_factory.mktemp("clients")
    cluster = LocalCluster.create(path / "data", controllers=1, brokers=2, security="sasl_ssl")
    secure(cluster)
    try:
        cluster.start_all()
        cluster.wait_ready()
        yield path
    finally:
        cluster.stop_all()


def pasted(directory: Path) -> dict[str, Any]:
    """The settings of clients in Python, as the page advises them."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    told: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        exec(code, told)
    return told


def administer_by_kafka_python(settings: dict[str, Any]) -> None:
    admin = KafkaAdminClient(**settings)
    made = admin.create_topics({TOPIC: {"num_partitions": 1, "replication_factor": 2}})
    assert [topic["error_code"] for topic in made["topics"]] == [0]
    user = UserScramCredentialUpsertion("bob", ScramMechanism.SCRAM_SHA_512, "his", iterations=4096)
    assert admin.alter_user_scram_credentials([user]) == {"bob": None}
    wait(lambda: "bob" in admin.describe_user_scram_credentials(), "a user")
    entry = ACL(
        principal="User:bob",
        host="*",
        operation=ACLOperation.READ,
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=ResourcePattern(ResourceType.TOPIC, TOPIC),
    )
    assert admin.create_acls([entry])["succeeded"] == [entry]
    any_entry = ACLFilter(
        principal="User:bob",
        host=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
        resource_pattern=ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
    )
    wait(lambda: admin.describe_acls(any_entry)[0] == [entry], "an ACL")
    admin.close()


def administer_by_tools(directory: Path) -> None:
    """A user with a password of her own, who may use the topic."""
    password = f"SCRAM-SHA-512=[iterations=4096,password={ALICE}-secret]"
    user = ("--entity-type", "users", "--entity-name", ALICE)
    entry = ("--allow-principal", f"User:{ALICE}", "--producer", "--consumer", "--group", "console")
    with_settings = by_settings(directory, "--command-config", "client.properties")
    tools(
        ("configs", *with_settings, "--alter", *user, "--add-config", password),
        ("acls", *with_settings, "--add", *entry, "--topic", TOPIC),
        ("topics", *with_settings, "--create", "--topic", "others"),
    )
    users, entries, topics = tools(
        ("configs", *with_settings, "--describe", *user),
        ("acls", *with_settings, "--list", "--topic", TOPIC),
        ("topics", *with_settings, "--list"),
    )
    assert f"SCRAM credential configs for user-principal '{ALICE}' are SCRAM-SHA-512" in users
    assert f"principal=User:{ALICE}, host=*, operation=READ, permissionType=ALLOW" in entries
    assert {TOPIC, "others"} <= set(topics.split())


def by_settings(directory: Path, option: str, file: str) -> tuple[str, ...]:
    servers = LocalCluster.open(directory / "data").layout.bootstrap_servers
    return "--bootstrap-server", servers, option, str(directory / "data" / file)


def of_alice(directory: Path) -> None:
    """Her own client.properties, beside the administrator's."""
    own = (directory / "data" / "client.properties").read_text()
    login = f'username="{ALICE}" password="{ALICE}-secret"'
    text = re.sub('username="[^"]*" password="[^"]*"', login, own)
    (directory / "data" / "alice.properties").write_text(text)


def write_by_kafka_python(settings: dict[str, Any]) -> None:
    producer = KafkaProducer(**settings)
    producer.send(TOPIC, b"kafka-python").get(SECONDS)
    producer.close()


def read_by_kafka_python(settings: dict[str, Any]) -> set[bytes]:
    consumer = KafkaConsumer(
        TOPIC,
        group_id="kafka-python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS * 1000,
        **settings,
    )
    try:
        return {next(consumer).value for _ in WRITTEN}
    finally:
        consumer.close()


async def write_by_aiokafka(settings: dict[str, Any]) -> None:
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait(TOPIC, b"aiokafka")


async def read_by_aiokafka(settings: dict[str, Any]) -> set[bytes]:
    admin = AIOKafkaAdminClient(**settings)
    await admin.start()
    assert TOPIC in await admin.list_topics()
    await admin.close()
    async with AIOKafkaConsumer(
        TOPIC, group_id="aiokafka", auto_offset_reset="earliest", **settings
    ) as consumer:
        return {(await consumer.getone()).value for _ in WRITTEN}


def kcat(directory: Path, *words: str, stdin: bytes = b"") -> bytes:
    """With the librdkafka of confluent-kafka: its own may be one that Kafka does not let in."""
    (newer,) = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*")
    done = subprocess.run(
        ["kcat", "-q", "-F", "data/librdkafka.properties", *words],
        cwd=directory,
        env={**os.environ, "LD_PRELOAD": str(newer)},
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_client_gets_in_by_the_files_of_up(directory: Path) -> None:
    told = pasted(directory)
    administer_by_kafka_python(told["kafka_python"])
    administer_by_tools(directory)
    of_alice(directory)
    console = ("--topic", TOPIC, *by_settings(directory, "--command-config", "alice.properties"))

    write_by_kafka_python(told["kafka_python"])
    asyncio.run(asyncio.wait_for(write_by_aiokafka(told["aiokafka"]), SECONDS))
    kcat(directory, "-P", "-t", TOPIC, stdin=b"kcat\n")
    tool("producer", *console, stdin="console\n")

    assert read_by_kafka_python(told["kafka_python"]) == WRITTEN
    read = asyncio.run(asyncio.wait_for(read_by_aiokafka(told["aiokafka"]), SECONDS))
    assert read == WRITTEN
    earliest = ("-X", "auto.offset.reset=earliest")
    assert set(kcat(directory, "-G", "kcat", *earliest, "-e", TOPIC).split()) == WRITTEN
    shown = tool(
        "consumer", *console, "--group", "console", "--from-beginning", "--max-messages", "4"
    )
    assert set(shown.encode().split()) == WRITTEN
    assert b'topic "others"' in kcat(directory, "-L")
