"""Sequences of idempotent producers: tables, and a comparison with a twin that keeps everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.partition.idempotence import (
    Duplicate,
    InSequence,
    OutOfSequence,
    SequenceVerdict,
    base_offset,
    check_sequence,
    next_sequence,
)
from broker.partition.producer_states import ProducerStates
from quorum.core.producers import ProducerEntry, observe
from tests.broker.brokers import Brokers, batch_of
from wire import metadata_records as records
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.primitives import INT32_MAX

MINUTE_MS = 60_000
BROKER_RESOURCE = 4


def header(
    sequence: int, *, count: int = 1, epoch: int = 0, offset: int = 0, producer: int = 9
) -> BatchHeader:
    return BatchHeader(
        base_offset=offset,
        last_offset_delta=count - 1,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
        max_timestamp_ms=offset,
    )


def states_after(*headers: BatchHeader, high_watermark: int = 1 << 40) -> ProducerStates:
    states = ProducerStates()
    for item in headers:
        states.appended(item, high_watermark=high_watermark)
    return states


def checked(states: ProducerStates, batch: BatchHeader) -> SequenceVerdict:
    return check_sequence(states.entry(batch.producer_id), batch)


def error_of(states: ProducerStates, batch: BatchHeader) -> ErrorCode | None:
    match checked(states, batch):
        case OutOfSequence(error=error):
            return error
        case _:
            return None


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert checked(ProducerStates(), header(77)) == InSequence()


@pytest.mark.parametrize("producer", [0, 9])
def test_the_next_sequence_is_taken_and_any_other_refused(producer: int) -> None:
    states = states_after(header(0, count=3, producer=producer))

    assert checked(states, header(3, producer=producer)) == InSequence()
    for sequence in (2, 4):
        refused = error_of(states, header(sequence, producer=producer))
        assert refused is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_repetition_is_found_among_the_last_five() -> None:
    batches = [header(n, offset=10 + n) for n in range(6)]
    states = states_after(*batches)

    assert error_of(states, batches[0]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for batch in batches[1:]:
        verdict = checked(states, batch)
        assert isinstance(verdict, Duplicate)
        assert base_offset(verdict.batch) == batch.base_offset


def test_a_repetition_must_be_the_whole_batch() -> None:
    states = states_after(header(0, count=3))
    assert error_of(states, header(0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_fenced_and_a_new_one_begins_at_zero() -> None:
    states = states_after(header(5, epoch=3))

    assert error_of(states, header(6, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error_of(states, header(6, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert checked(states, header(0, epoch=4)) == InSequence()


def test_sequences_wrap() -> None:
    states = states_after(header(INT32_MAX - 1, count=3, offset=100))

    assert next_sequence(INT32_MAX) == 0
    assert checked(states, header(1)) == InSequence()
    verdict = checked(states, header(INT32_MAX - 1, count=3))
    assert isinstance(verdict, Duplicate)
    assert base_offset(verdict.batch) == 100


def test_truncation_takes_back_what_it_removes() -> None:
    states = states_after(*[header(n, offset=n) for n in range(8)], high_watermark=0)

    states.truncated(4)

    assert checked(states, header(4)) == InSequence()
    assert isinstance(checked(states, header(3)), Duplicate)


def test_the_producer_that_has_been_silent_for_longest_is_known() -> None:
    states = states_after(header(0, offset=1), header(0, producer=5, offset=7))
    assert states.oldest_ms == 1


def test_the_first_batch_of_an_epoch_takes_the_place_of_those_before() -> None:
    entry = states_after(header(0), header(0, epoch=1, offset=1)).entry(9)
    assert entry is not None
    assert (entry.producer_epoch, len(entry.batches)) == (1, 1)


def test_truncation_takes_back_an_epoch_and_all_its_batches() -> None:
    epoch_after = header(0, epoch=1, offset=1), header(1, epoch=1, offset=2)
    states = states_after(header(0), *epoch_after, high_watermark=0)
    states.truncated(1)
    assert isinstance(checked(states, header(1)), InSequence)
    assert isinstance(checked(states, header(2)), OutOfSequence)


def test_truncation_forgets_a_producer_that_is_gone_entirely() -> None:
    states = states_after(header(0, offset=10), high_watermark=0)
    states.truncated(10)
    assert states.entry(9) is None


def test_producers_expire_by_the_time_of_their_last_batch() -> None:
    states = states_after(header(0, offset=10, producer=1), header(0, offset=20, producer=2))
    states.expire(15)
    assert [entry.producer_id for entry in states.entries()] == [2]


def test_what_lies_above_the_high_watermark_is_remembered_but_bounded() -> None:
    states = states_after(*[header(n, offset=n) for n in range(500)], high_watermark=0)
    entry = states.entry(9)
    assert entry is not None
    assert len(entry.batches) == 64


def test_recovery_and_appends_lead_to_the_same_answers() -> None:
    batches = [header(n, offset=n) for n in range(9)]
    entries: dict[int, ProducerEntry] = {}
    for batch in batches:
        observe(entries, batch)
    first, second = ProducerStates(entries.values()), states_after(*batches)

    for sequence in range(12):
        assert checked(first, header(sequence)) == checked(second, header(sequence))


def test_a_log_that_is_cut_after_a_restart_still_knows_its_producers() -> None:
    """Found by cluster seed 5929 with partition storage: whatever came next was taken."""
    entries: dict[int, ProducerEntry] = {}
    for n in range(20):
        observe(entries, header(n, offset=n))
    states = ProducerStates(entries.values(), high_watermark=8)
    entry = states.entry(9)
    assert entry is not None
    assert len(entry.batches) == 20 - 8 + 5, "of those below the high watermark the last five"
    states.truncated(9)
    assert isinstance(checked(states, header(13)), OutOfSequence)
    assert isinstance(checked(states, header(9)), InSequence)


@pytest.mark.parametrize(
    ("first", "epoch", "is_whole"), [(0, 0, True), (6, 0, False), (0, 1, False)]
)
def test_a_producer_that_is_cut_off_may_have_earlier_batches(
    first: int, epoch: int, is_whole: bool
) -> None:
    """An unclean leader has cut off what was committed; only the log knows what is left."""
    states = states_after(header(first, epoch=epoch, offset=12), header(0, producer=5, offset=2))
    states.truncated(12)
    assert states.entry(9) is None
    assert states.is_whole is is_whole


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Appends of batches of some size, high watermarks, and truncations not below them."""
    return draw(
        st.lists(
            st.tuples(st.sampled_from(["append", "commit", "truncate"]), st.integers(1, 4)),
            max_size=40,
        )
    )


