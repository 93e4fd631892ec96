"""Errors put into answers: what is withheld from the broker, what is rewritten, what is counted."""

from typing import Any
from uuid import UUID

import pytest

from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.layout import Link
from jepsen_like.real.tampering import Exchange
from quorumlab.testing.error_places import PLACES
from quorumlab.testing.injected_errors import CannotInject, InjectedErrors
from wire.api_table import APIS, api_of
from wire.apis import decode_request, decode_response, encode_request, encode_response
from wire.canonical import canonical_class
from wire.errors import ErrorCode
from wire.message import Message, element_type, fields_of
from wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from wire.messages.fetching import FetchedPartition, FetchedTopic, FetchRequest, FetchResponse
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from wire.messages.producing import (
    InitProducerIdRequest,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

OF_CLIENTS = Link(source=CLIENTS, target=1, port=1, target_port=2)
OF_BROKER_2 = Link(source=2, target=1, port=1, target_port=2)
ID = UUID(int=7)
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def produce(*topics: str, acks: int = -1, topic_id: UUID | None = None) -> ProduceRequest:
    def data(name: str) -> TopicProduceData:
        parts = (PartitionProduceData(index=0), PartitionProduceData(index=1))
        if topic_id is not None:
            return TopicProduceData(topic_id=topic_id, partition_data=parts)
        return TopicProduceData(name=name, partition_data=parts)

    return ProduceRequest(acks=acks, timeout_ms=100, topic_data=tuple(map(data, topics)))


def exchanged(
    errors: InjectedErrors, request: Any, version: int, link: Link = OF_CLIENTS
) -> Exchange | None:
    return errors.exchange(link, b"".join(encode_request(request, version, 5, "app")))


def answer_of(exchange: Exchange, response: Any, version: int, key: int) -> Any:
    """What the client is told if the broker says `response`; None: it was not asked."""
    frame = b"" if response is None else b"".join(encode_response(response, key, version, 5))
    correlation_id, body = decode_response(exchange.answer(frame), key, version)
    assert correlation_id == 5
    return body


def codes(response: ProduceResponse) -> dict[str, set[ErrorCode]]:
    return {
        topic.name: {partition.error_code for partition in topic.partition_responses}
        for topic in response.responses
    }


def test_broker_hears_nothing_of_a_produce_request_that_fails() -> None:
    errors = InjectedErrors()
    rule = errors.add("NOT_LEADER_OR_FOLLOWER", "Produce", "t").once()
    exchange = exchanged(errors, produce("t"), 9)
    assert exchange is not None
    assert exchange.request is None
    assert codes(answer_of(exchange, None, 9, 0)) == {"t": {NOT_LEADER}}
    assert rule.fired == 1
    assert rule.unproven() is None
    assert exchanged(errors, produce("t"), 9) is None, "once is once"


def test_other_topics_of_a_request_go_on() -> None:
    errors = InjectedErrors()
    errors.add("NOT_LEADER_OR_FOLLOWER", "Produce", "t").once()
    exchange = exchanged(errors, produce("t", "u"), 9)
    assert exchange is not None
    assert exchange.request is not None
    asked = decode_request(exchange.request)
    assert [topic.name for topic in asked.body.topic_data] == ["u"]
    assert asked.correlation_id == 5
    done = TopicProduceResponse(
        name="u", partition_responses=(PartitionProduceResponse(index=0, base_offset=3),)
    )
    told = answer_of(exchange, ProduceResponse(responses=(done,)), 9, 0)
    assert codes(told) == {"u": {ErrorCode.NONE}, "t": {NOT_LEADER}}


@pytest.mark.parametrize("error", ["REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"])
def test_broker_has_done_the_work_that_comes_too_late(error: str) -> None:
    errors = InjectedErrors()
    errors.add(error, "Produce", "t").once()
    exchange = exchanged(errors, produce("t"), 9)
    assert exchange is not None
    assert exchange.request is not None
    done = TopicProduceResponse(
        name="t", partition_responses=(PartitionProduceResponse(index=0, base_offset=3),)
    )
    told = answer_of(exchange, ProduceResponse(responses=(done,)), 9, 0)
    assert codes(told) == {"t": {ErrorCode[error]}}


def test_topic_is_known_by_the_id_that_metadata_gave_it() -> None:
    errors = InjectedErrors()
    learnt = exchanged(errors, MetadataRequest(), 12)
    assert learnt is not None
    topics = (MetadataResponseTopic(name="t", topic_id=ID),)
    answer_of(learnt, MetadataResponse(topics=topics), 12, 3)
    rule = errors.add("NOT_LEADER_OR_FOLLOWER", "Produce", "t").once()
    exchange = exchanged(errors, produce("", topic_id=ID), 13)
    assert exchange is not None
    [topic] = answer_of(exchange, None, 13, 0).responses
    assert topic.topic_id == ID
    assert rule.fired == 1


def test_records_are_not_given_with_an_error() -> None:
    errors = InjectedErrors()
    errors.add("OFFSET_OUT_OF_RANGE", "Fetch", "t").once()
    exchange = exchanged(errors, FetchRequest(max_wait_ms=1, topics=()), 11)
    assert exchange is not None
    partition = FetchedPartition(partition_index=0, records=b"records")
    answered = FetchResponse(responses=(FetchedTopic(topic="t", partitions=(partition,)),))
    [topic] = answer_of(exchange, answered, 11, 1).responses
    assert topic.partitions[0].error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert not topic.partitions[0].records


def test_answer_without_the_topic_does_not_count() -> None:
    errors = InjectedErrors()
    rule = errors.add("OFFSET_OUT_OF_RANGE", "Fetch", "t").once()
    exchange = exchanged(errors, FetchRequest(max_wait_ms=1, topics=()), 11)
    assert exchange is not None
    assert not answer_of(exchange, FetchResponse(), 11, 1).responses
    assert rule.unproven() == (
        'inject("OFFSET_OUT_OF_RANGE", api="Fetch", topic=\'t\') never fired'
    )


def test_api_without_topics_is_refused_as_a_whole() -> None:
    errors = InjectedErrors()
    errors.add("REBALANCE_IN_PROGRESS", "Heartbeat", None).times(2)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    for _ in range(2):
        exchange = exchanged(errors, request, 4)
        assert exchange is not None
        told = answer_of(exchange, None, 4, 12)
        assert isinstance(told, HeartbeatResponse)
        assert told.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert exchanged(errors, request, 4) is None


def test_too_few_requests_are_told() -> None:
    errors = InjectedErrors()
    rule = errors.add("NOT_LEADER_OR_FOLLOWER", "Produce", None).times(3)
    assert exchanged(errors, produce("t"), 9) is not None
    assert "fired 1 of 3 times" in str(rule.unproven())


def test_rule_that_nobody_armed_is_told() -> None:
    rule = InjectedErrors().add("NOT_LEADER_OR_FOLLOWER", "Produce", None)
    assert ".once()" in str(rule.unproven())


def test_rule_is_over_when_its_block_ends() -> None:
    errors = InjectedErrors()
    with errors.add("NOT_LEADER_OR_FOLLOWER", "Produce", None).always():
        assert exchanged(errors, produce("t"), 9) is not None
    assert exchanged(errors, produce("t"), 9) is None


@pytest.mark.parametrize(
    ("request_", "link"), [(produce("t"), OF_BROKER_2), (produce("t", acks=0), OF_CLIENTS)]
)
def test_brokers_and_those_who_expect_no_answer_are_left_alone(
    request_: ProduceRequest, link: Link
) -> None:
    errors = InjectedErrors()
    rule = errors.add("NOT_LEADER_OR_FOLLOWER", "Produce", "t").always()
    exchange = exchanged(errors, request_, 9, link)
    assert exchange is None or exchange.request is not None
    assert rule.fired == 0


@pytest.mark.parametrize(
    ("error", "api", "topic", "says"),
    [
        ("NOT_LEADER_FOR_FOLLOWER", "Produce", None, "did you mean NOT_LEADER_OR_FOLLOWER?"),
        ("NONE", "Produce", None, "no error 'NONE'"),
        ("NOT_COORDINATOR", "FindCordinator", None, "did you mean FindCoordinator?"),
        ("NOT_CONTROLLER", "Vote", None, "there are Produce, Fetch"),
        ("NOT_COORDINATOR", "FindCoordinator", "t", "names no topic"),
    ],
)
def test_what_cannot_be_injected_says_what_can(
    error: str, api: str, topic: str | None, says: str
) -> None:
    with pytest.raises(CannotInject, match=says.replace("?", r"\?")):
        InjectedErrors().add(error, api, topic)


@pytest.mark.parametrize("api", PLACES)
def test_every_place_exists_in_the_messages(api: str) -> None:
    place = PLACES[api]
    assert any(row.name == api and row.broker is not None for row in APIS)
    paths = [("response", place.answer), ("response", place.unnamed), ("request", place.request)]
    for kind, path in paths:
        message = canonical_class(api, kind)
        for level, name in enumerate(path or ()):
            message = element_type(fields_of(message)[name].type)
            if kind == "response" and path == place.answer and level == place.topics:
                assert {"name", "topic"} & fields_of(message).keys()
        if kind == "response" and path is not None:
            assert "error_code" in fields_of(message)
    assert place.request is None or len(place.request) == len(place.answer)


PART = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
PRODUCER: dict[str, Any] = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0}
CHANGES: tuple[Message, ...] = (
    produce("t"),
    OffsetCommitRequest(
        group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=(PART,)),)
    ),
    JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="m", protocol_type="consumer", protocols=()
    ),
    SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=()),
    HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
    LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),)),
    ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1),
    CreateTopicsRequest(topics=(CreatableTopic(name="t"),)),
    DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)),
    CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=3),)),
    DeleteRecordsRequest(
        topics=(
            DeleteRecordsTopic(
                name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=1),)
            ),
        ),
        timeout_ms=1,
    ),
    InitProducerIdRequest(),
    AddOffsetsToTxnRequest(**PRODUCER, group_id="g"),
    EndTxnRequest(**PRODUCER, committed=True),
    TxnOffsetCommitRequest(
        **PRODUCER,
        group_id="g",
        topics=(
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=(
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1),
                ),
            ),
        ),
    ),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_every_change_is_refused_in_every_version(change: Message) -> None:
    api = api_of(type(change))
    assert api.broker is not None
    for version in api.broker:
        errors = InjectedErrors()
        rule = errors.add("UNKNOWN_SERVER_ERROR", api.title, None).once()
        exchange = exchanged(errors, change, version)
        assert exchange is not None, rule.why_not
        assert exchange.request is None
        told = answer_of(exchange, None, version, api.key)
        assert "UNKNOWN_SERVER_ERROR" in repr(told)


