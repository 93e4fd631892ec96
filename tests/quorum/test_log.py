"""ReplicaLog against a list of records and a list of what has been synced."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quorum.effects import EpochStart, LogState
from quorum.fetch import Diverging, Valid
from quorum.log import ReplicaLog
from quorum.storage import METADATA_LOG
from quorum.types import OffsetAndEpoch
from wire.batch import BatchHeader


def header(base_offset: int, epoch: int, count: int = 1) -> BatchHeader:
    return BatchHeader(
        base_offset=base_offset, leader_epoch=epoch, last_offset_delta=count - 1, record_count=count
    )


def empty() -> ReplicaLog:
    return ReplicaLog(LogState(log=METADATA_LOG))


def test_empty_log_ends_at_zero_in_epoch_zero() -> None:
    assert empty().end == OffsetAndEpoch(offset=0, epoch=0)
    assert empty().high_watermark is None
    assert empty().committed_offset == 0


def test_recovered_log_is_synced_and_knows_no_high_watermark() -> None:
    state = LogState(log=METADATA_LOG, end_offset=9, last_epoch=3, epochs=(EpochStart(3, 0),))
    log = ReplicaLog(state)
    assert (log.synced_offset, log.end, log.high_watermark) == (9, OffsetAndEpoch(9, 3), None)
    assert log.is_synced()


def test_append_is_synced_only_when_stored() -> None:
    log = empty()
    log.append([header(0, 1, 3)], syncing=7)
    assert (log.end_offset, log.synced_offset, log.is_synced()) == (3, 0, False)
    log.stored(6)
    assert log.synced_offset == 0
    log.stored(7)
    assert (log.synced_offset, log.is_synced()) == (3, True)


def test_one_stored_covers_all_before_it() -> None:
    log = empty()
    for number in range(3):
        log.append([header(number, 1)], syncing=number)
    log.stored(2)
    assert log.synced_offset == 3


def test_append_that_nothing_waits_for_counts_at_once() -> None:
    log = empty()
    log.append([header(0, 1)], syncing=None)
    assert log.is_synced()
    assert log.synced_offset == 1


def test_what_is_truncated_before_its_sync_never_counts_as_synced() -> None:
    log = empty()
    log.append([header(0, 1, 5)], syncing=1)
    log.truncate(2, syncing=2)
    log.append([header(2, 2, 1)], syncing=3)
    log.stored(1)
    assert log.synced_offset == 2
    log.stored(3)
    assert log.synced_offset == 3


def test_truncation_below_the_high_watermark_is_refused() -> None:
    log = empty()
    log.append([header(0, 1, 5)], syncing=None)
    log.advance_high_watermark(3)
    with pytest.raises(AssertionError):
        log.truncate(2, syncing=None)


def test_gap_is_refused() -> None:
    with pytest.raises(AssertionError):
        empty().append([header(1, 1)], syncing=None)


def test_fetch_from_the_start_of_a_whole_log_is_always_valid() -> None:
    log = empty()
    log.append([header(0, 4, 5)], syncing=None)
    assert log.check(fetch_offset=0, last_fetched_epoch=2) == Valid()


def test_unknown_epoch_is_answered_with_the_end_of_our_log() -> None:
    log = empty()
    log.append([header(0, 4, 5)], syncing=None)
    found = log.check(fetch_offset=9, last_fetched_epoch=6)
    assert found == Diverging(epoch=4, end_offset=5)


class ReplicaLogMatchesAList(RuleBasedStateMachine):
    """The model holds an epoch a record, and how much of it each token in flight will sync."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[int] = []
        self.synced = 0
        self.in_flight: list[tuple[int, int]] = []
        self.committed = 0
        self.number = 0
        self.log = empty()

    def next_token(self) -> int:
        self.number += 1
        return self.number

    @rule(jump=st.integers(0, 2), counts=st.lists(st.integers(1, 3), min_size=1, max_size=3))
    def append(self, jump: int, counts: list[int]) -> None:
        epoch = (self.records[-1] if self.records else 1) + jump
        headers = []
        for count in counts:
            headers.append(header(len(self.records), epoch, count))
            self.records += [epoch] * count
        number = self.next_token()
        self.in_flight.append((number, len(self.records)))
        self.log.append(headers, syncing=number)

    @rule(back=st.integers(0, 5))
    def truncate(self, back: int) -> None:
        end = max(self.committed, len(self.records) - back)
        del self.records[end:]
        self.synced = min(self.synced, end)
        number = self.next_token()
        self.in_flight = [(n, min(upto, end)) for n, upto in self.in_flight] + [(number, end)]
        self.log.truncate(end, syncing=number)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([n for n, _ in self.in_flight]))
        self.synced = max([self.synced, *(upto for n, upto in self.in_flight if n <= number)])
        self.in_flight = [entry for entry in self.in_flight if entry[0] > number]
        self.log.stored(number)

    @rule(forward=st.integers(0, 4))
    def commit(self, forward: int) -> None:
        offset = min(len(self.records), self.committed + forward)
        before = self.log.high_watermark
        assert self.log.advance_high_watermark(offset) == (before is None or offset > before)
        self.committed = max(self.committed, offset)

    @invariant()
    def ends_agree(self) -> None:
        assert self.log.end_offset == len(self.records)
        assert self.log.last_epoch == (self.records[-1] if self.records else 0)
        assert self.log.synced_offset == self.synced
        assert self.log.is_synced() == (not self.in_flight)
        assert self.log.committed_offset == self.committed

    @invariant()
    def every_prefix_of_itself_is_valid(self) -> None:
        for offset in range(1, len(self.records) + 1):
            last_epoch = self.records[offset - 1]
            assert self.log.check(fetch_offset=offset, last_fetched_epoch=last_epoch) == Valid()


TestReplicaLogMatchesAList = ReplicaLogMatchesAList.TestCase
