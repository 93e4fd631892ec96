"""The controller's commands to brokers: collected, put into requests, and sent in order.

A `Batch` collects the decisions of one event; a design turns it into one request for each broker,
or into one for each partition. `Commands` has a queue for each live broker, with one request in
flight. A request without an answer is sent again, or given up after the seed's time-out, so that
the next request overtakes it (see `Design.retries_commands`).

A broker that is gone loses its queue: when it is back it gets new commands, or reads for itself.

Source: seed 000, A.4 and C; seed 001, ControllerChannelManager and ControllerBrokerRequestBatch.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from controller.metadata.partitions import PartitionState
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.zk_controller_config import ZkControllerConfig
from quorum.core.effects import Event, Response, earliest
from quorum.core.outbox import Outbox
from quorum.core.types import Endpoint
from wire.zk.control_rpc import (
    NO_EPOCH,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    LiveBroker,
    StopReplicaRequest,
    TopicPartition,
    UpdateMetadataRequest,
)
from wire.zk.designs import Design, Routing
from wire.zk.session import Session

__all__ = ["Batch", "Commands", "Request"]

Request = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
Obeyed = Callable[[int, Request, object], None]  # broker id, the request, its answer or None
_CHANNEL = "controller"
_WAITING_MAX = 100_000


@dataclass(slots=True, kw_only=True)
class Batch:
    """The commands of one event, by broker."""

    leader_and_isr: dict[int, dict[TopicPartition, PartitionState]] = field(default_factory=dict)
    stopped: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    metadata: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    updated: set[int] = field(default_factory=set)  # brokers that hear of `metadata`
    is_init: bool = False
    is_full: bool = False  # `metadata` is all there is

    def tell(self, broker_ids: Iterable[int], of: TopicPartition, state: PartitionState) -> None:
        for broker_id in broker_ids:
            self.leader_and_isr.setdefault(broker_id, {})[of] = state

    def stop(self, broker_id: int, of: TopicPartition, *, delete: bool) -> None:
        self.stopped.setdefault(broker_id, {})[of] = delete

    def update(self, broker_ids: Iterable[int]) -> None:
        self.updated |= set(broker_ids)

    def requests(
        self, design: Design, live: Mapping[int, LiveBroker], **sender: int
    ) -> Iterator[tuple[int, Request]]:
        """For live brokers only, in the order in which a broker has to obey them.

        Without batching there is a request for each partition, and all brokers get its metadata.
        `sender` are the fields that every request has.
        """

        def common(broker_id: int) -> dict[str, Any]:
            knows = design.checks_generation
            return {
                **sender,
                "broker_generation": live[broker_id].generation if knows else NO_EPOCH,
            }

        for broker_id in sorted(live.keys() & self.leader_and_isr.keys()):
            states = self.leader_and_isr[broker_id]
            for some in _parts(design, list(states), is_whole=self.is_init):
                partitions = tuple(_leader_and_isr(design, of, states[of]) for of in some)
                yield (
                    broker_id,
                    LeaderAndIsrRequest(
                        is_init=self.is_init, partitions=partitions, **common(broker_id)
                    ),
                )
        updated, metadata = self._news(design, live)
        for broker_id in sorted(live.keys() & updated):
            for some in _parts(design, list(metadata), is_whole=not metadata):
                yield (
                    broker_id,
                    UpdateMetadataRequest(
                        live_brokers=tuple(live[each] for each in sorted(live)),
                        partitions=tuple(_leader_and_isr(design, of, metadata[of]) for of in some),
                        is_full=self.is_full and len(some) == len(metadata),
                        **common(broker_id),
                    ),
                )
        for broker_id in sorted(live.keys() & self.stopped.keys()):
            for delete in (False, True):
                wanted = [of for of, each in self.stopped[broker_id].items() if each is delete]
                for some in _parts(design, wanted):
                    yield (
                        broker_id,
                        StopReplicaRequest(
                            partitions=tuple(some), delete_partitions=delete, **common(broker_id)
                        ),
                    )

    def _news(
        self, design: Design, live: Mapping[int, LiveBroker]
    ) -> tuple[set[int], dict[TopicPartition, PartitionState]]:
        """The brokers that get metadata, and the metadata."""
        if design.batches_commands or design.routing is not Routing.UPDATE_METADATA:
            return self.updated, self.metadata
        told = {of: state for each in self.leader_and_isr.values() for of, state in each.items()}
        return (set(live) if told else self.updated), {**told, **self.metadata}


def _parts(
    design: Design, partitions: list[TopicPartition], *, is_whole: bool = False
) -> Iterator[list[TopicPartition]]:
    """One request for all partitions, or one for each. INIT must name all: a broker drops the
    others."""
    if is_whole or (partitions and design.batches_commands):
        yield partitions
    else:
        yield from ([of] for of in partitions)


def _leader_and_isr(design: Design, of: TopicPartition, state: PartitionState) -> LeaderAndIsr:
    is_told = design.routing is Routing.UPDATE_METADATA
    return LeaderAndIsr(
        topic=of.topic,
        partition=of.partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.partition_epoch,
        replicas=state.replicas if is_told else (),
    )


@dataclass(slots=True, kw_only=True)
class _Line:
    """The commands that wait for one broker."""

    endpoint: Endpoint
    generation: int
    waiting: deque[Request] = field(default_factory=deque)
    in_flight: Request | None = None
    next_send_ms: int = 0
    ended: int = 0  # requests that were answered or given up

    @property
    def queued(self) -> int:
        return self.ended + len(self.waiting)


@dataclass(frozen=True, slots=True, eq=False)
class _Delivery:
    """Somebody waits until brokers have answered, by their lines and the count of requests."""

    then: Callable[[], None]
    last: Mapping[int, tuple[_Line, int]]

    def is_done(self, lines: Mapping[int, _Line]) -> bool:
        return not any(
            lines.get(broker_id) is line and line.ended < count
            for broker_id, (line, count) in self.last.items()
        )


class Commands:
    def __init__(
        self,
        config: ZkControllerConfig,
        outbox: Outbox,
        session: Session,
        milestones: ProcedureMilestones,
        obeyed: Obeyed,
    ) -> None:
        """`obeyed` is called with each answer, or with None if there will be none."""
        self._config = config
        self._design = config.design
        self._outbox = outbox
        self._session = session
        self._milestones = milestones
        self._obeyed = obeyed
        self._lines: dict[int, _Line] = {}
        self._deliveries: list[_Delivery] = []  # that are waited for
        self.sent = 0  # requests, for those who compare designs

    def brokers_are(self, live: Mapping[int, LiveBroker]) -> None:
        """A design that knows generations notices a broker that was away; another does not."""
        for broker_id in [each for each in self._lines if each not in live]:
            del self._lines[broker_id]
        for broker_id, broker in live.items():
            endpoint = _endpoint(broker, self._config.inter_broker_listener_name)
            if endpoint is None:
                self._lines.pop(broker_id, None)
                continue
            line = self._lines.get(broker_id)
            is_another = self._design.checks_generation and (
                line is not None and line.generation != broker.generation
            )
            if line is None or is_another:
                self._lines[broker_id] = _Line(endpoint=endpoint, generation=broker.generation)
            else:
                line.endpoint = endpoint
        self._tell_delivered()

    def clear(self) -> None:
        self._lines.clear()
        self._deliveries.clear()

    def when_delivered(self, broker_ids: Iterable[int], then: Callable[[], None]) -> None:
        """Call `then` as soon as each of these brokers has answered all that waits for it now, or
        is gone."""
        lines = {each: self._lines[each] for each in broker_ids if each in self._lines}
        last = {broker_id: (line, line.queued) for broker_id, line in lines.items()}
        self._deliveries.append(_Delivery(then, last))
        self._tell_delivered()

    def _tell_delivered(self) -> None:
        done = [each for each in self._deliveries if each.is_done(self._lines)]
        self._deliveries = [each for each in self._deliveries if each not in done]
        for each in done:
            each.then()

    def send(self, broker_id: int, request: Request, now_ms: int) -> None:
        line = self._lines.get(broker_id)
        if line is None or len(line.waiting) >= _WAITING_MAX:
            self._outbox.trace("command-dropped", broker=broker_id, command=_name(request))
            return
        line.waiting.append(request)
        self._advance(broker_id, line, now_ms)

    def tick(self, now_ms: int) -> None:
        for broker_id, line in tuple(self._lines.items()):
            self._advance(broker_id, line, now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(
            *(
                line.next_send_ms
                for line in self._lines.values()
                if line.waiting and line.in_flight is None
            )
        )

    def _advance(self, broker_id: int, line: _Line, now_ms: int) -> None:
        if line.in_flight is not None or not line.waiting or now_ms < line.next_send_ms:
            return
        if self._design.hears_session_at_once and not self._session.is_connected:
            return  # another may have taken over
        request = line.in_flight = line.waiting[0]
        self.sent += 1
        self._outbox.ask(
            line.endpoint,
            request,
            channel=_CHANNEL,
            timeout_ms=request.ack_timeout_ms,
            answered=partial(self._answered, broker_id, line),
        )
        if request.partitions and not isinstance(request, StopReplicaRequest):
            self._milestones.told(broker_id, _name(request), len(request.partitions))

    def _answered(self, broker_id: int, line: _Line, event: Event, now_ms: int) -> None:
        request, line.in_flight = line.in_flight, None
        if self._lines.get(broker_id) is not line or request is None:
            return
        answer = event.body if isinstance(event, Response) else None
        if answer is None and self._design.retries_commands:
            line.next_send_ms = now_ms + self._config.retry_backoff_ms
        else:
            line.waiting.popleft()
            line.ended += 1
            if answer is None:
                self._outbox.trace("command-timed-out", broker=broker_id, command=_name(request))
            self._obeyed(broker_id, request, answer)
            self._tell_delivered()
        self._advance(broker_id, line, now_ms)


def _endpoint(broker: LiveBroker, listener: str) -> Endpoint | None:
    for each in broker.listeners:
        if each.listener == listener:
            return Endpoint(broker.id, each.host, each.port)
    return None


def _name(request: Request) -> str:
    return type(request).__name__.removesuffix("Request")
