"""What brokers show of their partitions: most have no part in most turns, and are not looked at."""

from collections.abc import Iterator

from broker.broker import Broker
from broker.partition.partition import LeaderOf, Partition
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.stored_log import StoredLog
from jepsen_like.sim.world.host import Host

__all__ = ["ShownPartitions"]

# By partition: the log on the disk, and all that is looked at.
_Shown = dict[Partition, tuple[StoredLog, tuple[object, ...]]]


class ShownPartitions:
    def __init__(self) -> None:
        self._shown: dict[int, _Shown] = {}  # by node, of its present process

    def started(self, host: Host) -> None:
        self._shown[host.node_id] = {}

    def changed(self, host: Host, broker: Broker) -> Iterator[tuple[Partition, Content]]:
        """Those that show something else than when they were asked for last, with their logs."""
        before = self._shown[host.node_id]
        for partition in broker.replicas:
            log = partition.log
            if log is None:
                continue
            stored, shown = before.get(partition, (None, None))
            if stored is None:
                stored = host.disk.log(partition.name)
            role = partition.role
            shows = (
                stored.written.last,
                role,
                role.isr if isinstance(role, LeaderOf) else None,
                log.high_watermark,
                log.start_offset,
                log.end_offset,
                partition.settings,
            )
            if shows != shown:
                before[partition] = stored, shows
                yield partition, stored.written
