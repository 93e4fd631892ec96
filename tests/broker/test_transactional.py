"""What may begin, continue and end a transaction in one partition, by table."""

import pytest

from broker.partition.batch_checks import Refused
from broker.partition.transactional import (
    Guards,
    check_beginning,
    check_marker,
    check_verified,
)
from quorum.core.producers import ProducerBatch, ProducerEntry, ProducerTransaction
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.primitives import INT16_MAX
from wire.transaction_markers import Marker

NONE, INVALID_STATE = ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE
INVALID_EPOCH = ErrorCode.INVALID_PRODUCER_EPOCH
FENCED, OUT_OF_ORDER = (
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
)
TRANSACTIONAL = 0x10
OPEN, ENDED = (ProducerTransaction(3),), (ProducerTransaction(3, 5),)


def entry(epoch: int, *, is_open: bool, coordinator_epoch: int = 2) -> ProducerEntry:
    batch = ProducerBatch(0, 0, 3, 1000)
    return ProducerEntry(7, epoch, (batch,), coordinator_epoch, OPEN if is_open else ENDED)


def header(sequence: int, *, epoch: int = 4, is_transactional: bool = True) -> BatchHeader:
    return BatchHeader(
        attributes=TRANSACTIONAL if is_transactional else 0,
        producer_id=7,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=1,
    )


def error_of(refused: Refused | None) -> ErrorCode:
    return NONE if refused is None else refused.error


@pytest.mark.parametrize(
    ("is_open", "epoch", "version", "coordinator_epoch", "error"),
    [
        # Before transaction.version 2 a marker has the epoch of the transaction, or a fencing one.
        (True, 4, 1, 2, NONE),
        (True, 5, 1, 2, NONE),
        (True, 3, 1, 2, INVALID_EPOCH),
        (False, 4, 0, 2, NONE),
        # Since then each raises it; one that does not can only repeat the last.
        (True, 5, 2, 2, NONE),
        (True, 4, 2, 2, INVALID_EPOCH),
        (True, 3, 2, 2, INVALID_EPOCH),
        (False, 4, 2, 2, NONE),
        (False, 3, 2, 2, INVALID_EPOCH),
        # A coordinator that has been followed by another.
        (True, 5, 2, 1, FENCED),
        (True, 4, 1, 1, FENCED),
        (True, 5, 2, 3, NONE),
        (True, 3, 1, 1, INVALID_EPOCH),
    ],
)
def test_markers(
    is_open: bool, epoch: int, version: int, coordinator_epoch: int, error: ErrorCode
) -> None:
    """As Kafka's ProducerAppendInfo.checkProducerEpoch and checkCoordinatorEpoch."""
    marker = Marker(7, epoch, True, coordinator_epoch)
    assert check_marker(entry(4, is_open=is_open), marker, version) is error


def test_the_last_epoch_that_there_is_ends_a_transaction_of_its_own() -> None:
    known = entry(INT16_MAX, is_open=True)
    assert check_marker(known, Marker(7, INT16_MAX, False, 2), 2) is NONE


def test_a_marker_of_its_own_epoch_does_not_end_a_transaction_that_begins_the_log() -> None:
    known = entry(4, is_open=True)._replace(transactions=(ProducerTransaction(0),))
    assert check_marker(known, Marker(7, 4, True, 2), 2) is INVALID_EPOCH
    assert check_marker(known, Marker(7, 4, True, 2), 1) is NONE


def test_a_marker_for_a_producer_that_is_not_known_is_written() -> None:
    assert check_marker(None, Marker(7, 0, True, 0), 2) is NONE


def test_a_batch_needs_a_transaction_that_goes_on_in_its_epoch_or_a_guard() -> None:
    guards = Guards()
    guard = guards.start(7, 4, 0, begins_at_zero=True)
    for known, shown, error in (
        (entry(4, is_open=True), None, NONE),
        (entry(3, is_open=True), None, INVALID_STATE),
        (entry(4, is_open=False), None, INVALID_STATE),
        (None, None, INVALID_STATE),
        (None, guard, NONE),
        (entry(4, is_open=False), guard, NONE),
    ):
        current = guards.of(7)
        refused = check_verified(known, header(0), current=current, shown=shown)
        assert error_of(refused) is error, (known, shown)
        plain = header(0, is_transactional=False)
        assert check_verified(known, plain, current=current, shown=shown) is None


def test_whatever_is_appended_voids_the_guard() -> None:
    guards = Guards()
    guard = guards.start(7, 4, 0, begins_at_zero=True)
    guards.appended(header(0)._replace(producer_id=8))
    assert guards.of(7) is guard
    guards.appended(header(0))
    again = guards.start(7, 4, 0, begins_at_zero=True)
    refused = check_verified(None, header(0), current=again, shown=guard)
    assert error_of(refused) is INVALID_STATE


def test_guards_are_bounded_and_the_latest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.partition.transactional._GUARDS_MAX", 2)
    guards = Guards()
    for producer in (1, 2, 1, 3):
        guards.start(producer, 4, 0, begins_at_zero=True)
    assert [guards.of(producer) is not None for producer in (1, 2, 3)] == [True, False, True]


@pytest.mark.parametrize("begins_at_zero", [True, False])
def test_the_lowest_sequence_that_was_sent_begins_the_transaction(begins_at_zero: bool) -> None:
    guards = Guards()
    for sequence in (5, 3, 8):
        guards.start(7, 4, sequence, begins_at_zero=begins_at_zero)
    guards.start(7, 3, 1, begins_at_zero=begins_at_zero)  # of an earlier epoch
    known = entry(4, is_open=False)
    for sequence, error in ((0, NONE), (3, NONE), (5, OUT_OF_ORDER)):
        assert error_of(check_beginning(known, header(sequence), guards.of(7))) is error
    unknown_at_three = OUT_OF_ORDER if begins_at_zero else NONE
    assert error_of(check_beginning(None, header(3), guards.of(7))) is unknown_at_three
    without_batches = known._replace(batches=())
    refused = check_beginning(without_batches, header(3), guards.of(7))
    assert error_of(refused) is unknown_at_three, "only its marker is known"
    guards.start(7, 5, 6, begins_at_zero=begins_at_zero)
    guards.start(7, 5, 8, begins_at_zero=begins_at_zero)
    assert check_beginning(known, header(6, epoch=5), guards.of(7)) is None, "of a later epoch"
    assert error_of(check_beginning(known, header(8, epoch=5), guards.of(7))) is OUT_OF_ORDER


def test_a_producer_writes_nothing_beside_its_transaction() -> None:
    plain = header(1, is_transactional=False)
    assert error_of(check_beginning(entry(4, is_open=True), plain, None)) is INVALID_STATE
    assert check_beginning(entry(4, is_open=False), plain, None) is None
