"""How a leader answers fetches of its log, and descriptions of its quorum.

Every valid Fetch is parked, and taken out as soon as there is something to tell: records, a
higher watermark, or that its time is up. Records go out as they were read; a leader may show what
is not synced yet, since only the high watermark says what is committed.

Source: KIP-595; KIP-1166 (a higher watermark wakes a parked fetch); KIP-836 (caught-up times).
"""

from collections.abc import Callable, Iterator

from quorum.core.effects import Reply
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.log import fetch as fetch_rules
from quorum.log.fetch import Diverging, TooFarBehind, Valid
from quorum.raft.leading import track
from quorum.raft.messages import Known, fetch_partition, fetch_response
from quorum.raft.replica import Replica
from quorum.raft.roles import Leader, ParkedFetch, Progress, Role
from quorum.raft.voters import Voter
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.fetching import EpochEndOffset, FetchPartition, FetchRequest, FetchResponse
from wire.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumNode,
    QuorumPartitionResult,
    QuorumReplica,
    QuorumTopicResult,
)
from wire.primitives import METADATA_TOPIC

__all__ = [
    "WATERMARK_LINGER_MS",
    "describe",
    "fetch",
    "read_done",
    "refusal",
    "refuse_all",
    "serve_parked",
]

WATERMARK_LINGER_MS = 5  # a few commits' time; a standby that is so far behind does no harm


def refusal(
    replica: Replica, role: Role, request: FetchRequest, known: Callable[[], Known]
) -> FetchResponse | None:
    """Why this Fetch is not served, in Kafka's order of checks; None if it is."""
    top_level = replica.check_cluster(request.cluster_id)
    ask = fetch_partition(request.topics)
    if top_level is not ErrorCode.NONE or ask is None:
        return FetchResponse(error_code=top_level or ErrorCode.INVALID_REQUEST, responses=())
    error = _check_fields(request, ask)
    if error is ErrorCode.NONE:
        error = fetch_rules.check_leader_epoch(
            ask.current_leader_epoch, role.epoch, is_leader=isinstance(role, Leader)
        )
    return None if error is ErrorCode.NONE else fetch_response(known(), error=error)


def _check_fields(request: FetchRequest, ask: FetchPartition) -> ErrorCode:
    if min(request.max_wait_ms, ask.fetch_offset, ask.last_fetched_epoch) < 0:
        return ErrorCode.INVALID_REQUEST
    if ask.last_fetched_epoch > ask.current_leader_epoch:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def fetch(
    replica: Replica, role: Leader, token: int, request: FetchRequest, *, now_ms: int
) -> None:
    """Serve a Fetch of this epoch. The answer may come later."""
    ask = request.topics[0].partitions[0]
    position = replica.log.check(
        fetch_offset=ask.fetch_offset, last_fetched_epoch=ask.last_fetched_epoch
    )
    match position:
        case Diverging(epoch=epoch, end_offset=end_offset):
            _answer(
                replica, role, token, diverging=EpochEndOffset(epoch=epoch, end_offset=end_offset)
            )
        case TooFarBehind(snapshot=snapshot):
            _answer(replica, role, token, snapshot=snapshot)
        case Valid():
            _park(replica, role, token, request, ask, now_ms)


def _park(
    replica: Replica,
    role: Leader,
    token: int,
    request: FetchRequest,
    ask: FetchPartition,
    now_ms: int,
) -> None:
    if request.replica_state.replica_id >= 0:
        key = ReplicaKey(request.replica_state.replica_id, ask.replica_directory_id)
        track(replica, role, key, ask.fetch_offset, now_ms)
    if role.parked.is_full():
        _answer(replica, role, token)
        return
    bytes_max = max(0, min(request.max_bytes, replica.config.fetch_max_bytes))
    role.parked.park(
        ParkedFetch(
            token=token,
            partition=ask,
            bytes_max=bytes_max,
            is_voter=request.replica_state.replica_id in replica.voters.ids,
        ),
        now_ms + min(request.max_wait_ms, replica.config.request_timeout_ms),
    )


def is_time_to_tell_voters(role: Leader, now_ms: int) -> bool:
    """Voters hear of a higher watermark with the next records, or a moment later without any.

    Told at once, every commit would cost each of them a second Fetch: half the work of the quorum
    under load. Observers are told at once: brokers act on what is committed.
    """
    high_watermark = -1 if role.high_watermark is None else role.high_watermark
    for _, parked in role.parked.waiting:
        if parked.is_voter and parked.partition.high_watermark < high_watermark:
            break
    else:
        role.watermark_due_ms = None
        return False
    if role.watermark_due_ms is None:
        role.watermark_due_ms = now_ms + WATERMARK_LINGER_MS
    if now_ms < role.watermark_due_ms:
        return False
    role.watermark_due_ms = None
    return True


