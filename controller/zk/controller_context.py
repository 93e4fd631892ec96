"""What an active controller works with: the cluster as it has read it, and its means to act.

Holds, and decides nothing. Everything here is dropped with the controllership.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from controller.metadata.partitions import PartitionState
from controller.milestones import Cause, Occasion
from controller.zk.commands import Batch, Commands
from controller.zk.commands import Request as Command
from controller.zk.controller_election import Controllership
from controller.zk.partition_states import StateStore
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.zk_controller_config import ZkControllerConfig
from controller.zk.zk_metadata import read_brokers
from quorum.core.effects import Reply, Request, earliest
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.zk import paths
from wire.zk.control_rpc import LiveBroker, TopicPartition
from wire.zk.designs import Design

__all__ = [
    "Context",
    "Duties",
    "Move",
    "Periodic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A reassignment that is under way."""

    original: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.target) - set(self.original)))

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.original) - set(self.target)))

    def shown_in(self, state: PartitionState) -> PartitionState:
        return replace(
            state,
            replicas=tuple(dict.fromkeys((*self.target, *self.original))),
            directories=(),
            adding_replicas=self.adding,
            removing_replicas=self.removing,
        )


@dataclass(slots=True, kw_only=True)
class Context:
    config: ZkControllerConfig
    outbox: Outbox
    procedures: Procedures
    commands: Commands
    controllership: Controllership
    store: StateStore
    milestones: ProcedureMilestones
    live: dict[int, LiveBroker] = field(default_factory=dict)
    assignments: dict[str, Mapping[int, tuple[int, ...]]] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)  # as last known
    moves: dict[TopicPartition, Move] = field(default_factory=dict)
    deleting: dict[str, None] = field(default_factory=dict)  # topics whose deletion has begun
    unanswered: dict[int, Request] = field(default_factory=dict)  # by token; if it may take long
    now_ms: int = 0  # of the present event

    @property
    def design(self) -> Design:
        return self.config.design

    @property
    def is_unclean_allowed(self) -> bool:
        asked = self.config.is_unclean_allowed
        return self.design.is_unclean_by_default if asked is None else asked

    def is_deleting(self, of: TopicPartition) -> bool:
        """Its replicas must not hear of it any more."""
        return of.topic in self.deleting

    def partitions(self, topics: Iterable[str] | None = None) -> Iterator[TopicPartition]:
        """Every assigned partition, or those of `topics`, in order."""
        for topic in sorted(self.assignments if topics is None else topics):
            for partition in sorted(self.assignments.get(topic, ())):
                yield TopicPartition(topic, partition)

    def replicas(self, of: TopicPartition) -> tuple[int, ...]:
        return self.assignments.get(of.topic, {}).get(of.partition, ())

    def read_live_brokers(self) -> Procedure[None]:
        """Read the live brokers, and watch their list."""
        self.live = yield from read_brokers(self.design, watch=True)
        self.commands.brokers_are(self.live)

    def notices_brokers(self, *, gone: Iterable[int], new: Iterable[int]) -> None:
        """The live brokers were read: what is done next is because of them."""
        for occasion, ids in ((Occasion.BROKER_JOINED, new), (Occasion.BROKER_FAILED, gone)):
            for broker_id in sorted(ids):
                self.milestones.begin(Cause(occasion, broker_id), heard=paths.BROKER_IDS)

    def remaining(
        self, partitions: Iterable[TopicPartition], broker_id: int
    ) -> tuple[TopicPartition, ...]:
        """Those of `partitions` that the broker leads."""
        states = ((of, self.states.get(of)) for of in partitions)
        return tuple(of for of, state in states if state and state.leader == broker_id)

    def reply(self, request: Request, answer: object) -> None:
        self.unanswered.pop(request.token, None)
        self.outbox.emit(Reply(token=request.token, body=answer))

    def tell(self, batch: Batch) -> None:
        requests = batch.requests(
            self.design,
            self.live,
            client_id=self.config.node_id,
            controller_epoch=self.controllership.epoch,
            ack_timeout_ms=self.config.ack_timeout_ms,
        )
        for broker_id, request in requests:
            self.commands.send(broker_id, request, self.now_ms)


class Timed(Protocol):
    """A part of the duties that acts by itself when its time has come."""

    def tick(self, now_ms: int) -> None: ...

    def deadline_ms(self) -> int | None: ...


class Periodic:
    """Submits a procedure every `interval_ms` for as long as it is wanted."""

    def __init__(
        self,
        context: Context,
        interval_ms: int,
        name: str,
        start: Callable[[], Procedure[None]],
        *,
        is_wanted: Callable[[], bool],
    ) -> None:
        self._context = context
        self._interval_ms = interval_ms
        self._name = name
        self._start = start
        self._is_wanted = is_wanted
        self._next_ms: int | None = None

    def tick(self, now_ms: int) -> None:
        is_due = self._next_ms is not None and now_ms >= self._next_ms
        if not self._is_wanted():
            self._next_ms = None
        elif is_due or self._next_ms is None:
            self._next_ms = now_ms + self._interval_ms
            if is_due:
                self._context.procedures.submit(self._name, self._start)

    def deadline_ms(self) -> int | None:
        begins = self._next_ms is None and self._is_wanted()
        return self._context.now_ms if begins else self._next_ms


class Duties(Protocol):
    """What an active controller has to do, whatever the design: the seam under `zk_controller`."""

    timed: tuple[Timed, ...] = ()

    def take_over(self) -> Procedure[None]:
        """A new controller begins: read the cluster, and send it to the brokers."""
        ...

    def watch_fired(self, path: str) -> None: ...

    def controlled_shutdown(self, request: Request) -> Procedure[None]:
        """A broker wants to stop. The answer says what it still leads, and may come later."""
        ...

    def alter_isr(self, request: Request) -> None:
        """A leader asks for ISR changes: answered at once."""
        raise AssertionError("leaders write their ISR themselves")

    def obeyed(self, broker_id: int, command: Command, answer: object) -> None:
        """A broker has answered a command; None: it never will. What is lost stays lost."""

    def tick(self, now_ms: int) -> None:
        for each in self.timed:
            each.tick(now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(*(each.deadline_ms() for each in self.timed))
