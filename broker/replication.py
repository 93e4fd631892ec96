"""Followers: one fetcher for each broker that leads something here.

Decides which partitions are asked of whom, and when again. One Fetch is in flight for each leader;
the leader holds it until there is something to say. What an answer means for a partition is in
following.py.

Source: KIP-227 (sessions), KIP-595; Kafka's AbstractFetcherThread and ReplicaFetcherManager.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from broker import following
from broker.cluster import Cluster
from broker.following import Fenced, Mismatch, Outcome, OutOfRange, Progress, TryLater
from broker.offsets import EARLIEST, LATEST
from broker.outbox import Answered, Outbox
from broker.partition import FollowerOf, Partition
from broker.replica_session import ReplicaSession
from broker.sessions import PartitionKey
from quorum.core.effects import Event, Response, earliest
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchPartition,
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

BrokerEpoch = Callable[[], int]
_NEVER = 1 << 62


@dataclass(slots=True, eq=False)
class Followed:
    """A partition that a fetcher looks after."""

    partition: Partition
    next_fetch_ms: int = 0  # _NEVER: not before its metadata changes


class Replication:
    """All fetchers of a broker."""

    def __init__(self, *, cluster: Cluster, outbox: Outbox, broker_epoch: BrokerEpoch) -> None:
        self._cluster = cluster
        self._outbox = outbox
        self._broker_epoch = broker_epoch
        self._fetchers: dict[int, Fetcher] = {}

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
            fetcher = Fetcher(role.leader_id, self._cluster, self._outbox, self._broker_epoch)
            self._fetchers[role.leader_id] = fetcher
        fetcher.add(partition)
        fetcher.tick(now_ms)

    def stop(self, partition: Partition) -> None:
        for fetcher in self._fetchers.values():
            fetcher.remove(partition)

    def tick(self, now_ms: int) -> None:
        for fetcher in self._fetchers.values():
            fetcher.tick(now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(*(fetcher.deadline_ms() for fetcher in self._fetchers.values()))


class Fetcher:
    """Fetches from one leader."""

    def __init__(
        self, leader_id: int, cluster: Cluster, outbox: Outbox, broker_epoch: BrokerEpoch
    ) -> None:
        self._leader_id = leader_id
        self._cluster = cluster
        self._config = cluster.config
        self._outbox = outbox
        self._broker_epoch = broker_epoch
        self._followed: dict[PartitionKey, Followed] = {}
        self._session = ReplicaSession()
        self._is_fetching = False
        self._locating: set[PartitionKey] = set()  # out of range, and the leader is asked
        self._next_fetch_ms = 0

    def add(self, partition: Partition) -> None:
        self._followed[key_of(partition)] = Followed(partition)

    def remove(self, partition: Partition) -> None:
        self._followed.pop(key_of(partition), None)

    def tick(self, now_ms: int) -> None:
        """A replica that is out of range is not left behind: a fetch for the others may wait at the
        leader for long, while old records go on being removed there."""
        is_busy = self._is_fetching or self._locating
        if is_busy or not self._followed or now_ms < self._next_fetch_ms:
            return
        wanted = self._wanted(now_ms)
        if wanted:
            self._fetch(wanted, now_ms)

    def deadline_ms(self) -> int | None:
        if self._is_fetching or self._locating or not self._followed:
            return None
        due = min(followed.next_fetch_ms for followed in self._followed.values())
        return None if due >= _NEVER else max(due, self._next_fetch_ms)

    def _wanted(self, now_ms: int) -> dict[PartitionKey, FetchPartition]:
        wanted = {}
        for key, followed in self._followed.items():
            role = followed.partition.role
            if isinstance(role, FollowerOf) and followed.next_fetch_ms <= now_ms:
                wanted[key] = following.fetch_partition(
                    followed.partition,
                    role,
                    bytes_max=self._config.replica_fetch_max_bytes,
                    by_epoch=self._config.follows_by_epoch,
                )
        return wanted

    def _fetch(self, wanted: dict[PartitionKey, FetchPartition], now_ms: int) -> None:
        asked = self._session.ask(wanted)
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._config.node_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=self._config.replica_fetch_wait_max_ms,
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

    # --- answers

    def _answered(self, event: Event, now_ms: int) -> None:
        self._is_fetching = False
        body = event.body if isinstance(event, Response) else None
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
        by_id = {(key.topic_id, key.partition): key for key in self._session.sent}
        by_name = {(key.topic, key.partition): key for key in self._session.sent}
        for topic in body.responses:
            for data in topic.partitions:
                if topic.topic_id.int:
                    key = by_id.get((topic.topic_id, data.partition_index))
                else:
                    key = by_name.get((topic.topic, data.partition_index))
                followed = None if key is None else self._followed.get(key)
                if key is None or followed is None:
                    continue
                if not following.is_stale(followed.partition, self._session.sent[key]):
                    outcome = following.follow(followed.partition, data)
                    self._conclude(key, followed, outcome, now_ms)

    def _conclude(
        self, key: PartitionKey, followed: Followed, outcome: Outcome, now_ms: int
    ) -> None:
        match outcome:
            case Progress():
                return
            case TryLater():
                followed.next_fetch_ms = now_ms + self._config.replica_fetch_backoff_ms
            case Fenced() | Mismatch():
                followed.next_fetch_ms = _NEVER
            case OutOfRange():
                followed.next_fetch_ms = _NEVER
                self._locate(key, followed, LATEST, now_ms)
        self._outbox.trace(
            "fetch-refused",
            partition=followed.partition.name,
            leader=self._leader_id,
            outcome=type(outcome).__name__,
            reason=getattr(outcome, "reason", ""),
        )

    # --- out of range

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
        body = event.body if isinstance(event, Response) else None
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