@given(histories())
def test_after_any_truncation_above_the_high_watermark_the_answers_are_exact(
    history: list[tuple[str, int]],
) -> None:
    """The twin remembers every batch; both must agree about the next and the last five."""
    states = ProducerStates()
    log: list[BatchHeader] = []
    high_watermark = 0
    for kind, amount in history:
        end = log[-1].next_offset if log else 0
        if kind == "append":
            sequence = log[-1].last_sequence + 1 if log else 0
            log.append(header(sequence, count=amount, offset=end))
            states.appended(log[-1], high_watermark=high_watermark)
        elif kind == "commit":
            high_watermark = min(end, high_watermark + amount)
        else:
            kept = max(high_watermark, end - amount)
            log = [batch for batch in log if batch.next_offset <= kept]
            kept = log[-1].next_offset if log else 0
            high_watermark = min(high_watermark, kept)
            states.truncated(kept)
        if log:
            assert checked(states, header(log[-1].last_sequence + 1)) == InSequence()
            for batch in log[-5:]:
                verdict = checked(states, batch)
                assert isinstance(verdict, Duplicate), batch
                assert base_offset(verdict.batch) == batch.base_offset
        else:
            assert states.entry(9) is None


@pytest.mark.parametrize("control", [True, False])
def test_batches_without_a_producer_and_markers_leave_no_trace(control: bool) -> None:
    batch = header(0, producer=9 if control else -1)._replace(attributes=0x20 if control else 0)
    assert states_after(batch).entries() == ()


def test_producer_of_whom_no_batch_is_known_begins_at_zero_until_it_expires() -> None:
    states = ProducerStates([ProducerEntry(7, 0, ())])
    states.truncated(5)
    assert checked(states, header(0, producer=7)) == InSequence()
    assert error_of(states, header(1, producer=7)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    states.expire(0)
    assert states.entry(7) is None


@given(st.lists(st.tuples(st.sampled_from(["append", "cut", "expire"]), st.integers(0, 9))))
def test_no_producer_has_been_silent_for_longer_than_is_said(steps: list[tuple[str, int]]) -> None:
    states, end = ProducerStates(), 0
    for step, number in steps:
        match step:
            case "append":
                batch = header(0, offset=end, producer=number % 3)
                states.appended(batch._replace(max_timestamp_ms=number), high_watermark=0)
                end += 1
            case "cut":
                end = max(0, end - number)
                states.truncated(end)
            case _:
                states.expire(number)
        last = [entry.batches[-1].timestamp_ms for entry in states.entries()]
        assert (states.oldest_ms is None) == (not last)
        assert states.oldest_ms is None or states.oldest_ms <= min(last)
    states.expire(0)
    assert states.oldest_ms == min(
        (entry.batches[-1].timestamp_ms for entry in states.entries()), default=None
    )


def test_only_logs_with_a_producer_that_is_due_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", *[(1,)] * 5)
    brokers.write(
        records.ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name="1",
            name="producer.id.expiration.ms",
            value=str(5 * MINUTE_MS),
        )
    )
    for index, producer, after_ms in ((0, 9, 0), (0, 8, 10), (1, 9, 10), (2, 9, 20)):
        named = batch_of(
            b"x",
            timestamp_ms=brokers.now_ms + after_ms * MINUTE_MS,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
        )
        brokers.produce(1, "t", index, named)
    logs = [brokers.partition(1, "t", index).open_log for index in range(5)]
    looked_at: list[ProducerStates] = []
    expire = ProducerStates.expire

    def noted(self: ProducerStates, before_ms: int) -> None:
        looked_at.append(self)
        expire(self, before_ms)

    monkeypatch.setattr(ProducerStates, "expire", noted)
    brokers.run(11 * MINUTE_MS)
    assert looked_at == [logs[0].producers]
    assert [entry.producer_id for entry in logs[0].producers.entries()] == [8]
    brokers.run(10 * MINUTE_MS)
    assert looked_at[1:] == [logs[0].producers, logs[1].producers]
    assert logs[0].producers.entries() == logs[1].producers.entries() == ()
    assert len(logs[2].producers.entries()) == 1
