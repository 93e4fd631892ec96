"""A leader asks its controller for ISR changes (AlterIsr), and obeys the command that follows.

An answer says only that the controller has received the change: until a LeaderAndIsr with a newer
version comes, the change stays pending, and the larger of both ISRs counts. One that is refused for
good is taken back.

A controller may be gone after its answer and before its write, and its successor knows nothing of
the change. So a change that no command has followed is asked for again, as it was. Of two such
requests only one can hold, as they name the same version. If the second is refused, the first may
still be written: the leader then asks for the ISR as it is (`PendingStay`), to take that version.

Source: KIP-497 (seed 003), "Proposed Changes".
"""

from collections import deque
from collections.abc import Mapping

from broker.cluster import Incarnation
from broker.membership.controller_batches import ControllerBatches
from broker.membership.controller_channel import ControllerChannel
from broker.partition import isr
from broker.partition.isr import PendingStay
from broker.partition.partition import IsrChange, Partition
from quorum.core.effects import Event, body_of, earliest
from wire.errors import ErrorCode
from wire.zk.control_rpc import AlterIsrRequest, AlterIsrResponse, TopicPartition, WantedIsr

__all__ = ["IsrRequests"]

_BATCH_MAX = 1000
_RETRY_BACKOFF_MS = 50
# The version, or the epoch, is out of date: a command is on its way that says more.
_NEWS_FOLLOWS = (
    ErrorCode.NONE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class IsrRequests:
    def __init__(
        self, incarnation: Incarnation, controller: ControllerChannel, *, timeout_ms: int
    ) -> None:
        self.decided: deque[Partition] = deque()
        self._incarnation = incarnation
        self._batches = ControllerBatches[TopicPartition, IsrChange](
            controller=controller,
            channel="alter-isr",
            batch_max=_BATCH_MAX,
            retry_backoff_ms=_RETRY_BACKOFF_MS,
            timeout_ms=timeout_ms,
        )
        # The changes that the controller has received, and when to ask again.
        self._awaited: dict[TopicPartition, tuple[IsrChange, int]] = {}

    def want(self, change: IsrChange, now_ms: int) -> None:
        """All changes that follow from one fetch leave in one request: at the next `tick`."""
        of = TopicPartition(change.partition.topic, change.partition.index)
        self._batches.wanted[of] = change

    def tick(self, now_ms: int) -> None:
        self._ask_again(now_ms)
        batches = self._batches
        if not batches.is_due(now_ms):
            return
        batches.keep(lambda change: change.is_wanted)
        batch = batches.next_batch()
        if batch:
            batches.send(batch, self._request(batch), self._answered, now_ms)

    def deadline_ms(self) -> int | None:
        again_ms = (again_ms for _, again_ms in self._awaited.values())
        return earliest(self._batches.deadline_ms(), *again_ms)

    def _ask_again(self, now_ms: int) -> None:
        due = [of for of, (_, again_ms) in self._awaited.items() if now_ms >= again_ms]
        for of in due:
            change, _ = self._awaited.pop(of)
            self._batches.wanted.setdefault(of, change)  # unless another has taken its place

    def _request(self, batch: Mapping[TopicPartition, IsrChange]) -> AlterIsrRequest:
        own = self._incarnation
        wanted = {
            of: WantedIsr(
                leader=own.node_id,
                leader_epoch=change.role.leader_epoch,
                isr=isr.proposed_isr(change.asked),
                current_zk_version=change.role.partition_epoch,
            )
            for of, change in batch.items()
        }
        return AlterIsrRequest.of(own.node_id, own.broker_epoch, wanted)

    def _answered(self, event: Event, now_ms: int) -> None:
        asked, body = self._batches.take_asked(), body_of(event)
        if not isinstance(body, AlterIsrResponse):
            for each in asked.values():
                each.is_in_doubt = True
            self._batches.retry(now_ms)
            return
        if body.error_code is not ErrorCode.NONE:
            self._batches.retry(now_ms)  # another controller, or none
            return
        for of, error in body.errors.items():
            change = asked.get(of)
            if change is not None:
                self._conclude(of, change, error, now_ms)

    def _conclude(
        self, of: TopicPartition, change: IsrChange, error: ErrorCode, now_ms: int
    ) -> None:
        if error not in _NEWS_FOLLOWS and isinstance(change.asked, PendingStay):
            self._batches.retry(now_ms)
            return
        self._batches.settle(of, change)
        if error in _NEWS_FOLLOWS:
            change.is_in_doubt |= error is ErrorCode.NONE  # it is received, not written
            self._awaited[of] = (change, now_ms + self._batches.timeout_ms)
            return
        instead = change.stay()
        if instead is not None:
            self._batches.wanted[of] = instead
        elif change.revert():
            self.decided.append(change.partition)
