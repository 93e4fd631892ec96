"""Incremental fetch sessions: a fetcher says what changed, and hears of what changed.

Decides which partitions a Fetch asks for and which belong into its answer, and keeps a bounded
number of sessions. Reads nothing and waits for nothing: see fetching.py.

A session has an id and an epoch that grows with every request, so that a lost or repeated request
is noticed. Followers' sessions may push out clients', not the other way round.

Source: KIP-227; Kafka's FetchSession and FetchSessionCache. Topic ids: KIP-516.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple
from uuid import UUID

from wire.errors import ErrorCode
from wire.messages.fetching import (
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from wire.primitives import INT32_MAX, ZERO_UUID

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "NO_SESSION",
    "FetchContext",
    "FetchSessions",
    "Incremental",
    "PartitionKey",
    "SessionRefused",
    "Sessionless",
    "Started",
    "next_epoch",
    "worth_sending",
]

NO_SESSION = 0
INITIAL_EPOCH = 0  # start a session
FINAL_EPOCH = -1  # end it, or have none


class PartitionKey(NamedTuple):
    """A partition as a request names it: by topic name or, from version 13 on, by topic id."""

    topic: str
    topic_id: UUID
    partition: int


def next_epoch(epoch: int) -> int:
    return 1 if epoch == INT32_MAX else epoch + 1


@dataclass(slots=True)
class SessionPartition:
    """What is asked of a partition, and what was last answered."""

    asked: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    was_in_vain: bool = False  # an error, or where to cut the log: the rest was not heeded


@dataclass(slots=True, kw_only=True)
class Session:
    id: int
    is_privileged: bool  # a follower's
    uses_topic_ids: bool
    epoch: int = 1  # the next one expected
    created_ms: int
    last_used_ms: int
    partitions: dict[PartitionKey, SessionPartition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionRefused:
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Sessionless:
    """Everything asked, everything answered."""

    asked: Mapping[PartitionKey, FetchPartition]

    def partitions(self) -> Iterator[tuple[PartitionKey, FetchPartition]]:
        return iter(self.asked.items())

    def answer(self, results: Iterable[tuple[PartitionKey, FetchedPartition]]) -> FetchResponse:
        return FetchResponse(session_id=NO_SESSION, responses=by_topic(results))


@dataclass(frozen=True, slots=True)
class Started:
    """The first request of a session: its answer is complete too."""

    session: Session

    def partitions(self) -> Iterator[tuple[PartitionKey, FetchPartition]]:
        return ((key, item.asked) for key, item in self.session.partitions.items())

    def answer(self, results: Iterable[tuple[PartitionKey, FetchedPartition]]) -> FetchResponse:
        sent = list(results)
        for key, data in sent:
            note_answer(self.session, key, data)
        return FetchResponse(session_id=self.session.id, responses=by_topic(sent))


@dataclass(frozen=True, slots=True)
class Incremental:
    session: Session

    def partitions(self) -> Iterator[tuple[PartitionKey, FetchPartition]]:
        return ((key, item.asked) for key, item in self.session.partitions.items())

    def is_news(self, key: PartitionKey, *, high_watermark: int, log_start_offset: int) -> bool:
        """Must the fetcher be told of a partition that has neither records nor an error?"""
        known = self.session.partitions.get(key)
        return known is not None and (
            known.was_in_vain
            or known.high_watermark != high_watermark
            or known.log_start_offset != log_start_offset
        )

    def answer(self, results: Iterable[tuple[PartitionKey, FetchedPartition]]) -> FetchResponse:
        """Only what is worth sending. Partitions with records go to the end of the line, so that
        the others come first when the next answer has a size limit."""
        partitions = self.session.partitions
        sent = []
        for key, data in results:
            known = partitions.get(key)
            if known is None or not worth_sending(known, data):
                continue
            sent.append((key, data))
            note_answer(self.session, key, data)
            if data.records:
                partitions[key] = partitions.pop(key)
        return FetchResponse(session_id=self.session.id, responses=by_topic(sent))


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


def diverges(data: FetchedPartition) -> bool:
    return data.diverging_epoch.end_offset != EpochEndOffset().end_offset


def note_answer(session: Session, key: PartitionKey, data: FetchedPartition) -> None:
    known = session.partitions.get(key)
    if known is not None:
        known.high_watermark = data.high_watermark
        known.log_start_offset = data.log_start_offset
        known.was_in_vain = data.error_code is not ErrorCode.NONE or diverges(data)


def by_topic(
    results: Iterable[tuple[PartitionKey, FetchedPartition]],
) -> tuple[FetchedTopic, ...]:
    topics: dict[tuple[str, UUID], list[FetchedPartition]] = {}
    for key, data in results:
        topics.setdefault((key.topic, key.topic_id), []).append(data)
    return tuple(
        FetchedTopic(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
        for (topic, topic_id), partitions in topics.items()
    )


class FetchSessions:
    """The sessions of one broker."""

    def __init__(self, *, slots: int, eviction_ms: int, random: Random) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._random = random
        self._sessions: dict[int, Session] = {}  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, now_ms: int) -> FetchContext | SessionRefused:
        """What this request asks for, by itself or within its session."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH or not request.topics:
                return Sessionless(asked_partitions(request))
            return self._start(request, now_ms)
        return self._continue(request, now_ms)

    def _start(self, request: FetchRequest, now_ms: int) -> FetchContext:
        asked = asked_partitions(request)
        is_privileged = request.replica_state.replica_id >= 0
        if not self._make_room(len(asked), is_privileged, now_ms):
            return Sessionless(asked)
        session = Session(
            id=self._unused_id(),
            is_privileged=is_privileged,
            uses_topic_ids=uses_topic_ids(request),
            created_ms=now_ms,
            last_used_ms=now_ms,
            partitions={key: SessionPartition(partition) for key, partition in asked.items()},
        )
        self._sessions[session.id] = session
        return Started(session)

    def _continue(self, request: FetchRequest, now_ms: int) -> FetchContext | SessionRefused:
        session = self._sessions.get(request.session_id)
        if session is None:
            return SessionRefused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != session.epoch:
            return SessionRefused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        names_topics = bool(request.topics or request.forgotten_topics_data)
        if names_topics and uses_topic_ids(request) != session.uses_topic_ids:
            return SessionRefused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        update(session, request)
        if not session.partitions:
            del self._sessions[session.id]
            return Sessionless({})
        session.epoch = next_epoch(session.epoch)
        session.last_used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        return Incremental(session)

    def _unused_id(self) -> int:
        while True:
            session_id = self._random.randint(1, INT32_MAX)
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, size: int, is_privileged: bool, now_ms: int) -> bool:
        if self._slots <= 0:
            return False
        if len(self._sessions) < self._slots:
            return True
        return (
            self._evict(lambda other: now_ms - other.last_used_ms > self._eviction_ms)
            or (is_privileged and self._evict(lambda other: not other.is_privileged))
            or self._evict(
                lambda other: (
                    other.is_privileged <= is_privileged
                    and len(other.partitions) < size
                    and now_ms - other.created_ms > self._eviction_ms
                )
            )
        )

    def _evict(self, may_go: Callable[[Session], bool]) -> bool:
        """Close the least recently used session that may go."""
        for session_id, session in self._sessions.items():
            if may_go(session):
                del self._sessions[session_id]
                return True
        return False


def uses_topic_ids(request: FetchRequest) -> bool:
    return any(topic.topic_id != ZERO_UUID for topic in request.topics) or any(
        topic.topic_id != ZERO_UUID for topic in request.forgotten_topics_data
    )


def asked_partitions(request: FetchRequest) -> dict[PartitionKey, FetchPartition]:
    return {
        PartitionKey(topic.topic, topic.topic_id, partition.partition): partition
        for topic in request.topics
        for partition in topic.partitions
    }


def update(session: Session, request: FetchRequest) -> None:
    """A fetcher that asks in another leader epoch has not applied the answers of the one before."""
    for key, partition in asked_partitions(request).items():
        known = session.partitions.get(key)
        if known is None or known.asked.current_leader_epoch != partition.current_leader_epoch:
            session.partitions[key] = SessionPartition(partition)
        else:
            known.asked = partition
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.partitions.pop(PartitionKey(topic.topic, topic.topic_id, index), None)
