"""Clients say truthfully how an operation ended. None of them needs a cluster to be made."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from jepsen_like.clients.admin_client import kind_of
from jepsen_like.histories.history import Kind, key_of, place_of
from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.aiokafka_client import AiokafkaClient, _security
from jepsen_like.real.clients.client_choice import client_opener
from jepsen_like.real.clients.confluent import ConfluentClient
from jepsen_like.real.clients.kafka_admin import AdminClient, OperatorClient
from jepsen_like.real.clients.target import Target, known_offset
from jepsen_like.real.layout import ClusterError
from jepsen_like.workloads.workload import Wish
from wire.errors import ErrorCode
from wire.security.security_protocol import SecurityProtocol

NOWHERE = ("127.0.0.1", 1)
ABSENT = Target(brokers={1: NOWHERE}, http={1: NOWHERE, 101: NOWHERE}, controllers={101: NOWHERE})


def test_keys_name_places() -> None:
    assert place_of("orders-east-3") == ("orders-east", 3)
    assert key_of(*place_of("orders-east-3")) == "orders-east-3"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.NONE, Kind.OK),
        (ErrorCode.INVALID_CONFIG, Kind.FAIL),
        (ErrorCode.INVALID_REPLICATION_FACTOR, Kind.FAIL),
        # Decided, and then the leadership was lost: it may be committed by the next one.
        (ErrorCode.NOT_CONTROLLER, Kind.INFO),
        (ErrorCode.REQUEST_TIMED_OUT, Kind.INFO),
        # A broker passes a request on again when it is in doubt: it may be our own topic.
        (ErrorCode.TOPIC_ALREADY_EXISTS, Kind.INFO),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Kind.INFO),
    ],
)
def test_only_what_is_refused_at_once_has_failed(code: ErrorCode, kind: Kind) -> None:
    assert kind_of(code) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, Kind.FAIL),
        (KafkaError.INVALID_RECORD, Kind.FAIL),
        (KafkaError.NOT_ENOUGH_REPLICAS, Kind.INFO),  # the leader before had appended it
        (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Kind.INFO),
        (KafkaError.NOT_LEADER_FOR_PARTITION, Kind.INFO),
        (KafkaError._MSG_TIMED_OUT, Kind.INFO),
        (KafkaError._UNKNOWN_PARTITION, Kind.INFO),  # the topic may have been known before
    ],
)
def test_a_send_has_failed_only_if_no_try_could_have_worked(code: int, kind: Kind) -> None:
    assert ConfluentClient._kind_of(KafkaError(code)) is kind


@pytest.mark.parametrize(("told", "offset"), [(0, 0), (17, 17), (-1, None), (-1001, None)])
def test_a_place_that_was_not_told_is_no_offset(told: int, offset: int | None) -> None:
    """A broker that has the record already may not know any more where: the library says -1001."""
    assert known_offset(told) == offset


@pytest.mark.parametrize("wish", [Wish(f="write", value=["t", 1]), Wish(f="add", value="t")])
def test_what_was_never_sent_has_failed(wish: Wish) -> None:
    client = AdminClient(ABSENT, timeout_seconds=1.0)
    assert client.invoke(wish).kind is Kind.FAIL
    client.close()


def test_an_operator_without_a_cluster_has_done_nothing() -> None:
    client = OperatorClient(ABSENT, timeout_seconds=1.0)
    assert client.invoke(Wish(f="elect", value="chaos-0")).kind is Kind.FAIL
    done = client.invoke(Wish(f="remove-voter", value=101))
    assert (done.kind, done.error) == (Kind.FAIL, "UNSUPPORTED_VERSION")


def test_aiokafka_without_a_cluster_has_sent_nothing() -> None:
    client = AiokafkaClient(ABSENT, idempotent=True, timeout_seconds=1.0)
    try:
        for wish in (
            Wish(f="send", value=[["send", "chaos-0", 1]]),
            Wish(f="assign", value=["chaos-0"]),
            Wish(f="poll", value=[["poll"]]),
        ):
            assert client.invoke(wish).kind is Kind.FAIL, wish
    finally:
        client.close()


def test_aiokafka_is_told_the_user_of_a_secured_cluster() -> None:
    user = ClientSettings(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        mechanism="SCRAM-SHA-512",
        username="admin",
        password="secret",
    )
    assert _security(user) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "admin",
        "sasl_plain_password": "secret",
    }
    assert _security(PLAIN) == {"security_protocol": "PLAINTEXT"}


def test_an_operation_that_a_client_does_not_know_has_failed() -> None:
    for client in (
        ConfluentClient(ABSENT, idempotent=True, timeout_seconds=1.0),
        AdminClient(ABSENT, timeout_seconds=1.0),
        Agent(ABSENT, timeout_seconds=1.0),
    ):
        assert client.invoke(Wish(f="dance")).kind is Kind.FAIL
        client.close()


def test_unknown_implementation_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    module = "jepsen_like.real.clients.aiokafka_client"
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ClusterError, match="pip install aiokafka"):
        client_opener(
            "log", ABSENT, implementation="aiokafka", idempotent=True, timeout_seconds=1.0
        )


# --- the agent -------------------------------------------------------------------------------


class Node:
    """An HTTP side that answers as it is told."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, Any]] = {
            "/v1/node": (200, {"quorum": {"role": "leader", "epoch": 3}})
        }
        self.asked: list[Any] = []
        node = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                node.asked.append(json.loads(body))
                self._answer()

            def _answer(self) -> None:
                status, page = node.pages[self.path.partition("?")[0]]
                if status == 0:
                    self.close_connection = True
                    return
                body = json.dumps(page).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.target = Target(
            brokers={},
            http={101: ("127.0.0.1", self.server.server_port)},
            controllers={101: NOWHERE},
        )


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    thread = threading.Thread(target=node.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield node
    finally:
        node.server.shutdown()
        thread.join()
        node.server.server_close()


@pytest.mark.parametrize(
    ("answer", "kind", "extra"),
    [
        ((200, {"outcome": "ok"}), Kind.OK, {}),
        ((200, {"outcome": "fail", "seen": 4}), Kind.FAIL, {"seen": 4}),
        ((200, {"outcome": "info", "error": "no longer leads"}), Kind.INFO, {}),
        ((404, {"error": "no register"}), Kind.FAIL, {}),
        ((0, None), Kind.INFO, {}),  # asked, and then nothing
    ],
)
def test_register_tells_how_a_compare_and_set_ended(
    node: Node, answer: tuple[int, Any], kind: Kind, extra: Mapping[str, int]
) -> None:
    node.pages["/v1/agent/register"] = answer
    done = Agent(node.target, timeout_seconds=2.0).invoke(Wish(f="cas", value=["x", [3, 5]]))
    assert (done.kind, done.extra) == (kind, extra)
    assert node.asked == [{"f": "cas", "key": "x", "value": [3, 5]}]


def test_read_without_an_answer_has_failed(node: Node) -> None:
    node.pages["/v1/agent/register"] = (0, None)
    agent = Agent(node.target, timeout_seconds=2.0)
    assert agent.invoke(Wish(f="read", value=["x", None])).kind is Kind.FAIL
    node.pages["/v1/agent/register"] = (200, {"outcome": "ok", "value": 7})
    assert agent.invoke(Wish(f="read", value=["x", None])).value == ["x", 7]


def test_linearizable_read_of_a_config_comes_from_the_active_controller(node: Node) -> None:
    node.pages["/v1/agent/read-committed"] = (200, {"value": "12", "offset": 40, "epoch": 3})
    client = AdminClient(node.target, timeout_seconds=2.0)
    done = client.invoke(Wish(f="read", value=["t", None]))
    assert (done.kind, done.value) == (Kind.OK, ["t", 12])
    assert done.extra == {"node": 101, "offset": 40, "epoch": 3}
    node.pages["/v1/agent/read-committed"] = (503, {"error": "no majority"})
    assert client.invoke(Wish(f="read", value=["t", None])).kind is Kind.FAIL


def test_without_an_active_controller_nothing_is_asked(node: Node) -> None:
    node.pages["/v1/node"] = (200, {"quorum": {"role": "follower", "epoch": 3}})
    done = Agent(node.target, timeout_seconds=2.0).invoke(Wish(f="write", value=["x", 1]))
    assert (done.kind, node.asked) == (Kind.FAIL, [])


def test_controllers_list_the_topics_that_count(node: Node) -> None:
    node.pages["/v1/topics"] = (200, {"topics": ["element-2", "other", "element-1"]})
    client = AdminClient(node.target, timeout_seconds=2.0)
    done = client.invoke(Wish(f="read", extra={"node": 101}))
    assert done.value == ["element-1", "element-2"]


class CancelsItsOwnFetch:
    """As aiokafka's consumer may: `stop` awaits a task that it has cancelled."""

    async def stop(self) -> None:
        fetch = asyncio.ensure_future(asyncio.sleep(3600))
        fetch.cancel()
        await fetch


def test_a_client_whose_fetch_is_cancelled_while_it_stops_is_closed() -> None:
    client = AiokafkaClient(ABSENT, idempotent=True, timeout_seconds=0.1)
    client._consumer = CancelsItsOwnFetch()
    client.close()
    assert client._consumer is None


@pytest.mark.parametrize("fails_in", ["produce", "poll"])
def test_producer_with_a_fatal_error_is_replaced(
    fails_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that lost its power may have lost the sequence numbers of a producer."""
    opened: list[str] = []

    class Broken:
        def __init__(self, _settings: object) -> None:
            opened.append(fails_in)

        def produce(self, *_: object, **__: object) -> None:
            self.fail("produce")

        def poll(self, _seconds: float) -> None:
            self.fail("poll")

        def fail(self, where: str) -> None:
            if where == fails_in:
                code = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
                raise KafkaException(KafkaError(code, "desynchronized", True))

        def purge(self) -> None:
            pass

    monkeypatch.setattr("jepsen_like.real.clients.confluent.Producer", Broken)
    client = ConfluentClient(ABSENT, idempotent=True, timeout_seconds=0.1)
    for _ in range(2):
        done = client.invoke(Wish(f="send", value=[["send", "orders-0", 1]]))
        assert done.kind is (Kind.FAIL if fails_in == "produce" else Kind.INFO)
        assert done.error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert len(opened) == 2
    client.close()
