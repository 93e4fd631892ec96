"""Fetch requests, from consumers and followers: from the request to its one answer.

Decides when there is enough to answer (`min_bytes`, or an error, or the time is up), in which
order the disk is read and what fits into the answer. Who may read what is in reads.py, what a
session asks for in sessions.py, what follows from a follower's position in leaders.py.

Source: KIP-74, KIP-227; Kafka's KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages and
DelayedFetch.
"""

from dataclasses import dataclass, field
from functools import partial

from broker import reads
from broker.cluster import Cluster
from broker.deadlines import WAIT_MAX_MS, Deadlines
from broker.leaders import Leaders
from broker.leading import FollowerFetch
from broker.outbox import Outbox
from broker.partition import LeaderOf, Partition
from broker.reads import Denied, Parted, Readable
from broker.replicas import Replicas
from broker.sessions import (
    FetchContext,
    FetchSessions,
    Incremental,
    PartitionKey,
    SessionRefused,
)
from quorum.core.effects import Event, ReadDone, Reply, Request
from quorum.core.types import NO_EPOCH
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.endpoints import LeaderIdAndEpoch, NodeEndpoint
from wire.messages.fetching import (
    EpochEndOffset,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ReplicaState,
)

__all__ = ["Fetching"]

_READ_COMMITTED = 1
_HINTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@dataclass(slots=True)
class Part:
    """One partition of a fetch. `outcome` is set if there is nothing to read there."""

    key: PartitionKey
    asked: FetchPartition
    partition: Partition | None = None
    readable: Readable | None = None
    outcome: FetchedPartition | None = None
    leader_epoch: int = NO_EPOCH  # under which it was read
    available_bytes: int = 0
    records: bytes = field(default=b"", repr=False)


@dataclass(slots=True, eq=False)
class PendingFetch:
    token: int
    listener: str
    context: FetchContext
    replica: ReplicaState  # replica_id is negative for a consumer
    is_read_committed: bool
    min_bytes: int
    max_bytes: int
    parts: list[Part] = field(default_factory=list)
    watched: tuple[Partition, ...] = ()  # while it waits
    reads_left: int = 0
    is_done: bool = False  # answered, or being read for its answer

    @property
    def is_follower(self) -> bool:
        return self.replica.replica_id >= 0


