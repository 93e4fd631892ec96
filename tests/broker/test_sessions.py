"""Incremental fetch sessions: both sides, alone and against each other."""

from itertools import count
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.fetch_protocol import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    PartitionKey,
    next_epoch,
)
from broker.replication.replica_session import ReplicaSession
from broker.requests.sessions import (
    FetchContext,
    FetchSessions,
    Incremental,
    Sessionless,
    SessionRefused,
    Started,
)
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.fetching import (
    EpochEndOffset,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from wire.primitives import INT32_MAX, ZERO_UUID

TOPIC_ID = UUID(int=7)


def sessions(slots: int = 2) -> FetchSessions:
    return FetchSessions(slots=slots, eviction_ms=1000, random=Random(1))


def key(index: int, topic: str = "t", topic_id: UUID = ZERO_UUID) -> PartitionKey:
    return PartitionKey(topic, topic_id, index)


def request(
    *indexes: int,
    session: tuple[int, int] = (0, INITIAL_EPOCH),
    offset: int = 0,
    forgotten: tuple[int, ...] = (),
    replica_id: int = -1,
    topic_id: UUID = ZERO_UUID,
) -> FetchRequest:
    topic = "" if topic_id.int else "t"
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100)
        for index in indexes
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id),
        max_wait_ms=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions),)
        if partitions
        else (),
        forgotten_topics_data=(
            (ForgottenTopic(topic=topic, topic_id=topic_id, partitions=forgotten),)
            if forgotten
            else ()
        ),
    )


def data(
    index: int, *, records: bytes = b"", high_watermark: int = 0, **fields: object
) -> FetchedPartition:
    return FetchedPartition(
        partition_index=index,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        **fields,  # type: ignore[arg-type]  # a table of differences
    )


def started(cache: FetchSessions, *indexes: int) -> int:
    context = cache.open(request(*indexes), 0)
    assert isinstance(context, Started)
    return answer(context, *(data(i) for i in indexes)).session_id


def answer(context: FetchContext, *results: FetchedPartition) -> FetchResponse:
    items = {item.key.partition: item for item in context.session.partitions.values()}
    return context.answer([(items[each.partition_index], each) for each in results])


def asked_offsets(context: FetchContext) -> dict[int, int]:
    items = context.session.partitions.values()
    return {item.asked.partition: item.asked.fetch_offset for item in items}


def incremental(cache: FetchSessions, session_id: int, epoch: int, **fields: object) -> Incremental:
    context = cache.open(request(session=(session_id, epoch), **fields), 0)  # type: ignore[arg-type]
    assert isinstance(context, Incremental), context
    return context


def test_a_first_request_starts_a_session_and_is_answered_in_full() -> None:
    cache = sessions()
    context = cache.open(request(0, 1), 0)

    assert isinstance(context, Started)
    response = answer(context, data(0), data(1))
    assert response.session_id > 0
    assert [item.partition_index for item in response.responses[0].partitions] == [0, 1]


def test_a_fetcher_without_a_session_gets_none() -> None:
    cache = sessions()
    context = cache.open(request(0, session=(0, FINAL_EPOCH)), 0)

    assert isinstance(context, Sessionless)
    assert answer(context, data(0)).session_id == 0
    assert len(cache) == 0


def test_an_unchanged_partition_is_left_out_of_the_answer() -> None:
    cache = sessions()
    session_id = started(cache, 0, 1)

    context = incremental(cache, session_id, 1)
    response = answer(context, data(0), data(1, records=b"x"))

    assert [item.partition_index for item in response.responses[0].partitions] == [1]


