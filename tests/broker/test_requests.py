"""What clients see of the cluster, what is forwarded, and what is refused with a reason."""

from typing import Any
from uuid import UUID

import pytest

from quorum.core.effects import Failure, Reply, Request, RequestFailed, Response, Send
from tests.broker.brokers import CONTROLLER, LISTENER, Brokers, batch_of, produce_request
from wire.errors import ErrorCode
from wire.forwarding import unwrap
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.features import ApiVersionsRequest
from wire.messages.groups import FindCoordinatorRequest
from wire.messages.metadata import (
    Cursor,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from wire.messages.producing import AllocateProducerIdsRequest, InitProducerIdRequest
from wire.messages.registration import (
    EnvelopeRequest,
    EnvelopeResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from wire.messages.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from wire.primitives import ZERO_UUID


@pytest.fixture
def brokers() -> Brokers:
    return Brokers(3, auto_create_topics=False).start()


def metadata(brokers: Brokers, *names: str, topic_id: UUID = ZERO_UUID, **fields: Any) -> Any:
    topics = tuple(MetadataRequestTopic(name=name, topic_id=ZERO_UUID) for name in names)
    if topic_id.int:
        topics = (MetadataRequestTopic(name=None, topic_id=topic_id),)
    request = MetadataRequest(topics=topics, include_topic_authorized_operations=False, **fields)
    return brokers.call(1, request)


# --- Metadata


def test_metadata_shows_leaders_isr_and_live_brokers(brokers: Brokers) -> None:
    topic_id = brokers.create_topic("t", (1, 2, 3), (2, 3, 1))

    body = metadata(brokers, "t")

    assert [(node.node_id, node.host) for node in body.brokers] == [(1, "b1"), (2, "b2"), (3, "b3")]
    assert body.controller_id in (1, 2, 3)
    (topic,) = body.topics
    assert (topic.name, topic.topic_id) == ("t", topic_id)
    assert [partition.leader_id for partition in topic.partitions] == [1, 2]
    assert topic.partitions[0].isr_nodes == (1, 2, 3)
    assert topic.partitions[0].error_code is ErrorCode.NONE


def test_metadata_follows_every_change(brokers: Brokers) -> None:
    brokers.create_topic("t", (1, 2, 3))
    assert metadata(brokers, "t").topics[0].partitions[0].leader_id == 1

    brokers.change("t", 0, isr=(2, 3), leader=2)
    brokers.fence(1)
    brokers.settle()

    body = metadata(brokers, "t")
    partition = body.topics[0].partitions[0]
    assert (partition.leader_id, partition.leader_epoch) == (2, 1)
    assert partition.offline_replicas == (1,)
    assert [node.node_id for node in body.brokers] == [2, 3]


def test_a_partition_without_a_live_leader_says_so(brokers: Brokers) -> None:
    brokers.create_topic("t", (2, 3))
    brokers.change("t", 0, leader=-1)
    partition = metadata(brokers, "t").topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("no spaces", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_an_unknown_topic_is_refused(brokers: Brokers, name: str, error: ErrorCode) -> None:
    assert metadata(brokers, name).topics[0].error_code is error


def test_a_topic_is_found_by_its_id(brokers: Brokers) -> None:
    topic_id = brokers.create_topic("t", (1,))
    assert metadata(brokers, topic_id=topic_id).topics[0].name == "t"
    unknown = metadata(brokers, topic_id=UUID(int=99)).topics[0]
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_an_expected_topic_is_created_once() -> None:
    brokers = Brokers(1).start()
    brokers.holds_controller = True
    first = metadata(brokers, "wanted").topics[0]
    metadata(brokers, "wanted")

    assert first.error_code is ErrorCode.LEADER_NOT_AVAILABLE
    asked = [send for send, _ in brokers.held if isinstance(send.body, CreateTopicsRequest)]
    assert [send.to.node_id for send in asked] == [CONTROLLER]
    assert metadata(brokers, "no", allow_auto_topic_creation=False).topics[0].error_code is (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


# --- other views


def test_describe_cluster_lists_the_live_and_on_request_the_fenced(brokers: Brokers) -> None:
    brokers.fence(2)
    brokers.settle()
    alive = brokers.call(1, DescribeClusterRequest())
    everyone = brokers.call(1, DescribeClusterRequest(include_fenced_brokers=True))

    assert [node.broker_id for node in alive.brokers] == [1, 3]
    fenced = {node.broker_id: node.is_fenced for node in everyone.brokers}
    assert fenced == {1: False, 3: False, 2: True}


def test_describe_cluster_knows_no_controllers(brokers: Brokers) -> None:
    body = brokers.call(1, DescribeClusterRequest(endpoint_type=2))
    assert body.error_code is ErrorCode.MISMATCHED_ENDPOINT_TYPE


def test_describe_topic_partitions_goes_on_where_it_stopped(brokers: Brokers) -> None:
    brokers.create_topic("a", (1,), (2,), (3,))
    brokers.create_topic("b", (1,), (2,))
    seen = []
    cursor = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(
            topics=(), response_partition_limit=2, cursor=cursor
        )
        body = brokers.call(1, request)
        seen += [
            (topic.name, partition.partition_index)
            for topic in body.topics
            for partition in topic.partitions
        ]
        if body.next_cursor is None:
            break
        cursor = Cursor(
            topic_name=body.next_cursor.topic_name,
            partition_index=body.next_cursor.partition_index,
        )
    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]


def test_describe_topic_partitions_names_what_is_unknown(brokers: Brokers) -> None:
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="absent"),))
    assert brokers.call(1, request).topics[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("cursor", [("b", 0), ("c", 0), ("a", -1)])
def test_describe_topic_partitions_refuses_a_cursor_that_is_nowhere(
    brokers: Brokers, cursor: tuple[str, int]
) -> None:
    """Not among the topics that are named, or at no partition; Apache Kafka's answer, too."""
    for name in ("a", "b"):
        brokers.create_topic(name, (1,))
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in ("a", "d", "a")),
        cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    told = [(topic.name, topic.error_code) for topic in brokers.call(1, request).topics]
    assert told == [(name, ErrorCode.INVALID_REQUEST) for name in ("a", "d", "a")]