def serve_parked(replica: Replica, role: Leader, now_ms: int) -> None:
    """Answer those with news (records, or more committed than they know) and those whose time is
    up. What is no longer in memory has to be read first; one read serves equal fetches.
    """
    end_offset = replica.log.end_offset
    for_observers = -1 if role.high_watermark is None else role.high_watermark
    for_voters = for_observers if is_time_to_tell_voters(role, now_ms) else -1

    def has_news(parked: ParkedFetch) -> bool:
        told = for_voters if parked.is_voter else for_observers
        return parked.partition.fetch_offset < end_offset or parked.partition.high_watermark < told

    ready = role.parked.release(has_news)
    if role.parked.due_ms is not None and role.parked.due_ms <= now_ms:
        ready += role.parked.expired(now_ms)
    reads: dict[tuple[int, int], list[ParkedFetch]] = {}
    for parked in ready:
        start_offset = parked.partition.fetch_offset
        records = _newest(replica, start_offset, parked.bytes_max)
        if records is None:
            reads.setdefault((start_offset, parked.bytes_max), []).append(parked)
        else:
            _answer(replica, role, parked.token, records=records)
    for (start_offset, bytes_max), waiting in reads.items():
        number = replica.outbox.read(
            start_offset=start_offset, end_offset=replica.log.end_offset, bytes_max=bytes_max
        )
        role.reading[number] = tuple(waiting)


def _newest(replica: Replica, start_offset: int, bytes_max: int) -> bytes | None:
    """Empty at the end of the log; None for what only the disk has."""
    log = replica.log
    if start_offset >= log.end_offset:
        return b""
    return log.tail.read(start_offset=start_offset, end_offset=log.end_offset, bytes_max=bytes_max)


def read_done(replica: Replica, role: Leader, number: int, records: bytes) -> None:
    for parked in role.reading.pop(number, ()):
        _answer(replica, role, parked.token, records=records)


def refuse_all(role: Leader) -> list[int]:
    """Leadership is lost: the tokens of all that still wait, to be refused."""
    waiting = role.parked.clear()
    for parked in role.reading.values():
        waiting.extend(parked)
    role.reading.clear()
    return [parked.token for parked in waiting]


def _answer(
    replica: Replica,
    role: Leader,
    token: int,
    *,
    records: bytes = b"",
    diverging: EpochEndOffset | None = None,
    snapshot: OffsetAndEpoch | None = None,
) -> None:
    body = fetch_response(
        Known(
            leader_id=replica.node_id,
            epoch=role.epoch,
            endpoint=replica.endpoint,
        ),
        high_watermark=-1 if role.high_watermark is None else role.high_watermark,
        log_start_offset=replica.log.start_offset,
        diverging=diverging,
        snapshot=snapshot,
        records=records,
    )
    replica.outbox.say(Reply(token=token, body=body))


# --- DescribeQuorum -------------------------------------------------------------------------


def describe(
    replica: Replica, role: Role, request: DescribeQuorumRequest, now_ms: int
) -> DescribeQuorumResponse:
    """Only the leader knows; the others say so."""
    if not isinstance(role, Leader):
        return _undescribed(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum")
    asked = [(t.topic_name, p.partition_index) for t in request.topics for p in t.partitions]
    if asked != [(METADATA_TOPIC, 0)]:
        return _unknown(request)
    return _described(replica, role, now_ms)


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Each partition says that only the metadata log has a quorum."""
    topics = tuple(
        QuorumTopicResult(
            topic_name=topic.topic_name,
            partitions=tuple(
                QuorumPartitionResult(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message="only the metadata log has a quorum",
                    leader_id=0,
                    leader_epoch=0,
                )
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=())


def _undescribed(error: ErrorCode, reason: str) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error, error_message=reason, topics=(), nodes=())


def _described(replica: Replica, role: Leader, now_ms: int) -> DescribeQuorumResponse:
    """Every replica's log end and when it last fetched and was last caught up (KIP-836)."""
    own = QuorumReplica(
        replica_id=replica.node_id,
        replica_directory_id=replica.key.directory_id,
        log_end_offset=replica.log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    voters = list(map(_state, role.progress.values()))
    oldest_ms = now_ms - replica.config.observer_session_ms
    observers = [
        _state(progress)
        for progress in role.observers.values()
        if progress.last_fetch_ms >= oldest_ms
    ]
    (voters if replica.is_voter else observers).append(own)  # it may be on its way out
    partition = QuorumPartitionResult(
        partition_index=0,
        error_message=None,
        leader_id=replica.node_id,
        leader_epoch=role.epoch,
        high_watermark=-1 if role.high_watermark is None else role.high_watermark,
        current_voters=tuple(sorted(voters, key=lambda state: state.replica_id)),
        observers=tuple(sorted(observers, key=lambda state: state.replica_id)),
    )
    topic = QuorumTopicResult(topic_name=METADATA_TOPIC, partitions=(partition,))
    return DescribeQuorumResponse(error_message=None, topics=(topic,), nodes=_nodes(replica))


def _state(progress: Progress) -> QuorumReplica:
    has_fetched = progress.last_fetch_ms >= 0
    return QuorumReplica(
        replica_id=progress.key.id,
        replica_directory_id=progress.key.directory_id,
        log_end_offset=progress.end_offset if has_fetched else -1,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def _nodes(replica: Replica) -> tuple[QuorumNode, ...]:
    return tuple(
        QuorumNode(node_id=voter.key.id, listeners=tuple(_listeners(replica, voter)))
        for voter in replica.voters
    )


def _listeners(replica: Replica, voter: Voter) -> Iterator[Listener]:
    """All that the voters' record names; of a static voter one is known."""
    for known in voter.listeners:
        yield Listener(name=known.name, host=known.host, port=known.port)
    if not voter.listeners:
        at = voter.endpoint
        yield Listener(name=replica.config.listener_name, host=at.host, port=at.port)
