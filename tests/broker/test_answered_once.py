"""Every request that waits is answered exactly once, whatever happens before its time is up.

Producers wait for replicas, fetches for records, deletions for followers and commits of groups for
the log of their group. Meanwhile leaders change, followers are cut off, sessions are closed or
pushed out, and there are fewer places to wait than requests.
"""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.config import GroupConfig
from broker.coordination.writing import Write
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.groups.records import Change
from broker.waiting import Deadlines, Expire, Waiter
from tests.broker.brokers import Brokers, batch_of, fetch_request, produce_request
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.fetching import FetchRequest, FetchResponse
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

LONGEST_MS = 1000  # no request here waits for longer
SESSION = ["start", "go on", "go on"]
REQUESTS = ["produce", "produce", "delete records", "fetch", *SESSION, "commit", "offsets"]
EVENTS = ["cut off", "cut off", "heal", "elect", "close", "start over", "recreate"]
Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(REQUESTS), st.integers(1, 2), st.integers(0, 1)),
        st.tuples(st.sampled_from(REQUESTS), st.just(1), st.integers(0, 1)),
        st.tuples(st.sampled_from(EVENTS), st.integers(1, 3), st.integers(0, 2)),
        st.tuples(st.just("pass"), st.just(0), st.sampled_from([1, 100, 400, 1500])),
    ),
    min_size=10,
    max_size=40,
)


class History:
    def __init__(self, places: int, slots: int) -> None:
        self.cluster = Brokers(
            3,
            parked_requests_max=places,  # two of them are the followers', if these come first
            session_cache_slots=slots,
            session_eviction_ms=300,
            groups=GroupConfig(commit_timeout_ms=500),
            replica_lag_time_max_ms=1000,
        ).start()
        self.cluster.latency_ms = lambda: 5
        self.cluster.create_topic("t", (1, 2, 3), (1, 2))
        self.cluster.create_topic(OFFSETS_TOPIC, (1, 2, 3))
        self.cluster.run(600)  # the fetches of followers that began before are over
        self.asked: dict[int, object] = {}
        self.starting: dict[int, int] = {}  # by token: the broker that may grant a session
        self.sessions: dict[int, tuple[int, int]] = {}  # by broker: id and next epoch

    def act(self, step: str, broker: int, number: int) -> None:
        events: dict[str, Callable[[], object]] = {
            "cut off": lambda: self.cluster.cut.update({(2, 1), (3, 1), (broker, 2)}),
            "heal": self.cluster.cut.clear,
            "elect": partial(self.elect, broker, number),
            "close": partial(self.end_session, broker, -1),
            "start over": partial(self.end_session, broker, 0),
            "recreate": self.recreate,
            "pass": partial(self.cluster.run, number),
        }
        if step in events:
            events[step]()
        else:
            self.ask(broker, self.request(step, broker, number))
        self.learn_sessions()

    def ask(self, broker: int, body: object) -> None:
        token = self.cluster.ask(broker, body)
        self.asked[token] = body
        if isinstance(body, FetchRequest) and body.session_epoch == 0:
            self.starting[token] = broker

    def request(self, step: str, broker: int, number: int) -> object:
        match step:
            case "produce":
                return produce_request("t", number, batch_of(b"x"))
            case "delete records":
                deletion = DeleteRecordsPartition(partition_index=number, offset=-1)
                topic = DeleteRecordsTopic(name="t", partitions=(deletion,))
                return DeleteRecordsRequest(topics=(topic,), timeout_ms=1000)
            case "commit":
                place = OffsetCommitRequestPartition(partition_index=number, committed_offset=1)
                committed = OffsetCommitRequestTopic(name="t", partitions=(place,))
                return OffsetCommitRequest(group_id="g", topics=(committed,))
            case "offsets":
                groups = (OffsetFetchRequestGroup(group_id="g"),)
                return OffsetFetchRequest(groups=groups, require_stable=True)
            case "start":
                return replace(self.fetch(number, session_epoch=0), max_wait_ms=0)
            case "go on" if broker in self.sessions:
                session_id, epoch = self.sessions[broker]
                self.sessions[broker] = session_id, epoch + 1
                request = self.fetch(number, session_id=session_id, session_epoch=epoch)
                return replace(request, topics=())
            case _:
                return self.fetch(number)

    def fetch(self, index: int, **session: int) -> FetchRequest:
        """It waits at the end of the log."""
        leader = self.cluster.states[(self.cluster.topics["t"], index)].leader
        end, _ = self.cluster.ends("t", index).get(leader, (0, 0))
        topic_id = self.cluster.topics["t"]
        request = fetch_request("", index, end, max_wait_ms=700, topic_id=topic_id)
        return replace(request, **session)

    # --- what happens meanwhile

    def elect(self, broker: int, number: int) -> None:
        topic, index = (OFFSETS_TOPIC, 0) if number == 2 else ("t", number)
        if broker in self.cluster.states[(self.cluster.topics[topic], index)].isr:
            self.cluster.change(topic, index, leader=broker)

    def end_session(self, broker: int, session_epoch: int) -> None:
        """A fetch in it may wait; this one ends the session, or begins the next."""
        session_id, _ = self.sessions.pop(broker, (0, 0))
        self.ask(broker, self.fetch(0, session_id=session_id, session_epoch=session_epoch))

    def recreate(self) -> None:
        self.cluster.delete_topic("t")
        self.cluster.create_topic("t", (1, 2, 3), (1, 2), number=len(self.cluster.metadata))

    def learn_sessions(self) -> None:
        for token in self.starting.keys() & self.cluster.answers.keys():
            answer, broker = self.cluster.answers[token], self.starting.pop(token)
            assert isinstance(answer, FetchResponse)
            if answer.session_id:
                self.sessions[broker] = (answer.session_id, 1)

    def check(self) -> None:
        """Each has its answer; `Brokers` has refused a second one."""
        self.cluster.cut.clear()
        self.cluster.run(2 * LONGEST_MS)
        missing = [self.asked[token] for token in self.asked.keys() - self.cluster.answers.keys()]
        assert not missing, f"never answered: {missing}"


