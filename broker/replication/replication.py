"""A broker has one fetcher for each other broker that leads partitions which it follows.

This module decides which partitions are asked of whom, and when again. One Fetch is in flight for
each leader; the leader holds it until there is something to say. What an answer means for a
partition is in following.py.

A request costs what has changed, not what is followed: a partition is *touched* if what to ask of
it may differ from what its leader was last asked, and only those are looked at.

Source: KIP-227 (sessions), KIP-595; Kafka's AbstractFetcherThread and ReplicaFetcherManager.
"""

from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from uuid import UUID

from broker.cluster import Cluster, Incarnation
from broker.fetch_protocol import EARLIEST, LATEST, PartitionKey
from broker.partition.partition import FollowerOf, Partition
from broker.replication import following
from broker.replication.following import Fenced, FetchOn, Mismatch, Outcome, OutOfRange, TryLater
from broker.replication.replica_session import ReplicaSession
from quorum.core.effects import Event, body_of, earliest
from quorum.core.outbox import Answered, Outbox
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchRequest,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ReplicaState,
)

__all__ = ["Replication"]

_NEVER = 1 << 62
# How long a leader may keep a fetch from which some partition is left out: its turn comes with the
# next one, and meanwhile the leader may remove the records that it needs.
_REWRITE_WAIT_MS = 20


@dataclass(slots=True, eq=False)
class Followed:
    """A fetcher looks after this partition."""

    partition: Partition
    next_fetch_ms: int = 0  # _NEVER: not before its metadata changes


