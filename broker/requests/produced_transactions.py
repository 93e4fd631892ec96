"""The transaction that a Produce request is part of, and what its producer is told of it.

Coordinators answer each other in words that producers do not know, or take for something else. A
transaction that cannot be verified for the moment is told as NOT_ENOUGH_REPLICAS, which has always
meant that a producer may try again.

The coordinator of a producer of `transaction.version` 2 may still be ending its last transaction
when the first batch of the next arrives. That takes some milliseconds, so that it is worth asking
again before the producer is told.

Source: KIP-890; Kafka's ReplicaManager.handleProduceAppend and AddPartitionsToTxnManager.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from broker.partition.batch_checks import Refused
from broker.verifying import Concluded, Place, TransactionAsked, Verifier
from broker.waiting import Deadlines
from wire.batch import BatchHeader, CorruptBatch, read_header
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.producing import ProduceRequest
from wire.transaction_markers import may_be_transactional

__all__ = ["PatientVerifier", "ProducedPlace", "refusal_of", "transactional_header", "unverified"]

_AGAIN_MS = 20  # add.partitions.to.txn.retry.backoff.ms
_PATIENCE_MS = 100  # add.partitions.to.txn.retry.backoff.max.ms
_TRY_AGAIN = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class ProducedPlace(NamedTuple):
    """A partition as a Produce request names it."""

    topic: str
    topic_id: UUID
    partition: int


def transactional_header(records: bytes | None) -> BatchHeader | None:
    """The header of a batch of a transaction; whether it is valid is seen later."""
    header = _header_if_transactional(records)
    if header is None or header.producer_id < 0 or header.is_control:
        return None
    return header


def _header_if_transactional(records: bytes | None) -> BatchHeader | None:
    if records is None or not may_be_transactional(records):
        return None
    try:
        return read_header(records)
    except CorruptBatch:
        return None


def refusal_of(body: ProduceRequest, is_known: Callable[[ProducedPlace], bool]) -> Refused | None:
    """Why a request with batches of transactions is refused as a whole.

    Batches for partitions that are not known are refused by themselves, whoever wrote them.
    """
    found = [
        (ProducedPlace(topic.name, topic.topic_id, data.index), header)
        for topic in body.topic_data
        for data in topic.partition_data
        if (header := _header_if_transactional(data.records)) is not None
    ]
    if found and body.transactional_id is None:
        return Refused(error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producers = {
        (header.producer_id, header.producer_epoch)
        for place, header in found
        if header.producer_id >= 0 and not header.is_control and is_known(place)
    }
    if len(producers) > 1:
        return Refused(
            error=ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            reason="Transactional records contained more than one producer ID",
        )
    return None


def unverified(error: ErrorCode, lacking: Lacking) -> Refused:
    """What a producer is told if the coordinator has answered with `error`."""
    if error is ErrorCode.PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    if (
        error is ErrorCode.TRANSACTION_ABORTABLE
        and Capability.KNOWS_TRANSACTION_ABORTABLE in lacking
    ):
        error = ErrorCode.INVALID_TXN_STATE
    if error is ErrorCode.INVALID_TXN_STATE:
        return Refused(error=error, reason="Partition was not added to the transaction")
    is_early = (
        error is ErrorCode.CONCURRENT_TRANSACTIONS and Capability.ADDS_TO_TRANSACTION in lacking
    )
    if error in _TRY_AGAIN or is_early:
        return Refused(
            error=ErrorCode.NOT_ENOUGH_REPLICAS,
            reason="Unable to verify the partition has been added to the transaction. Underlying"
            f" error: {error.name}",
        )
    return Refused(error=error)


@dataclass(slots=True, eq=False)
class _Pause:
    """Before the coordinator is asked again."""

    is_done: bool = False


class PatientVerifier:
    """Asks again while the transaction before is being ended, if places are to be added."""

    def __init__(self, verifier: Verifier, deadlines: Deadlines) -> None:
        self._verifier = verifier
        self._deadlines = deadlines

    def verify(
        self,
        asked: TransactionAsked,
        concluded: Concluded,
        now_ms: int,
        *,
        asked_again: Callable[[], None],
    ) -> None:
        """`asked_again` is called before each further question."""
        if asked.adds:
            self._ask(asked, concluded, asked_again, now_ms + _PATIENCE_MS, now_ms)
        else:
            self._verifier.verify(asked, concluded, now_ms)

    def _ask(
        self,
        asked: TransactionAsked,
        concluded: Concluded,
        asked_again: Callable[[], None],
        until_ms: int,
        now_ms: int,
    ) -> None:
        def answered(errors: Mapping[Place, ErrorCode], now_ms: int) -> None:
            is_early = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
            if not is_early or now_ms >= until_ms or not self._ask_later(again, now_ms):
                concluded(errors, now_ms)

        def again(now_ms: int) -> None:
            asked_again()
            self._ask(asked, concluded, asked_again, until_ms, now_ms)

        self._verifier.verify(asked, answered, now_ms)

    def _ask_later(self, again: Callable[[int], None], now_ms: int) -> bool:
        """False if too much waits already."""
        pause = _Pause()

        def over(now_ms: int) -> None:
            pause.is_done = True
            again(now_ms)

        return self._deadlines.add(pause, now_ms + _AGAIN_MS, over)
