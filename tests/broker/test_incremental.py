"""Incremental sessions against the plain rules, over random histories.

The leader looks only at partitions that something has happened to. What it answers must be what a
look at every partition would have answered, and what it thinks of followers what a note of every
fetch, for every partition, would have left.
"""

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.partition import isr
from broker.partition.isr import FollowerProgress
from broker.partition.partition import LeaderOf
from jepsen_like.planted.every_bug import planted
from tests.broker.brokers import CONSUMER, Brokers, batch_of
from wire.errors import ErrorCode
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
from wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.metadata_records import RegisterBrokerRecord
from wire.primitives import ZERO_UUID

PARTITIONS = 3
PARKED_MS = 400
REPLICAS = ((1,), (1, 2), (1, 2))
Key = tuple[UUID, int]


@dataclass
class Fetcher:
    """One session with broker 1, and what it asks for in it."""

    cluster: Brokers
    replica: ReplicaState = CONSUMER
    session: tuple[int, int] = (0, 0)
    wanted: dict[Key, int] = field(default_factory=dict)  # offsets
    asked: dict[Key, int] = field(default_factory=dict)  # as the leader knows them
    parked: int | None = None  # the token of a fetch that waits

    def request(self, *, is_full: bool = False, max_wait_ms: int = 0) -> FetchRequest:
        session_id, epoch = (0, -1) if is_full else self.session
        starts_over = epoch in (0, -1)
        known = {} if starts_over else self.asked
        topics: dict[UUID, list[FetchPartition]] = {}
        gone: dict[UUID, list[int]] = {}
        for (topic_id, index), offset in self.wanted.items():
            if known.get((topic_id, index)) != offset:
                topics.setdefault(topic_id, []).append(
                    FetchPartition(
                        partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                )
        for topic_id, index in known.keys() - self.wanted.keys():
            gone.setdefault(topic_id, []).append(index)
        return FetchRequest(
            replica_state=self.replica,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=session_id,
            session_epoch=epoch,
            topics=tuple(
                FetchTopic(topic="", topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
            forgotten_topics_data=tuple(
                ForgottenTopic(topic="", topic_id=topic_id, partitions=tuple(indexes))
                for topic_id, indexes in gone.items()
            ),
        )

    def answered(self, response: FetchResponse) -> None:
        if response.error_code is not ErrorCode.NONE or response.session_id == 0:
            self.session, self.asked = (self.session[0], 0), {}
            return
        self.session = (response.session_id, self.session[1] + 1)
        self.asked = dict(self.wanted)


def by_key(response: FetchResponse) -> dict[Key, FetchedPartition]:
    return {
        (topic.topic_id, each.partition_index): each
        for topic in response.responses
        for each in topic.partitions
    }


# --- answers --------------------------------------------------------------------------------


@dataclass
class Told:
    """What a session was last told of a partition, by the plain rule."""

    high_watermark: int = -1
    log_start_offset: int = -1
    was_in_vain: bool = False

    def is_news(self, data: FetchedPartition) -> bool:
        return (
            bool(data.records)
            or data.error_code is not ErrorCode.NONE
            or data.diverging_epoch != EpochEndOffset()
            or self.was_in_vain
            or (self.high_watermark, self.log_start_offset)
            != (data.high_watermark, data.log_start_offset)
        )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), st.booleans()),  # go on from what was read?
        st.tuples(st.just("fetch"), st.booleans()),
        st.tuples(st.just("park"), st.just(0)),
        st.tuples(st.just("park"), st.just(0)),
        st.tuples(st.just("produce"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("produce"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("delete records"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("forget"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("ask"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("lead"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("follow"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("leave isr"), st.integers(1, PARTITIONS - 1)),
        st.tuples(st.just("evict"), st.just(0)),
        st.tuples(st.just("push out"), st.just(0)),
        st.tuples(st.just("recreate"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 700)),
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_an_incremental_session_answers_what_a_look_at_everything_would(
    steps: list[tuple[str, int]],
) -> None:
    cluster = Brokers(2, session_cache_slots=2, session_eviction_ms=300).start()
    cluster.create_topic("t", *REPLICAS)
    reader, told = Fetcher(cluster), dict[Key, Told]()
    reader.wanted = {(cluster.topics["t"], index): 0 for index in range(PARTITIONS)}
    for step, argument in (*steps, ("fetch", 0), ("fetch", 0)):
        if step == "fetch":
            while reader.parked is not None:
                wait(cluster, reader, told, 1)
            fetch_and_compare(cluster, reader, told, reads_on=bool(argument))
        elif step == "wait":
            wait(cluster, reader, told, argument)
        else:
            act(cluster, reader, step, argument)
            compare_parked(cluster, reader, told)


def wait(cluster: Brokers, reader: Fetcher, told: dict[Key, Told], duration_ms: int) -> None:
    """Two changes within a millisecond could not be told apart from one."""
    while reader.parked is not None and duration_ms > 0:
        cluster.run(1)
        duration_ms -= 1
        compare_parked(cluster, reader, told)
    cluster.run(duration_ms)


def act(cluster: Brokers, reader: Fetcher, step: str, argument: int) -> None:
    key = (cluster.topics["t"], argument)
    match step:
        case "produce":
            cluster.produce(1, "t", argument, batch_of(b"x"), acks=1)
        case "delete records":
            deletion = DeleteRecordsPartition(partition_index=argument, offset=-1)
            topic = DeleteRecordsTopic(name="t", partitions=(deletion,))
            cluster.ask(1, DeleteRecordsRequest(topics=(topic,), timeout_ms=100))
        case "forget" | "ask" | "park" if reader.parked is None:
            ask_otherwise(cluster, reader, step, key)
        case "push out":  # followers may, and this one need not be known
            other = Fetcher(cluster, ReplicaState(replica_id=77))
            other.wanted = {key: 0}
            cluster.ask(1, other.request())
        case "lead" | "follow":
            cluster.change("t", argument, leader=1 if step == "lead" else other_leader(argument))
        case "leave isr":
            cluster.change("t", argument, isr=(1,))
        case "evict":
            cluster.ask(1, Fetcher(cluster, session=(reader.session[0], 0)).request())
        case "recreate":
            cluster.delete_topic("t")
            number = len(cluster.metadata)
            cluster.create_topic("t", *REPLICAS, number=number)


def ask_otherwise(cluster: Brokers, reader: Fetcher, step: str, key: Key) -> None:
    match step:
        case "forget":
            reader.wanted.pop(key, None)
        case "ask":
            reader.wanted.setdefault(key, 0)
        case "park" if reader.wanted and reader.session[1] > 0:
            reader.parked = cluster.ask(1, reader.request(max_wait_ms=PARKED_MS))


def other_leader(index: int) -> int:
    return 2 if 2 in REPLICAS[index] else -1


def fetch_and_compare(
    cluster: Brokers, reader: Fetcher, told: dict[Key, Told], *, reads_on: bool
) -> None:
    if not reader.wanted:
        return
    cluster.settle()
    full = by_key(cluster.call(1, reader.request(is_full=True)))
    response = cluster.call(1, reader.request())
    starts = reader.session[1] == 0
    if response.error_code is not ErrorCode.NONE:
        assert not starts, response
        reader.answered(response)
        return
    if starts:
        told.clear()
    for key in told.keys() - reader.wanted.keys():
        del told[key]
    expected = full if starts else news(full, told)
    assert by_key(response) == expected
    note_answer(cluster, reader, told, response, reads_on=reads_on)


def news(full: dict[Key, FetchedPartition], told: dict[Key, Told]) -> dict[Key, FetchedPartition]:
    return {key: data for key, data in full.items() if told.setdefault(key, Told()).is_news(data)}


def compare_parked(cluster: Brokers, reader: Fetcher, told: dict[Key, Told]) -> None:
    """A fetch waits as long as there is nothing to read, and is then told all that is new."""
    if reader.parked is None:
        return
    full = by_key(cluster.call(1, reader.request(is_full=True)))
    response = cluster.answers.get(reader.parked)
    if response is None:
        assert not [data for data in full.values() if data.records or is_in_vain(data)]
        return
    assert isinstance(response, FetchResponse)
    reader.parked = None
    if response.error_code is not ErrorCode.NONE:
        reader.answered(response)
        return
    assert by_key(response) == news(full, told)
    note_answer(cluster, reader, told, response, reads_on=True)


def is_in_vain(data: FetchedPartition) -> bool:
    return data.error_code is not ErrorCode.NONE or data.diverging_epoch != EpochEndOffset()


def note_answer(
    cluster: Brokers,
    reader: Fetcher,
    told: dict[Key, Told],
    response: FetchResponse,
    *,
    reads_on: bool,
) -> None:
    reader.answered(response)
    for key, data in by_key(response).items():
        told[key] = Told(data.high_watermark, data.log_start_offset, is_in_vain(data))
        if reads_on and data.records:
            reader.wanted[key] = data.high_watermark
        elif data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            reader.wanted[key] = cluster.partition(1, "t", key[1]).open_log.start_offset


# --- followers ------------------------------------------------------------------------------


Plain = dict[tuple[int, int], FollowerProgress]  # by partition and follower
LAG_MS = 2000
MOVES = st.lists(
    st.one_of(
        st.tuples(
            st.just("fetch"), st.integers(2, 3), st.sampled_from(["end", "end", "as before"])
        ),
        st.tuples(st.just("fetch"), st.integers(2, 3), st.sampled_from(["end", "wait", "behind"])),
        st.tuples(st.just("fetch"), st.integers(2, 3), st.sampled_from(["end", "wait"])),
        st.tuples(st.just("produce"), st.integers(0, PARTITIONS - 1), st.just("")),
        st.tuples(st.just("forget"), st.integers(2, 3), st.sampled_from("012")),
        st.tuples(st.just("start over"), st.integers(2, 3), st.just("")),
        st.tuples(st.just("other session"), st.integers(2, 3), st.just("")),
        st.tuples(st.just("lead anew"), st.integers(0, PARTITIONS - 1), st.just("")),
        st.tuples(st.just("leave isr"), st.integers(2, 3), st.sampled_from("012")),
        st.tuples(st.just("join isr"), st.integers(2, 3), st.sampled_from("012")),
        st.tuples(st.just("register"), st.integers(2, 3), st.just("")),
        st.tuples(st.just("pass"), st.sampled_from([1, 300, 900, 1500]), st.just("")),
    ),
    max_size=40,
)


class Followed:
    """Broker 1 leads; brokers 2 and 3 are played, and noted by the plain rule beside."""

    def __init__(self) -> None:
        self.cluster = Brokers(3, replica_lag_time_max_ms=LAG_MS).start()
        self.cluster.kill(2)
        self.cluster.kill(3)
        self.cluster.create_topic("t", *(((1, 2, 3),) * PARTITIONS))
        self.broker = self.cluster.brokers[1]
        self.fetchers = {broker_id: self.fetcher(broker_id) for broker_id in (2, 3)}
        self.others = {broker_id: self.fetcher(broker_id) for broker_id in (2, 3)}
        self.parked: dict[int, int] = {}  # by follower: the token of a fetch that waits
        self.epochs: dict[int, int] = {}
        self.plain: Plain = {}
        self.note_epochs()

    def fetcher(self, broker_id: int) -> Fetcher:
        replica = ReplicaState(replica_id=broker_id, replica_epoch=self.cluster.epochs[broker_id])
        fetcher = Fetcher(self.cluster, replica)
        fetcher.wanted = {(self.cluster.topics["t"], n): 0 for n in range(PARTITIONS)}
        return fetcher

    def role(self, index: int) -> LeaderOf:
        return self.cluster.leader_role(1, "t", index)

    def end(self, index: int) -> int:
        return self.cluster.partition(1, "t", index).open_log.end_offset

    def note_epochs(self) -> None:
        for index in range(PARTITIONS):
            role = self.role(index)
            if self.epochs.get(index) == role.leader_epoch:
                continue
            self.epochs[index] = role.leader_epoch
            for broker_id in (2, 3):
                real = role.followers[broker_id]
                assert real.clock is None, "no fetch of this epoch has come"
                self.plain[index, broker_id] = FollowerProgress(
                    broker_id=broker_id,
                    last_caught_up_ms=real.last_caught_up_ms,
                    last_fetch_ms=real.last_fetch_ms,
                    leader_end_offset=real.leader_end_offset,
                )

    def fetch(self, broker_id: int, how: str) -> None:
        fetcher = self.fetchers[broker_id]
        if broker_id in self.parked or not fetcher.wanted:
            return
        for key in fetcher.wanted if how != "as before" else ():
            fetcher.wanted[key] = max(0, self.end(key[1]) - (how == "behind"))
        ends = {index: self.end(index) for index in range(PARTITIONS)}
        now_ms = self.cluster.now_ms
        request = fetcher.request(max_wait_ms=500 if how == "wait" else 0)
        asked = dict(fetcher.wanted)
        token = self.cluster.ask(1, request)
        refused = self.answer(broker_id, token)
        is_current = fetcher.replica.replica_epoch == self.cluster.epochs[broker_id]
        for (_, index), offset in asked.items():
            if not refused and is_current and offset <= ends[index]:
                self.plain[index, broker_id].note_fetch(
                    fetch_offset=offset, leader_end_offset=ends[index], now_ms=now_ms
                )

    def answer(self, broker_id: int, token: int) -> bool:
        """Is the whole request refused?"""
        response = self.cluster.answers.get(token)
        if response is None:
            self.parked[broker_id] = token
            return False
        assert isinstance(response, FetchResponse)
        self.parked.pop(broker_id, None)
        self.fetchers[broker_id].answered(response)
        return response.error_code is not ErrorCode.NONE

    def act(self, move: str, number: int, how: str) -> None:
        match move:
            case "fetch":
                self.fetch(number, how)
            case "produce":
                self.cluster.produce(1, "t", number, batch_of(b"x"), acks=1)
            case "forget" | "start over" | "other session" if number not in self.parked:
                self.ask_otherwise(move, number, how)
            case "lead anew":
                self.cluster.change("t", number, leader=1)
            case "leave isr" | "join isr":
                members = set(self.role(int(how)).isr.members) | {number}
                if move == "leave isr":
                    members.remove(number)
                self.cluster.change("t", int(how), isr=tuple(sorted(members)))
            case "register":
                self.cluster.epochs[number] = epoch = self.cluster.metadata_end
                self.cluster.write(
                    RegisterBrokerRecord(
                        broker_id=number,
                        incarnation_id=UUID(int=epoch),
                        broker_epoch=epoch,
                        end_points=(),
                        features=(),
                        rack=None,
                        fenced=False,
                        log_dirs=(),
                    )
                )
                self.cluster.settle()
            case "pass":
                self.cluster.run(number)

    def ask_otherwise(self, move: str, number: int, how: str) -> None:
        before = self.fetchers[number]
        match move:
            case "forget":
                before.wanted.pop((self.cluster.topics["t"], int(how)), None)
            case "start over":
                self.fetchers[number] = self.fetcher(number)
                self.fetchers[number].session = (before.session[0], 0)
            case "other session":  # the leader keeps the first, and may hear of it again
                self.fetchers[number], self.others[number] = self.others[number], before

    def compare(self) -> None:
        for broker_id, token in tuple(self.parked.items()):
            self.answer(broker_id, token)
        self.note_epochs()
        for index in range(PARTITIONS):
            role, partition = self.role(index), self.cluster.partition(1, "t", index)
            plain = {broker_id: self.plain[index, broker_id] for broker_id in (2, 3)}
            for broker_id, follower in role.followers.items():
                assert as_noted(follower) == as_noted(plain[broker_id]), (index, broker_id)
                rests = follower.clock is not None
                assert not rests or partition.resting(broker_id) is follower, (index, broker_id)
            lagging = isr.out_of_sync(
                role.isr,
                plain,
                leader_end_offset=self.end(index),
                now_ms=self.cluster.now_ms,
                lag_time_max_ms=LAG_MS,
            )
            assert not lagging or partition in self.broker.lag_watch, (index, lagging)


def as_noted(follower: FollowerProgress) -> tuple[int, int, int, int]:
    """The follower's end and times, whether they are its own or its session's."""
    own = FollowerProgress(
        broker_id=follower.broker_id,
        last_caught_up_ms=follower.last_caught_up_ms,
        last_fetch_ms=follower.last_fetch_ms,
        clock=follower.clock,
    )
    isr.leave_session(own)
    return (
        follower.log_end_offset,
        follower.leader_end_offset,
        own.last_caught_up_ms,
        own.last_fetch_ms,
    )


@settings(max_examples=25, deadline=None)
@given(moves=MOVES)
def test_a_follower_that_rests_is_judged_as_if_each_fetch_were_noted_for_each_partition(
    moves: list[tuple[str, int, str]],
) -> None:
    followed = Followed()
    for move, number, how in moves:
        followed.act(move, number, how)
        followed.compare()
        followed.cluster.run(1)


def test_partitions_at_rest_are_not_walked() -> None:
    followed = Followed()
    for _ in range(2):
        for broker_id in (2, 3):
            followed.fetch(broker_id, "end")
    followed.cluster.run(LAG_MS)
    assert not list(followed.broker.lag_watch)

    followed.act("produce", 1, "")
    (partition,) = followed.broker.lag_watch
    assert partition.name == "t-1"


def test_follower_that_leaves_the_isr_rests_no_longer_and_may_join_again() -> None:
    followed = Followed()
    for _ in range(2):
        for broker_id in (2, 3):
            followed.fetch(broker_id, "end")
    followed.compare()
    assert followed.role(0).followers[3].clock is not None
    followed.act("leave isr", 3, "0")
    followed.compare()
    assert followed.role(0).followers[2].clock is not None
    followed.fetch(3, "end")
    followed.cluster.settle()
    assert set(followed.role(0).isr.members) == {1, 2, 3}


def test_a_new_leader_answers_the_fetches_of_its_followers_that_wait() -> None:
    """Their next fetch then asks for the partition: they need not wait until their time is up."""
    followed = Followed()
    for broker_id in (2, 3):
        followed.fetch(broker_id, "end")
        followed.fetch(broker_id, "wait")
    assert followed.parked.keys() == {2, 3}

    followed.cluster.create_topic("new", (1, 2))
    followed.compare()
    assert followed.parked.keys() == {3}


def test_topics_may_be_named_in_a_session() -> None:
    """Older fetchers name topics: a topic that is created anew is another one for them as well."""
    cluster = Brokers(1).start()
    cluster.create_topic("t", (1,))
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    topic = FetchTopic(topic="t", topic_id=ZERO_UUID, partitions=(partition,))
    first = FetchRequest(
        replica_state=CONSUMER, max_wait_ms=0, min_bytes=1, session_epoch=0, topics=(topic,)
    )
    session_id = cluster.call(1, first).session_id
    cluster.delete_topic("t")
    cluster.create_topic("t", (1,), number=77)
    cluster.produce(1, "t", 0, batch_of(b"x"), acks=1)

    again = FetchRequest(
        replica_state=CONSUMER,
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=1,
        topics=(),
    )
    (told,) = cluster.call(1, again).responses
    assert told.partitions[0].high_watermark == 1


@pytest.mark.parametrize("how", ["no room", "final epoch", "another session"])
def test_follower_that_fetches_elsewhere_rests_in_its_session_no_longer(how: str) -> None:
    assert members_after_a_fetch_elsewhere(how) == (1,), "it lags, and leaves the ISR"


def test_follower_that_rests_in_two_sessions_is_found() -> None:
    with planted("lets_it_rest_in_two_sessions"):
        assert members_after_a_fetch_elsewhere("another session") == (1, 2)


def members_after_a_fetch_elsewhere(how: str) -> tuple[int, ...]:
    """A follower rests in its session, and begins again at offset 0, not in that session."""
    followed = Followed()
    broker = followed.broker

    def fetch_twice() -> None:
        followed.fetch(2, "end")
        followed.fetch(2, "end")

    fetch_twice()
    followed.cluster.produce(1, "t", 0, batch_of(b"x"), acks=1)
    fetch_twice()
    followed.cluster.run(2 * LAG_MS)
    fetch_twice()
    followed.cluster.run(LAG_MS)
    partition = followed.cluster.partition(1, "t", 0)
    assert partition not in broker.lag_watch
    if how == "no room":
        broker._fetching._sessions._slots = 1
    late = followed.fetcher(2)  # the same incarnation, which knows of no session, at offset 0
    followed.cluster.call(1, late.request(is_full=how == "final epoch"))
    followed.cluster.run(10 * LAG_MS)
    role = partition.role
    assert isinstance(role, LeaderOf)
    return role.isr.members
