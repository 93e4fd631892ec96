"""The led partitions whose followers may fall behind as time passes; only they are checked for lag.

A follower in the ISR that rests in its fetch session (isr.py) cannot lag: it stands at the leader's
end, and whatever moves that end wakes it. So time changes nothing for a partition whose followers
in the ISR all rest, and whose records are all below the high watermark. Every other led partition
must be in this set when the broker has settled. It enters when it has moved, as it does when it is
elected, and when a follower stops resting for whatever reason; it leaves when it is walked and
found at rest.
"""

from collections.abc import Iterator

from broker.partition.isr import Committed
from broker.partition.partition import LeaderOf, Partition

__all__ = ["LagWatch", "is_at_rest"]


class LagWatch:
    __slots__ = ("_partitions",)

    def __init__(self) -> None:
        self._partitions: dict[Partition, None] = {}

    def __iter__(self) -> Iterator[Partition]:
        """The partitions as of now; the set may change meanwhile."""
        return iter(tuple(self._partitions))

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._partitions

    def add(self, partition: Partition) -> None:
        self._partitions[partition] = None

    def discard(self, partition: Partition) -> None:
        self._partitions.pop(partition, None)


def is_at_rest(partition: Partition, role: LeaderOf) -> bool:
    """Can time change nothing here, until something happens to the partition or to a session?"""
    log = partition.open_log
    return (
        isinstance(role.isr, Committed)
        and log.high_watermark >= log.end_offset
        and all(
            follower.clock is not None
            for follower in role.followers.values()
            if follower.broker_id in role.isr.members
        )
    )
