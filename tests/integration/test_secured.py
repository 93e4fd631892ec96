"""`up --security`: a cluster of processes, encrypted and authorized, and everybody who asks it."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.pages import ask
from jepsen_like.real.processes import await_value
from quorumlab.cli import main
from quorumlab.config import parse_properties

pytestmark = pytest.mark.extra  # processes, keys and certificates of a whole cluster

SECONDS = 20


def run(directory: Path, *words: str, given: str = "", code: int = 0) -> str:
    """What it says on stdout, or on stderr if it fails."""
    told, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(told, write_through=True)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(directory)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        found = main(words)
    assert found == code, err.getvalue() + told.getvalue().decode()
    return err.getvalue() if code else told.getvalue().decode()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("secured")
    words = ("--controllers", "1", "--brokers", "2", "--security", "sasl_ssl", "--detach")
    told = run(path, "up", *words)
    assert str(path / "data" / "client.properties") in told
    yield path
    assert "stopped" in run(path, "down")


def properties(directory: Path, **more: str) -> dict[str, Any]:
    text = (directory / "data" / "librdkafka.properties").read_text()
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {**parse_properties(text), "log_level": "0", **given}


def test_clients_of_librdkafka_write_and_read(directory: Path) -> None:
    run(directory, "topics", "create", "orders", "--replication-factor", "2")
    producer = Producer({**properties(directory), "enable.idempotence": True})
    producer.produce("orders", b"first")
    assert producer.flush(SECONDS) == 0
    consumer = Consumer(properties(directory, group_id="g", auto_offset_reset="earliest"))
    consumer.subscribe(["orders"])
    message = await_value(lambda: consumer.poll(0.5), SECONDS)
    assert message is not None
    assert message.value() == b"first"
    consumer.close()


def test_verbs_find_the_way_in_by_the_directory(directory: Path) -> None:
    run(directory, "topics", "create", "lines")
    run(directory, "produce", "lines", given="one\ntwo\n")
    read = ("consume", "lines", "--until-end", "--format", "value")
    assert run(directory, *read).split() == ["one", "two"]
    described = json.loads(run(directory, "status", "--format", "json"))
    assert described["active_controller"] == 101
    assert "running" in run(directory, "top", "--once")
    assert "all 3 nodes run" in run(directory, "doctor")
    assert "LeaderId" in run(directory, "quorum", "describe", "--status")
    controller = LocalCluster.open(directory / "data").layout.controllers[0]
    address = f"{controller.host}:{controller.controller_port}"
    settings = ("--command-config", "data/controller.properties")
    assert "cluster" in run(directory, "inspect", "summary", address, *settings)


def test_a_client_without_credentials_is_told_what_is_missing(directory: Path) -> None:
    servers = LocalCluster.open(directory / "data").layout.bootstrap_servers
    told = run(directory, "topics", "list", "--bootstrap-server", servers, code=1)
    assert "does it speak TLS or SASL? --command-config" in told
    assert told.count("\n") == 1
    settings = (directory / "data" / "client.properties").read_text()
    (directory / "wrong.properties").write_text(settings.replace('password="', 'password="x'))
    words = ("--bootstrap-server", servers, "--command-config", "wrong.properties")
    told = run(directory, "topics", "list", *words, code=1)
    assert "authentication by SCRAM-SHA-512 failed" in told
    assert told.count("\n") == 1


def test_a_new_user_may_do_what_acls_allow_and_nothing_else(directory: Path) -> None:
    run(directory, "topics", "create", "bills")
    run(directory, "users", "add", "alice", given="hers\n")
    own = properties(directory, sasl_username="alice", sasl_password="hers")
    assert "bills" not in AdminClient(own).list_topics(timeout=SECONDS).topics
    entry = ("--allow-principal", "User:alice", "--producer", "--topic", "bills")
    run(directory, "acls", "add", *entry)

    def may_write() -> bool:
        told: list[KafkaError | None] = []
        producer = Producer(own)
        producer.produce("bills", b"1", on_delivery=lambda error, _: told.append(error))
        return producer.flush(SECONDS) == 0 and told == [None]

    assert await_value(may_write, SECONDS)
    consumer = Consumer({**own, "group.id": "g2"})
    consumer.subscribe(["bills"])
    refused = await_value(lambda: consumer.poll(0.5), SECONDS)
    assert refused is not None
    error = refused.error()
    assert error is not None
    assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()
    run(directory, "users", "delete", "alice")
    with pytest.raises(KafkaException):
        AdminClient(own).list_topics(timeout=2)


@pytest.mark.parametrize("comes", [True, False], ids=["a record comes", "nothing comes"])
def test_who_loses_a_right_while_fetching_gets_no_record_any_more(
    directory: Path, comes: bool
) -> None:
    """The Fetch that waits at the broker was allowed when it came."""
    topic, name = f"lost-{comes}", f"carol-{comes}"
    run(directory, "topics", "create", topic)
    run(directory, "users", "add", name, given="hers\n")
    entry = ("--allow-principal", f"User:{name}", "--operation", "Read", "--topic", topic)
    run(directory, "acls", "add", *entry, "--group", "g5")
    producer = Producer(properties(directory))
    producer.produce(topic, b"first", partition=0)
    assert producer.flush(SECONDS) == 0
    own = properties(directory, sasl_username=name, sasl_password="hers", group_id="g5")
    consumer = Consumer({**own, "fetch.wait.max.ms": 15_000 if comes else 1000})
    consumer.assign([TopicPartition(topic, 0, 0)])
    first = await_value(lambda: consumer.poll(0.5), SECONDS)
    assert first is not None
    assert first.value() == b"first"
    run(directory, "acls", "delete", *entry)

    def is_hidden(server: str) -> bool:
        admin = AdminClient({**own, "bootstrap.servers": server})
        return topic not in admin.list_topics(timeout=SECONDS).topics

    for server in own["bootstrap.servers"].split(","):
        assert await_value(partial(is_hidden, server), SECONDS)
    if comes:
        producer.produce(topic, b"secret", partition=0)
        assert producer.flush(SECONDS) == 0
    refused = await_value(lambda: consumer.poll(0.5), 5)
    assert refused is not None, "it waits on"
    error = refused.error()
    assert error is not None, refused.value()
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer.close()


def committed(directory: Path, topic: str, count: int) -> list[bytes | None]:
    """The values of the first records that are committed, and of others that come with them."""
    reader = properties(directory, group_id="c", auto_offset_reset="earliest")
    consumer = Consumer({**reader, "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    values: list[bytes | None] = []

    def has_enough() -> bool:
        values.extend(message.value() for message in consumer.consume(10, 0.2))
        return len(values) >= count

    assert await_value(has_enough, SECONDS)
    consumer.close()
    return values


def commit_and_abort(producer: Producer, topic: str) -> None:
    producer.init_transactions(SECONDS)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for partition in range(4):
            producer.produce(topic, end.__name__, partition=partition)
        assert producer.flush(SECONDS) == 0
        end(SECONDS)


def test_a_user_may_use_the_transactional_ids_that_acls_name(directory: Path) -> None:
    """The coordinator's own requests to leaders are authorized as well, and encrypted."""
    run(directory, "topics", "create", "payments", "--partitions", "4")
    run(directory, "users", "add", "bob", given="his\n")
    entry = ("--allow-principal", "User:bob", "--producer", "--topic", "payments")
    run(directory, "acls", "add", *entry, "--transactional-id", "bobs")
    own = properties(directory, sasl_username="bob", sasl_password="his")
    commit_and_abort(Producer({**own, "transactional.id": "bobs"}), "payments")
    assert committed(directory, "payments", 4) == [b"commit_transaction"] * 4
    with pytest.raises(KafkaException) as refused:
        Producer({**own, "transactional.id": "alices"}).init_transactions(SECONDS)
    error = refused.value.args[0]
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_pages_are_for_those_who_show_a_password(directory: Path) -> None:
    cluster = LocalCluster.open(directory / "data")
    node = cluster.layout.brokers[0]
    assert cluster.ask(node, "/v1/node")[0] == 200
    access = cluster.page_access
    assert access is not None
    stranger = type(access)(authorities=access.authorities)
    address = (node.host, node.http_port)
    assert ask(address, "/livez", access=stranger).status == 200
    assert ask(address, "/metrics", access=stranger).status == 401
    assert ask(address, "/v1/agent/register", body={}, access=stranger).status == 401
    assert ask(address, "/livez").status == 0  # without TLS


def test_chaos_between_a_secured_cluster_and_its_clients(directory: Path) -> None:
    """TLS ends at the proxies: clients of the run judge theirs, and they judge the brokers'."""
    servers = LocalCluster.open(directory / "data").layout.bootstrap_servers
    told = run(
        directory, "chaos", "run", "--bootstrap-server", servers, "--command-config",
        "data/client.properties", "--faults", "reset", "--seconds", "3", "--seed", "1", "--out",
        "chaos", "--format", "json",
    )  # fmt: skip
    found = json.loads(told)
    assert (found["summary"], found["void"]) == ("valid", [])
    assert found["safety"]["ok"] > 0
    run(directory, "topics", "delete", "chaos")


def test_up_again_goes_on_with_what_is_there(directory: Path) -> None:
    before = (directory / "data" / "client.properties").read_bytes()
    run(directory, "down")
    run(directory, "up", "--detach")
    assert (directory / "data" / "client.properties").read_bytes() == before
    assert "orders" in run(directory, "topics", "list").split()