class Replication:
    """The replication of a broker keeps a fetcher for each leader."""

    def __init__(self, *, cluster: Cluster, outbox: Outbox, incarnation: Incarnation) -> None:
        self._cluster = cluster
        self._outbox = outbox
        self._incarnation = incarnation
        self._fetchers: dict[int, Fetcher] = {}
        self._fetched_by: dict[Partition, Fetcher] = {}

    def follow(self, partition: Partition, now_ms: int) -> None:
        """The replica follows in a new leader epoch, perhaps nobody."""
        self.stop(partition)
        role = partition.role
        assert isinstance(role, FollowerOf), role
        if role.leader_id < 0:
            return  # it may be we that lead next: nothing is taken back for nobody
        if not self._cluster.config.follows_by_epoch:
            partition.open_log.truncate(partition.open_log.high_watermark)
        fetcher = self._fetchers.get(role.leader_id)
        if fetcher is None:
            fetcher = Fetcher(role.leader_id, self._cluster, self._outbox, self._incarnation)
            self._fetchers[role.leader_id] = fetcher
        fetcher.add(partition)
        self._fetched_by[partition] = fetcher
        fetcher.tick(now_ms)

    def stop(self, partition: Partition) -> None:
        fetcher = self._fetched_by.pop(partition, None)
        if fetcher is not None:
            fetcher.remove(partition)

    def moved(self, partition: Partition) -> None:
        """The log of a follower starts or ends elsewhere, perhaps by no fetch."""
        fetcher = self._fetched_by.get(partition)
        if fetcher is not None:
            fetcher.touch(key_of(partition))

    def tick(self, now_ms: int) -> None:
        for fetcher in self._fetchers.values():
            fetcher.tick(now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(*map(Fetcher.deadline_ms, self._fetchers.values()))


class Fetcher:
    """A fetcher asks one leader for what is followed here."""

    def __init__(
        self, leader_id: int, cluster: Cluster, outbox: Outbox, incarnation: Incarnation
    ) -> None:
        self._leader_id = leader_id
        self._cluster = cluster
        self._config = cluster.config
        self._outbox = outbox
        self._incarnation = incarnation
        self._followed: dict[PartitionKey, Followed] = {}
        self._by_id: dict[tuple[UUID, int], PartitionKey] = {}
        self._by_name: dict[tuple[str, int], PartitionKey] = {}
        self._touched: dict[PartitionKey, None] = {}
        self._later: list[tuple[int, int, PartitionKey]] = []  # a heap: when to touch it again
        self._count = 0
        self._session = ReplicaSession()
        self._is_fetching = False
        self._locating: set[PartitionKey] = set()  # out of range, and the leader is asked
        self._rewriting: set[PartitionKey] = set()  # left out until their logs are rewritten
        self._next_fetch_ms = 0

    def add(self, partition: Partition) -> None:
        key = key_of(partition)
        self._followed[key] = Followed(partition)
        self._by_id[(key.topic_id, key.partition)] = key
        self._by_name[(key.topic, key.partition)] = key
        self._touched[key] = None

    def remove(self, partition: Partition) -> None:
        key = key_of(partition)
        del self._followed[key]
        self._touched[key] = None
        del self._by_id[(key.topic_id, key.partition)]
        if self._by_name[(key.topic, key.partition)] == key:  # else another topic has the name
            del self._by_name[(key.topic, key.partition)]

    def touch(self, key: PartitionKey) -> None:
        if key in self._followed:
            self._touched[key] = None

    def tick(self, now_ms: int) -> None:
        """Fetch what is wanted, but not while the leader is asked where a log begins or ends.

        A fetch of the others might wait at the leader for long, and meanwhile the leader goes on
        removing the old records that the replica out of range needs.
        """
        if self._is_fetching or self._locating or now_ms < self._next_fetch_ms:
            return
        self._look_at_touched(now_ms)
        if self._session.wanted:
            self._fetch(now_ms)

    def deadline_ms(self) -> int | None:
        if self._is_fetching or self._locating:
            return None
        if self._touched or self._session.wanted:
            return self._next_fetch_ms
        return max(self._later[0][0], self._next_fetch_ms) if self._later else None

    def _look_at_touched(self, now_ms: int) -> None:
        """Want what may be asked for as it is now, and nothing else."""
        while self._later and self._later[0][0] <= now_ms:
            self.touch(heappop(self._later)[2])
        touched, self._touched = self._touched, {}
        for key in touched:
            followed = self._followed.get(key)
            role = None if followed is None else followed.partition.role
            self._rewriting.discard(key)
            if followed is None or not isinstance(role, FollowerOf):
                self._session.drop(key)
            elif followed.partition.open_log.is_rewriting:
                self._session.drop(key)
                self._rewriting.add(key)
            elif followed.next_fetch_ms > now_ms:
                self._session.drop(key)
                self._touch_later(key, followed.next_fetch_ms)
            else:
                self._session.want(
                    key,
                    following.fetch_partition(
                        followed.partition,
                        role,
                        bytes_max=self._config.replica_fetch_max_bytes,
                        by_epoch=self._config.follows_by_epoch,
                    ),
                )

    def _touch_later(self, key: PartitionKey, at_ms: int) -> None:
        if at_ms < _NEVER:
            self._count += 1
            heappush(self._later, (at_ms, self._count, key))

    def _fetch(self, now_ms: int) -> None:
        asked, wait_max_ms = self._session.ask(), self._config.replica_fetch_wait_max_ms
        if self._session.has_unsent:
            wait_max_ms = 0
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._config.node_id, replica_epoch=self._incarnation.broker_epoch
            ),
            max_wait_ms=min(wait_max_ms, _REWRITE_WAIT_MS) if self._rewriting else wait_max_ms,
            min_bytes=self._config.replica_fetch_min_bytes,
            max_bytes=self._config.replica_fetch_response_max_bytes,
            session_id=asked.session_id,
            session_epoch=asked.session_epoch,
            topics=asked.topics,
            forgotten_topics_data=asked.forgotten,
        )
        self._is_fetching = self._send(request, "replica-fetch", self._answered)
        if not self._is_fetching:
            self._session.failed()
            self._next_fetch_ms = now_ms + self._config.replica_fetch_backoff_ms

    def _send(self, body: object, channel: str, answered: Answered) -> bool:
        """False if the leader is fenced, or has no listener for us: there is no way to it."""
        endpoint = self._cluster.endpoint(self._leader_id, self._config.inter_broker_listener_name)
        if endpoint is None:
            return False
        timeout_ms = self._config.replica_socket_timeout_ms
        self._outbox.ask(endpoint, body, channel=channel, timeout_ms=timeout_ms, answered=answered)
        return True

    # --- answers ----------------------------------------------------------------------------

    def _answered(self, event: Event, now_ms: int) -> None:
        self._is_fetching = False
        body = body_of(event)
        if not isinstance(body, FetchResponse):
            self._session.failed()
            self._next_fetch_ms = now_ms + self._config.replica_fetch_backoff_ms
            return
        self._session.answered(body)
        if body.error_code is ErrorCode.NONE:
            self._take(body, now_ms)
        else:
            self._outbox.trace("fetch-session", leader=self._leader_id, error=body.error_code.name)
        self.tick(now_ms)

    def _take(self, body: FetchResponse, now_ms: int) -> None:
        sent = self._session.sent
        for topic in body.responses:
            for data in topic.partitions:
                if topic.topic_id.int:
                    key = self._by_id.get((topic.topic_id, data.partition_index))
                else:
                    key = self._by_name.get((topic.topic, data.partition_index))
                if key is None or key not in sent:
                    continue
                followed = self._followed[key]
                self._touched[key] = None
                if not following.is_stale(followed.partition, sent[key]):
                    outcome = following.follow(followed.partition, data)
                    self._conclude(key, followed, outcome, now_ms)

    def _conclude(
        self, key: PartitionKey, followed: Followed, outcome: Outcome, now_ms: int
    ) -> None:
        match outcome:
            case FetchOn():
                return
            case TryLater():
                followed.next_fetch_ms = now_ms + self._config.replica_fetch_backoff_ms
            case Fenced() | Mismatch():
                followed.next_fetch_ms = _NEVER
            case OutOfRange():
                self._locate(key, followed, LATEST, now_ms)
        self._outbox.trace(
            "fetch-refused",
            partition=followed.partition.name,
            leader=self._leader_id,
            outcome=type(outcome).__name__,
            reason=getattr(outcome, "reason", ""),
        )

    # --- out of range -----------------------------------------------------------------------

    def _locate(self, key: PartitionKey, followed: Followed, timestamp: int, now_ms: int) -> None:
        """Ask the leader where its log ends or begins."""
        asked = ListOffsetsPartition(
            partition_index=key.partition,
            current_leader_epoch=followed.partition.leader_epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=self._config.node_id,
            isolation_level=0,
            topics=(ListOffsetsTopic(name=key.topic, partitions=(asked,)),),
            timeout_ms=self._config.replica_socket_timeout_ms,
        )
        answered = partial(self._located, key, followed, asked)
        if self._send(request, "replica-offsets", answered):
            self._locating.add(key)
        else:
            followed.next_fetch_ms = now_ms + self._config.replica_fetch_backoff_ms

    def _located(
        self,
        key: PartitionKey,
        followed: Followed,
        asked: ListOffsetsPartition,
        event: Event,
        now_ms: int,
    ) -> None:
        self._locating.discard(key)
        if self._followed.get(key) is not followed:
            return
        self.touch(key)
        body = body_of(event)
        found = located(body) if isinstance(body, ListOffsetsResponse) else None
        if found is None:
            followed.next_fetch_ms = now_ms + self._config.replica_fetch_backoff_ms
            return
        log = followed.partition.open_log
        if asked.timestamp == LATEST:
            if found.offset < log.end_offset:
                log.truncate(found.offset)
                followed.next_fetch_ms = now_ms
            else:
                self._locate(key, followed, EARLIEST, now_ms)
            return
        if found.offset > log.end_offset:
            log.reset(found.offset)
            followed.next_fetch_ms = now_ms
            return
        followed.next_fetch_ms = now_ms + self._config.replica_fetch_backoff_ms


def key_of(partition: Partition) -> PartitionKey:
    return PartitionKey(partition.topic, partition.topic_id, partition.index)


def located(body: ListOffsetsResponse) -> ListOffsetsPartitionResponse | None:
    """The one answer in it, unless it is an error."""
    for topic in body.topics:
        for result in topic.partitions:
            return result if result.error_code is ErrorCode.NONE else None
    return None
