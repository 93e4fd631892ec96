"""Which batch may come next in a log, by what those before it say, and what is noted beside it.

A checksum covers neither the offset nor the epoch of a batch: of these only the order can be
checked. Offsets and epochs rise; the metadata log has no gaps, and below its recovery point the
epochs that leader-epoch-checkpoint says.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from quorum.core.effects import EpochStart
from quorum.core.producers import AbortedTransaction, ProducerEntry, observe
from quorum.log.epochs import EpochCache
from quorum.log.files.segments import observe_epoch
from wire.batch import BatchHeader
from wire.transaction_markers import read_marker

__all__ = ["Noted", "Seen", "epoch_problem"]


@dataclass(frozen=True, slots=True)
class Noted:
    """What is known beside the batches of a log that has no gaps: the metadata log."""

    epochs: Sequence[EpochStart]
    recovery_point: int  # below it, each epoch of the log is among them

    def epoch_at(self, offset: int) -> int | None:
        """None where it is not known."""
        before = bisect_right(self.epochs, offset, key=lambda entry: entry.start_offset)
        return self.epochs[before - 1].epoch if before and offset < self.recovery_point else None


@dataclass(slots=True)
class Seen:
    """What the batches of the log say."""

    noted: Noted | None = None
    epochs: EpochCache = field(default_factory=EpochCache)
    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    control_batches: list[bytes] = field(default_factory=list)
    end_offset: int = -1  # -1: nothing was read, and nothing is known of what comes
    gap: range = range(0)  # the offsets between the last two batches
    known: Sequence[EpochStart] = ()  # those of leader-epoch-checkpoint, also of what is compacted

    @property
    def last_epoch(self) -> int:
        return -1 if self.epochs.latest is None else self.epochs.latest.epoch

    def refuses(self, header: BatchHeader, end_offset: int) -> str | None:
        """Why an intact batch cannot come next, if it cannot.

        Its checksum covers neither its offset nor its epoch.
        """
        if header.base_offset < end_offset:
            return f"offset {header.base_offset} follows {end_offset - 1}"
        if self.noted is None:
            return epoch_problem(header, last_epoch=self.last_epoch, noted_epoch=None)
        if header.base_offset > end_offset:
            return f"offset {end_offset} is next, not {header.base_offset}"
        noted_epoch = self.noted.epoch_at(header.base_offset)
        return epoch_problem(header, last_epoch=self.last_epoch, noted_epoch=noted_epoch)

    def sound_end(self, end_offset: int, refused_offset: int) -> int:
        """Where the log ends before a batch, or a segment, that cannot come next.

        If its offset is one that the batch before has left out, that batch is damaged and this one
        is not: nothing is wrong with a log that goes on from before the gap.
        """
        was_left_out = self.gap.start <= refused_offset <= self.gap.stop
        return self.gap.start if self.gap and was_left_out else end_offset

    def observe(self, header: BatchHeader, batch: memoryview) -> AbortedTransaction | None:
        """Returns the transaction that the batch has aborted. Raises `Malformed`."""
        marker = read_marker(batch, header) if header.is_control else None
        start_offset = header.base_offset if self.end_offset < 0 else self.end_offset
        self.gap = range(start_offset, header.base_offset)
        self.end_offset = header.next_offset
        if self.gap:
            self._recall_epochs(header.leader_epoch)
        observe_epoch(self.epochs, header, start_offset=start_offset)
        if header.is_control and not header.is_transactional:
            self.control_batches.append(bytes(batch))
        return observe(self.producers, header, marker)

    def _recall_epochs(self, leader_epoch: int) -> None:
        """Those that began in the gap before a batch of that epoch, or with it."""
        for entry in self.known:
            is_there = self.gap.start <= entry.start_offset <= self.gap.stop
            if is_there and self.last_epoch < entry.epoch <= leader_epoch:
                self.epochs.assign(entry.epoch, entry.start_offset)


def epoch_problem(header: BatchHeader, *, last_epoch: int, noted_epoch: int | None) -> str | None:
    """What is wrong with the epoch of a batch. Those of the oldest producers have none."""
    epoch = header.leader_epoch
    if 0 <= epoch < last_epoch:
        return f"leader epoch {epoch} follows {last_epoch}"
    if noted_epoch is not None and epoch != noted_epoch:
        return f"leader epoch {epoch} where {noted_epoch} was noted"
    return None
