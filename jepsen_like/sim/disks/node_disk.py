"""The faults that a node's disk may have."""

from dataclasses import dataclass
from random import Random

__all__ = ["DiskFaults"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFaults:
    """How slow and how treacherous a disk is. Chances are per write, sync, read or crash."""

    sync_us_min: int = 50
    sync_us_mean: int = 200  # on top of the minimum, exponentially distributed
    inline_syncs: bool = False  # some end before the node does anything else: a share by chance
    read_us: int = 20
    write_failure: float = 0.0  # at once
    fsync_failure: float = 0.0
    read_failure: float = 0.0  # of the shipped storage only
    torn_write: float = 0.0
    keeps_unsynced: bool = True  # a power failure leaves some of it, or all, by chance
    short_read: float = 0.0  # of a snapshot: fewer bytes than were asked for
    segment_batches: int = 1  # batches in a segment: only whole ones are trimmed
    snapshot_syncs: int = 1  # how many syncs' time it takes to write a snapshot

    def draw_sync_us(self, random: Random) -> int:
        """How long one sync takes."""
        return self.sync_us_min + int(random.expovariate(1 / self.sync_us_mean))
