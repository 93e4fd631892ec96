"""The committed image of the metadata, and the uncommitted ones of the active controller.

The *committed* image is what the delivered part of the log says. While this node leads, every
batch that it appends makes a newer *head* image, on which the next decision is taken; the images
of batches that are not committed yet wait in a queue. Losing leadership drops them: what of them
survives comes back as delivered batches of the next leader.

Source: KIP-631; Kafka's QuorumController (deferred events, in-memory snapshots).
"""

from collections import deque
from collections.abc import Sequence

from controller.metadata.apply import apply
from controller.metadata.changes import Change, decode_changes
from controller.metadata.image import MetadataImage
from controller.metadata.snapshot import SnapshotLoad, batches_of
from quorum.core.application import State
from quorum.core.types import NO_EPOCH, OffsetAndEpoch
from wire.batch import headers

__all__ = ["Images"]


class Images:
    """Owned by one `Controller`."""

    def __init__(self) -> None:
        self.committed = MetadataImage()
        self.head = self.committed
        self.has_data = False  # was any metadata record delivered or appended?
        self._had_data = False  # the same of delivered ones
        self._appended: deque[tuple[int, MetadataImage]] = deque()  # last offset, image after it
        self._load: SnapshotLoad | None = None

    @property
    def has_uncommitted(self) -> bool:
        return bool(self._appended)

    def append(self, changes: Sequence[Change], *, last_offset: int, epoch: int) -> None:
        """One batch of `changes` has been appended, and ends at `last_offset`."""
        at = OffsetAndEpoch(last_offset + 1, epoch)
        self.head = apply(self.head, changes, at)
        self.has_data = True
        self._appended.append((last_offset, self.head))

    def delivered_to_leader(self, next_offset: int) -> None:
        """Batches that were appended here are committed: their images are known."""
        while self._appended and self._appended[0][0] < next_offset:
            _, self.committed = self._appended.popleft()
            self._had_data = True
        if self.committed.at.offset < next_offset and not self._appended:
            # A control batch of the engine lies at the end.
            at = OffsetAndEpoch(next_offset, self.committed.at.epoch)
            self.committed = self.committed._replace(at=at)

    def delivered_to_standby(self, batches: bytes, next_offset: int) -> None:
        """Batches of another leader. Raises ValueError if they cannot be applied."""
        assert not self._appended, "a standby has nothing of its own"
        image = self.committed
        for batch in decode_changes(batches):
            image = apply(image, batch.changes, OffsetAndEpoch(batch.next_offset, batch.epoch))
            self._had_data = True
        if image.at.offset != next_offset:
            # A control batch of the engine lies at the end.
            epoch = max((header.leader_epoch for _, header in headers(batches)), default=NO_EPOCH)
            at = OffsetAndEpoch(next_offset, max(epoch, image.at.epoch))
            image = image._replace(at=at)
        self.committed = self.head = image
        self.has_data = self._had_data

    def load(self, batches: bytes, *, is_first: bool) -> None:
        """A piece of a snapshot. Raises ValueError if it cannot be applied."""
        assert not self._appended, "a standby has nothing of its own"
        if is_first:
            self._load = SnapshotLoad()
        assert self._load is not None, "a snapshot begins with its first piece"
        self._load.take(batches)

    def loaded(self, end: OffsetAndEpoch) -> None:
        """The snapshot is complete, and takes the place of all that was known."""
        assert self._load is not None, "nothing was loaded"
        self.committed = self.head = self._load.finish(end)
        self.has_data = self._had_data = self._load.has_data
        self._load = None

    def state(self, timestamp_ms: int) -> State | None:
        """What is committed, for a snapshot; None while there is nothing whole to write."""
        image = self.committed
        if not self._had_data or image.transaction is not None or image.beyond_us:
            return None
        batches = batches_of(image, timestamp_ms=timestamp_ms)
        return State(end_offset=image.at.offset, batches=batches)

    def roll_back(self) -> None:
        """Leadership is lost, and with it all that was not committed."""
        self._appended.clear()
        self.head = self.committed
        self.has_data = self._had_data
