"""A replicated state machine on a partition that this broker leads.

It is loaded before it serves, what it writes is appended, and a change counts, and is answered,
once it is committed. It ends with leadership. What the changes mean is up to its coordinator.

Source: Kafka's CoordinatorRuntime.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from broker.coordination.loading import Contents, Loading
from broker.coordination.writing import Writing
from broker.partition.partition import Partition
from broker.waiting import Deadlines
from quorum.core.effects import Event
from quorum.core.outbox import Outbox
from wire.batch import Record
from wire.errors import ErrorCode

__all__ = ["StateMachine"]

C = TypeVar("C", bound=Contents)
Change = TypeVar("Change")


class StateMachine(Generic[C, Change]):
    def __init__(
        self,
        partition: Partition,
        contents: C,
        *,
        loaded: Callable[[C, int], None],  # it serves from now on
        committed: Callable[[Change, int], None],  # it counts from now on
        encode: Callable[[Change], Record],
        deadlines: Deadlines,
        outbox: Outbox,
        timeout_ms: int,
        load_bytes_max: int,
    ) -> None:
        self.error: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # NONE: it serves
        self._name = partition.name
        self._loaded = loaded
        self._committed = committed
        self._outbox = outbox
        self._loading = Loading(partition, contents, bytes_max=load_bytes_max)
        self.writing = Writing(partition, encode, deadlines=deadlines, timeout_ms=timeout_ms)

    def progressed(self, now_ms: int) -> None:
        """The high watermark of the partition may have moved."""
        contents = self._loading.go_on(self._piece_read)
        if contents is not None:
            self.error = ErrorCode.NONE
            self._loaded(contents, now_ms)
        if self.error is not ErrorCode.NONE:
            return  # what others have appended is behind what is still to be read
        for write in self.writing.committed():
            for change in write.changes:
                self._committed(change, now_ms)
            write.conclude(ErrorCode.NONE, now_ms)

    def close(self, error: ErrorCode, now_ms: int) -> None:
        """This broker does not lead the partition any more."""
        self.error = error
        self._loading.cancel()
        self.writing.close(error, now_ms)

    def _piece_read(self, event: Event, now_ms: int) -> None:
        problem = self._loading.take(event)
        if problem is None:
            self.progressed(now_ms)
            return
        self.error = ErrorCode.NOT_COORDINATOR
        self._outbox.trace("coordinator-not-loaded", partition=self._name, reason=problem)
