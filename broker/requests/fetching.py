"""A Fetch of a consumer or a follower is read, may wait, and gets its one answer.

This module decides when there is enough to answer (`min_bytes`, or an error, or the time is up), in
which order the disk is read and what fits into the answer. reads.py says who may read what.
sessions.py says which partitions of a session have to be looked at. partition.py decides what
follows from a follower's position.

Source: KIP-74, KIP-227; Kafka's KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages and
DelayedFetch.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial

from broker.cluster import Cluster
from broker.fetch_protocol import PartitionKey
from broker.partition import reads
from broker.partition.leaders import Leaders
from broker.partition.partition import FollowerFetch, LeaderOf, Partition
from broker.partition.reads import Denied, Isolation, Parted, Readable, isolation_of
from broker.replicas import Replicas
from broker.requests.sessions import (
    FetchContext,
    FetchSessions,
    Session,
    Sessionless,
    SessionPartition,
    SessionRefused,
)
from broker.waiting import WAIT_MAX_MS, Deadlines
from quorum.core.effects import Event, ReadDone, Reply, Request
from quorum.core.outbox import Outbox
from quorum.core.producers import AbortedTransaction
from quorum.core.types import NO_EPOCH
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages import fetching
from wire.messages.endpoints import LeaderIdAndEpoch, NodeEndpoint
from wire.messages.fetching import (
    EpochEndOffset,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ReplicaState,
)

__all__ = ["Fetching"]

_INVITED_MS = 500  # replica.fetch.wait.max.ms: as long as a fetch that knows nothing yet may wait
_INVITED_WAIT_MS = 20
_HINTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@dataclass(slots=True)
class Part:
    """A fetch has a part for each partition. `outcome` is set if there is nothing to read there."""

    item: SessionPartition
    partition: Partition | None = None
    readable: Readable | None = None
    outcome: FetchedPartition | None = None
    leader_epoch: int = NO_EPOCH  # under which it was read
    available_bytes: int = 0
    records: bytes = field(default=b"", repr=False)
    aborted: tuple[AbortedTransaction, ...] = ()  # with records in what was read


@dataclass(slots=True, eq=False)
class PendingFetch:
    token: int
    listener: str
    context: FetchContext
    replica: ReplicaState  # replica_id is negative for a consumer
    isolation: Isolation
    min_bytes: int
    max_bytes: int
    parts: dict[SessionPartition, Part] = field(default_factory=dict)  # those that are looked at
    available_bytes: int = 0  # in all parts
    failures: int = 0  # parts with an error, or an order to cut the log
    reads_left: int = 0
    is_done: bool = False  # answered, or being read for its answer

    @property
    def is_follower(self) -> bool:
        return self.isolation is Isolation.LOG_END

    @property
    def is_read_committed(self) -> bool:
        return self.isolation is Isolation.LAST_STABLE

    @property
    def is_answerable(self) -> bool:
        """Is there an error to tell, or as much data as was asked for?"""
        return (
            self.failures > 0
            or self.available_bytes >= self.min_bytes
            or not self.context.session.partitions
        )

    def put(self, part: Part) -> None:
        """A partition has been looked at, perhaps not for the first time."""
        before = self.parts.get(part.item)
        if before is not None:
            self.available_bytes -= before.available_bytes
            self.failures -= before.outcome is not None
        self.parts[part.item] = part
        self.available_bytes += part.available_bytes
        self.failures += part.outcome is not None

    def line(self) -> list[Part]:
        return sorted(self.parts.values(), key=lambda part: part.item.place)


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
        self._parked: dict[Session, PendingFetch] = {}
        self._parked_followers: dict[int, dict[PendingFetch, None]] = {}  # by broker
        self._invited_until_ms: dict[int, int] = {}  # by broker

    def handle(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, FetchRequest), body
        context = self._sessions.open(body, now_ms)
        for closed in self._sessions.take_closed():
            self._interrupt(closed, now_ms)
        if isinstance(context, SessionRefused):
            refusal = FetchResponse(error_code=context.error, responses=())
            self._outbox.emit(Reply(token=request.token, body=refusal))
            return
        self._interrupt(context.session, now_ms)
        is_follower = body.replica_state.replica_id >= 0
        limit = body.max_bytes if is_follower else self._cluster.config.fetch_max_bytes
        max_bytes = min(body.max_bytes, limit)
        pending = PendingFetch(
            token=request.token,
            listener=request.listener,
            context=context,
            replica=body.replica_state,
            isolation=isolation_of(is_follower=is_follower, level=body.isolation_level),
            min_bytes=min(body.min_bytes, max_bytes),
            max_bytes=max_bytes,
        )
        for item in context.session.line():
            part = self._look(pending, item, now_ms)
            if is_follower and part.readable is not None:
                self._note_position(pending.replica, part, now_ms)
        if pending.is_answerable or body.max_wait_ms <= 0:
            self._read(pending)
        else:
            self._park(pending, now_ms + self._wait_ms(body, now_ms))

    def _wait_ms(self, body: FetchRequest, now_ms: int) -> int:
        wait_ms = min(body.max_wait_ms, WAIT_MAX_MS)
        if now_ms < self._invited_until_ms.get(body.replica_state.replica_id, now_ms):
            wait_ms = min(wait_ms, _INVITED_WAIT_MS)
        return wait_ms

    def _interrupt(self, session: Session, now_ms: int) -> None:
        """The session is over or is asked again: a fetch of it that waits would wait in vain."""
        parked = self._parked.get(session)
        if parked is not None:
            self._expire(parked, now_ms)

    def _note_position(self, replica: ReplicaState, part: Part, now_ms: int) -> None:
        """A follower's offset says what it has. The answer tells the high watermark after that."""
        partition = part.partition
        assert partition is not None, part.item.key
        fetch = FollowerFetch(
            broker_id=replica.replica_id,
            broker_epoch=replica.replica_epoch,
            fetch_offset=part.item.asked.fetch_offset,
            log_start_offset=part.item.asked.log_start_offset,
        )
        self._leaders.follow(partition.fetched(fetch, now_ms), now_ms)

    # --- is there enough? -------------------------------------------------------------------

    def _look(self, pending: PendingFetch, item: SessionPartition, now_ms: int) -> Part:
        partition = self._replicas.find(*item.key)
        if not isinstance(pending.context, Sessionless):
            self._sessions.look(item, None if isinstance(partition, ErrorCode) else partition)
        elif pending.is_follower and isinstance(partition, Partition):
            # The follower no longer rests in another session of its own: that one must look again.
            for other in self._sessions.holders(partition.name):
                if other.session.replica.replica_id == pending.replica.replica_id:
                    self._sessions.mark(other)
        part = self._part(pending, item, partition, now_ms)
        pending.put(part)
        return part

    def _part(
        self,
        pending: PendingFetch,
        item: SessionPartition,
        partition: Partition | ErrorCode,
        now_ms: int,
    ) -> Part:
        part, key, asked = Part(item), item.key, item.asked
        if isinstance(partition, ErrorCode):
            part.outcome = self._denial(key, partition)
            return part
        part.partition = partition
        part.leader_epoch = partition.leader_epoch
        found = reads.position(partition, asked, pending.isolation)
        if pending.is_follower and not isinstance(found, Denied):
            error = partition.check_follower(pending.replica, now_ms)
            if error is ErrorCode.UNKNOWN_LEADER_EPOCH and asked.current_leader_epoch < 0:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER  # it has told of no epoch
            found = found if error is ErrorCode.NONE else Denied(error)
        match found:
            case Denied(error=error):
                part.outcome = self._denial(key, error)
            case Parted(diverging=diverging):
                part.outcome = FetchedPartition(
                    partition_index=key.partition,
                    high_watermark=partition.open_log.high_watermark,
                    last_stable_offset=partition.open_log.last_stable_offset,
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

    # --- waiting ----------------------------------------------------------------------------

    def _park(self, pending: PendingFetch, deadline_ms: int) -> None:
        if not self._deadlines.add(pending, deadline_ms, partial(self._expire, pending)):
            self._read(pending)
            return
        self._parked[pending.context.session] = pending
        if pending.is_follower:
            of_broker = self._parked_followers.setdefault(pending.replica.replica_id, {})
            of_broker[pending] = None
        if isinstance(pending.context, Sessionless):
            for item, part in pending.parts.items():
                self._sessions.look(item, part.partition)

    def moved(self, names: Iterable[str], now_ms: int) -> None:
        """Partitions have moved, or are led here no longer: can anybody be answered?

        All are looked at before anything is read for an answer: of a log that was truncated, what
        was readable before may not be there any more.
        """
        woken: dict[PendingFetch, None] = {}
        for name in names:
            for item in self._sessions.mark_holders(name):
                pending = self._parked.get(item.session)
                if pending is not None:
                    self._look(pending, item, now_ms)
                    woken[pending] = None
        for pending in woken:
            if pending.is_answerable and not pending.is_done:
                self._expire(pending, now_ms)

    def updated(self, partition: Partition) -> None:
        """Other replicas are in sync with a leader by now; nothing has moved."""
        self._sessions.mark_out_of_sync(partition.name, partition.led.isr.members)

    def peers_changed(self, brokers: Collection[int]) -> None:
        """These brokers came, went, or registered anew."""
        self._sessions.mark_followers(brokers)

    def invite(self, brokers: Collection[int], now_ms: int) -> None:
        """We lead partitions anew that these brokers follow. Answer their fetches that wait, so
        that the next ones ask for those partitions as well. A broker may hear of us a little later
        than we do: for a while its fetches wait only briefly."""
        for broker_id in brokers:
            self._invited_until_ms[broker_id] = now_ms + _INVITED_MS
            for pending in tuple(self._parked_followers.get(broker_id, ())):
                self._expire(pending, now_ms)

    def _expire(self, pending: PendingFetch, _now_ms: int) -> None:
        self._leave(pending)
        self._read(pending)

    def _leave(self, pending: PendingFetch) -> None:
        session = pending.context.session
        del self._parked[session]
        if pending.is_follower:
            of_broker = self._parked_followers[pending.replica.replica_id]
            del of_broker[pending]
            if not of_broker:
                del self._parked_followers[pending.replica.replica_id]
        if isinstance(pending.context, Sessionless):
            self._sessions.close(session)

    # --- reading ----------------------------------------------------------------------------

    def _read(self, pending: PendingFetch) -> None:
        """Read as much as may fit into the answer, first asked first read."""
        pending.is_done = True
        remaining = pending.max_bytes
        is_first = True
        for part in pending.line():
            if part.available_bytes == 0 or (remaining <= 0 and not is_first):
                continue
            assert part.partition is not None
            assert part.readable is not None
            bytes_max = max(min(part.item.asked.partition_max_bytes, remaining), 1)
            pending.reads_left += 1
            part.partition.open_log.read(
                start_offset=part.readable.start_offset,
                end_offset=part.readable.end_offset,
                bytes_max=bytes_max,
                wants_aborted=pending.is_read_committed,
                answered=partial(self._read_done, pending, part),
            )
            remaining -= min(part.available_bytes, bytes_max)
            is_first = False
        if pending.reads_left == 0:
            self._reply(pending)

    def _read_done(self, pending: PendingFetch, part: Part, event: Event, _now_ms: int) -> None:
        if isinstance(event, ReadDone):
            part.records, part.aborted = event.records, event.aborted
        else:
            part.outcome = self._denial(part.item.key, ErrorCode.KAFKA_STORAGE_ERROR)
        pending.reads_left -= 1
        if pending.reads_left == 0:
            self._reply(pending)

    def _reply(self, pending: PendingFetch) -> None:
        remaining, is_first = pending.max_bytes, True
        results = []
        parts = pending.line()
        for part in parts:
            if part.records and not reads.within_limits(
                part.records,
                remaining=remaining,
                partition_max=part.item.asked.partition_max_bytes,
                is_first=is_first,
            ):
                part.records, part.aborted = b"", ()
            remaining -= len(part.records)
            is_first = is_first and not part.records
            results.append((part.item, self._result(pending, part)))
        answer = pending.context.answer(results)
        if not isinstance(pending.context, Sessionless):
            for part in parts:
                self._let_rest(pending, part)
        pending.parts = {}  # it may be remembered until its deadline: not with all the records
        response = replace(answer, node_endpoints=self._endpoints(pending, results))
        self._outbox.emit(Reply(token=pending.token, body=response))

    def _let_rest(self, pending: PendingFetch, part: Part) -> None:
        """If all is said of a partition, the session's fetches need not look at it until it moves.

        Not if its follower has to be noted at every fetch: one that is behind, or not in the ISR.
        """
        partition, item = part.partition, part.item
        if part.outcome is not None or part.records or partition is None or item.was_in_vain:
            return
        role, log = partition.role, partition.log
        if log is None or not isinstance(role, LeaderOf) or role.leader_epoch != part.leader_epoch:
            return
        end_offset = reads.readable_end(partition, pending.isolation)
        if (
            item.asked.fetch_offset < end_offset
            or item.high_watermark != log.high_watermark
            or item.log_start_offset != log.start_offset
        ):
            return
        if not pending.is_follower:
            self._sessions.rest(item, None)
        elif (follower := partition.resting(pending.replica.replica_id)) is not None:
            self._sessions.rest(item, follower)

    def _result(self, pending: PendingFetch, part: Part) -> FetchedPartition:
        if part.outcome is not None:
            return part.outcome
        partition = part.partition
        assert partition is not None
        if not reads.is_still_led(partition, part.leader_epoch):
            return self._denial(part.item.key, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = partition.open_log
        return FetchedPartition(
            partition_index=part.item.key.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start_offset,
            aborted_transactions=told_aborted(part) if pending.is_read_committed else None,
            records=part.records,
        )

    def _endpoints(
        self, pending: PendingFetch, results: list[tuple[SessionPartition, FetchedPartition]]
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


def told_aborted(part: Part) -> tuple[fetching.AbortedTransaction, ...]:
    return tuple(
        fetching.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in part.aborted
    )
