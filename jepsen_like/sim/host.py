"""Drives one core on virtual time: the sibling of the asyncio driver `quorum.node.driver`.

A host is one node: a disk that stays, and a process that comes and goes. It hands events to the
core one at a time, carries out its effects in order, calls `tick` at the deadline by the node's own
clock (which may be skewed), and keeps the driver's promises: every `Send` is answered exactly once,
every incoming request has a token of its own. It decides nothing about faults: `crash`, `pause` and
the rest are called by `jepsen_like.sim.quorum.nemesis`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol
from uuid import UUID

from jepsen_like.sim.codec import Codec
from jepsen_like.sim.counts import Counts
from jepsen_like.sim.disk import Disk
from jepsen_like.sim.ending import ANY_ERROR, described
from jepsen_like.sim.network import Message, Network
from jepsen_like.sim.violation import Crash, Stuck, Violation
from jepsen_like.sim.world import EventsSpent, World
from jepsen_like.sim.zk_client import EnsembleClient
from quorum.core.effects import (
    Core,
    Effect,
    Event,
    Failure,
    RaftosRequest,
    Reply,
    Request,
    RequestFailed,
    Response,
    Send,
    Stop,
    StorageFailed,
    Token,
    Trace,
    ZkEvent,
    ZkRequest,
    ZkResult,
)
from quorum.core.types import Endpoint
from wire.zk.session import Result, SessionEvent

__all__ = ["Clock", "Host", "Watch", "directory_of"]

_EPOCH_MS = 1_700_000_000_000  # virtual time begins at a plausible wall clock
_TICK_LATE_US = 1_000  # how late a busy process may be with a timer
_IDLE_TICKS_MAX = 100  # ticks in a row that move nothing, before we call it a loop
_JUDGEMENTS = (Violation, Stuck, Crash, EventsSpent)  # by the simulator, while a core is called


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A node's own clock: offset and rate against virtual time."""

    offset_ms: int = 0
    drift_ppm: int = 0

    def local_ms(self, world_us: int) -> int:
        return self.local_us(world_us) // 1000

    def local_us(self, world_us: int) -> int:
        return (
            (_EPOCH_MS + self.offset_ms) * 1000 + world_us + world_us * self.drift_ppm // 1_000_000
        )

    def world_us(self, local_ms: int) -> int:
        """The first moment at which the local clock shows `local_ms` or more."""
        elapsed_us = (local_ms - _EPOCH_MS - self.offset_ms) * 1000
        return elapsed_us * 1_000_000 // (1_000_000 + self.drift_ppm) + 1


def directory_of(node_id: int, generation: int = 0) -> UUID:
    """The id of a node's disk, which has been wiped so often."""
    return UUID(int=node_id << 64 | generation << 16 | 0xD15C)