def test_every_change_is_tried() -> None:
    tried = {api_of(type(change)).name for change in CHANGES}
    assert tried == {api for api, place in PLACES.items() if place.request is not None}


READS = {api for api, place in PLACES.items() if place.request is None}


def told_of_one(kind: Any, path: tuple[str, ...]) -> Any:
    """An answer, or a struct in it, with one element in each array of the path."""
    values: dict[str, Any] = {key: "t" for key in ("name", "topic") if key in fields_of(kind)}
    for field in fields_of(kind).values():
        if path and field.name == path[0]:
            values[field.name] = (told_of_one(element_type(field.type), path[1:]),)
        elif field.required and field.name not in values:
            values[field.name] = {int: 0, str: "t"}.get(element_type(field.type), ())
    return kind(**values)


BY_NAME = {"fetch": 12, "offset_fetch": 9}  # until which version


@pytest.mark.parametrize("api", sorted(READS))
def test_every_answer_is_spoiled_in_every_version(api: str) -> None:
    place, response = PLACES[api], canonical_class(api, "response")
    [row] = (each for each in APIS if each.name == api)
    assert row.broker is not None
    answer = told_of_one(response, place.answer)
    errors = InjectedErrors()
    topic = None if place.topics is None else "t"
    for version in row.broker:
        rule = errors.add("UNKNOWN_SERVER_ERROR", row.title, topic).once()
        header = row.key.to_bytes(2) + version.to_bytes(2) + bytes(8)
        exchange = errors.exchange(OF_CLIENTS, header)
        assert exchange is not None
        told = answer_of(exchange, answer, version, row.key)
        if version <= BY_NAME.get(api, version):  # it names an id that nobody has told
            assert "UNKNOWN_SERVER_ERROR" in repr(told), (version, rule.why_not)
        errors.clear()