def test_api_versions_tells_finalised_features(brokers: Brokers) -> None:
    body = brokers.call(
        1, ApiVersionsRequest(client_software_name="x", client_software_version="1")
    )
    levels = {feature.name: feature.max_version_level for feature in body.finalized_features}
    assert levels == {"metadata.version": 25}
    produce = next(api for api in body.api_keys if api.api_key == 0)
    assert produce.min_version == 0  # offered, not served (KAFKA-18659)


@pytest.mark.parametrize(
    ("asked", "on_topic", "on_cluster"), [(False, -(2**31), -(2**31)), (True, 3576, 8096)]
)
def test_authorized_operations_are_told_if_asked_for(
    brokers: Brokers, asked: bool, on_topic: int, on_cluster: int
) -> None:
    """KIP-430, with the bits that Apache Kafka 4.3.1 answers where there is no authorizer."""
    brokers.create_topic("t", (1,))
    names = ("t", "absent")
    topics = (
        *(MetadataRequestTopic(name=name) for name in names),
        MetadataRequestTopic(topic_id=UUID(int=99)),
    )
    body = brokers.call(
        1,
        MetadataRequest(
            topics=topics,
            include_topic_authorized_operations=asked,
            include_cluster_authorized_operations=asked,
        ),
    )
    told = [topic.topic_authorized_operations for topic in body.topics]
    assert told == [on_topic, on_topic, -(2**31)]
    assert body.cluster_authorized_operations == on_cluster

    cluster = DescribeClusterRequest(include_cluster_authorized_operations=asked)
    assert brokers.call(1, cluster).cluster_authorized_operations == on_cluster


def test_described_topics_have_their_authorized_operations_unasked(brokers: Brokers) -> None:
    brokers.create_topic("t", (1,))
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in ("absent", "t"))
    )
    told = [topic.topic_authorized_operations for topic in brokers.call(1, request).topics]
    assert told == [3576, 3576]


# --- DescribeConfigs


def configs(brokers: Brokers, kind: int, name: str, *keys: str) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    return brokers.call(1, request).results[0]


def test_a_topic_setting_is_shown_with_its_source() -> None:
    properties = (("log.retention.hours", "2"), ("log.segment.bytes", "2000000"))
    brokers = Brokers(1, properties=properties).start()
    brokers.create_topic("t", (1,), min_insync_replicas="2")

    result = configs(
        brokers, 2, "t", "min.insync.replicas", "retention.ms", "segment.bytes", "segment.ms"
    )

    found = {item.name: (item.value, item.config_source) for item in result.configs}
    assert found == {
        "min.insync.replicas": ("2", 1),
        "retention.ms": ("7200000", 5),  # as in Kafka: the source is that of log.retention.ms
        "segment.bytes": ("2000000", 4),
        "segment.ms": ("604800000", 5),
    }


def test_a_broker_describes_itself_and_nobody_else() -> None:
    brokers = Brokers(2, properties=(("num.io.threads", "3"),)).start()
    own = configs(brokers, 4, "1", "num.io.threads")
    other = configs(brokers, 4, "2")

    assert [(item.value, item.config_source) for item in own.configs] == [("3", 4)]
    assert other.error_code is ErrorCode.INVALID_REQUEST