@pytest.mark.parametrize(
    "changed",
    [
        data(0, high_watermark=1),
        data(0, records=b"x"),
        data(0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        data(0, diverging_epoch=EpochEndOffset(epoch=1, end_offset=0)),
        FetchedPartition(partition_index=0, high_watermark=0, log_start_offset=5, records=b""),
    ],
)
def test_what_is_new_is_sent(changed: FetchedPartition) -> None:
    cache = sessions()
    session_id = started(cache, 0)
    assert answer(incremental(cache, session_id, 1), changed).responses


def test_the_end_of_an_error_is_news() -> None:
    cache = sessions()
    session_id = started(cache, 0)
    failed = FetchedPartition(
        partition_index=0,
        error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        high_watermark=0,
        log_start_offset=0,
        records=b"",
    )
    answer(incremental(cache, session_id, 1), failed)

    assert answer(incremental(cache, session_id, 2), data(0)).responses
    assert not answer(incremental(cache, session_id, 3), data(0)).responses


def test_what_came_with_an_order_to_cut_the_log_is_told_again() -> None:
    """A follower that cuts its log heeds nothing else: it would not hear of the high watermark."""
    cache = sessions()
    session_id = started(cache, 0)
    cut = data(0, high_watermark=2, diverging_epoch=EpochEndOffset(epoch=0, end_offset=2))
    answer(incremental(cache, session_id, 1), cut)

    known = data(0, high_watermark=2)
    again = answer(incremental(cache, session_id, 2), known)
    assert again.responses[0].partitions[0].high_watermark == 2
    assert not answer(incremental(cache, session_id, 3), known).responses


def test_what_was_told_in_an_earlier_leader_epoch_is_told_again() -> None:
    """The answer may have come too late to be heeded, and nothing else would repeat it."""
    cache = sessions()
    session_id = started(cache, 0)

    before = request(0).topics[0].partitions[0]
    in_a_new_epoch = replace(before, current_leader_epoch=1)
    topic = FetchTopic(topic="t", topic_id=ZERO_UUID, partitions=(in_a_new_epoch,))
    context = cache.open(replace(request(session=(session_id, 1)), topics=(topic,)), 0)

    assert isinstance(context, Incremental)
    assert answer(context, data(0)).responses


def test_partitions_with_records_go_to_the_end_of_the_line() -> None:
    cache = sessions()
    session_id = started(cache, 0, 1, 2)
    context = incremental(cache, session_id, 1)
    answer(context, data(0, records=b"x"), data(1), data(2))

    again = incremental(cache, session_id, 2)

    assert [item.asked.partition for item in again.session.line()] == [1, 2, 0]


def test_partitions_are_added_changed_and_forgotten() -> None:
    cache = sessions()
    session_id = started(cache, 0, 1)
    asked = request(1, 2, session=(session_id, 1), offset=9, forgotten=(0,))

    context = cache.open(asked, 0)

    assert isinstance(context, Incremental)
    offsets = asked_offsets(context)
    assert offsets == {1: 9, 2: 9}


@pytest.mark.parametrize("topic_id", [ZERO_UUID, TOPIC_ID])
def test_a_session_may_begin_with_nothing(topic_id: UUID) -> None:
    """As at Apache Kafka: it is there for the next request, which has to name something."""
    own = sessions()
    started = own.open(FetchRequest(max_wait_ms=0, session_epoch=INITIAL_EPOCH, topics=()), 0)
    assert isinstance(started, Started)
    session_id = started.answer([]).session_id
    assert session_id != NO_SESSION
    context = own.open(request(0, session=(session_id, 1), topic_id=topic_id), 0)
    assert isinstance(context, Incremental)
    assert len(context.session.partitions) == 1


def test_a_session_without_partitions_ends() -> None:
    cache = sessions()
    session_id = started(cache, 0)
    context = cache.open(request(session=(session_id, 1), forgotten=(0,)), 0)

    assert isinstance(context, Sessionless)
    assert len(cache) == 0


@pytest.mark.parametrize("epoch", [2, INT32_MAX])
def test_a_wrong_epoch_is_refused(epoch: int) -> None:
    cache = sessions()
    session_id = started(cache, 0)
    refused = cache.open(request(session=(session_id, epoch)), 0)
    assert refused == SessionRefused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)