def play(steps: list[Step], places: int = 3, slots: int = 2) -> None:
    history = History(places, slots)
    for step in steps:
        history.act(*step)
    history.check()


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, places=st.sampled_from([3, 8]), slots=st.integers(2, 3))
def test_every_request_is_answered_exactly_once(steps: list[Step], places: int, slots: int) -> None:
    play(steps, places, slots)


# --- bugs that it must find -----------------------------------------------------------------

COMMITS_LATE: list[Step] = [
    ("cut off", 1, 0),
    ("commit", 1, 0),
    ("pass", 0, 600),
    ("heal", 1, 0),
]
NO_PLACE_IS_LEFT: list[Step] = [("fetch", 1, 0)] * 4


@pytest.mark.parametrize("steps", [COMMITS_LATE, NO_PLACE_IS_LEFT])
def test_these_histories_are_right_without_a_bug(steps: list[Step]) -> None:
    play(steps)


def test_second_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit whose time is up is told so, and told again when it is committed."""

    def conclude(self: Write[Change], error: ErrorCode, now_ms: int) -> None:
        self.concluded(error, now_ms)

    monkeypatch.setattr(Write, "conclude", conclude)
    with pytest.raises(AssertionError, match="answered twice"):
        play(COMMITS_LATE)


def test_request_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch that finds no place to wait waits all the same."""
    add = Deadlines.add

    def always_add(self: Deadlines, waiter: Waiter, deadline_ms: int, expire: Expire) -> bool:
        return add(self, waiter, deadline_ms, expire) or True

    monkeypatch.setattr(Deadlines, "add", always_add)
    with pytest.raises(AssertionError, match="never answered"):
        play(NO_PLACE_IS_LEFT)
