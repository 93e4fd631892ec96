"""What the active controller does unasked, and when: it fences silent brokers, holds the elections
that are due, and writes a record now and then so that an idle log moves on.

This file decides when. `controller.decisions` decides what is written; the controller appends one
piece of work before it takes the next, which rests on it.

Source: KIP-631, KIP-835 (no-op records); Kafka's QuorumController and its periodic tasks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from controller.config import ControllerConfig
from controller.decisions import brokers, elections, failover
from controller.liveness import Liveness
from controller.metadata.changes import Change, record_count
from controller.metadata.image import MetadataImage
from controller.milestones import Cause, Occasion
from quorum.core.effects import earliest
from wire.metadata_records import BrokerRegistrationChangeRecord, NoOpRecord

__all__ = ["Chores", "Work"]

_Decide = Callable[[MetadataImage, ControllerConfig], tuple[Change, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Changes to append. They need not be atomic."""

    changes: tuple[Change, ...]
    cause: Cause
    event: str | None = None  # what to trace, if anything
    fields: tuple[tuple[str, object], ...] = ()


@dataclass(slots=True)
class _Periodic:
    """Elections that are held again and again."""

    event: str
    interval_ms: int | None  # None: only when it is asked for
    decide: _Decide
    due_ms: int | None = None  # None: not while this node is a standby

    def hold(self, head: MetadataImage, config: ControllerConfig, now_ms: int) -> Iterator[Work]:
        if self.due_ms is None or now_ms < self.due_ms:
            return
        changes = self.decide(head, config)
        count = record_count(changes)
        is_full = count >= elections.ELECTIONS_MAX
        # There may be more: in a later turn, for a turn has one time and may settle often.
        self.due_ms = now_ms + 1 if is_full else self._next_ms(now_ms)
        if changes:
            cause = Cause(Occasion.ELECTION)
            yield Work(
                changes=changes, cause=cause, event=self.event, fields=(("elections", count),)
            )

    def begin(self, now_ms: int) -> None:
        self.due_ms = self._next_ms(now_ms)

    def _next_ms(self, now_ms: int) -> int | None:
        return None if self.interval_ms is None else now_ms + self.interval_ms


class Chores:
    """Owned by one `Controller`. There are none on a standby."""

    def __init__(self, config: ControllerConfig, liveness: Liveness) -> None:
        self._config = config
        self._liveness = liveness
        self._no_op_due_ms: int | None = None
        self._fence_from_ms = 0  # a turn has one time: the next portion is for a later one
        self._unclean = _Periodic(
            "unclean", config.unclean_election_interval_ms, elections.elect_unclean
        )
        self._overdue = _Periodic("overdue", None, elections.elect_overdue)
        self._periodic = [self._overdue, self._unclean]
        if config.auto_leader_rebalance_enable:
            interval_ms = config.leader_imbalance_check_interval_ms
            self._periodic.append(_Periodic("preferred", interval_ms, elections.elect_preferred))

    def begin(self, now_ms: int) -> None:
        """This node has become the active controller."""
        if self._config.max_idle_interval_ms:
            self._no_op_due_ms = now_ms + self._config.max_idle_interval_ms
        for each in self._periodic:
            each.begin(now_ms)

    def end(self) -> None:
        self._no_op_due_ms = None
        for each in self._periodic:
            each.due_ms = None

    def elect_overdue_soon(self, now_ms: int) -> None:
        """There were too many elections for one turn."""
        self._overdue.due_ms = now_ms + 1

    def elect_unclean_soon(self, now_ms: int) -> None:
        """The configs of a topic may allow an unclean election by now."""
        self._unclean.due_ms = now_ms

    def work(self, head: Callable[[], MetadataImage], now_ms: int) -> Iterator[Work]:
        """The work that is due. `head` gives the image with what was appended before."""
        if now_ms >= self._fence_from_ms:
            yield from self._fence(head, now_ms)
        for each in self._periodic:
            yield from each.hold(head(), self._config, now_ms)
        if self._no_op_due_ms is not None and now_ms >= self._no_op_due_ms:
            self._no_op_due_ms = now_ms + self._config.max_idle_interval_ms
            yield Work(changes=(NoOpRecord(),), cause=Cause(Occasion.IDLE))

    def _fence(self, head: Callable[[], MetadataImage], now_ms: int) -> Iterator[Work]:
        """Fence the brokers that are silent; one that is in too many ISRs leaves some of them."""
        for _ in range(len(head().brokers)):
            broker_id = self._liveness.expired(head(), now_ms)
            if broker_id is None:
                return
            changes = brokers.fence(
                head(), broker_id, self._config, one_by_one_max=failover.ONE_BY_ONE_MAX
            )
            fields = (("broker", broker_id), ("records", record_count(changes)))
            cause = Cause(Occasion.BROKER_FAILED, broker_id)
            is_gone = isinstance(changes[-1], BrokerRegistrationChangeRecord)
            event = "fenced" if is_gone else "leaves-isrs"
            yield Work(changes=changes, cause=cause, event=event, fields=fields)
            if not is_gone:
                self._fence_from_ms = now_ms + 1
                return

    def deadline_ms(self, head: MetadataImage) -> int | None:
        """When something is next due. Only for the active controller."""
        silent_ms = self._liveness.deadline_ms(head)
        return earliest(
            None if silent_ms is None else max(silent_ms, self._fence_from_ms),
            self._no_op_due_ms,
            *[each.due_ms for each in self._periodic],
        )
