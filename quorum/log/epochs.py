"""Which leader epoch wrote which offsets of a log: the leader epoch cache.

Used for the metadata log and for the brokers' partition logs alike. What follows from a lookup,
and what a log does where the answer is "undefined", is in `fetch`.

Source: KIP-101 and KIP-279; Kafka's LeaderEpochFileCache.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from quorum.core.effects import EpochStart
from quorum.core.types import NO_EPOCH, OffsetAndEpoch

__all__ = ["EpochCache"]


class EpochCache:
    """The first offset of each epoch that wrote to the log; ascending in both columns."""

    __slots__ = ("_epochs", "_starts", "changes")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.changes = 0  # grows whenever something changes
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(map(EpochStart, self._epochs, self._starts))

    @property
    def latest(self) -> EpochStart | None:
        return EpochStart(self._epochs[-1], self._starts[-1]) if self._epochs else None

    def is_latest(self, epoch: int) -> bool:
        return bool(self._epochs) and self._epochs[-1] == epoch

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records from `start_offset` on are of `epoch`, which is the latest from now on.

        Later calls with the epoch that is already the latest change nothing. Entries that
        contradict the new one (of this epoch or later, or from this offset on) are replaced.
        """
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        if self._epochs and self._epochs[-1] == epoch and self._starts[-1] <= start_offset:
            return
        self._keep(min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset)))
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.changes += 1

    def truncate(self, end_offset: int) -> None:
        """The log now ends at `end_offset`: forget epochs that started there or later."""
        self._keep(bisect_left(self._starts, end_offset))

    def truncate_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: the epoch that holds it starts there."""
        passed = bisect_right(self._starts, start_offset)
        if passed == 0:
            return
        self._epochs = self._epochs[passed - 1 :]
        self._starts = [start_offset, *self._starts[passed:]]
        self.changes += 1

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote `offset`; NO_EPOCH before the first entry."""
        position = bisect_right(self._starts, offset)
        return self._epochs[position - 1] if position else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> OffsetAndEpoch | None:
        """The largest epoch up to `epoch` that wrote here, and where it ended (exclusive).

        None if undefined: `epoch` is later than all that wrote here. An epoch before all of
        them ends, under its own number, where the first of them starts (KIP-279).
        """
        if not self._epochs or epoch > self._epochs[-1] or epoch == NO_EPOCH:
            return None
        if epoch == self._epochs[-1]:
            return OffsetAndEpoch(offset=log_end_offset, epoch=epoch)
        position = bisect_right(self._epochs, epoch)
        if position == 0:
            return OffsetAndEpoch(offset=self._starts[0], epoch=epoch)
        return OffsetAndEpoch(offset=self._starts[position], epoch=self._epochs[position - 1])

    def _keep(self, count: int) -> None:
        self.changes += count < len(self._epochs)
        del self._epochs[count:]
        del self._starts[count:]
