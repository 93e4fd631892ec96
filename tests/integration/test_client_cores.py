"""The simulator's client cores against real brokers: what they send is understood, and answered."""

import time
from collections.abc import Iterator
from random import Random
from typing import Any, TypeVar

import pytest

from jepsen_like.clients.admin import AdminClient, create_topic
from jepsen_like.clients.log import LogClient
from jepsen_like.clients.steps import Ask, Pause, Steps
from jepsen_like.history import Kind, Value
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.workload import Done, NewTopic, Wish
from wire.api_table import api_of
from wire.errors import ErrorCode

Result = TypeVar("Result")
KEYS = ["orders-0", "orders-1"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    made = LocalCluster.create(tmp_path_factory.mktemp("cores"), controllers=1, brokers=2)
    try:
        made.start_all()
        made.wait_ready()
        yield made
    finally:
        made.stop_all()


class Sockets:
    """Carries out a client's steps, one after the other, on blocking sockets."""

    def __init__(self, cluster: LocalCluster) -> None:
        layout = cluster.layout
        self._ports = {node.id: (node.host, node.port) for node in layout.nodes}

    @staticmethod
    def clock() -> int:
        return time.time_ns() // 1_000_000

    def play(self, steps: Steps[Result]) -> Result:
        told: object = None
        while True:
            try:
                step = steps.send(told)
            except StopIteration as end:
                result: Result = end.value
                return result
            match step:
                case Pause(ms=ms):
                    time.sleep(ms / 1000)
                    told = None
                case Ask():
                    told = self._ask(step)

    def _ask(self, step: Ask) -> object:
        expected: type[Any] = _response_to(step.body)
        try:
            with Client([self._ports[step.node]], step.timeout_ms / 1000) as client:
                answer: object = client.ask(step.body, expected)
                return answer
        except ClusterError:
            return None


def _response_to(body: object) -> type[Any]:
    """Beside every request class there is its response: CreateTopicsRequest, ...Response."""
    module = __import__(type(body).__module__, fromlist=["*"])
    name = type(body).__name__.removesuffix("Request") + "Response"
    assert api_of(type(body)) is api_of(getattr(module, name))
    response: type[Any] = getattr(module, name)
    return response


@pytest.fixture(scope="module")
def sockets(cluster: LocalCluster) -> Sockets:
    made = Sockets(cluster)
    new = NewTopic(name="orders", partitions=2, replication_factor=2)
    assert made.play(create_topic(new, 1, 10_000)) is ErrorCode.NONE
    return made


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_is_sent_is_polled(sockets: Sockets, *, idempotent: bool) -> None:
    client = LogClient(
        (1, 2), clock=sockets.clock, random=Random(1), timeout_ms=9_000, is_idempotent=idempotent
    )

    def perform(f: str, value: Value, **extra: Value) -> Done:
        return sockets.play(client.perform(Wish(f=f, value=value, extra=extra)))

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


def test_configs_are_written_and_read(sockets: Sockets) -> None:
    """Through the broker: the controller's listener is asked in the simulator."""
    client = AdminClient((1, 2), (101,), random=Random(1), timeout_ms=9_000)

    def perform(f: str, value: Value, **extra: Value) -> Done:
        return sockets.play(client.perform(Wish(f=f, value=value, extra=extra)))

    assert perform("add", "element-1").kind is Kind.OK
    assert perform("write", ["orders", 77]).kind is Kind.OK
    for _ in range(100):
        told = perform("read-stale", ["orders", None], node=2)
        if told.value == ["orders", 77]:
            break
    assert told.value == ["orders", 77]
    assert perform("read", None, node=1).value == ["element-1"]
    assert perform("remove", "element-1").kind is Kind.OK
