"""The rules of transactional ids, by table: who is refused, and what comes next."""

from dataclasses import replace

import pytest

from broker.transactions.adding import add, verify
from broker.transactions.decisions import Decision, NeedsProducerId, Refused, Settled, Step
from broker.transactions.ending import end, fenced
from broker.transactions.initializing import initialize
from broker.transactions.transaction import (
    Transaction,
    TransactionState,
    completed,
    is_expired,
    is_timed_out,
)
from broker.verifying import Producer
from wire.errors import ErrorCode
from wire.messages.transactions import EndTxnRequest

NOW = 2_000_000
STARTED = 1_990_000
PLACE, OTHER = ("t", 0), ("t", 1)
BOTH = frozenset({PLACE, OTHER})
EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMMITTED, ABORTED = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
OVER = (EMPTY, COMMITTED, ABORTED)
LAST_EPOCH = 32766  # the last that a producer gets
FENCED = Refused(ErrorCode.PRODUCER_FENCED)
CONCURRENT = Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
INVALID = Refused(ErrorCode.INVALID_TXN_STATE)
UNKNOWN = Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


def known_in(state: TransactionState, epoch: int = 5, **changes: object) -> Transaction:
    """Producer 7 with the epoch 5, which had 4 before."""
    is_open = state is ONGOING or state.is_prepared
    known = Transaction(
        id="x",
        producer_id=7,
        previous_producer_id=7,
        producer_epoch=epoch,
        last_producer_epoch=epoch - 1,
        timeout_ms=1000,
        state=state,
        places=frozenset({PLACE}) if is_open else frozenset(),
        start_ms=-1 if state is EMPTY else STARTED,
        update_ms=STARTED,
        client_version=2,
    )
    return replace(known, **changes)  # type: ignore[arg-type]  # fields by name


def init(
    known: Transaction | None,
    expected: Producer | None = None,
    *,
    version: int = 2,
    new_id: int | None = None,
) -> Decision:
    return initialize(
        known,
        expected,
        transactional_id="x",
        timeout_ms=500,
        version=version,
        new_id=new_id,
        now_ms=NOW,
    )


def step(decision: Decision) -> Transaction:
    assert isinstance(decision, Step), decision
    return decision.transaction


def identity(decision: Decision) -> tuple[int, int]:
    after = step(decision)
    return after.producer_id, after.producer_epoch


# --- InitProducerId -------------------------------------------------------------------------


def test_a_new_id_begins_with_a_new_producer_id() -> None:
    assert init(None) == NeedsProducerId()
    after = step(init(None, new_id=9))
    assert (after.producer_id, after.producer_epoch, after.state) == (9, 0, EMPTY)
    assert after.timeout_ms == 500


@pytest.mark.parametrize("state", OVER)
def test_each_beginning_raises_the_epoch(state: TransactionState) -> None:
    after = step(init(known_in(state)))
    assert (after.producer_id, after.producer_epoch, after.state) == (7, 6, EMPTY)
    assert (after.start_ms, after.update_ms, after.timeout_ms) == (-1, NOW, 500)


@pytest.mark.parametrize(
    ("expected", "result"),
    [
        (Producer(7, 5), (7, 6)),
        (Producer(7, 4), (7, 5)),  # the answer was lost: the same epoch again
        (Producer(7, 3), FENCED),
        (Producer(7, 6), FENCED),
        (Producer(8, 5), FENCED),
        (Producer(7, 32767), FENCED),
    ],
)
def test_a_producer_goes_on_unless_another_has_begun(
    expected: Producer, result: Refused | tuple[int, int]
) -> None:
    decision = init(known_in(COMMITTED), expected)
    assert (decision if isinstance(result, Refused) else identity(decision)) == result


