"""Planted bugs of transactions: who may write, what is stable, and what an end does.

Clients do not see `counts_what_may_be_cut` and `forgets_what_a_marker_ended`: a marker that is cut
off is written again, and says the same, since the decision lies in the coordinator's log.
"""

from collections.abc import Iterator

from broker.groups.pending import PendingOffsets
from broker.groups.records import OffsetChange
from broker.partition import appends
from broker.partition.idempotence import (
    InSequence,
    OutOfSequence,
    SequenceVerdict,
    check_sequence,
)
from broker.partition.local_log import LocalLog
from broker.partition.producer_states import ProducerStates
from broker.requests import fetching, transaction_markers
from broker.transactions import adding, ending, initializing, transaction_coordinator
from broker.transactions.decisions import Decision, Refused, Step
from broker.transactions.markers import Unwritten
from broker.transactions.transaction import Transaction, TransactionState, begun_by, completed
from broker.verifying import Place, Producer
from jepsen_like.planted.planting import plant_in
from quorum.core.outbox import Answered
from quorum.core.producers import ProducerEntry
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.messages.fetching import AbortedTransaction
from wire.messages.transactions import EndTxnRequest
from wire.transaction_markers import Marker, build_marker

_add = adding.add
_check = check_sequence
_end = ending.end
_end_pending = PendingOffsets.end
_has = Unwritten.has
_initialize = initializing.initialize
_read = LocalLog.read
_told_aborted = fetching.told_aborted


@plant_in("transaction", ProducerStates, "first_unstable", seeds_max=20)
def counts_what_may_be_cut(self: ProducerStates, high_watermark: int) -> int | None:
    """Breaks: a transaction is over once its marker is below the high watermark."""
    opened = (entry.open_since for entry in self.entries() if entry.open_since >= 0)
    return min(opened, default=None)


@plant_in("transaction", appends, "check_sequence")
def lets_fenced_producers_write(
    entry: ProducerEntry | None, header: BatchHeader
) -> SequenceVerdict:
    """Breaks: a producer that was fenced writes nothing."""
    verdict = _check(entry, header)
    is_fenced = (
        isinstance(verdict, OutOfSequence) and verdict.error is ErrorCode.INVALID_PRODUCER_EPOCH
    )
    return InSequence() if is_fenced else verdict


@plant_in("transaction", transaction_markers, "check_marker")
def takes_late_markers(
    entry: ProducerEntry | None, marker: Marker, transaction_version: int
) -> ErrorCode:
    """Breaks: a marker ends the transaction that it is of, and no other."""
    return ErrorCode.NONE


@plant_in("transaction", LocalLog, "read", seeds_max=20)
def tells_no_aborted_transactions(
    self: LocalLog,
    *,
    start_offset: int,
    end_offset: int,
    bytes_max: int,
    answered: Answered,
    wants_aborted: bool = False,
) -> None:
    """Breaks: readers of committed records are told what was aborted."""
    _read(
        self,
        start_offset=start_offset,
        end_offset=end_offset,
        bytes_max=bytes_max,
        answered=answered,
    )


@plant_in("transaction", PendingOffsets, "end", seeds_max=40, found_at=18)
def counts_aborted_offsets(
    self: PendingOffsets, producer_id: int, *, is_commit: bool
) -> Iterator[OffsetChange]:
    """Breaks: offsets of a transaction that was aborted count for nothing."""
    return _end_pending(self, producer_id, is_commit=True)


@plant_in("transaction", initializing, "initialize", seeds_max=40, found_at=9)
def initializes_in_the_same_epoch(
    known: Transaction | None,
    expected: Producer | None,
    *,
    transactional_id: str,
    timeout_ms: int,
    version: int,
    new_id: int | None,
    now_ms: int,
) -> Decision:
    """Breaks: who begins with a transactional id fences whoever had it before."""
    decision = _initialize(
        known,
        expected,
        transactional_id=transactional_id,
        timeout_ms=timeout_ms,
        version=version,
        new_id=new_id,
        now_ms=now_ms,
    )
    if isinstance(decision, Step) and known is not None:
        step = decision.transaction
        if step.state is TransactionState.EMPTY:
            again = step.become(TransactionState.EMPTY, now_ms, producer_epoch=known.producer_epoch)
            return decision._replace(transaction=again)
    return decision


