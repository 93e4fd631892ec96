"""What clients and judges agree on, and what is known of a partition."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from broker.broker import Broker
from broker.partition.partition import LeaderOf, Partition
from controller.metadata.partitions import PartitionState
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.logs.stored_log import StoredLog
from jepsen_like.sim.world.host import Host
from quorum.core.effects import EpochStart

__all__ = [
    "ALL",
    "TOPIC",
    "WIDE",
    "Acknowledged",
    "Deletable",
    "Key",
    "ShownPartitions",
    "Watched",
    "add_epochs",
    "within",
]


Key = tuple[UUID, int]  # topic id, partition
TOPIC = "orders"
WIDE = "wide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    base_offset: int
    values: tuple[bytes, ...]


ALL = -1  # asked for as an offset: everything below the high watermark of that moment


@dataclass(slots=True)
class Deletable:
    """The records that may be gone, because a client or the topic asked for that.

    A request without a clear answer may have been carried out, or may yet be.
    """

    start_offset: int = 0  # the highest start of a log that may be
    _open: list[int] = field(default_factory=list)  # asked for, not answered

    def asked(self, offset: int) -> None:
        self._open.append(offset)

    def acknowledged(self, offset: int, low_watermark: int) -> None:
        """All live replicas start at `low_watermark` or later."""
        self._open.remove(offset)
        self.start_offset = max(self.start_offset, offset, low_watermark)

    def retained(self, start_offset: int) -> None:
        """A replica may start there, since what lies before is too old or too much."""
        self.start_offset = max(self.start_offset, start_offset)

    def refused(self, offset: int) -> None:
        self._open.remove(offset)

    def allows(self, start_offset: int) -> bool:
        """May a log start there? Then it has been decided."""
        if start_offset <= self.start_offset:
            return True
        if ALL not in self._open and start_offset > max(self._open, default=ALL):
            return False
        self.start_offset = start_offset
        return True


@dataclass(slots=True)
class Watched:
    """One partition, over all replicas and all time."""

    name: str  # of its log
    state: PartitionState | None  # as committed; None once it is deleted
    exposed: list[Entry] = field(default_factory=list)  # everything below any high watermark
    excused: str = ""  # why nothing is promised any more
    joined_at: dict[int, int] = field(default_factory=dict)  # by replica: when it joined the ISR
    lossy_at: dict[int, int] = field(default_factory=dict)  # by replica: when it came up with less
    acknowledged: list[Acknowledged] = field(default_factory=list)
    acknowledgements: int = 0  # those of excused partitions too
    read: dict[int, bytes] = field(default_factory=dict)  # by offset
    deletable: Deletable = field(default_factory=Deletable)


def within(epochs: list[EpochStart], start_offset: int, end_offset: int) -> list[EpochStart]:
    """What is left of them in a log that starts and ends there, as brokers remember it."""
    kept = bisect_right(epochs, start_offset, key=lambda entry: entry.start_offset)
    if start_offset == end_offset:
        return []
    if kept == 0:
        return epochs
    return [EpochStart(epochs[kept - 1].epoch, start_offset), *epochs[kept:]]


def add_epochs(epochs: list[EpochStart], written: Content, before: Entry | None) -> None:
    """Those of the entries behind `before`."""
    fresh: list[Entry] = []
    entry = written.last
    while entry is not None and entry is not before:
        fresh.append(entry)
        entry = entry.parent
    for entry in reversed(fresh):
        if not epochs or epochs[-1].epoch != entry.epoch:
            epochs.append(EpochStart(entry.epoch, entry.base_offset))


# By partition: the log on the disk, and all that is looked at.
_Shown = dict[Partition, tuple[StoredLog, tuple[object, ...]]]


class ShownPartitions:
    """What brokers show of them: most have no part in most turns, and are not looked at."""

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
