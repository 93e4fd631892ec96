"""Records: which topics are written and read, and what is said of the others."""

from typing import Any

import pytest

from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation, Pattern
from tests.controller.authorization.entries import (
    DENY,
    HIDDEN,
    HIDDEN_ID,
    SEEN,
    SEEN_ID,
    UNKNOWN_ID,
    Stand,
    acl,
    on_cluster,
)
from wire.errors import ErrorCode
from wire.messages import fetching, producing, topics
from wire.primitives import METADATA_TOPIC_ID

O = Operation  # noqa: E741 - as in the modules
TOPIC_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_ERROR = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NONE = ErrorCode.NONE
BOTH = (SEEN, HIDDEN)


# --- records ----------------------------------------------------------------------------------

TRANSACTIONAL = bytes(22) + b"\x10"


def produce(*names: str, records: bytes = b"r", **others: Any) -> producing.ProduceRequest:
    written = (producing.PartitionProduceData(index=0, records=records),)
    return producing.ProduceRequest(
        **{"acks": 1, "timeout_ms": 1, **others},
        topic_data=tuple(
            producing.TopicProduceData(name=name, partition_data=written) for name in names
        ),
    )


def produced(*names: str) -> producing.ProduceResponse:
    done = (producing.PartitionProduceResponse(index=0, base_offset=7),)
    return producing.ProduceResponse(
        responses=tuple(
            producing.TopicProduceResponse(name=name, partition_responses=done) for name in names
        )
    )


def outcomes(answer: Any) -> list[tuple[str, ErrorCode]]:
    return [(each.name, each.partition_responses[0].error_code) for each in answer.responses]


def test_one_of_two_topics_is_written() -> None:
    stand = Stand(acl(O.WRITE))
    answer = stand.ask(produce(HIDDEN, SEEN), produced(SEEN))
    assert stand.given == produce(SEEN)
    assert outcomes(answer) == [(SEEN, NONE), (HIDDEN, TOPIC_ERROR)]
    assert outcomes(stand.ask(produce(HIDDEN), None)) == [(HIDDEN, TOPIC_ERROR)]
    assert stand.given is None


def test_nothing_is_said_to_who_wants_no_acknowledgement() -> None:
    stand = Stand(acl(O.WRITE))
    assert stand.ask(produce(HIDDEN, SEEN, acks=0)) is None
    assert stand.given == produce(SEEN, acks=0)
    assert stand.ask(produce(HIDDEN, acks=0), "never asked") is None


@pytest.mark.parametrize(
    ("transactional_id", "error"),
    [(None, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), ("mine", NONE)],
)
def test_transactional_records_want_their_id(
    transactional_id: str | None, error: ErrorCode
) -> None:
    stand = Stand(acl(O.WRITE), acl(O.WRITE, Resource.TRANSACTIONAL_ID, "mine"))
    body = produce(SEEN, records=TRANSACTIONAL, transactional_id=transactional_id)
    assert outcomes(stand.ask(body, produced(SEEN))) == [(SEEN, error)]


