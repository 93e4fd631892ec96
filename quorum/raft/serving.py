"""How a leader answers fetches of its log.

Every valid Fetch is parked, and taken out as soon as there is something to tell: records, a
higher watermark, or that its time is up. Records go out as they were read; a leader may show what
is not synced yet, since only the high watermark says what is committed.

Source: KIP-595; KIP-1166 (a higher watermark wakes a parked fetch).
"""

from collections.abc import Callable

from quorum.core.effects import Read, Reply
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.log import fetch as fetch_rules
from quorum.log.fetch import Diverging, TooFarBehind, Valid
from quorum.raft.leading import track
from quorum.raft.messages import fetch_partition, fetch_response
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Leader, ParkedFetch, Role
from wire.errors import ErrorCode
from wire.messages.fetching import EpochEndOffset, FetchRequest, FetchResponse

__all__ = [
    "OF_HOST_MAX",
    "WATERMARK_LINGER_MS",
    "fetch",
    "read_done",
    "refusal",
    "refuse_all",
    "serve_parked",
]

OF_HOST_MAX = 100  # fetches that wait: each node has one on its way
WATERMARK_LINGER_MS = 5  # a few commits' time: a standby may be that far behind


def refusal(
    replica: Replica, role: Role, request: FetchRequest, known: Callable[[], KnownLeader]
) -> FetchResponse | None:
    """Why this Fetch is not served, in Kafka's order of checks; None if it is."""
    is_ours = request.cluster_id is None or request.cluster_id == replica.config.cluster_id
    ask = fetch_partition(request.topics)
    if not is_ours or ask is None:
        error = ErrorCode.INVALID_REQUEST if is_ours else ErrorCode.INCONSISTENT_CLUSTER_ID
        return FetchResponse(error_code=error, responses=())
    is_negative = request.max_wait_ms < 0 or ask.fetch_offset < 0 or ask.last_fetched_epoch < 0
    if is_negative or ask.last_fetched_epoch > ask.current_leader_epoch:
        error = ErrorCode.INVALID_REQUEST
    else:
        error = fetch_rules.check_leader_epoch(
            ask.current_leader_epoch, role.epoch, is_leader=isinstance(role, Leader)
        )
    return None if error is ErrorCode.NONE else fetch_response(known(), error=error)


def fetch(
    replica: Replica,
    role: Leader,
    token: int,
    request: FetchRequest,
    *,
    host: str = "",
    now_ms: int,
) -> None:
    """Serve a Fetch of this epoch, which came from `host`. The answer may come later."""
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
            replica_id, is_voter = request.replica_state.replica_id, False
            if replica_id >= 0:
                key = ReplicaKey(replica_id, ask.replica_directory_id)
                is_voter = track(replica, role, key, ask.fetch_offset, now_ms)
            parked = ParkedFetch(
                token=token,
                partition=ask,
                bytes_max=max(0, min(request.max_bytes, replica.config.fetch_max_bytes)),
                is_voter=is_voter or replica_id in replica.voters.ids,
                host=host,
            )
            wait_ms = min(request.max_wait_ms, replica.config.request_timeout_ms)
            _park(replica, role, parked, now_ms + wait_ms)


def _park(replica: Replica, role: Leader, fetch: ParkedFetch, deadline_ms: int) -> None:
    """Let it wait, unless too many do.

    Each look at the log is a look at all that wait, and without an authorizer anybody may ask: no
    host may have more than its nodes need.
    """
    waiting = role.parked.waiting
    is_too_many = role.parked.is_full()
    if fetch.host and len(waiting) >= OF_HOST_MAX:
        of_host = sum(each.host == fetch.host for _, each in waiting)
        is_too_many = is_too_many or of_host >= OF_HOST_MAX
    if is_too_many:
        _answer(replica, role, fetch.token)
    else:
        role.parked.park(fetch, deadline_ms)


def _is_linger_over(role: Leader, high_watermark: int, now_ms: int) -> bool:
    """May voters be answered for the sake of a higher watermark alone? Keeps the timer for that.

    They get it with the next records, or WATERMARK_LINGER_MS later without any. An answer at once
    would cost each of them a second Fetch a commit: half the work of the quorum under load.
    Observers are answered at once: brokers act on what is committed.
    """
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
    """Answer the fetches for which there is news (records, or a higher watermark than they know)
    and those whose time is up.

    Records that are no longer in memory have to be read first; one read serves equal fetches.
    """
    end_offset = replica.log.end_offset
    for_observers = -1 if role.high_watermark is None else role.high_watermark
    for_voters = for_observers if _is_linger_over(role, for_observers, now_ms) else -1
    ready: list[ParkedFetch] = []
    waiting: list[tuple[int, ParkedFetch]] = []
    late: list[ParkedFetch] = []
    for entry in role.parked.waiting:
        deadline_ms, parked = entry
        ask = parked.partition
        watermark = for_voters if parked.is_voter else for_observers
        if ask.fetch_offset < end_offset or ask.high_watermark < watermark:
            ready.append(parked)
        elif deadline_ms <= now_ms:
            late.append(parked)
        else:
            waiting.append(entry)
    if not ready and not late:
        return
    role.parked.keep(waiting)
    reads: dict[tuple[int, int], list[ParkedFetch]] = {}
    for parked in ready + late:
        start_offset = parked.partition.fetch_offset
        records = _newest(replica, start_offset, parked.bytes_max)
        if records is None:
            reads.setdefault((start_offset, parked.bytes_max), []).append(parked)
        else:
            _answer(replica, role, parked.token, records=records)
    for (start_offset, bytes_max), asking in reads.items():
        number = replica.outbox.on_log(
            Read, start_offset=start_offset, end_offset=end_offset, bytes_max=bytes_max
        )
        role.reading[number] = tuple(asking)


def _newest(replica: Replica, start_offset: int, bytes_max: int) -> bytes | None:
    """Records out of memory: empty at the end of the log, None if only the disk has them."""
    log = replica.log
    if start_offset >= log.end_offset:
        return b""
    return log.tail.read(start_offset=start_offset, end_offset=log.end_offset, bytes_max=bytes_max)


def read_done(replica: Replica, role: Leader, number: int, records: bytes) -> None:
    for parked in role.reading.pop(number, ()):
        _answer(replica, role, parked.token, records=records)


def refuse_all(role: Leader) -> list[int]:
    """Leadership is lost: forget all fetches that wait; returns their tokens, to be refused."""
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
        KnownLeader(
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
    replica.outbox.send(Reply(token=token, body=body))
