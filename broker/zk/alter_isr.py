"""AlterIsr: the leader asks its controller for ISR changes, and obeys the command that follows.

One request is in flight at a time, with all partitions that want a change by then. An answer says
only that the controller has received it: until a LeaderAndIsr with a newer version comes, the
change stays pending, and the larger of both ISRs counts. A change that is refused for good is taken
back.

A controller may be gone after its answer and before its write, and its successor knows nothing of
the change. So a change that no command has followed is asked for again, as it was. Of two such
requests only one can hold, as they name the same version.

Source: KIP-497 (seed 003), "Proposed Changes".
"""

from collections import deque

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from broker.partition import isr
from broker.partition.partition import IsrChange, Partition
from quorum.core.effects import Event, Response, earliest
from wire.errors import ErrorCode
from wire.zk.control_rpc import AlterIsrRequest, AlterIsrResponse, LeaderAndIsr, TopicPartition

__all__ = ["AlterIsr"]

_BATCH_MAX = 1000
_RETRY_MS = 50
# The version, or the epoch, is out of date: a command is on its way that says more.
_NEWS_FOLLOWS = (
    ErrorCode.NONE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class AlterIsr:
    def __init__(
        self,
        *,
        incarnation: Incarnation,
        controller: ControllerChannel,
        timeout_ms: int,
    ) -> None:
        self.decided: deque[Partition] = deque()
        self._incarnation = incarnation
        self._controller = controller
        self._timeout_ms = timeout_ms
        self._wanted: dict[TopicPartition, IsrChange] = {}
        self._in_flight: dict[TopicPartition, IsrChange] | None = None
        self._awaited: dict[TopicPartition, tuple[IsrChange, int]] = {}  # heard; when to ask again
        self._next_send_ms = 0

    def want(self, change: IsrChange, now_ms: int) -> None:
        of = TopicPartition(change.partition.topic, change.partition.index)
        self._wanted[of] = change

    def tick(self, now_ms: int) -> None:
        """All changes that follow from one fetch leave in one request."""
        self._ask_again(now_ms)
        if self._in_flight is not None or not self._wanted or now_ms < self._next_send_ms:
            return
        self._wanted = {of: change for of, change in self._wanted.items() if change.is_wanted}
        batch = dict(list(self._wanted.items())[:_BATCH_MAX])
        if not batch:
            return
        request = AlterIsrRequest(
            broker_id=self._incarnation.node_id,
            broker_epoch=self._incarnation.broker_epoch,
            partitions=tuple(self._told(of, change) for of, change in batch.items()),
        )
        sent = self._controller.ask(
            request, channel="alter-isr", timeout_ms=self._timeout_ms, answered=self._answered
        )
        if sent:
            self._in_flight = batch
        else:
            self._next_send_ms = now_ms + _RETRY_MS

    def deadline_ms(self) -> int | None:
        next_send_ms = self._next_send_ms if self._wanted and self._in_flight is None else None
        return earliest(next_send_ms, *(again_ms for _, again_ms in self._awaited.values()))

    def _ask_again(self, now_ms: int) -> None:
        due = [of for of, (_, again_ms) in self._awaited.items() if now_ms >= again_ms]
        for of in due:
            change, _ = self._awaited.pop(of)
            self._wanted.setdefault(of, change)  # unless another has taken its place

    def _told(self, of: TopicPartition, change: IsrChange) -> LeaderAndIsr:
        return LeaderAndIsr(
            topic=of.topic,
            partition=of.partition,
            leader=self._incarnation.node_id,
            leader_epoch=change.role.leader_epoch,
            isr=isr.proposed_isr(change.asked),
            zk_version=change.role.partition_epoch,
        )

    def _answered(self, event: Event, now_ms: int) -> None:
        assert self._in_flight is not None
        asked, self._in_flight = self._in_flight, None
        body = event.body if isinstance(event, Response) else None
        if not isinstance(body, AlterIsrResponse) or body.error_code is not ErrorCode.NONE:
            self._next_send_ms = now_ms + _RETRY_MS  # another controller, or none
            return
        for each in body.results:
            of = TopicPartition(each.topic, each.partition)
            change = asked.get(of)
            if change is None:
                continue
            if self._wanted.get(of) is change:
                del self._wanted[of]
            if each.error_code in _NEWS_FOLLOWS:
                self._awaited[of] = (change, now_ms + self._timeout_ms)
            elif change.revert():
                self.decided.append(change.partition)