@pytest.mark.parametrize("expected", [Producer(7, 4), Producer(7, 3), Producer(6, LAST_EPOCH)])
def test_who_names_another_epoch_ends_nothing_that_is_open(expected: Producer) -> None:
    """Scenario 38: a zombie had its successor's transaction aborted, and both were fenced."""
    known = known_in(ONGOING, previous_producer_id=6)
    assert init(known, expected) == FENCED
    assert step(init(known, Producer(7, 5))).state is TransactionState.PREPARE_ABORT


def test_a_producer_goes_on_after_its_id_ran_out_of_epochs() -> None:
    known = known_in(EMPTY, 0, producer_id=8, previous_producer_id=7, last_producer_epoch=32766)
    assert identity(init(known, Producer(7, 32766))) == (8, 0)
    assert init(known, Producer(7, 32765)) == FENCED
    assert init(known_in(COMMITTED, LAST_EPOCH), Producer(6, LAST_EPOCH)) == FENCED


@pytest.mark.parametrize("expected", [None, Producer(7, LAST_EPOCH)])
def test_the_last_epoch_is_followed_by_a_new_id(expected: Producer | None) -> None:
    known = known_in(COMMITTED, LAST_EPOCH)
    assert init(known, expected) == NeedsProducerId()
    after = step(init(known, expected, new_id=9))
    assert (after.producer_id, after.producer_epoch, after.previous_producer_id) == (9, 0, 7)
    assert after.last_producer_epoch == (-1 if expected is None else LAST_EPOCH)


@pytest.mark.parametrize(
    ("known", "expected", "last"),
    [
        (known_in(COMMITTED), None, -1),
        (known_in(COMMITTED), Producer(7, 5), 5),
        (known_in(COMMITTED), Producer(7, 4), 4),
        (known_in(COMMITTED, LAST_EPOCH), Producer(7, LAST_EPOCH), LAST_EPOCH),
    ],
)
def test_each_beginning_has_its_times_and_remembers_the_epoch_before(
    known: Transaction, expected: Producer | None, last: int
) -> None:
    after = step(init(known, expected, new_id=9))
    assert (after.last_producer_epoch, after.timeout_ms, after.update_ms) == (last, 500, NOW)


def test_a_lost_answer_with_the_last_epoch_is_given_again() -> None:
    known = known_in(EMPTY, LAST_EPOCH)
    assert identity(init(known, Producer(7, LAST_EPOCH - 1))) == (7, LAST_EPOCH)


def test_all_epochs_but_the_very_last_are_used() -> None:
    assert identity(init(known_in(COMMITTED, LAST_EPOCH - 1))) == (7, LAST_EPOCH)


@pytest.mark.parametrize("version", [0, 2])
def test_an_open_transaction_is_aborted_before_a_producer_begins(version: int) -> None:
    decision = init(known_in(ONGOING), version=version)
    after = step(decision)
    assert isinstance(decision, Step)
    assert decision.error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (after.state, after.producer_epoch, after.places) == (
        PREPARE_ABORT,
        6,
        frozenset({PLACE}),
    )
    assert (after.client_version, after.start_ms) == (version, STARTED)


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_a_producer_waits_for_the_end_that_is_decided(state: TransactionState) -> None:
    assert init(known_in(state)) == CONCURRENT


# --- adding ---------------------------------------------------------------------------------


def added(known: Transaction | None, who: Producer, *places: tuple[str, int]) -> Decision:
    return add(known, who, frozenset(places), client_version=2, now_ms=NOW)


@pytest.mark.parametrize("state", OVER)
def test_the_first_partition_begins_a_transaction(state: TransactionState) -> None:
    after = step(added(known_in(state), Producer(7, 5), PLACE))
    assert (after.state, after.places, after.start_ms) == (ONGOING, frozenset({PLACE}), NOW)


def test_further_partitions_keep_its_start() -> None:
    after = step(added(known_in(ONGOING), Producer(7, 5), PLACE, OTHER))
    assert (after.places, after.start_ms, after.update_ms) == (BOTH, STARTED, NOW)