class Watch(Protocol):
    """Whoever looks on: each is called at the moment it names, for one host."""

    def received(self, host: "Host", event: Event) -> None:
        """The core is about to be given `event`."""

    def performing(self, host: "Host", effect: Effect) -> None:
        """`effect` is about to be carried out."""

    def replying(self, host: "Host", token: int, request: object, response: object) -> None:
        """The answer to `request` is about to leave."""

    def settled(self, host: "Host", effects: list[Effect]) -> None:
        """The core has been given an event, and everything it asked for is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """An incoming request that waits for its reply."""

    message: Message
    since_us: int


class Host:
    """One node of a simulated cluster."""

    def __init__(
        self,
        *,
        node_id: int,
        world: World,
        network: Network,
        disk: Disk,
        clock: Clock,
        codec: Codec | None,
        counts: Counts,
        watch: Watch,
        start_core: "Callable[[Host], Core]",
        listener: str = "CONTROLLER",
    ) -> None:
        self.node_id = node_id
        self.disk = disk
        self.clock = clock
        self.core: Core | None = None
        self.incarnation = 0
        self.resumed_us = 0  # when it last came out of a pause
        self.stopped = ""  # why the process ended by itself, if it did
        self.must_not_stop = True  # but in good order, or without its disk: else it is a bug
        self.on_stop: Callable[[Host], None] = lambda _host: None
        self._world = world
        self._network = network
        self._codec = codec
        self._counts = counts
        self._watch = watch
        self._start_core = start_core
        self._listener = listener  # on which it is asked
        self._random: Random = world.fork(f"host/{node_id}")
        self._sent: dict[int, Token] = {}  # by correlation: our requests without an answer
        self._asked: dict[int, _Asked] = {}  # by token: requests that we have not answered
        self._next_token = 0
        self._tick_at_us: int | None = None
        self._tick_generation = 0
        self._ticks_idle = 0  # in a row, each with a deadline in the past after it
        self._inbox: list[Event] | None = None  # events held back while paused
        self._storage_failed = False
        self._zk: EnsembleClient | None = None

    # --- process ------------------------------------------------------------------------

    @property
    def directory_id(self) -> UUID:
        """A disk that was wiped is another disk."""
        return directory_of(self.node_id, self.disk.generation)

    @property
    def is_up(self) -> bool:
        return self.core is not None

    @property
    def is_paused(self) -> bool:
        return self._inbox is not None

    @property
    def now_ms(self) -> int:
        return self.clock.local_ms(self._world.now_us)

    @property
    def waited_us(self) -> int:
        """How long the oldest request that it was asked has waited for its reply."""
        since_us = min((asked.since_us for asked in self._asked.values()), default=None)
        return 0 if since_us is None else self._world.now_us - since_us

    def start(self) -> None:
        """Recover the disk and run a new process on it."""
        assert self.core is None, self.node_id
        self.incarnation += 1
        self.stopped = ""
        self._storage_failed = False
        self.disk.attach(self._event)
        with _core_errors(self.node_id):
            self.core = self._start_core(self)
        self._settle()

    def crash(self, *, power_loss: bool) -> None:
        """End the process as it stands; what the disk keeps is the disk's business."""
        assert self.core is not None, self.node_id
        self.core = None
        self._inbox = None
        self._tick_generation += 1
        self._tick_at_us = None
        self._sent.clear()
        asked = list(self._asked.values())
        self._asked.clear()
        if self._zk is not None:
            self._zk.die(silently=power_loss)
            self._zk = None
        self.disk.crash(power_loss=power_loss)
        if not power_loss:  # the system closes the connections of a process that died
            for waiting in asked:
                self._refuse(waiting.message)

    def pause(self) -> None:
        """Stop the process for a while, as a long garbage collection or SIGSTOP does."""
        if self._inbox is None:
            self._inbox = []
            if self._zk is not None:
                self._zk.pause()

    def resume(self) -> None:
        if self._inbox is None:
            return
        for event in self._inbox:
            self._later(0, event)
        self._inbox = None
        self.resumed_us = self._world.now_us
        self._schedule_tick()
        if self._zk is not None:
            self._zk.resume()

    def command(self, action: Callable[[int], None]) -> None:
        """Do something to the running core, as its operator or its application would."""
        if self.core is None or self._inbox is not None:
            return
        with _core_errors(self.node_id):
            action(self.now_ms)
            self.core.tick(self.now_ms)
        self._settle()

    # --- network ------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """A message for this node got through."""
        if message.is_request:
            self._deliver_request(message)
        elif message.correlation in self._sent:
            token = self._sent.pop(message.correlation)
            if isinstance(message.body, _Refused):
                self._counts.fired("disconnected")
                self._event(RequestFailed(token=token, failure=Failure.DISCONNECTED))
            else:
                self._event(Response(token=token, body=message.body))

    def _deliver_request(self, message: Message) -> None:
        if self.core is None:
            self._refuse(message)
            return
        self._next_token += 1
        self._asked[self._next_token] = _Asked(message=message, since_us=self._world.now_us)
        self._event(Request(token=self._next_token, body=message.body, listener=self._listener))

    def _refuse(self, message: Message) -> None:
        self._network.send(
            Message(
                source=self.node_id,
                target=message.source,
                channel=message.channel,
                correlation=message.correlation,
                is_request=False,
                body=_Refused(),
            )
        )

    def _send(self, effect: Send) -> None:
        correlation = self._world.sequence()
        self._sent[correlation] = effect.token
        body = effect.body if self._codec is None else self._codec.request(effect.body)
        self._network.send(
            Message(
                source=self.node_id,
                target=_node_at(effect.to),
                channel=effect.channel,
                correlation=correlation,
                is_request=True,
                body=body,
            )
        )

        def give_up() -> None:
            token = self._sent.pop(correlation, None)
            if token is not None:
                self._counts.fired("timed_out")
                self._event(RequestFailed(token=token, failure=Failure.TIMED_OUT))

        self._world.after(effect.timeout_ms * 1000, give_up)

    def _reply(self, effect: Reply) -> None:
        asked = self._asked.pop(effect.token, None)
        if asked is None:
            raise Crash("reply", f"node {self.node_id} answers request {effect.token} twice")
        if effect.body is None:
            return
        self._watch.replying(self, effect.token, asked.message.body, effect.body)
        body = effect.body if self._codec is None else self._codec.response(effect.body)
        self._network.send(
            Message(
                source=self.node_id,
                target=asked.message.source,
                channel=asked.message.channel,
                correlation=asked.message.correlation,
                is_request=False,
                body=body,
            )
        )

    # --- ZooKeeper ----------------------------------------------------------------------

    @property
    def zookeeper(self) -> EnsembleClient:
        assert self._zk is not None, f"node {self.node_id} has no ZooKeeper"
        return self._zk

    def use_zookeeper(self, client: EnsembleClient) -> None:
        """Ask `client` from now on: this process's own, which is paused and ends with it."""
        self._zk = client

    def zk_event(self, event: SessionEvent) -> None:
        self._event(ZkEvent(event=event))

    def _ask_zookeeper(self, request: ZkRequest) -> None:
        def done(result: Result) -> None:
            self._event(ZkResult(token=request.token, result=result))

        assert self._zk is not None, f"node {self.node_id} asks for ZooKeeper, and has none"
        self._zk.ask(request.operation, session_id=request.session_id, done=done)

    # --- core ---------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        if self._inbox is not None:
            self._inbox.append(event)
        elif self.core is not None:
            self._storage_failed |= isinstance(event, StorageFailed)
            self._watch.received(self, event)
            with _core_errors(self.node_id):
                self.core.receive(event, self.now_ms)
            self._settle()

    def _later(self, delay_us: int, event: Event) -> None:
        incarnation = self.incarnation

        def arrive() -> None:
            if incarnation == self.incarnation:
                self._event(event)

        self._world.after(delay_us, arrive)

    def _settle(self) -> None:
        """Carry out what the core asks for, then look at its next deadline.

        As the real driver does it: what is told to others leaves last, and does not leave at all
        if something failed at once that it may rest on.
        """
        assert self.core is not None, self.node_id
        with _core_errors(self.node_id):
            effects = self.core.take_effects()
        told: list[Send | Reply | ZkRequest] = []
        stop: Stop | None = None
        for effect in effects:
            match effect:
                case Send() | Reply() | ZkRequest():
                    told.append(effect)
                case Stop():
                    stop = stop or effect
                case RaftosRequest():
                    raise AssertionError("raftos runs in processes only")
                case Trace():
                    self._watch.performing(self, effect)
                case _:
                    self._watch.performing(self, effect)
                    self.disk.perform(effect)
        self.disk.begin_syncs()
        failures = self.disk.take_failures()
        if not failures:
            self._tell(told)
        if stop is not None:
            self._stop(stop)
            return
        for failure in failures:
            self._event(failure)
        if not failures:
            self._schedule_tick()
            self._watch.settled(self, effects)

    def _tell(self, told: list[Send | Reply | ZkRequest]) -> None:
        for effect in told:
            self._watch.performing(self, effect)
            match effect:
                case Send():
                    self._send(effect)
                case Reply():
                    self._reply(effect)
                case ZkRequest():
                    self._ask_zookeeper(effect)

    def _stop(self, stop: Stop) -> None:
        self._watch.performing(self, stop)
        if stop.exit_code != 0 and not self._storage_failed and self.must_not_stop:
            raise Crash("stopped", f"node {self.node_id}: {stop.reason}")
        self.stopped = stop.reason
        if self._zk is not None and stop.exit_code == 0:
            self._zk.close()
        self.crash(power_loss=False)
        self.on_stop(self)

    # --- time ---------------------------------------------------------------------------

    def _schedule_tick(self) -> None:
        """Have one timer that is not later than the deadline; an early one looks again."""
        if self.core is None or self._inbox is not None:
            return
        deadline_ms = self._deadline_ms()
        if deadline_ms is None:
            return
        now_us = self._world.now_us
        late_us = self._random.randrange(_TICK_LATE_US)
        due_us = max(now_us, self.clock.world_us(deadline_ms)) + late_us
        if self._tick_at_us is not None and self._tick_at_us <= due_us:
            return
        self._tick_at_us = due_us
        self._tick_generation += 1
        generation = self._tick_generation
        self._world.at(due_us, lambda: self._timer(generation))

    def _timer(self, generation: int) -> None:
        if generation != self._tick_generation:
            return
        self._tick_at_us = None
        if self.core is None or self._inbox is not None:
            return
        deadline_ms = self._deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            with _core_errors(self.node_id):
                self.core.tick(self.now_ms)
            self._check_progress()
            self._settle()
        else:
            self._schedule_tick()

    def _deadline_ms(self) -> int | None:
        with _core_errors(self.node_id):
            return None if self.core is None else self.core.deadline_ms()

    def _check_progress(self) -> None:
        """A core whose deadline stays in the past would keep a real process busy for nothing."""
        deadline_ms = self._deadline_ms()
        is_idle = deadline_ms is not None and deadline_ms <= self.now_ms
        self._ticks_idle = self._ticks_idle + 1 if is_idle else 0
        if self._ticks_idle > _IDLE_TICKS_MAX:
            raise Crash("loop", f"node {self.node_id}: the deadline stays in the past")


def _node_at(to: Endpoint) -> int:
    """A bootstrap server is known by where it listens only."""
    return to.node_id if to.node_id >= 0 else int(to.host.removeprefix("node-"))


class _core_errors:
    """What a core raises ends the run: a core never raises for what a peer sent."""

    __slots__ = ("_node_id",)

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ANY_ERROR) and not isinstance(error, _JUDGEMENTS):
            detail = f"node {self._node_id}: {type(error).__name__}: {described(error)}"
            raise Crash("raised", detail) from error


@dataclass(frozen=True, slots=True)
class _Refused:
    """In place of a response: the connection broke or was never made."""
