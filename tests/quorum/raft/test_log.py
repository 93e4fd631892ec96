"""QuorumLog against a list of records and a list of what has been synced."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quorum.core.effects import EpochStart, LogState, SnapshotFile
from quorum.core.storage import METADATA_LOG
from quorum.core.types import NO_EPOCH, OffsetAndEpoch
from quorum.log.fetch import Diverging, TooFarBehind, Valid
from quorum.raft.log import BOOTSTRAP_SNAPSHOT, QuorumLog
from tests.quorum.builders import snapshot
from tests.quorum.log_files import batch
from tests.quorum.replicas import bootstrap_snapshot
from wire.batch import BatchHeader, headers


def header(base_offset: int, epoch: int, count: int = 1) -> BatchHeader:
    return BatchHeader(
        base_offset=base_offset, leader_epoch=epoch, last_offset_delta=count - 1, record_count=count
    )


def empty() -> QuorumLog:
    return QuorumLog(LogState(log=METADATA_LOG))


def test_empty_log_ends_at_zero_in_epoch_zero() -> None:
    assert empty().end == OffsetAndEpoch(offset=0, epoch=0)
    assert empty().high_watermark is None
    assert empty().committed_offset == 0
    assert empty().appended_records == 0


def test_recovered_log_is_synced_and_knows_no_high_watermark() -> None:
    state = LogState(log=METADATA_LOG, end_offset=9, last_epoch=3, epochs=(EpochStart(3, 0),))
    log = QuorumLog(state)
    assert (log.synced_offset, log.end, log.high_watermark) == (9, OffsetAndEpoch(9, 3), None)
    assert log.is_synced()


def test_snapshot_behind_the_end_says_nothing_of_its_epoch() -> None:
    log = QuorumLog(LogState(log=METADATA_LOG, end_offset=9, epochs=(EpochStart(3, 0),)))
    log.snapshots = (snapshot(50, 5)[1],)  # that is to take the place of the log
    log.truncate(0, syncing=None)
    assert log.end == OffsetAndEpoch(0, 0)


def test_append_is_synced_only_when_stored() -> None:
    log = empty()
    log.append(b"", [header(0, 1, 3)], syncing=7)
    assert (log.end_offset, log.synced_offset, log.is_synced()) == (3, 0, False)
    log.stored(6)
    assert log.synced_offset == 0
    log.stored(7)
    assert (log.synced_offset, log.is_synced()) == (3, True)


def read(log: QuorumLog, start_offset: int) -> bytes | None:
    """Out of memory."""
    return log.tail.read(start_offset=start_offset, end_offset=log.end_offset, bytes_max=1 << 20)


def log_of_three_batches() -> QuorumLog:
    log = empty()
    for offset in range(3):
        records = batch(offset)
        log.append(records, (header for _, header in headers(records)), syncing=None)
    assert read(log, 0) == batch(0) + batch(1) + batch(2)
    return log


def test_truncation_leaves_nothing_in_memory() -> None:
    log = log_of_three_batches()
    log.truncate(2, syncing=None)
    assert read(log, 0) is None
    assert read(log, 1) is None
    records = batch(2, epoch=2)
    log.append(records, (header for _, header in headers(records)), syncing=None)
    assert read(log, 2) == records


def test_a_log_that_begins_anew_has_nothing_in_memory() -> None:
    log = log_of_three_batches()
    log.reset(snapshot(9, 1)[1], syncing=1)
    assert [read(log, offset) for offset in (0, 2, 9)] == [None] * 3
    assert (log.epochs.epoch_at(8), log.epochs.epoch_at(9)) == (NO_EPOCH, 1)


def test_one_stored_covers_all_before_it() -> None:
    log = empty()
    for number in range(3):
        log.append(b"", [header(number, 1)], syncing=number)
    log.stored(2)
    assert log.synced_offset == 3


def test_append_that_nothing_waits_for_counts_at_once() -> None:
    log = empty()
    log.append(b"", [header(0, 1)], syncing=None)
    assert log.is_synced()
    assert log.synced_offset == 1


def test_what_is_truncated_before_its_sync_never_counts_as_synced() -> None:
    log = empty()
    log.append(b"", [header(0, 1, 5)], syncing=1)
    log.truncate(2, syncing=2)
    log.append(b"", [header(2, 2, 1)], syncing=3)
    log.stored(1)
    assert log.synced_offset == 2
    log.stored(3)
    assert log.synced_offset == 3


def test_truncation_below_the_high_watermark_is_refused() -> None:
    log = empty()
    log.append(b"", [header(0, 1, 5)], syncing=None)
    log.advance_high_watermark(3)
    with pytest.raises(AssertionError):
        log.truncate(2, syncing=None)


def test_gap_is_refused() -> None:
    with pytest.raises(AssertionError):
        empty().append(b"", [header(1, 1)], syncing=None)


def test_fetch_from_the_start_of_a_whole_log_is_always_valid() -> None:
    log = empty()
    log.append(b"", [header(0, 4, 5)], syncing=None)
    assert log.check(fetch_offset=0, last_fetched_epoch=2) == Valid()


def test_unknown_epoch_is_answered_with_the_end_of_our_log() -> None:
    log = empty()
    log.append(b"", [header(0, 4, 5)], syncing=None)
    found = log.check(fetch_offset=9, last_fetched_epoch=6)
    assert found == Diverging(epoch=4, end_offset=5)


class QuorumLogMatchesAList(RuleBasedStateMachine):
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
        self.log.append(b"", headers, syncing=number)

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


TestQuorumLogMatchesAList = QuorumLogMatchesAList.TestCase


# --- a log that begins at a snapshot --------------------------------------------------------


FIRST, SECOND = snapshot(100, 5)[1], snapshot(200, 6)[1]


def compacted(*, start_offset: int = 100, older: tuple[SnapshotFile, ...] = ()) -> QuorumLog:
    """Epoch 5 up to 150, epoch 6 up to 180, epoch 7 up to 250, where the log ends."""
    epochs = (EpochStart(5, start_offset), EpochStart(6, 150), EpochStart(7, 220))
    return QuorumLog(
        LogState(
            log=METADATA_LOG,
            start_offset=start_offset,
            end_offset=250,
            last_epoch=7,
            epochs=epochs,
            snapshots=(*older, FIRST, SECOND),
        )
    )


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, TooFarBehind(snapshot=SECOND.id)),
        (99, 5, TooFarBehind(snapshot=SECOND.id)),
        (100, 4, TooFarBehind(snapshot=SECOND.id)),  # another history than the snapshot's
        (100, 6, TooFarBehind(snapshot=SECOND.id)),
        (170, 4, TooFarBehind(snapshot=SECOND.id)),  # where it left ours is not known any more
        (100, 5, Valid()),
        (150, 5, Valid()),
        (151, 5, Diverging(epoch=5, end_offset=150)),
        (250, 7, Valid()),
        (251, 7, Diverging(epoch=7, end_offset=250)),
        (240, 8, Diverging(epoch=7, end_offset=250)),
    ],
)
def test_who_ends_before_the_log_begins_with_the_newest_snapshot(
    offset: int, epoch: int, expected: object
) -> None:
    assert compacted().check(fetch_offset=offset, last_fetched_epoch=epoch) == expected


def test_whole_log_spares_only_who_has_nothing() -> None:
    log = compacted(start_offset=0)
    assert log.check(fetch_offset=0, last_fetched_epoch=0) == TooFarBehind(snapshot=SECOND.id)
    assert log.check(fetch_offset=50, last_fetched_epoch=5) == Valid()


def test_bootstrap_snapshot_is_advertised_to_nobody() -> None:
    log = QuorumLog(LogState(log=METADATA_LOG, snapshots=(bootstrap_snapshot([1]),)))
    assert log.check(fetch_offset=0, last_fetched_epoch=0) == Valid()
    assert log.snapshot(BOOTSTRAP_SNAPSHOT) is None


def test_log_holds_what_ends_in_the_epoch_that_wrote_it() -> None:
    log = compacted()
    assert log.holds(OffsetAndEpoch(150, 5))
    assert log.holds(OffsetAndEpoch(151, 6))
    assert not log.holds(OffsetAndEpoch(151, 5))


def test_snapshot_beyond_the_end_says_nothing_of_what_is_committed() -> None:
    state = LogState(log=METADATA_LOG, end_offset=50, last_epoch=4, snapshots=(FIRST,))
    assert QuorumLog(state).high_watermark is None


def test_bootstrap_snapshot_says_nothing_of_where_the_history_begins() -> None:
    log = compacted(start_offset=0, older=(bootstrap_snapshot([1]),))
    assert log.check(fetch_offset=50, last_fetched_epoch=4) == TooFarBehind(snapshot=SECOND.id)


def test_epoch_that_ended_at_the_start_of_the_log_is_that_of_the_snapshot() -> None:
    """The cache knows epoch 7 from 100 on, and nothing of 5 and 6; the snapshot says 5."""
    state = LogState(
        log=METADATA_LOG,
        start_offset=100,
        end_offset=120,
        last_epoch=7,
        epochs=(EpochStart(7, 100),),
        snapshots=(FIRST,),
    )
    log = QuorumLog(state)
    assert log.check(fetch_offset=110, last_fetched_epoch=6) == Diverging(epoch=5, end_offset=100)
    assert log.check(fetch_offset=100, last_fetched_epoch=5) == Valid()


def test_trimmed_log_keeps_the_epoch_at_its_start() -> None:
    log = compacted()
    log.advance_high_watermark(250)
    log.trim(200)
    assert log.start_offset == 200
    assert log.epochs.entries == (EpochStart(6, 200), EpochStart(7, 220))
    assert log.snapshots == (SECOND,)


@pytest.mark.parametrize("start_offset", [99, 150, 251])
def test_log_begins_nowhere_but_where_a_snapshot_ends(start_offset: int) -> None:
    with pytest.raises(AssertionError):
        compacted().trim(start_offset)


def test_snapshot_is_committed_by_construction() -> None:
    assert compacted().high_watermark == 200
    assert compacted().committed_offset == 200
    with pytest.raises(AssertionError):
        compacted().truncate(199, syncing=None)


def test_reset_log_holds_nothing_and_all_of_it_is_safe() -> None:
    log = compacted()
    log.append(b"", [header(250, 7)], syncing=3)
    third = snapshot(400, 8)[1]
    log.reset(third, syncing=9)
    assert (log.start_offset, log.end, log.synced_offset) == (400, third.id, 400)
    assert (log.high_watermark, log.snapshots, log.size_bytes) == (400, (third,), 0)
    assert not log.is_synced()
    log.stored(9)
    assert log.is_synced()
    log.append(b"", [header(400, 9)], syncing=None)
    log.truncate(400, syncing=None)
    assert log.end == third.id, "the epoch of the snapshot, although the cache is empty"


def test_sync_of_what_a_reset_has_removed_makes_nothing_safe() -> None:
    """The log was longer than the snapshot that replaces it, and its sync is still on its way."""
    log = compacted()
    log.append(b"", [header(250, 7, count=200)], syncing=3)
    log.reset(snapshot(400, 8)[1], syncing=9)
    log.append(b"", [header(400, 9, count=90)], syncing=10)
    log.stored(9)
    assert log.synced_offset == 400


def test_log_is_not_reset_below_what_is_committed() -> None:
    with pytest.raises(AssertionError):
        compacted().reset(FIRST, syncing=1)
