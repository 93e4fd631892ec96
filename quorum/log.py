"""The metadata log as its core sees it: where it starts and ends, and what of it is safe.

Books only. The bytes are elsewhere, put there by `Append` and `Truncate` effects: this class sees
the headers of batches. It knows neither roles nor peers.

    start_offset ... high_watermark ... synced_offset ... end_offset
                     committed          survives a        next to be
                                        power failure     written

The synced offset and the high watermark are independent of each other: a majority may have
committed what this replica has not synced yet.

Source: Kafka's ReplicatedLog; Raft thesis 3.5.
"""

from collections import deque
from collections.abc import Iterable

from quorum import fetch
from quorum.effects import LogState
from quorum.epochs import EpochCache
from quorum.fetch import Diverging, FetchPosition, UnknownEpoch, Valid
from quorum.types import OffsetAndEpoch
from wire.batch import BatchHeader

__all__ = ["ReplicaLog"]


class ReplicaLog:
    __slots__ = (
        "_syncing",
        "end_offset",
        "epochs",
        "high_watermark",
        "last_epoch",
        "start_offset",
        "synced_offset",
    )

    def __init__(self, state: LogState) -> None:
        """What recovery found has been synced by it."""
        self.start_offset = state.start_offset
        self.end_offset = state.end_offset  # exclusive
        self.synced_offset = state.end_offset  # <= end_offset
        self.last_epoch = max(0, state.last_epoch)  # 0 in an empty log, as Kafka has it
        self.epochs = EpochCache(state.epochs)
        self.high_watermark: int | None = None  # no file holds it: a leader tells
        self._syncing: deque[tuple[int, int]] = deque()  # (token number, end offset once stored)

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(offset=self.end_offset, epoch=self.last_epoch)

    @property
    def committed_offset(self) -> int:
        """All before it may be delivered; the start of the log while nothing is known."""
        return self.start_offset if self.high_watermark is None else self.high_watermark

    def append(self, headers: Iterable[BatchHeader], *, syncing: int | None) -> None:
        """Batches were written at the end. `syncing` is the token whose `Stored` makes them safe.

        None if nothing will be waited for: then they count as synced at once.
        """
        for header in headers:
            assert header.base_offset == self.end_offset, (header.base_offset, self.end_offset)
            assert header.leader_epoch >= self.last_epoch, (header.leader_epoch, self.last_epoch)
            self.epochs.assign(header.leader_epoch, header.base_offset)
            self.end_offset = header.next_offset
            self.last_epoch = header.leader_epoch
        self._wait_for(syncing)

    def truncate(self, end_offset: int, *, syncing: int | None) -> None:
        """Everything from `end_offset` on is gone. What is committed never goes (KAFKA-12460)."""
        assert end_offset >= self.committed_offset, (end_offset, self.committed_offset)
        assert end_offset <= self.end_offset, (end_offset, self.end_offset)
        self.end_offset = end_offset
        self.epochs.truncate(end_offset)
        latest = self.epochs.latest
        self.last_epoch = 0 if latest is None else latest.epoch
        self.synced_offset = min(self.synced_offset, end_offset)
        self._syncing = deque((number, min(end, end_offset)) for number, end in self._syncing)
        self._wait_for(syncing)

    def stored(self, number: int) -> None:
        """Everything up to token `number` is synced."""
        while self._syncing and self._syncing[0][0] <= number:
            self.synced_offset = max(self.synced_offset, self._syncing.popleft()[1])
        assert self.synced_offset <= self.end_offset, (self.synced_offset, self.end_offset)

    def is_synced(self) -> bool:
        """Nothing written or truncated waits for a sync."""
        return not self._syncing

    def advance_high_watermark(self, offset: int) -> bool:
        """It only grows; a smaller value is old news. Says whether it grew."""
        assert self.start_offset <= offset <= self.end_offset, (offset, self.end_offset)
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def check(self, *, fetch_offset: int, last_fetched_epoch: int) -> Valid | Diverging:
        """As leader: is a log that ends there a prefix of ours? Never undefined here (KIP-595)."""
        if fetch_offset == 0 and self.start_offset == 0:
            return Valid()
        position: FetchPosition = fetch.check_fetch_position(
            self.epochs,
            end_offset=self.end_offset,
            fetch_offset=fetch_offset,
            last_fetched_epoch=last_fetched_epoch,
        )
        if isinstance(position, UnknownEpoch):
            return Diverging(epoch=self.last_epoch, end_offset=self.end_offset)
        return position

    def truncation_point(self, diverging: Diverging) -> int:
        return fetch.truncation_point(self.epochs, end_offset=self.end_offset, diverging=diverging)

    def _wait_for(self, syncing: int | None) -> None:
        if syncing is None:
            self.synced_offset = self.end_offset
        else:
            self._syncing.append((syncing, self.end_offset))
