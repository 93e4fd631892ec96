"""What a driver is told of a node's clients: whose answers say that they have to wait."""

from typing import Any

import pytest

from controller.metadata.image import MetadataImage, quota_entity
from controller.quotas.connection_rates import ConnectionRates, ListenerRates
from controller.quotas.sampled_rate import Windows
from controller.quotas.throttle import ClientThrottle
from quorum.core.effects import Request
from wire.admission import Admission
from wire.apis import encode_request, encode_response
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.features import ApiVersionsRequest
from wire.messages.fetching import (
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
    ReplicaState,
)
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.producing import ProduceRequest, ProduceResponse
from wire.messages.quorum_epochs import VoteRequest
from wire.messages.registration import EnvelopeResponse
from wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from wire.metadata_records import QuotaEntity
from wire.security.principals import ANONYMOUS, USER, Forwarder, Principal

WINDOWS = Windows(count=11, length_ms=1000)
T0 = 1_700_000_000_000
PRODUCE = ProduceRequest(acks=1, timeout_ms=1, topic_data=())
PRODUCED = ProduceResponse(responses=())
FETCH = FetchRequest(max_wait_ms=1, topics=())
DESCRIBE = DescribeClusterRequest()
DESCRIBED = DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=())


class Node:
    """A throttle, and the quotas and configs of its cluster."""

    def __init__(self, *, static: dict[str, str] | None = None) -> None:
        self.image = MetadataImage()
        self.now = T0
        rates = ListenerRates(node_id=1, static=static or {}, protected=frozenset({"INTERNAL"}))
        self.throttle = ClientThrottle(lambda: self.image, WINDOWS, ConnectionRates(WINDOWS, rates))

    def limit(self, names: dict[str, str | None], **values: float) -> None:
        entity = quota_entity(
            QuotaEntity(entity_type=kind, entity_name=name) for kind, name in names.items()
        )
        self.image = self.image._replace(client_quotas={**self.image.client_quotas, entity: values})

    def exchange(self, asked: Request, answer: Any, *, seconds: float = 0.0) -> tuple[int, int]:
        """What the answer says, and how long the connection is muted."""
        _, use = self.throttle.received(asked)
        assert use is not None
        body, mute_ms = self.throttle.leaving(use, answer, seconds=seconds, now_ms=self.now)
        return getattr(body, "throttle_time_ms", 0), mute_ms


def request(body: object, *, client_id: str | None = "c", **others: Any) -> Request:
    return Request(token=1, body=body, client_id=client_id, **others)


def fetched(byte_count: int) -> FetchResponse:
    data = FetchedPartition(partition_index=0, records=bytes(byte_count))
    return FetchResponse(responses=(FetchedTopic(topic="t", partitions=(data,)),))


def test_bytes_of_produce_are_those_of_the_frame() -> None:
    node = Node()
    node.limit({"client-id": "c"}, producer_byte_rate=100.0)
    asked = request(PRODUCE, frame=bytes(1000))
    assert node.exchange(asked, PRODUCED) == (0, 0)  # 1000 bytes in ten seconds
    assert node.exchange(asked, PRODUCED) == (10_000, 10_000)
    assert node.exchange(request(PRODUCE, client_id="d", frame=bytes(9999)), PRODUCED) == (0, 0)
    assert node.exchange(request(DESCRIBE, frame=bytes(9999)), DESCRIBED) == (0, 0)
    assert node.exchange(asked, None) == (0, 20_000)  # acks=0: nothing says it
    assert node.throttle.describe()["produce"] == {"count": 2, "ms": 30_000}


def test_bytes_of_fetch_are_those_of_the_records_for_consumers_only() -> None:
    node = Node()
    node.limit({"user": None}, consumer_byte_rate=10.0)
    assert node.exchange(request(FETCH), fetched(200)) == (10_000, 10_000)
    follower = replace(FETCH, replica_state=ReplicaState(replica_id=2))
    assert node.throttle.received(request(follower)) == (request(follower), None)


def test_answer_to_a_fetch_has_no_more_than_the_quota_allows_in_ten_windows() -> None:
    node = Node()
    node.limit({"client-id": "c"}, consumer_byte_rate=50.0)
    asked, _ = node.throttle.received(request(FETCH))
    assert asked == request(replace(FETCH, max_bytes=500))
    small = request(replace(FETCH, max_bytes=499))
    assert node.throttle.received(small)[0] is small
    other = request(FETCH, client_id="d")
    assert node.throttle.received(other)[0] is other


def test_time_of_requests_counts_with_what_it_takes_to_write_them() -> None:
    node = Node()
    node.limit({"user": "alice"}, request_percentage=1.0)
    alice = request(DESCRIBE, principal=Principal(USER, "alice"))
    assert node.exchange(alice, DESCRIBED, seconds=0.05) == (0, 0)  # 5 % of a second, in ten
    _, use = node.throttle.received(alice)
    node.throttle.written(use, seconds=0.051, now_ms=node.now)
    assert node.exchange(alice, DESCRIBED) == (100, 100)
    assert node.exchange(alice, DESCRIBED, seconds=100.0) == (1000, 1000)  # a window, at most
    assert node.exchange(request(DESCRIBE, principal=ANONYMOUS), DESCRIBED, seconds=9.0) == (0, 0)


