"""Transactions of producers in one partition, against a model that keeps the log and reads it."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.partition.producer_states import ProducerStates, last_ms
from quorum.core.producers import (
    EARLIER_MAX,
    AbortedTransaction,
    EarlierEntry,
    ProducerBatch,
    ProducerEntry,
    observe,
)
from wire.batch import BatchHeader
from wire.transaction_markers import Marker

TRANSACTIONAL, CONTROL = 0x10, 0x20
PRODUCERS = (7, 8, 9)


class Written(NamedTuple):
    header: BatchHeader
    marker: Marker | None = None


class Model:
    """What a plain reader of the whole log finds out."""

    def __init__(self) -> None:
        self.log: list[Written] = []
        self.high_watermark = 0

    @property
    def end(self) -> int:
        return self.log[-1].header.next_offset if self.log else 0

    def of(self, producer: int, end: int | None = None) -> list[Written]:
        return [
            each
            for each in self.log
            if each.header.producer_id == producer
            and (end is None or each.header.base_offset < end)
        ]

    def epoch(self, producer: int) -> int:
        found = self.of(producer)
        return found[-1].header.producer_epoch if found else -1

    def coordinator_epoch(self, producer: int) -> int:
        markers = [each.marker for each in self.of(producer) if each.marker is not None]
        return markers[-1].coordinator_epoch if markers else -1

    def open_since(self, producer: int, end: int | None = None) -> int:
        since = -1
        for header, marker in self.of(producer, end):
            if marker is not None:
                since = -1
            elif since < 0 and header.is_transactional:
                since = header.base_offset
        return since

    def last_sequences(self, producer: int) -> list[tuple[int, int]]:
        """(sequence, offset) of the batches in its epoch, as far as a repetition may be of them."""
        epoch, found = self.epoch(producer), list[tuple[int, int]]()
        for header, marker in self.of(producer):
            if header.producer_epoch == epoch and marker is None:
                found.append((header.base_sequence, header.last_offset))
        return found[-5:]

    def last_stable_offset(self) -> int:
        """As read up to the high watermark: markers behind it are not certain."""
        found = [self.open_since(each, self.high_watermark) for each in PRODUCERS]
        return min((each for each in found if each >= 0), default=self.high_watermark)

    def aborts(self, producer: int) -> AbortedTransaction | None:
        """What an abort marker that is appended now ends."""
        since = self.open_since(producer)
        if since < 0:
            return None
        others = [self.open_since(each) for each in PRODUCERS if each != producer]
        stable = min((each for each in others if each >= 0), default=self.end + 1)
        return AbortedTransaction(producer, since, self.end, stable)


class Both:
    """The state and the model of one partition, which are told the same."""

    def __init__(self) -> None:
        self.model = Model()
        self.states = ProducerStates()

    def write(self, producer: int, *, is_transactional: bool, raises: bool = False) -> None:
        epoch = max(0, self.model.epoch(producer) + raises)
        before = self.model.last_sequences(producer)
        is_same = epoch == self.model.epoch(producer)
        header = BatchHeader(
            base_offset=self.model.end,
            attributes=TRANSACTIONAL if is_transactional else 0,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=before[-1][0] + 1 if before and is_same else 0,
            record_count=1,
            max_timestamp_ms=self.model.end,
        )
        assert self._append(Written(header)) is None

    def end(self, producer: int, *, is_commit: bool, raises: bool, coordinator: int = 0) -> None:
        epoch = max(0, self.model.epoch(producer) + raises)
        header = BatchHeader(
            base_offset=self.model.end,
            attributes=TRANSACTIONAL | CONTROL,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=-1,
            record_count=1,
            max_timestamp_ms=self.model.end,
        )
        expected = None if is_commit else self.model.aborts(producer)
        marker = Marker(producer, epoch, is_commit, coordinator)
        assert self._append(Written(header, marker)) == expected

    def _append(self, written: Written) -> AbortedTransaction | None:
        entry = self.states.entry(written.header.producer_id)
        if entry is not None and len(entry.earlier) == EARLIER_MAX:
            self.commit(self.model.end)
        self.model.log.append(written)
        return self.states.appended(*written, high_watermark=self.model.high_watermark)

    def commit(self, offset: int) -> None:
        self.model.high_watermark = max(self.model.high_watermark, min(offset, self.model.end))

    def truncate(self, offset: int) -> None:
        end = max(self.model.high_watermark, offset)
        self.model.log = [each for each in self.model.log if each.header.next_offset <= end]
        self.states.truncated(end)

    def restart(self, high_watermark: int) -> None:
        """The log is read again; the high watermark was saved a while ago."""
        entries: dict[int, ProducerEntry] = {}
        for written in self.model.log:
            observe(entries, *written)
        self.model.high_watermark = min(self.model.high_watermark, high_watermark)
        self.states = ProducerStates(entries.values(), high_watermark=self.model.high_watermark)

    def agree(self) -> None:
        model, states = self.model, self.states
        unstable = states.first_unstable(model.high_watermark)
        stable = model.high_watermark if unstable is None else min(unstable, model.high_watermark)
        assert stable == model.last_stable_offset()
        for producer in PRODUCERS:
            entry = states.entry(producer)
            if entry is None:
                assert not model.of(producer)
                continue
            assert entry.producer_epoch == model.epoch(producer)
            assert entry.coordinator_epoch == model.coordinator_epoch(producer)
            assert entry.open_since == model.open_since(producer)
            known = [(each.base_sequence, each.last_offset) for each in entry.batches[-5:]]
            assert known == model.last_sequences(producer)


STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PRODUCERS), st.booleans(), st.just(False)),
    st.tuples(st.just("write"), st.sampled_from(PRODUCERS), st.just(True), st.booleans()),
    st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans(), st.booleans()),
    st.tuples(st.just("commit"), st.integers(1, 4), st.none(), st.none()),
    st.tuples(st.just("truncate"), st.integers(1, 4), st.none(), st.none()),
)


def take(both: Both, steps: list[tuple[str, int, bool | None, bool | None]]) -> None:
    for number, (step, value, first, second) in enumerate(steps):
        match step:
            case "write":
                is_open = both.model.open_since(value) >= 0
                both.write(value, is_transactional=bool(first) or is_open, raises=bool(second))
            case "end":
                both.end(value, is_commit=bool(first), raises=bool(second), coordinator=number)
            case "commit":
                both.commit(both.model.high_watermark + value)
            case "truncate":
                both.truncate(both.model.end - value)
        both.agree()


@given(st.lists(STEPS, max_size=30))
def test_state_is_what_a_reader_of_the_log_finds(
    steps: list[tuple[str, int, bool | None, bool | None]],
) -> None:
    take(Both(), steps)


@given(st.lists(STEPS, max_size=14), st.lists(STEPS, max_size=8), st.integers(0, 4))
def test_state_is_so_after_a_restart_with_an_older_high_watermark(
    before: list[tuple[str, int, bool | None, bool | None]],
    after: list[tuple[str, int, bool | None, bool | None]],
    behind: int,
) -> None:
    both = Both()
    take(both, before)
    both.restart(max(0, both.model.high_watermark - behind))
    cut = min(4, both.model.end - both.model.high_watermark)
    both.agree()
    both.truncate(both.model.end - cut // 2)
    take(both, after)


def test_a_marker_that_is_cut_off_opens_its_transaction_again_in_the_epoch_before() -> None:
    both = Both()
    both.write(7, is_transactional=True)
    both.write(7, is_transactional=True)
    both.end(7, is_commit=True, raises=True, coordinator=4)
    assert both.states.entry(7) == ProducerEntry(
        7,
        1,
        (),
        coordinator_epoch=4,
        transactions=both.states.entries()[0].transactions,
        marker_ms=2,
        earlier=both.states.entries()[0].earlier,
    )
    both.truncate(2)
    entry = both.states.entry(7)
    assert entry is not None
    assert (entry.producer_epoch, entry.open_since, len(entry.batches)) == (0, 0, 2)
    assert entry.coordinator_epoch == -1


def test_readers_stop_before_a_transaction_until_its_marker_is_committed() -> None:
    both = Both()
    both.write(7, is_transactional=True)
    both.write(8, is_transactional=True)
    both.end(7, is_commit=True, raises=False)
    for high_watermark, first in ((1, 0), (2, 0), (3, 1)):
        both.commit(high_watermark)
        assert both.states.first_unstable(high_watermark) == first


def test_a_truncation_behind_a_marker_does_not_commit_it() -> None:
    both = Both()
    both.write(7, is_transactional=True)
    both.end(7, is_commit=True, raises=False)
    both.commit(1)
    both.write(7, is_transactional=True)
    both.write(7, is_transactional=True)
    both.truncate(3)
    both.agree()
    assert both.states.first_unstable(1) == 0
    assert both.states.first_unstable(2) == 2


@pytest.mark.parametrize(("markers", "high_watermark"), [(EARLIER_MAX + 1, 0), (3, 2)])
def test_a_log_that_is_cut_below_what_is_remembered_has_to_be_read(
    markers: int, high_watermark: int
) -> None:
    states = ProducerStates()
    for epoch in range(markers):
        header = BatchHeader(
            base_offset=epoch,
            attributes=TRANSACTIONAL | CONTROL,
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=-1,
            record_count=1,
        )
        at = min(high_watermark, epoch)
        states.appended(header, Marker(7, epoch, True, 0), high_watermark=at)
    states.truncated(markers - 1)
    assert states.is_whole
    states.truncated(0)
    assert not states.is_whole


def test_a_log_that_is_cut_below_the_high_watermark_it_was_opened_with_has_to_be_read() -> None:
    both = Both()
    both.write(7, is_transactional=True)
    both.end(7, is_commit=True, raises=True)
    for at in (0, 2):
        states = ProducerStates(both.states.entries(), high_watermark=at)
        states.truncated(1)
        assert states.is_whole == (at == 0)


def test_what_a_marker_has_replaced_is_kept_though_old_batches_go() -> None:
    batches = tuple(ProducerBatch(n, n, n, 0) for n in range(7))
    entry = ProducerEntry(7, 0, batches, coordinator_epoch=1, earlier=(EarlierEntry(7, None),))
    settled = ProducerStates((entry,), high_watermark=7).entry(7)
    assert settled is not None
    assert (len(settled.batches), settled.earlier) == (5, entry.earlier)


def test_a_marker_alone_says_when_its_producer_wrote_last() -> None:
    assert last_ms(ProducerEntry(7, 0, (), marker_ms=0)) == 0
    assert last_ms(ProducerEntry(7, 0, ())) < 0


@pytest.mark.parametrize("is_open", [True, False])
def test_a_producer_with_an_open_transaction_does_not_expire(is_open: bool) -> None:
    both = Both()
    both.write(7, is_transactional=True)
    if not is_open:
        both.end(7, is_commit=True, raises=True)
    assert both.states.oldest_ms == (None if is_open else 1)
    assert ProducerStates(both.states.entries()).oldest_ms == both.states.oldest_ms
    both.states.expire(1000)
    assert (both.states.entry(7) is not None) == is_open