@pytest.mark.parametrize(
    ("acls", "transactional_id", "error"),
    [
        ((), None, CLUSTER_ERROR),
        ((acl(O.READ),), None, CLUSTER_ERROR),
        ((acl(O.WRITE),), None, NONE),
        ((on_cluster(O.IDEMPOTENT_WRITE),), None, NONE),
        ((acl(O.WRITE),), "mine", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ((acl(O.WRITE, Resource.TRANSACTIONAL_ID, "mine"),), "mine", NONE),
    ],
)
def test_producer_id_is_for_who_may_write_somewhere(
    acls: tuple[Any, ...], transactional_id: str | None, error: ErrorCode
) -> None:
    body = producing.InitProducerIdRequest(transactional_id=transactional_id)
    answer: Any = Stand(*acls).ask(body, producing.InitProducerIdResponse(producer_id=1))
    assert answer.error_code is error


def fetch(*ids: Any, session: tuple[int, int] = (0, -1), replica: int = -1) -> Any:
    part = (fetching.FetchPartition(partition=0, fetch_offset=0),)
    return fetching.FetchRequest(
        max_wait_ms=0,
        replica_state=fetching.ReplicaState(replica_id=replica),
        session_id=session[0],
        session_epoch=session[1],
        topics=tuple(fetching.FetchTopic(topic_id=each, partitions=part) for each in ids),
    )


def fetched(*ids: Any, session: int = 0) -> fetching.FetchResponse:
    part = (fetching.FetchedPartition(partition_index=0, records=b"r"),)
    return fetching.FetchResponse(
        session_id=session,
        responses=tuple(fetching.FetchedTopic(topic_id=each, partitions=part) for each in ids),
    )


def parts(answer: Any) -> list[tuple[Any, ErrorCode, bytes]]:
    return [
        (each.topic_id, each.partitions[0].error_code, each.partitions[0].records)
        for each in answer.responses
    ]


def test_one_of_two_topics_is_read_without_a_session() -> None:
    """What is granted later has to be asked for again."""
    stand = Stand(acl(O.READ))
    ids = (HIDDEN_ID, SEEN_ID, UNKNOWN_ID)
    answer = stand.ask(fetch(*ids, session=(5, 0)), fetched(SEEN_ID, UNKNOWN_ID))
    assert stand.given == fetch(SEEN_ID, UNKNOWN_ID, session=(5, -1))
    assert parts(answer) == [
        (SEEN_ID, NONE, b"r"),
        (UNKNOWN_ID, NONE, b"r"),
        (HIDDEN_ID, TOPIC_ERROR, b""),
    ]
    assert parts(stand.ask(fetch(HIDDEN_ID), None)) == [(HIDDEN_ID, TOPIC_ERROR, b"")]


@pytest.mark.parametrize("asked", [(SEEN_ID,), (SEEN_ID, HIDDEN_ID)])
def test_fetch_that_waited_while_the_right_was_taken_away_brings_no_records(asked: Any) -> None:
    stand = Stand(acl(Operation.READ))
    other = Stand(acl(Operation.WRITE)).image
    answer = stand.ask(fetch(*asked), fetched(SEEN_ID), meanwhile=other)
    assert isinstance(answer, fetching.FetchResponse)
    assert [topic.topic_id for topic in answer.responses] == list(asked)
    for topic in answer.responses:
        for each in topic.partitions:
            assert each.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert not each.records


def test_fetch_that_waited_is_whole_whatever_else_has_changed() -> None:
    stand = Stand(acl(Operation.READ))
    more = Stand(acl(Operation.READ), acl(Operation.WRITE)).image
    assert stand.ask(fetch(SEEN_ID), fetched(SEEN_ID), meanwhile=more) == fetched(SEEN_ID)


def test_session_in_which_something_may_no_longer_be_read_begins_anew() -> None:
    stand = Stand(acl(O.READ))
    again = fetching.FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    within = fetch(session=(5, 1))
    assert stand.ask(within, fetched(SEEN_ID, session=5)) == fetched(SEEN_ID, session=5)
    assert stand.ask(within, fetched(SEEN_ID, HIDDEN_ID, session=5)) == again
    assert stand.ask(fetch(HIDDEN_ID, session=(5, 1)), "never asked") == again


def test_metadata_log_is_no_topic_but_the_clusters() -> None:
    """It has the keys of all users: to read every topic is not enough."""
    asked = fetch(SEEN_ID, METADATA_TOPIC_ID)
    for stand in (Stand(acl(O.READ, name="__cluster_metadata")), Stand(acl(O.READ, name="*"))):
        answers: tuple[Any, Any] = stand.ask(asked), stand.control(asked, None)
        for refused in answers:
            assert refused.error_code is CLUSTER_ERROR
    named = Stand(on_cluster(O.CLUSTER_ACTION))
    assert named.ask(asked, fetched(METADATA_TOPIC_ID)) == fetched(METADATA_TOPIC_ID)


def test_follower_acts_for_the_cluster() -> None:
    asked = fetch(SEEN_ID, replica=2)
    assert parts(Stand(acl(O.READ)).ask(asked)) == [(SEEN_ID, TOPIC_ERROR, b"")]
    allowed = Stand(on_cluster(O.CLUSTER_ACTION))
    assert allowed.ask(asked, fetched(SEEN_ID)) == fetched(SEEN_ID)


def test_offsets_of_one_of_two_topics_are_told() -> None:
    stand = Stand(acl(O.DESCRIBE))
    asked = tuple(
        fetching.ListOffsetsTopic(
            name=name,
            partitions=(fetching.ListOffsetsPartition(partition_index=3, timestamp=-1),),
        )
        for name in BOTH
    )
    answer: Any = stand.ask(
        fetching.ListOffsetsRequest(topics=asked), fetching.ListOffsetsResponse()
    )
    assert stand.given == fetching.ListOffsetsRequest(topics=asked[:1])
    (refused,) = answer.topics
    (part,) = refused.partitions
    assert (refused.name, part.partition_index, part.error_code) == (HIDDEN, 3, TOPIC_ERROR)


def test_ends_of_epochs_are_told_to_nodes_and_to_who_may_describe() -> None:
    asked = fetching.OffsetForLeaderTopic(
        topic=HIDDEN,
        partitions=(fetching.OffsetForLeaderPartition(partition=0, leader_epoch=1),),
    )
    body = fetching.OffsetForLeaderEpochRequest(topics=(asked,))
    refused: Any = Stand(acl(O.DESCRIBE)).ask(body)
    assert refused.topics[0].partitions[0].error_code is TOPIC_ERROR
    for each in (on_cluster(O.CLUSTER_ACTION), acl(O.DESCRIBE, name=HIDDEN)):
        assert Stand(each).ask(body, "served") == "served"


def test_records_are_deleted_by_who_may_delete() -> None:
    asked = topics.DeleteRecordsTopic(
        name=SEEN, partitions=(topics.DeleteRecordsPartition(partition_index=0, offset=1),)
    )
    body = topics.DeleteRecordsRequest(topics=(asked,), timeout_ms=1)
    for each in (acl(O.WRITE), on_cluster(O.CLUSTER_ACTION)):  # nodes are no exception here
        refused: Any = Stand(each).ask(body)
        assert refused.topics[0].partitions[0].error_code is TOPIC_ERROR
        assert refused.topics[0].partitions[0].low_watermark == -1
    assert Stand(acl(O.DELETE)).ask(body, "served") == "served"


def test_deny_is_stronger_than_any_allow() -> None:
    stand = Stand(
        acl(O.ALL, name="*"), acl(O.WRITE, name="se", pattern=Pattern.PREFIXED, permission=DENY)
    )
    assert outcomes(stand.ask(produce(*BOTH), produced(HIDDEN))) == [
        (HIDDEN, NONE),
        (SEEN, TOPIC_ERROR),
    ]
