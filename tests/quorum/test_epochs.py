"""The leader epoch cache against a list that holds the epoch of every record."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quorum.core.effects import EpochStart
from quorum.core.types import NO_EPOCH, OffsetAndEpoch
from quorum.log.epochs import EpochCache


def cache(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache(EpochStart(epoch, start) for epoch, start in entries)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (NO_EPOCH, None),
        (0, (10, 0)),  # before all: ends where the first began, under its own number
        (2, (20, 2)),
        (3, (20, 2)),  # never wrote here: the largest before it did
        (4, (35, 4)),
        (7, (50, 7)),  # the latest ends with the log
        (8, None),
    ],
)
def test_end_offset_of_an_epoch(epoch: int, expected: tuple[int, int] | None) -> None:
    epochs = cache((2, 10), (4, 20), (7, 35))
    found = epochs.end_offset_for(epoch, log_end_offset=50)
    assert found == (None if expected is None else OffsetAndEpoch(*expected))


def test_empty_cache_knows_no_epoch() -> None:
    assert cache().end_offset_for(0, log_end_offset=0) is None
    assert cache().latest is None
    assert cache().epoch_at(5) == NO_EPOCH


def test_assigning_the_latest_epoch_again_changes_nothing() -> None:
    """Nor does it count as a change, after which the entries would be written to the disk."""
    epochs = cache((1, 0), (2, 5))
    changes = epochs.changes
    for start_offset in (5, 9):
        epochs.assign(2, start_offset)
        assert epochs.entries == (EpochStart(1, 0), EpochStart(2, 5))
        assert epochs.changes == changes


def test_assigning_the_latest_epoch_from_an_earlier_offset_moves_its_start() -> None:
    epochs = cache((1, 0), (2, 5))
    epochs.assign(2, 3)
    assert epochs.entries == (EpochStart(1, 0), EpochStart(2, 3))


def test_assigning_replaces_what_contradicts_it() -> None:
    epochs = cache((1, 0), (2, 5), (3, 9))
    epochs.assign(4, 7)
    assert list(epochs.entries) == [(1, 0), (2, 5), (4, 7)]
    epochs.assign(2, 6)
    assert list(epochs.entries) == [(1, 0), (2, 6)]


def test_truncating_the_start_keeps_the_epoch_that_holds_it() -> None:
    epochs = cache((1, 0), (2, 5), (3, 9))
    epochs.truncate_start(7)
    assert list(epochs.entries) == [(2, 7), (3, 9)]
    epochs.truncate_start(9)
    assert list(epochs.entries) == [(3, 9)]


def test_truncating_the_start_before_the_first_entry_changes_nothing() -> None:
    epochs = cache((2, 10))
    epochs.truncate_start(4)
    assert epochs.entries == (EpochStart(2, 10),)


class EpochCacheMatchesAList(RuleBasedStateMachine):
    """The model is the epoch of every record of a log that starts at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.model: list[int] = []
        self.epochs = EpochCache()

    @rule(jump=st.integers(0, 3), count=st.integers(1, 4))
    def append(self, jump: int, count: int) -> None:
        epoch = (self.model[-1] if self.model else 0) + jump
        self.epochs.assign(epoch, len(self.model))
        self.model += [epoch] * count

    @rule(fraction=st.floats(0, 1))
    def truncate(self, fraction: float) -> None:
        end_offset = int(fraction * len(self.model))
        del self.model[end_offset:]
        self.epochs.truncate(end_offset)

    @invariant()
    def every_offset_has_its_epoch(self) -> None:
        assert [self.epochs.epoch_at(offset) for offset in range(len(self.model))] == self.model

    @invariant()
    def every_epoch_has_its_end(self) -> None:
        end_offset = len(self.model)
        for epoch in range(max(self.model, default=0) + 2):
            found = self.epochs.end_offset_for(epoch, end_offset)
            if epoch > max(self.model, default=-1):
                assert found is None
                continue
            upto = [e for e in self.model if e <= epoch]
            expected = OffsetAndEpoch(len(upto), upto[-1] if upto else epoch)
            assert found == expected


TestEpochCacheMatchesAList = EpochCacheMatchesAList.TestCase
