"""A broker follows the metadata log: it turns committed records into an image, and publishes it.

The follower decides when the first image may be seen: not before everything that is known to be
committed has been read, and not before this process's own registration is among it. An earlier
image may still have the broker's previous life in it, as leader of partitions whose records it has
since lost.

Source: Kafka's MetadataLoader and BrokerMetadataPublisher; KIP-868 (transactions).
"""

from uuid import UUID

from broker.cluster import Cluster
from controller.metadata.apply import UnreplayableRecord, apply_with_delta
from controller.metadata.changes import decode_changes
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import MetadataImage
from controller.metadata.snapshot import SnapshotLoad, batches_of, delta_between
from quorum.core.application import MetadataLog, State
from quorum.core.types import OffsetAndEpoch
from wire.varint import Malformed

__all__ = ["MetadataFollower"]


def may_publish_first(
    image: MetadataImage,
    *,
    next_offset: int,
    high_watermark: int | None,
    node_id: int,
    incarnation_id: UUID,
) -> bool:
    own = image.brokers.get(node_id)
    return (
        high_watermark is not None
        and next_offset >= high_watermark
        and own is not None
        and own.incarnation_id == incarnation_id
    )


class MetadataFollower:
    def __init__(
        self,
        *,
        cluster: Cluster,
        log: MetadataLog,
        incarnation_id: UUID,
    ) -> None:
        self._cluster = cluster
        self._log = log
        self._incarnation_id = incarnation_id
        self._image = MetadataImage()
        self._delta = MetadataDelta()
        self._load: SnapshotLoad | None = None
        self._delivered_ms = 0  # when records were last delivered
        self.published_offset = -1  # the last offset that the published image contains

    def committed(self, batches: bytes, now_ms: int) -> str | None:
        """Read committed batches. A sentence if the log makes no sense: then all must stop."""
        self._delivered_ms = now_ms
        try:
            for batch in decode_changes(batches):
                self._image, delta = apply_with_delta(self._image, batch)
                if self._cluster.is_published:  # the first image is taken as a whole
                    self._delta = self._delta.then(delta)
        except (Malformed, UnreplayableRecord) as error:
            return f"the metadata log cannot be followed: {error}"
        return None

    def load(self, batches: bytes, *, is_first: bool) -> str | None:
        """Read a piece of a snapshot; a sentence as for `committed`."""
        if is_first:
            self._load = SnapshotLoad()
        assert self._load is not None, "a snapshot begins with its first piece"
        try:
            self._load.take(batches)
        except (Malformed, UnreplayableRecord) as error:
            return f"a snapshot of the metadata cannot be loaded: {error}"
        return None

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        """The snapshot is complete, and takes the place of all that was known."""
        assert self._load is not None, "nothing was loaded"
        self._delivered_ms = now_ms
        self._image = self._load.finish(end)
        self._load = None
        if self._cluster.is_published:
            self._delta = delta_between(self._cluster.image, self._image)

    def state(self) -> State | None:
        """What was read, for a snapshot; None while there is nothing whole to write."""
        image = self._image
        if not image.at.offset or image.transaction is not None or image.beyond_us:
            return None
        batches = batches_of(image, timestamp_ms=self._delivered_ms)
        return State(end_offset=image.at.offset, batches=batches)

    def publish(self, next_offset: int) -> MetadataDelta | None:
        """Make what was read visible, if it may be; what changed since the last time.

        The delta of the first image is empty: before it, `cluster.is_published` was false.
        """
        if not self._cluster.is_published and not may_publish_first(
            self._image.stable,
            next_offset=next_offset,
            high_watermark=self._log.high_watermark,
            node_id=self._cluster.config.node_id,
            incarnation_id=self._incarnation_id,
        ):
            return None
        self.published_offset = next_offset - 1
        delta, self._delta = self._delta, MetadataDelta()
        self._cluster.publish(self._image.stable)
        return delta
