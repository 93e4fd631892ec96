"""A broker reports its controlled shutdown: how far it is, and what nobody has taken over.

Nothing is decided here. The life-cycle stops at `stop_by_ms` at the latest, even if the broker
still leads partitions. A partition keeps its leader while no controller answers; in the ZooKeeper
designs also while no other replica is in sync.

KRaft has one limit of time, which is not configurable in Kafka, and no number of attempts. Those
belong to the older designs (`controlled.shutdown.max.retries`, see `broker/zk/life.py`).
"""

from broker.membership.lifecycle import BrokerState
from broker.membership.membership import Life
from broker.partition.leaders import Leaders
from quorum.core.outbox import Outbox

__all__ = ["ShutdownReport"]

_INTERVAL_MS = 5000  # between two lines
_NAMED_MAX = 10  # partitions in the last line


class ShutdownReport:
    def __init__(self, *, lifecycle: Life, leaders: Leaders, outbox: Outbox) -> None:
        self._lifecycle = lifecycle
        self._leaders = leaders
        self._outbox = outbox
        self._next_ms: int | None = None

    def begin(self, now_ms: int) -> None:
        """The broker was told to stop; the life-cycle may wait for the controller now."""
        if self._next_ms is None and self._is_waiting:
            self._next_ms = now_ms + _INTERVAL_MS

    @property
    def _is_waiting(self) -> bool:
        return self._lifecycle.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN

    def tick(self, now_ms: int) -> None:
        if self._next_ms is None or now_ms < self._next_ms or not self._is_waiting:
            return
        self._next_ms = now_ms + _INTERVAL_MS
        assert self._lifecycle.stop_by_ms is not None
        left_ms = self._lifecycle.stop_by_ms - now_ms
        self._outbox.trace("controlled-shutdown", leads=len(self._leaders), left_ms=left_ms)

    def deadline_ms(self) -> int | None:
        return self._next_ms if self._is_waiting else None

    @property
    def reason(self) -> str:
        """Why the process ends, if nothing has failed."""
        if self._lifecycle.lacks_consent:
            return "the broker stops without the controller's consent"
        return "the broker has left the cluster in order"

    def end(self) -> None:
        """Trace the partitions that nobody has taken over."""
        if not self._lifecycle.lacks_consent:
            return
        led = sorted(partition.name for partition in self._leaders)
        names = ",".join(led[:_NAMED_MAX]) + (",..." if len(led) > _NAMED_MAX else "")
        self._outbox.trace("controlled-shutdown-given-up", leads=len(led), partitions=names)