def test_configs_of_an_unknown_topic_are_refused(brokers: Brokers) -> None:
    assert configs(brokers, 2, "absent").error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- coordinators


@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_coordinators_of_other_kinds_are_not_there(brokers: Brokers, key_type: int) -> None:
    body = brokers.call(1, FindCoordinatorRequest(key_type=key_type, coordinator_keys=("a", "b")))
    assert [(answer.key, answer.error_code) for answer in body.coordinators] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]


# --- producer ids


def init_producer_id(brokers: Brokers, transactional_id: str | None = None) -> int:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    return brokers.ask(1, request)


def test_producer_ids_come_from_blocks_of_the_controller(brokers: Brokers) -> None:
    ids = [brokers.answer(init_producer_id(brokers)).producer_id for _ in range(3)]
    assert ids == [7000, 7001, 7002]
    asked = [body for body in brokers.asked if isinstance(body, AllocateProducerIdsRequest)]
    assert len(asked) == 1


def test_controller_that_does_not_answer_is_asked_again_after_a_session_timeout(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost answer once kept a broker from giving out ids for five seconds (L-WR)."""
    sends: list[Send] = []
    monkeypatch.setattr(brokers, "_send", lambda _node_id, send: sends.append(send))
    init_producer_id(brokers)
    brokers.brokers[1]._router.auto_creation.create("wanted")
    brokers.run(20)
    patience_ms = {type(send.body): send.timeout_ms for send in sends}
    session_ms = brokers.brokers[1].config.session_timeout_ms
    assert patience_ms[AllocateProducerIdsRequest] == session_ms
    assert patience_ms[CreateTopicsRequest] == session_ms


@pytest.mark.parametrize(
    "half", [{"producer_id": 7000}, {"producer_id": -2}, {"producer_epoch": 0}]
)
def test_a_producer_has_an_id_and_an_epoch_or_neither(
    brokers: Brokers, half: dict[str, Any]
) -> None:
    answer = brokers.call(1, InitProducerIdRequest(transaction_timeout_ms=1000, **half))
    assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)


def test_the_next_block_is_there_before_the_first_is_used_up(brokers: Brokers) -> None:
    for _ in range(1000):
        init_producer_id(brokers)
    asked = [body for body in brokers.asked if isinstance(body, AllocateProducerIdsRequest)]
    assert len(asked) == 2


def test_a_producer_waits_for_its_id_while_there_is_no_controller(brokers: Brokers) -> None:
    brokers.has_controller = False
    token = init_producer_id(brokers)
    brokers.run(200)
    assert token not in brokers.answers

    brokers.has_controller = True
    brokers.run(100)

    assert brokers.answer(token).producer_id == 7000


def test_a_producer_does_not_wait_for_its_id_for_ever(brokers: Brokers) -> None:
    brokers.has_controller = False
    token = init_producer_id(brokers)
    brokers.run(31_000)

    assert brokers.answer(token).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    brokers.has_controller = True
    brokers.run(100)
    assert brokers.answer(init_producer_id(brokers)).producer_id == 7000


# --- forwarding

FRAME = bytes.fromhex("0040 0000 00000007 0001 63 00 0000 0005 00".replace(" ", ""))


def forwarded(brokers: Brokers, frame: bytes = FRAME) -> Send:
    """What the broker sends for a client's UnregisterBroker(5) with correlation id 7."""
    request = Request(
        token=900,
        body=UnregisterBrokerRequest(broker_id=5),
        listener=LISTENER,
        client_host="127.0.0.1",
        frame=frame,
    )
    brokers.brokers[1].receive(request, brokers.now_ms)
    return sent(brokers)


def sent(brokers: Brokers) -> Send:
    sends = [item for item in brokers.brokers[1].take_effects() if isinstance(item, Send)]
    (send,) = [item for item in sends if item.channel == "forwarding"]
    return send


def reply(brokers: Brokers) -> object:
    replies = [item for item in brokers.brokers[1].take_effects() if isinstance(item, Reply)]
    (answer,) = replies
    assert answer.token == 900
    return answer.body


def test_the_clients_own_bytes_go_to_the_controller_and_its_answer_comes_back(
    brokers: Brokers,
) -> None:
    send = forwarded(brokers)
    assert isinstance(send.body, EnvelopeRequest)
    opened = unwrap(send.body)
    assert not isinstance(opened, ErrorCode)
    assert opened[0].body == UnregisterBrokerRequest(broker_id=5)
    assert (opened[0].correlation_id, opened[1]) == (7, "127.0.0.1")

    answer = EnvelopeResponse(response_data=b"as it came")
    event = Response(token=send.token, body=answer)
    brokers.brokers[1].receive(event, brokers.now_ms)

    assert reply(brokers) is answer


def test_another_controller_is_asked_until_the_time_is_up(brokers: Brokers) -> None:
    send = forwarded(brokers)
    refusal = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    event = Response(token=send.token, body=refusal)
    brokers.brokers[1].receive(event, brokers.now_ms)
    brokers.brokers[1].tick(brokers.now_ms + 50)
    again = sent(brokers)
    lost = RequestFailed(token=again.token, failure=Failure.DISCONNECTED)
    brokers.brokers[1].receive(lost, brokers.now_ms + 50)

    brokers.brokers[1].tick(brokers.now_ms + 60_000)

    effects = brokers.brokers[1].take_effects()
    answers = [item.body for item in effects if isinstance(item, Reply)]
    assert answers == [EnvelopeResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)]


