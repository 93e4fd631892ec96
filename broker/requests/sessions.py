"""In an incremental fetch session, requests and answers hold only what has changed.

A session decides which partitions a Fetch has to look at and which belong into its answer. The
number of sessions is bounded. A session reads nothing and waits for nothing: see fetching.py.

A session has an id and an epoch that grows with every request, so that a lost or repeated request
is noticed. Followers' sessions may push out clients', not the other way round.

A fetch costs what has changed, not what its session holds. A partition of a session is *due* if a
fetch has to look at it: it has moved, the fetcher asks for something else, it has something to say
that was not said yet, or its follower has to be judged at every fetch. What is not due is at rest:
there is nothing to say, and nothing to note but that the follower has fetched, which the clock of
the session does for all of them at once (isr.py). So whatever could make it worth looking at a
partition at rest must mark it, in every session that holds it.

Source: KIP-227; Kafka's FetchSession and FetchSessionCache. Topic ids: KIP-516.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from broker.fetch_protocol import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    PartitionKey,
    next_epoch,
)
from broker.partition import isr
from broker.partition.isr import FollowerProgress, SessionClock
from broker.partition.lag_watch import LagWatch
from broker.partition.partition import LeaderOf, Partition
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ReplicaState,
    diverges,
)
from wire.primitives import INT32_MAX

__all__ = [
    "FetchContext",
    "FetchSessions",
    "Incremental",
    "Session",
    "SessionPartition",
    "SessionRefused",
    "Sessionless",
    "Started",
]


@dataclass(slots=True, eq=False)
class SessionPartition:
    """A session remembers what is asked of a partition, and what was last answered."""

    session: "Session"
    key: PartitionKey
    asked: FetchPartition
    place: int  # in the line: answers that are limited in size begin with the lowest
    partition: Partition | None = None  # the local replica as it was when last looked for
    follower: FollowerProgress | None = None  # which rests in this session
    is_marked: bool = False  # something has happened since it was last looked at
    high_watermark: int = -1
    log_start_offset: int = -1
    was_in_vain: bool = False  # an error, or where to cut the log: the fetcher ignored the rest


@dataclass(slots=True, eq=False, kw_only=True)
class Session:
    """A session with the id `NO_SESSION` lasts for one request."""

    id: int
    replica: ReplicaState = field(default_factory=ReplicaState)  # a consumer's id is negative
    uses_topic_ids: bool = False
    epoch: int = 1  # the next one expected
    created_ms: int = 0
    clock: SessionClock = field(default_factory=lambda: SessionClock(0))
    partitions: dict[PartitionKey, SessionPartition] = field(default_factory=dict)
    due: dict[SessionPartition, None] = field(default_factory=dict)
    places: int = 0
    is_closed: bool = False

    @property
    def is_followers(self) -> bool:
        return self.replica.replica_id >= 0

    def add(self, key: PartitionKey, asked: FetchPartition, place: int | None = None) -> None:
        item = SessionPartition(self, key, asked, self.next_place() if place is None else place)
        self.partitions[key] = item
        self.due[item] = None

    def next_place(self) -> int:
        """Behind all that have one."""
        self.places += 1
        return self.places

    def line(self) -> list[SessionPartition]:
        """Those that the next fetch has to look at, in order."""
        line = sorted(self.due, key=lambda item: item.place)
        self.due = dict.fromkeys(line)  # going through a dictionary costs what it has ever held
        return line


@dataclass(frozen=True, slots=True)
class SessionRefused:
    error: ErrorCode


Results = Iterable[tuple[SessionPartition, FetchedPartition]]


@dataclass(frozen=True, slots=True)
class Sessionless:
    """Everything is asked, and everything is answered."""

    session: Session

    def answer(self, results: Results) -> FetchResponse:
        return FetchResponse(session_id=NO_SESSION, responses=by_topic(results))


@dataclass(frozen=True, slots=True)
class Started:
    """The answer to the first request of a session is complete, too."""

    session: Session

    def answer(self, results: Results) -> FetchResponse:
        sent = list(results)
        for item, data in sent:
            note_answer(item, data)
        return FetchResponse(session_id=self.session.id, responses=by_topic(sent))


@dataclass(frozen=True, slots=True)
class Incremental:
    session: Session

    def answer(self, results: Results) -> FetchResponse:
        """Only what is worth sending. Partitions with records go to the end of the line, so that
        the others come first when the next answer has a size limit."""
        session, sent = self.session, []
        for item, data in results:
            if session.partitions.get(item.key) is not item or not worth_sending(item, data):
                continue
            sent.append((item, data))
            note_answer(item, data)
            if data.records:
                item.place = session.next_place()
        return FetchResponse(session_id=session.id, responses=by_topic(sent))


FetchContext = Sessionless | Started | Incremental


def worth_sending(known: SessionPartition, data: FetchedPartition) -> bool:
    """Does this tell the fetcher of a session anything new?"""
    return (
        bool(data.records)
        or data.error_code is not ErrorCode.NONE
        or known.was_in_vain
        or data.high_watermark != known.high_watermark
        or data.log_start_offset != known.log_start_offset
        or diverges(data)
        or data.preferred_read_replica != -1
    )


def note_answer(item: SessionPartition, data: FetchedPartition) -> None:
    item.high_watermark = data.high_watermark
    item.log_start_offset = data.log_start_offset
    item.was_in_vain = data.error_code is not ErrorCode.NONE or diverges(data)


def by_topic(results: Results) -> tuple[FetchedTopic, ...]:
    topics: dict[tuple[str, UUID], list[FetchedPartition]] = {}
    for item, data in results:
        topics.setdefault((item.key.topic, item.key.topic_id), []).append(data)
    return tuple(
        FetchedTopic(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
        for (topic, topic_id), partitions in topics.items()
    )


class FetchSessions:
    """A broker knows its sessions, and which of them hold which partition."""

    def __init__(
        self, *, slots: int, eviction_ms: int, random: Random, lag_watch: LagWatch | None = None
    ) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._random = random
        self._lag_watch = LagWatch() if lag_watch is None else lag_watch
        self._sessions: dict[int, Session] = {}  # least recently used first
        self._holders: dict[str, dict[SessionPartition, None]] = {}  # by partition
        self._closed: list[Session] = []

    def __len__(self) -> int:
        return len(self._sessions)

    # --- requests ---------------------------------------------------------------------------

    def open(self, request: FetchRequest, now_ms: int) -> FetchContext | SessionRefused:
        """What this request asks for, by itself or within its session."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            before = self._sessions.get(request.session_id)
            if before is not None:
                self.close(before)
            if request.session_epoch == FINAL_EPOCH:
                return Sessionless(session_of(request, NO_SESSION, now_ms))
            return self._start(request, now_ms)
        return self._continue(request, now_ms)

    def _start(self, request: FetchRequest, now_ms: int) -> FetchContext:
        session = session_of(request, NO_SESSION, now_ms)
        if not self._make_room(len(session.partitions), session.is_followers, now_ms):
            return Sessionless(session)
        session.id = self._unused_id()
        self._sessions[session.id] = session
        return Started(session)

    def _continue(self, request: FetchRequest, now_ms: int) -> FetchContext | SessionRefused:
        session = self._sessions.get(request.session_id)
        if session is None:
            return SessionRefused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != session.epoch:
            return SessionRefused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        names_topics = bool(request.topics or request.forgotten_topics_data)
        if not session.partitions:  # begun with nothing: what comes first says how it goes on
            session.uses_topic_ids = uses_topic_ids(request)
        if names_topics and uses_topic_ids(request) != session.uses_topic_ids:
            return SessionRefused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if names_topics:
            self._update(session, request)
        if not session.partitions:
            self.close(session)
            return Sessionless(Session(id=NO_SESSION, replica=request.replica_state))
        if request.replica_state != session.replica:  # another incarnation, or none that we know
            self._mark_all(session)
            session.replica = request.replica_state
        session.epoch = next_epoch(session.epoch)
        session.clock.last_fetch_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        return Incremental(session)

    def _update(self, session: Session, request: FetchRequest) -> None:
        """A fetcher that asks in another leader epoch has not applied the answers of the one
        before: it has to be told everything again."""
        for key, asked in asked_partitions(request).items():
            known = session.partitions.get(key)
            if known is None:
                session.add(key, asked)
            elif known.asked.current_leader_epoch != asked.current_leader_epoch:
                self._let_go(known)
                session.add(key, asked, known.place)
            else:
                self.mark(known)
                known.asked = asked
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                key = PartitionKey(topic.topic, topic.topic_id, index)
                forgotten = session.partitions.pop(key, None)
                if forgotten is not None:
                    self._let_go(forgotten)

    # --- what has changed -------------------------------------------------------------------

    def mark(self, item: SessionPartition) -> None:
        """The next fetch of the session has to look at this partition."""
        item.is_marked = True
        item.session.due[item] = None
        follower, item.follower = item.follower, None
        if follower is None:
            return
        if follower.clock is item.session.clock:
            isr.leave_session(follower)
        partition = item.partition
        assert partition is not None, item.key
        if isinstance(partition.role, LeaderOf):
            self._lag_watch.add(partition)

    def mark_holders(self, name: str) -> tuple[SessionPartition, ...]:
        """The partition has moved: mark it in all sessions that hold it."""
        holders = self.holders(name)
        for item in holders:
            self.mark(item)
        return holders

    def holders(self, name: str) -> tuple[SessionPartition, ...]:
        """The partition in each session that has looked at it."""
        return tuple(self._holders.get(name, ()))

    def mark_out_of_sync(self, name: str, isr: Collection[int]) -> None:
        """A follower outside the ISR does not rest: each of its fetches has to be noted."""
        for item in self.holders(name):
            if item.follower is not None and item.follower.broker_id not in isr:
                self.mark(item)

    def mark_followers(self, brokers: Collection[int]) -> None:
        """Something else is known of these brokers: look anew at what they follow."""
        for session in self._sessions.values():
            if session.is_followers and session.replica.replica_id in brokers:
                self._mark_all(session)

    def _mark_all(self, session: Session) -> None:
        for item in session.partitions.values():
            self.mark(item)

    # --- what is looked at ------------------------------------------------------------------

    def look(self, item: SessionPartition, partition: Partition | None) -> None:
        """The partition is being looked at for an answer: hear of what happens to it from now on.

        Of a follower's sessions one at a time may count for a partition.
        """
        item.is_marked = False
        if item.partition is not partition:
            self._stop_hearing(item)
            item.partition = partition
        if partition is not None:
            self._holders.setdefault(partition.name, {})[item] = None
        self.mark_others(item)

    def rest(self, item: SessionPartition, follower: FollowerProgress | None) -> None:
        """Nothing is left to say of it. `follower` stands at the end, and rests as well."""
        session = item.session
        is_held = session.partitions.get(item.key) is item and not session.is_closed
        if item.is_marked or not is_held:
            return
        session.due.pop(item, None)
        if follower is not None:
            self.mark_others(item)
            item.follower = follower
            isr.rest_in_session(follower, session.clock)

    def mark_others(self, item: SessionPartition) -> None:
        """The follower is heard of in this session: it rests in no other of its own."""
        if item.partition is None or not item.session.is_followers:
            return
        for other in self._holders.get(item.partition.name, ()):
            is_same_follower = other.session.replica.replica_id == item.session.replica.replica_id
            if other is not item and is_same_follower:
                self.mark(other)

    def _stop_hearing(self, item: SessionPartition) -> None:
        if item.partition is None:
            return
        holders = self._holders[item.partition.name]
        del holders[item]
        if not holders:
            del self._holders[item.partition.name]

    def _let_go(self, item: SessionPartition) -> None:
        self.mark(item)
        del item.session.due[item]
        self._stop_hearing(item)
        item.partition = None

    # --- room -------------------------------------------------------------------------------

    def close(self, session: Session) -> None:
        """The session is over, or the one request that it was made for."""
        if self._sessions.pop(session.id, None) is not None:
            self._closed.append(session)
        session.is_closed = True
        for item in session.partitions.values():
            self._let_go(item)

    def take_closed(self) -> list[Session]:
        """The sessions that were closed since the last call: nobody marks them any more."""
        closed, self._closed = self._closed, []
        return closed

    def _unused_id(self) -> int:
        while True:
            session_id = self._random.randint(1, INT32_MAX)
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, size: int, is_followers: bool, now_ms: int) -> bool:
        if self._slots <= 0:
            return False
        if len(self._sessions) < self._slots:
            return True
        return (
            self._evict(lambda other: now_ms - other.clock.last_fetch_ms > self._eviction_ms)
            or (is_followers and self._evict(lambda other: not other.is_followers))
            or self._evict(
                lambda other: (
                    other.is_followers <= is_followers
                    and len(other.partitions) < size
                    and now_ms - other.created_ms > self._eviction_ms
                )
            )
        )

    def _evict(self, may_go: Callable[[Session], bool]) -> bool:
        """Close the least recently used session that may go."""
        for session in self._sessions.values():
            if may_go(session):
                self.close(session)
                return True
        return False


def uses_topic_ids(request: FetchRequest) -> bool:
    for topic in request.topics:
        if topic.topic_id.int:
            return True
    return any(topic.topic_id.int for topic in request.forgotten_topics_data)


def session_of(request: FetchRequest, session_id: int, now_ms: int) -> Session:
    """A session with all that is asked, none of which has been looked at."""
    session = Session(
        id=session_id,
        replica=request.replica_state,
        uses_topic_ids=uses_topic_ids(request),
        created_ms=now_ms,
        clock=SessionClock(now_ms),
    )
    for key, asked in asked_partitions(request).items():
        session.add(key, asked)
    return session


def asked_partitions(request: FetchRequest) -> dict[PartitionKey, FetchPartition]:
    return {
        PartitionKey(topic.topic, topic.topic_id, partition.partition): partition
        for topic in request.topics
        for partition in topic.partitions
    }