@plant_in("transaction", ending, "end", seeds_max=20)
def commits_what_is_to_be_aborted(
    known: Transaction | None,
    request: EndTxnRequest,
    *,
    raises_epoch: bool,
    new_id: int | None,
    now_ms: int,
) -> Decision:
    """Breaks: a transaction ends as its producer has asked."""
    commits = EndTxnRequest(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        committed=True,
    )
    return _end(known, commits, raises_epoch=raises_epoch, new_id=new_id, now_ms=now_ms)


@plant_in("transaction", Unwritten, "has", seeds_max=60, found_at=28)
def is_content_with_one_partition(self: Unwritten, place: Place, now_ms: int) -> None:
    """Breaks: a transaction is complete once each of its partitions has the marker."""
    self.missing.clear()
    _has(self, place, now_ms)


@plant_in("transaction", transaction_coordinator, "begun_by", seeds_max=40, found_at=16)
def takes_what_is_decided_for_told(transaction: Transaction, now_ms: int) -> Transaction:
    """Breaks: a coordinator that finds a decision in the log tells it to all partitions."""
    begun = begun_by(transaction, now_ms)
    return completed(begun, now_ms) if begun.state.is_prepared else begun


@plant_in("transaction", transaction_markers, "build_marker", seeds_max=20)
def writes_every_marker_as_abort(marker: Marker, *, timestamp_ms: int) -> bytes:
    """Breaks: a marker says how its transaction was ended."""
    return build_marker(marker._replace(is_commit=False), timestamp_ms=timestamp_ms)


@plant_in("transaction", adding, "add", seeds_max=60, found_at=25)
def adds_for_fenced_producers(
    known: Transaction | None,
    producer: Producer,
    places: frozenset[Place],
    *,
    client_version: int,
    now_ms: int,
) -> Decision:
    """Breaks: only the producer of the latest epoch adds partitions to a transaction."""
    if known is not None and known.producer_id == producer.id:
        producer = Producer(known.producer_id, known.producer_epoch)
    return _add(known, producer, places, client_version=client_version, now_ms=now_ms)


@plant_in("transaction", fetching, "told_aborted", seeds_max=20)
def tells_one_aborted_transaction(part: fetching.Part) -> tuple[AbortedTransaction, ...]:
    """Breaks: readers of committed records are told of all that was aborted."""
    return _told_aborted(part)[:1]


@plant_in("transaction", initializing, "initialize")
def gives_a_zombie_its_id_back(
    known: Transaction | None,
    expected: Producer | None,
    *,
    transactional_id: str,
    timeout_ms: int,
    version: int,
    new_id: int | None,
    now_ms: int,
) -> Decision:
    """Breaks: who was fenced does not begin again as the producer that it was."""
    return _initialize(
        known,
        None,
        transactional_id=transactional_id,
        timeout_ms=timeout_ms,
        version=version,
        new_id=new_id,
        now_ms=now_ms,
    )


@plant_in("transaction", ending, "end")
def takes_a_retry_for_a_zombie(
    known: Transaction | None,
    request: EndTxnRequest,
    *,
    raises_epoch: bool,
    new_id: int | None,
    now_ms: int,
) -> Decision:
    """Breaks: an end that is asked for again is answered as it was decided."""
    if known is not None and request.producer_epoch < known.producer_epoch:
        return Refused(ErrorCode.PRODUCER_FENCED)
    return _end(known, request, raises_epoch=raises_epoch, new_id=new_id, now_ms=now_ms)
