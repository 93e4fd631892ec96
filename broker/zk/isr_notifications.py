"""A leader that has written an ISR notifies the controller, after a while.

The controller hears of a change by sequential children of /isr_change_notification. A leader
collects the partitions whose ISR it has written, and looks every 2.5 s. It notifies the controller
when nothing has changed for 5 s, or when the first change has waited for 60 s. So it takes seconds,
and up to a minute, until the controller knows: KIP-497 was written for that.

Source: seed 001, IsrChangeNotificationListener; seed 003, motivation; ReplicaManager's constants.
"""

from quorum.zookeeper.zk_procedures import Procedure, Procedures, one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Created
from wire.zk.znodes import PartitionList

__all__ = ["IsrNotifications"]

CHECK_MS = 2500
LINGER_MS = 5000
WAIT_MAX_MS = 60_000


class IsrNotifications:
    def __init__(self, procedures: Procedures) -> None:
        self._procedures = procedures
        self._changed: dict[TopicPartition, int] = {}  # by which change it did last
        self._change_count = 0
        self._last_change_ms = 0
        self._first_change_ms = 0
        self._next_check_ms: int | None = None

    def changed(self, of: TopicPartition, now_ms: int) -> None:
        if not self._changed:
            self._first_change_ms = now_ms
        self._change_count += 1
        self._changed[of] = self._change_count
        self._last_change_ms = now_ms
        if self._next_check_ms is None:
            self._next_check_ms = now_ms + CHECK_MS

    def tick(self, now_ms: int) -> None:
        if self._next_check_ms is None or now_ms < self._next_check_ms:
            return
        self._next_check_ms = now_ms + CHECK_MS
        is_quiet = now_ms - self._last_change_ms >= LINGER_MS
        if is_quiet or now_ms - self._first_change_ms >= WAIT_MAX_MS:
            self._procedures.submit("isr notification", self._notify)

    def deadline_ms(self) -> int | None:
        return self._next_check_ms

    def _notify(self) -> Procedure[None]:
        """Partitions of a notification that the end of a session prevents are named by a later one,
        and so are those that change meanwhile."""
        listed = tuple((of.topic, of.partition) for of in self._changed)
        if not listed:
            return
        told = self._change_count
        data = PartitionList(partitions=listed).encode()
        created = yield from one(
            Create(path=paths.isr_changes_prefix(), data=data, is_sequential=True)
        )
        if isinstance(created, Created):
            self._changed = {of: change for of, change in self._changed.items() if change > told}
            if not self._changed:
                self._next_check_ms = None
