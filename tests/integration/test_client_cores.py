"""The simulator's client cores against real brokers: what they send is understood, and answered."""

from collections.abc import Iterator
from random import Random

import pytest

from jepsen_like.clients.admin_client import AdminClient, create_topic
from jepsen_like.clients.log_client import LogClient
from jepsen_like.histories.history import Kind, Value
from jepsen_like.real.clients.client_choice import play, wall_clock
from jepsen_like.real.clients.target import Nodes
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.workloads.workload import Done, NewTopic, Wish
from tests.started import started
from wire.errors import ErrorCode

KEYS = ["orders-0", "orders-1"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with started(
        LocalCluster.create(tmp_path_factory.mktemp("cores"), controllers=1, brokers=2)
    ) as made:
        yield made


@pytest.fixture(scope="module")
def nodes(cluster: LocalCluster) -> Iterator[Nodes]:
    made = Nodes({node.id: (node.host, node.port) for node in cluster.layout.nodes}, 1.0)
    new = NewTopic(name="orders", partitions=2, replication_factor=2)
    assert play(create_topic(new, 1, 10_000), made) is ErrorCode.NONE
    yield made
    made.close()


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_is_sent_is_polled(nodes: Nodes, *, idempotent: bool) -> None:
    client = LogClient(
        (1, 2), clock=wall_clock, random=Random(1), timeout_ms=9_000, is_idempotent=idempotent
    )

    def perform(f: str, value: Value, **extra: Value) -> Done:
        return play(client.perform(Wish(f=f, value=value, extra=extra)), nodes)

    assert perform("assign", KEYS).kind is Kind.OK
    perform("poll", [["poll"]])  # finds where the logs end
    sent: dict[str, list[list[int]]] = {}
    for value in range(6):
        key = KEYS[value % 2]
        done = perform("send", [["send", key, value]])
        assert done.kind is Kind.OK, done
        sent.setdefault(key, []).append([done.value[0][2][0], value])
    found: dict[str, list[list[int]]] = {}
    for _ in range(20):
        done = perform("poll", [["poll"]], until="caught_up")
        assert done.kind is Kind.OK, done
        for key, records in done.value[0][1].items():
            found.setdefault(key, []).extend(records)
        if done.extra.get("caught_up"):
            break
    assert found == sent


def test_configs_are_written_and_read(nodes: Nodes) -> None:
    """Through the broker: the controller's listener is asked in the simulator."""
    client = AdminClient((1, 2), (101,), random=Random(1), timeout_ms=9_000)

    def perform(f: str, value: Value, **extra: Value) -> Done:
        return play(client.perform(Wish(f=f, value=value, extra=extra)), nodes)

    assert perform("add", "element-1").kind is Kind.OK
    assert perform("write", ["orders", 77]).kind is Kind.OK
    for _ in range(100):
        told = perform("read-stale", ["orders", None], node=2)
        if told.value == ["orders", 77]:
            break
    assert told.value == ["orders", 77]
    assert perform("read", None, node=1).value == ["element-1"]
    assert perform("remove", "element-1").kind is Kind.OK


def test_members_commit_and_go_on_from_there(nodes: Nodes) -> None:
    new = NewTopic(name="__consumer_offsets", partitions=2, replication_factor=2)
    assert play(create_topic(new, 1, 10_000), nodes) is ErrorCode.NONE
    client = LogClient(
        (1, 2), clock=wall_clock, random=Random(1), timeout_ms=9_000, is_idempotent=True
    )

    def perform(f: str, value: Value, **extra: Value) -> Done:
        return play(client.perform(Wish(f=f, value=value, extra=extra)), nodes)

    joined = perform("join", "readers", group="readers")
    assert (joined.kind, joined.extra) == (Kind.OK, {"generation": 1}), joined
    done = perform("commit", {"orders-0": 1}, group="readers")
    assert (done.kind, done.extra) == (Kind.OK, {"generation": 1}), done
    assert perform("committed", KEYS, group="readers").value == {"orders-0": 1, "orders-1": None}
    assert perform("assign", KEYS, group="readers", seek="committed").kind is Kind.FAIL
    sent = [perform("send", [["send", "orders-0", 90 + n]]) for n in range(2)]
    numbers = [done.extra["sequence"] for done in sent]
    assert numbers == [0, 1]
    assert perform("assign", KEYS[:1], group="readers", seek="committed").kind is Kind.OK
    assert perform("poll", [["poll"]]).value[0][1]["orders-0"][0][0] == 1