class Fetching:
    def __init__(
        self,
        *,
        replicas: Replicas,
        leaders: Leaders,
        cluster: Cluster,
        outbox: Outbox,
        deadlines: Deadlines,
        sessions: FetchSessions,
    ) -> None:
        self._replicas = replicas
        self._leaders = leaders
        self._cluster = cluster
        self._outbox = outbox
        self._deadlines = deadlines
        self._sessions = sessions
        # Who waits for a partition, with its place among the parts of the fetch.
        self._waiting: dict[Partition, dict[PendingFetch, int]] = {}

    def handle(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, FetchRequest), body
        context = self._sessions.open(body, now_ms)
        if isinstance(context, SessionRefused):
            refusal = FetchResponse(error_code=context.error, responses=())
            self._outbox.emit(Reply(token=request.token, body=refusal))
            return
        is_follower = body.replica_state.replica_id >= 0
        limit = body.max_bytes if is_follower else self._cluster.config.fetch_max_bytes
        max_bytes = min(body.max_bytes, limit)
        pending = PendingFetch(
            token=request.token,
            listener=request.listener,
            context=context,
            replica=body.replica_state,
            is_read_committed=body.isolation_level == _READ_COMMITTED,
            min_bytes=min(body.min_bytes, max_bytes),
            max_bytes=max_bytes,
        )
        for key, asked in tuple(context.partitions()):
            part = self._part(pending, key, asked, now_ms)
            pending.parts.append(part)
            if pending.is_follower and part.readable is not None:
                self._note_position(pending.replica, part, now_ms)
        if is_answerable(pending) or body.max_wait_ms <= 0:
            self._read(pending, now_ms)
        else:
            self._park(pending, now_ms + min(body.max_wait_ms, WAIT_MAX_MS))

    def _note_position(self, replica: ReplicaState, part: Part, now_ms: int) -> None:
        """A follower's offset says what it has. The answer tells the high watermark after that."""
        partition = part.partition
        assert partition is not None, part.key
        assert isinstance(partition.role, LeaderOf), partition.role
        fetch = FollowerFetch(
            broker_id=replica.replica_id,
            broker_epoch=replica.replica_epoch,
            fetch_offset=part.asked.fetch_offset,
            log_start_offset=part.asked.log_start_offset,
        )
        self._leaders.fetched(partition, partition.role, fetch, now_ms)

    # --- is there enough?

    def _part(
        self, pending: PendingFetch, key: PartitionKey, asked: FetchPartition, now_ms: int
    ) -> Part:
        part = Part(key, asked)
        partition = self._replicas.find(*key)
        if isinstance(partition, ErrorCode):
            part.outcome = self._denial(key, partition)
            return part
        part.partition = partition
        part.leader_epoch = partition.leader_epoch
        found = reads.position(partition, asked, is_follower=pending.is_follower)
        role = partition.role
        if pending.is_follower and isinstance(role, LeaderOf) and not isinstance(found, Denied):
            error = self._leaders.check_follower(partition, role, pending.replica, now_ms)
            found = found if error is ErrorCode.NONE else Denied(error)
        match found:
            case Denied(error=error):
                part.outcome = self._denial(key, error)
            case Parted(diverging=diverging):
                part.outcome = FetchedPartition(
                    partition_index=key.partition,
                    high_watermark=partition.open_log.high_watermark,
                    last_stable_offset=partition.open_log.high_watermark,
                    log_start_offset=partition.open_log.start_offset,
                    diverging_epoch=EpochEndOffset(
                        epoch=diverging.epoch, end_offset=diverging.end_offset
                    ),
                    records=b"",
                )
            case Readable(start_offset=start, end_offset=end):
                part.readable = found
                available = partition.open_log.bytes_between(start, end)
                part.available_bytes = min(available, asked.partition_max_bytes)
        return part

    def _denial(self, key: PartitionKey, error: ErrorCode) -> FetchedPartition:
        leader = LeaderIdAndEpoch()
        if error in _HINTED:
            leader_id, epoch = self._cluster.leader_of(*key)
            leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
        return FetchedPartition(
            partition_index=key.partition, error_code=error, current_leader=leader, records=b""
        )

    # --- waiting

    def _park(self, pending: PendingFetch, deadline_ms: int) -> None:
        if not self._deadlines.add(pending, deadline_ms, partial(self._expire, pending)):
            self._read(pending, deadline_ms)
            return
        watched: dict[Partition, None] = {}
        for place, part in enumerate(pending.parts):
            assert part.partition is not None, part.key
            self._waiting.setdefault(part.partition, {})[pending] = place
            watched[part.partition] = None
        pending.watched = tuple(watched)

    def wake(self, partition: Partition, now_ms: int) -> None:
        """The partition has moved, or is led here no longer: can anybody be answered?"""
        for pending, place in tuple(self._waiting.get(partition, {}).items()):
            if pending.is_done:
                continue
            before = pending.parts[place]
            pending.parts[place] = self._part(pending, before.key, before.asked, now_ms)
            if is_answerable(pending):
                self._leave(pending)
                self._read(pending, now_ms)

    def _expire(self, pending: PendingFetch, now_ms: int) -> None:
        self._leave(pending)
        self._read(pending, now_ms)

    def _leave(self, pending: PendingFetch) -> None:
        for partition in pending.watched:
            waiting = self._waiting[partition]
            del waiting[pending]
            if not waiting:
                del self._waiting[partition]
        pending.watched = ()

    # --- reading

    def _read(self, pending: PendingFetch, now_ms: int) -> None:
        """Read as much as may fit into the answer, first asked first read."""
        pending.is_done = True
        remaining = pending.max_bytes
        is_first = True
        for part in pending.parts:
            if part.available_bytes == 0 or (remaining <= 0 and not is_first):
                continue
            assert part.partition is not None
            assert part.readable is not None
            bytes_max = max(min(part.asked.partition_max_bytes, remaining), 1)
            pending.reads_left += 1
            part.partition.open_log.read(
                start_offset=part.readable.start_offset,
                end_offset=part.readable.end_offset,
                bytes_max=bytes_max,
                answered=partial(self._read_done, pending, part),
            )
            remaining -= min(part.available_bytes, bytes_max)
            is_first = False
        if pending.reads_left == 0:
            self._reply(pending)

    def _read_done(self, pending: PendingFetch, part: Part, event: Event, _now_ms: int) -> None:
        if isinstance(event, ReadDone):
            part.records = event.records
        else:
            part.outcome = self._denial(part.key, ErrorCode.KAFKA_STORAGE_ERROR)
        pending.reads_left -= 1
        if pending.reads_left == 0:
            self._reply(pending)

    def _reply(self, pending: PendingFetch) -> None:
        remaining, is_first = pending.max_bytes, True
        results = []
        for part in pending.parts:
            if part.records and not reads.within_limits(
                part.records,
                remaining=remaining,
                partition_max=part.asked.partition_max_bytes,
                is_first=is_first,
            ):
                part.records = b""
            remaining -= len(part.records)
            is_first = is_first and not part.records
            if part.outcome is not None or self._is_news(pending, part):
                results.append((part.key, self._result(pending, part)))
        pending.parts = []  # it may be remembered until its deadline: not with all the records
        response = replace(
            pending.context.answer(results), node_endpoints=self._endpoints(pending, results)
        )
        self._outbox.emit(Reply(token=pending.token, body=response))

    def _is_news(self, pending: PendingFetch, part: Part) -> bool:
        """A cheap look, so that a session with many idle partitions costs little."""
        if part.records or not isinstance(pending.context, Incremental):
            return True
        log = part.partition.log if part.partition is not None else None
        return log is None or pending.context.is_news(
            part.key, high_watermark=log.high_watermark, log_start_offset=log.start_offset
        )

    def _result(self, pending: PendingFetch, part: Part) -> FetchedPartition:
        if part.outcome is not None:
            return part.outcome
        partition = part.partition
        assert partition is not None
        if not reads.is_still_led(partition, part.leader_epoch):
            return self._denial(part.key, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = partition.open_log
        return FetchedPartition(
            partition_index=part.key.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.high_watermark,
            log_start_offset=log.start_offset,
            aborted_transactions=() if pending.is_read_committed else None,
            records=part.records,
        )

    def _endpoints(
        self, pending: PendingFetch, results: list[tuple[PartitionKey, FetchedPartition]]
    ) -> tuple[NodeEndpoint, ...]:
        leaders = dict.fromkeys(
            data.current_leader.leader_id
            for _, data in results
            if data.current_leader.leader_id >= 0
        )
        return tuple(
            NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port)
            for node in self._cluster.endpoints(leaders, pending.listener)
        )


def is_answerable(pending: PendingFetch) -> bool:
    """Is there an error to tell, or as much data as was asked for?"""
    available = 0
    for part in pending.parts:
        if part.outcome is not None:
            return True
        available += part.available_bytes
    return not pending.parts or available >= pending.min_bytes