def test_a_request_without_bytes_travels_as_it_is(brokers: Brokers) -> None:
    send = forwarded(brokers, frame=b"")
    assert send.body == UnregisterBrokerRequest(broker_id=5)
    answer = UnregisterBrokerResponse(error_message=None)
    event = Response(token=send.token, body=answer)
    brokers.brokers[1].receive(event, brokers.now_ms)
    assert reply(brokers) is answer


def test_a_refusal_inside_a_plain_answer_is_retried(brokers: Brokers) -> None:
    send = forwarded(brokers, frame=b"")
    topic = CreatableTopicResult(
        name="t",
        topic_id=ZERO_UUID,
        error_code=ErrorCode.NOT_CONTROLLER,
        error_message=None,
        configs=None,
    )
    event = Response(token=send.token, body=CreateTopicsResponse(topics=(topic,)))
    brokers.brokers[1].receive(event, brokers.now_ms)
    brokers.brokers[1].tick(brokers.now_ms + 50)
    assert sent(brokers).body == UnregisterBrokerRequest(broker_id=5)


def test_answer_of_the_controller_is_joined_with_what_was_refused_before(brokers: Brokers) -> None:
    entry = AlterableConfig(name="retention.ms", value="1", config_operation=0)
    topic, another = (
        AlterConfigsResource(resource_type=kind, resource_name=name, configs=(entry,))
        for kind, name in ((2, "t"), (4, "7"))
    )
    body = IncrementalAlterConfigsRequest(resources=(topic, another), validate_only=False)
    brokers.brokers[1].receive(Request(token=900, body=body, listener=LISTENER), brokers.now_ms)
    send = sent(brokers)
    assert isinstance(send.body, IncrementalAlterConfigsRequest)
    assert send.body.resources == (topic,)
    done = AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE, error_message=None, resource_type=2, resource_name="t"
    )
    answer = IncrementalAlterConfigsResponse(responses=(done,))
    brokers.brokers[1].receive(Response(token=send.token, body=answer), brokers.now_ms)
    joined = reply(brokers)
    assert isinstance(joined, IncrementalAlterConfigsResponse)
    assert [each.resource_name for each in joined.responses] == ["t", "7"]


# --- produce, as requests


def test_unknown_acks_are_refused(brokers: Brokers) -> None:
    brokers.create_topic("t", (1,))
    body = brokers.call(1, produce_request("t", 0, batch_of(b"a"), acks=2))
    assert body.responses[0].partition_responses[0].error_code is ErrorCode.INVALID_REQUIRED_ACKS


def test_the_wrong_broker_names_the_right_one(brokers: Brokers) -> None:
    brokers.create_topic("t", (2, 3))
    body = brokers.call(1, produce_request("t", 0, batch_of(b"a")))
    result = body.responses[0].partition_responses[0]
    assert result.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert result.current_leader.leader_id == 2
    assert [node.host for node in body.node_endpoints] == ["b2"]


def test_log_append_time_is_told_to_the_producer() -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,), message_timestamp_type="LogAppendTime")
    result = brokers.produced(brokers.produce(1, "t", 0, batch_of(b"a", timestamp_ms=5)))
    assert result.log_append_time_ms == brokers.now_ms


def test_time_that_the_producer_has_given_is_not_told() -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,))
    result = brokers.produced(brokers.produce(1, "t", 0, batch_of(b"a", timestamp_ms=5)))
    assert result.log_append_time_ms == -1


def test_batch_that_is_too_large_in_the_topics_compression_is_refused() -> None:
    batch = batch_of(bytes(range(256)))
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,), compression_type="gzip", max_message_bytes=str(len(batch)))
    result = brokers.produced(brokers.produce(1, "t", 0, batch))
    assert result.error_code is ErrorCode.MESSAGE_TOO_LARGE