def test_what_is_in_it_is_not_written_again() -> None:
    assert added(known_in(ONGOING), Producer(7, 5), PLACE) == Settled(7, 5)
    assert step(added(known_in(COMMITTED), Producer(7, 5))).state is ONGOING


@pytest.mark.parametrize(
    ("known", "who", "error"),
    [
        (None, Producer(7, 5), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (known_in(ONGOING), Producer(8, 5), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (known_in(ONGOING), Producer(7, 4), ErrorCode.PRODUCER_FENCED),
        (known_in(ONGOING), Producer(7, 6), ErrorCode.PRODUCER_FENCED),
        (known_in(PREPARE_COMMIT), Producer(7, 5), ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_others_are_refused(known: Transaction | None, who: Producer, error: ErrorCode) -> None:
    assert added(known, who, PLACE) == Refused(error)
    assert verify(known, who, frozenset({PLACE})) == {PLACE: error}


def test_only_what_was_added_is_verified() -> None:
    errors = verify(known_in(ONGOING), Producer(7, 5), frozenset({PLACE, OTHER}))
    assert errors == {PLACE: ErrorCode.NONE, OTHER: ErrorCode.TRANSACTION_ABORTABLE}


# --- EndTxn ---------------------------------------------------------------------------------


def ended_by(
    known: Transaction | None,
    *,
    committed: bool,
    epoch: int = 5,
    producer_id: int = 7,
    raises: bool = True,
    new_id: int | None = None,
) -> Decision:
    request = EndTxnRequest(
        transactional_id="x",
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=committed,
    )
    return end(known, request, raises_epoch=raises, new_id=new_id, now_ms=NOW)


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_an_open_transaction_is_decided(*, raises: bool, committed: bool) -> None:
    after = step(ended_by(known_in(ONGOING), committed=committed, raises=raises))
    assert after.state is (PREPARE_COMMIT if committed else PREPARE_ABORT)
    assert (after.producer_epoch, after.client_version) == ((6, 2) if raises else (5, 0))
    assert (after.places, after.start_ms, after.update_ms) == (frozenset({PLACE}), STARTED, NOW)


OLD_CLIENT = [  # (state, commit, abort)
    (EMPTY, INVALID, INVALID),
    (PREPARE_COMMIT, CONCURRENT, INVALID),
    (PREPARE_ABORT, INVALID, CONCURRENT),
    (COMMITTED, Settled(7, 5), INVALID),
    (ABORTED, INVALID, Settled(7, 5)),
]
RETRY = [  # the epoch was raised by the end that is asked for again
    (EMPTY, FENCED, FENCED),
    (ONGOING, FENCED, FENCED),
    (PREPARE_COMMIT, CONCURRENT, INVALID),
    (PREPARE_ABORT, INVALID, CONCURRENT),
    (COMMITTED, Settled(7, 5), INVALID),
    (ABORTED, INVALID, Settled(7, 5)),
]


@pytest.mark.parametrize(("state", "commit", "abort"), OLD_CLIENT)
def test_an_older_client_asks_again_with_its_epoch(
    state: TransactionState, commit: Decision, abort: Decision
) -> None:
    known = known_in(state)
    assert ended_by(known, committed=True, raises=False) == commit
    assert ended_by(known, committed=False, raises=False) == abort


@pytest.mark.parametrize(("state", "commit", "abort"), RETRY)
def test_a_retry_has_the_epoch_before(
    state: TransactionState, commit: Decision, abort: Decision
) -> None:
    known = known_in(state)
    assert ended_by(known, committed=True, epoch=4) == commit
    assert ended_by(known, committed=False, epoch=4) == abort


@pytest.mark.parametrize("state", OVER)
def test_with_the_present_epoch_nothing_can_be_aborted_but_not_committed(
    state: TransactionState,
) -> None:
    known = known_in(state)
    assert ended_by(known, committed=True) == INVALID
    after = step(ended_by(known, committed=False))
    assert (after.state, after.producer_epoch, after.places) == (PREPARE_ABORT, 6, frozenset())
    assert after.start_ms == NOW


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_the_epoch_that_the_end_raised_is_not_its_producers_yet(state: TransactionState) -> None:
    assert ended_by(known_in(state), committed=True) == FENCED


@pytest.mark.parametrize("raises", [True, False])
def test_other_producers_end_nothing(*, raises: bool) -> None:
    known = known_in(ONGOING)
    assert ended_by(None, committed=True, raises=raises) == UNKNOWN
    assert ended_by(known, committed=True, producer_id=8, raises=raises) == UNKNOWN
    assert ended_by(known, committed=True, epoch=3, raises=raises) == FENCED
    assert ended_by(known, committed=True, epoch=6, raises=raises) == FENCED


def test_the_end_with_the_last_epoch_brings_a_new_id() -> None:
    known = known_in(ONGOING, LAST_EPOCH)
    assert ended_by(known, committed=True, epoch=LAST_EPOCH) == NeedsProducerId()
    prepared = step(ended_by(known, committed=True, epoch=LAST_EPOCH, new_id=9))
    assert (prepared.producer_id, prepared.producer_epoch) == (7, 32767)
    assert prepared.next_producer_id == 9
    after = completed(prepared, NOW)
    assert (after.producer_id, after.producer_epoch, after.previous_producer_id) == (9, 0, 7)
    assert after.next_producer_id == -1
    # Its answer was lost.
    assert ended_by(after, committed=True, epoch=LAST_EPOCH) == Settled(9, 0)
    assert ended_by(after, committed=True, epoch=LAST_EPOCH, producer_id=8) == UNKNOWN
    assert ended_by(after, committed=False, epoch=LAST_EPOCH) == INVALID


def test_a_new_id_is_taken_with_epoch_bumps_only() -> None:
    """Its log tells no client's version, as the cluster's has been lowered meanwhile."""
    known = known_in(PREPARE_ABORT, 32767, next_producer_id=9, client_version=0)
    after = completed(known, NOW)
    assert (after.producer_id, after.producer_epoch, after.next_producer_id) == (7, 32767, -1)


# --- for the producer -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 2])
def test_a_fenced_producer_cannot_end_what_was_aborted_for_it(version: int) -> None:
    known = known_in(ONGOING)
    decision = fenced(known, version=version, new_id=None, now_ms=NOW)
    after = step(decision)
    assert (after.state, after.producer_epoch) == (PREPARE_ABORT, 6)
    raises = version == 2
    expected = INVALID if raises else FENCED
    assert ended_by(after, committed=True, raises=raises) == expected
    assert ended_by(completed(after, NOW), committed=True, raises=raises) == expected


def test_an_older_producer_is_fenced_in_its_last_epoch() -> None:
    after = step(fenced(known_in(ONGOING, LAST_EPOCH), version=0, new_id=None, now_ms=NOW))
    assert (after.producer_epoch, after.next_producer_id) == (32767, -1)
    assert init(completed(after, NOW)) == NeedsProducerId()


def test_only_an_open_transaction_times_out() -> None:
    known = known_in(ONGOING)
    assert is_timed_out(known, STARTED + 1001)
    assert not is_timed_out(known, STARTED + 1000)
    assert not is_timed_out(known_in(PREPARE_COMMIT), NOW)
    assert not is_timed_out(known_in(ONGOING, timeout_ms=2**31 - 1), NOW + 2**40)


def test_only_an_idle_id_expires() -> None:
    for state in TransactionState:
        expires = is_expired(known_in(state), STARTED + 100, expiration_ms=100)
        assert expires == (state in OVER)
    assert not is_expired(known_in(EMPTY), STARTED + 99, expiration_ms=100)


def test_complete_has_no_partitions_left() -> None:
    after = completed(known_in(PREPARE_COMMIT), NOW)
    assert (after.state, after.places, after.start_ms) == (COMMITTED, frozenset(), STARTED)
    assert completed(known_in(PREPARE_ABORT), NOW).state is ABORTED