def test_an_unknown_session_is_refused() -> None:
    refused = sessions().open(request(session=(42, 1)), 0)
    assert refused == SessionRefused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    cache = sessions()
    session_id = started(cache, 0)
    refused = cache.open(request(0, session=(session_id, 1), topic_id=TOPIC_ID), 0)
    assert refused == SessionRefused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)


def test_the_final_epoch_closes_a_session() -> None:
    cache = sessions()
    session_id = started(cache, 0)
    cache.open(request(session=(session_id, FINAL_EPOCH)), 0)
    assert len(cache) == 0


def test_a_full_cache_keeps_sessions_in_use() -> None:
    cache = sessions(slots=1)
    started(cache, 0)
    assert isinstance(cache.open(request(1), 1000), Sessionless)
    assert isinstance(cache.open(request(1), 1001), Started)  # the first was idle for too long


def test_a_follower_pushes_out_a_client_but_not_another_follower() -> None:
    cache = sessions(slots=1)
    started(cache, 0)
    assert isinstance(cache.open(request(1, replica_id=2), 0), Started)
    assert isinstance(cache.open(request(1, replica_id=3), 0), Sessionless)
    assert isinstance(cache.open(request(1), 0), Sessionless)


def test_epochs_wrap_to_one() -> None:
    assert next_epoch(INT32_MAX) == 1


# --- both sides


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[dict[int, int], str]]:
    """What a follower wants at each step, and what becomes of its request."""
    wants = st.dictionaries(st.integers(0, 4), st.integers(0, 3), max_size=5)
    fates = st.sampled_from(["answered", "answered", "lost", "unanswered", "evicted"])
    return draw(st.lists(st.tuples(wants, fates), max_size=15))


@given(steps(), st.sampled_from([1, 2, 1000]))
def test_a_leader_that_takes_a_request_understands_what_the_follower_wants(
    plan: list[tuple[dict[int, int], str]], new_max: int
) -> None:
    """Whatever is lost: the session either knows exactly what is wanted, or is refused.

    What is new and has no room in a request is told by one of the next, which comes at once.
    """
    leader, follower = sessions(), ReplicaSession(new_max)
    for wanted, fate in plan:
        for index in {each.partition for each in follower.wanted} - wanted.keys():
            follower.drop(key(index))
        for index, offset in wanted.items():
            follower.want(
                key(index),
                FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1),
            )
        for requests in count(1):
            asked = follower.ask()
            if fate == "lost":
                follower.failed()
                break
            if fate == "evicted":
                leader = sessions()
            context = leader.open(
                FetchRequest(
                    replica_state=ReplicaState(replica_id=2),
                    max_wait_ms=0,
                    session_id=asked.session_id,
                    session_epoch=asked.session_epoch,
                    topics=asked.topics,
                    forgotten_topics_data=asked.forgotten,
                ),
                0,
            )
            if isinstance(context, SessionRefused):
                assert asked.session_epoch != INITIAL_EPOCH
                follower.answered(FetchResponse(error_code=context.error, responses=()))
                break
            understood = asked_offsets(context)
            assert understood.items() <= wanted.items()
            assert len(understood) >= min(requests * new_max, len(wanted))
            if fate == "unanswered":
                follower.failed()
                break
            follower.answered(answer(context, *(data(i) for i in understood)))
            if not follower.has_unsent:
                assert understood == wanted
                break
            assert requests * new_max < len(wanted)


def test_without_a_session_each_request_names_all() -> None:
    follower = ReplicaSession(new_max=1)
    for index in range(3):
        follower.want(
            key(index), FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
        )
    assert len(follower.ask().topics[0].partitions) == 1
    follower.answered(FetchResponse(session_id=NO_SESSION, responses=()))
    for _ in range(2):
        assert len(follower.ask().topics[0].partitions) == 3
        assert not follower.has_unsent
        follower.answered(FetchResponse(session_id=NO_SESSION, responses=()))