def test_longest_wait_counts() -> None:
    node = Node()
    node.limit({"client-id": "c"}, producer_byte_rate=100.0, request_percentage=1.0)
    asked = request(PRODUCE, frame=bytes(1005))
    assert node.exchange(asked, PRODUCED, seconds=1.0) == (1000, 1000)
    assert node.exchange(asked, PRODUCED, seconds=1.0) == (10_100, 10_100)
    assert node.throttle.describe()["produce"] == {"count": 1, "ms": 10_100}
    assert node.throttle.describe()["request"] == {"count": 1, "ms": 1000}


@pytest.mark.parametrize(
    "body",
    [
        VoteRequest(cluster_id=None, topics=()),
        ApiVersionsRequest(client_software_name="a", client_software_version="1"),
    ],
)
def test_what_nodes_ask_of_each_other_is_exempt(body: object) -> None:
    assert Node().throttle.received(request(body)) == (request(body), None)


def test_forwarded_request_is_measured_and_the_connection_of_its_broker_stays_open() -> None:
    node = Node()
    node.limit({"client-id": "c"}, request_percentage=1.0)
    asked = request(
        CreateTopicsRequest(topics=(), timeout_ms=1), forwarder=Forwarder(ANONYMOUS, "127.0.0.1")
    )
    assert node.exchange(asked, CreateTopicsResponse(topics=()), seconds=9.0) == (1000, 0)


def test_client_waits_for_a_controllers_quota() -> None:
    """At the controller itself, and at the broker that has forwarded the request."""
    node = Node()
    node.limit({"client-id": "c"}, controller_mutation_rate=1.0)
    body = CreateTopicsRequest(topics=(), timeout_ms=1)
    answer = CreateTopicsResponse(topics=(), throttle_time_ms=700)
    frame = b"".join(encode_request(body, 7, 5, "c"))
    asked = request(body, frame=frame)
    assert node.exchange(asked, answer) == (700, 700)
    wrapped = EnvelopeResponse(response_data=b"".join(encode_response(answer, 19, 7, 5)))
    assert node.exchange(asked, wrapped) == (0, 700)
    assert node.exchange(asked, replace(wrapped, response_data=b"\0")) == (0, 0)
    refused = EnvelopeResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    assert node.exchange(asked, refused) == (0, 0)


def test_limits_follow_the_image() -> None:
    node = Node()
    assert not node.throttle.has_limits
    node.limit({"ip": None}, connection_creation_rate=1.0)
    assert not node.throttle.has_limits
    node.limit({"client-id": None}, producer_byte_rate=1.0)
    assert node.throttle.has_limits
    asked = request(PRODUCE, frame=bytes(20))
    assert node.exchange(asked, PRODUCED) == (10_000, 10_000)
    node.limit({"client-id": None}, producer_byte_rate=4.0)
    assert node.exchange(asked, PRODUCED) == (0, 0)


def test_answer_without_the_field_is_left_alone() -> None:
    node = Node()
    node.limit({"client-id": "c"}, request_percentage=1.0)
    assert node.exchange(request(DESCRIBE), object(), seconds=1.0) == (0, 1000)


# --- connections ----------------------------------------------------------------------------


def admissions(
    node: Node, count: int, listener: str = "PLAINTEXT", host: str = "h"
) -> list[Admission]:
    return [node.throttle.connected(listener, host, node.now) for _ in range(count)]


@pytest.mark.parametrize(
    ("static", "delayed"),
    [
        ({}, {"PLAINTEXT": 0, "INTERNAL": 0}),
        ({"max.connection.creation.rate": "1"}, {"PLAINTEXT": 2000, "INTERNAL": 0}),
        (
            {"listener.name.internal.max.connection.creation.rate": "1"},
            {"PLAINTEXT": 0, "INTERNAL": 2000},
        ),
        ({"max.connection.creation.rate": "2147483647"}, {"PLAINTEXT": 0, "INTERNAL": 0}),
    ],
)
def test_connections_beyond_the_rate_of_a_listener_wait_for_their_turn(
    static: dict[str, str], delayed: dict[str, int]
) -> None:
    node = Node(static=static)
    for listener, delay_ms in delayed.items():
        assert admissions(node, 12, listener)[-1] == Admission(delay_ms)
        assert admissions(Node(static=static), 10, listener) == [Admission()] * 10


def test_rate_of_a_listener_changes_while_the_node_runs() -> None:
    node = Node(static={"max.connection.creation.rate": "1"})
    assert admissions(node, 12)[-1] == Admission(2000)
    values = {"listener.name.plaintext.max.connection.creation.rate": "junk"}
    values["max.connection.creation.rate"] = "2"
    node.image = node.image._replace(configs={(4, "1"): values})
    assert admissions(node, 1) == [Admission()]


def test_address_beyond_its_rate_is_refused_and_does_not_count() -> None:
    node = Node()
    node.limit({"ip": "10.0.0.1"}, connection_creation_rate=1.0)
    hosts = admissions(node, 13, host="10.0.0.1")
    assert hosts[9:] == [Admission()] + [Admission(1000, is_refused=True)] * 3
    node.now += 1000
    assert admissions(node, 1, host="10.0.0.1") == [Admission(1000, is_refused=True)]
    node.now += 10_000
    assert admissions(node, 1, host="10.0.0.1") == [Admission()]
    assert admissions(node, 20, host="10.0.0.2")[-1] == Admission()
