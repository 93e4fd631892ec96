"""Drives one core on virtual time: the sibling of the asyncio driver `quorum.node.driver`.

A host is one node: a disk that stays, and a process that comes and goes. It runs the core by the
same turns as the driver does (`quorum.core.turn`); how soon a turn comes, and so how much is in it,
is drawn from the seed. It settles the core at the deadline by the node's own clock (which may be
skewed), and keeps the driver's promises: every `Send` is answered exactly once, every incoming
request has a token of its own. It decides nothing about faults: `crash`, `pause` and the rest are
called by the injectors of `jepsen_like.sim.faults`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, NamedTuple, NoReturn, Protocol
from uuid import UUID

from jepsen_like.sim.counts import Counts
from jepsen_like.sim.disks.node_disk import NodeDisk
from jepsen_like.sim.time.ending import ANY_ERROR, described
from jepsen_like.sim.time.node_clock import Clock
from jepsen_like.sim.time.pace import TURNS_US, Pace
from jepsen_like.sim.time.virtual_time import EventsSpent, VirtualTime, below
from jepsen_like.sim.violation import Crash, Stuck, Violation
from jepsen_like.sim.world.codec import Speech, answer_as_heard, lacking_in, request_as_heard
from jepsen_like.sim.world.network import Message, Network
from quorum.core.effects import (
    Core,
    Effect,
    Event,
    Failure,
    HangUp,
    Reply,
    Request,
    RequestFailed,
    Response,
    Send,
    Stop,
    StorageFailed,
    Token,
    Trace,
)
from quorum.core.turn import Turn
from quorum.core.types import Endpoint
from wire.writing import CannotExpress

__all__ = ["Companion", "Host", "Watch", "directory_of"]

_TICK_LATE_US = 1_000  # how late a busy process may be with a timer
_IDLE_TICKS_MAX = 100  # ticks in a row that move nothing, before we call it a loop
_JUDGEMENTS = (Violation, Stuck, Crash, EventsSpent)  # by the simulator, while a core is called


def directory_of(node_id: int, generation: int = 0) -> UUID:
    """The id of a node's disk; `generation` counts how often it was wiped."""
    return UUID(int=node_id << 64 | generation << 16 | 0xD15C)


class Companion(Protocol):
    """A part of a node beside its core and disk: a client of ZooKeeper."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def die(self, *, silently: bool = False) -> None:
        """The process ends. `silently`: with its machine."""

    def close(self) -> None:
        """It ends in good order."""


class Watch(Protocol):
    """An observer of hosts: each method is called at the moment that it names."""

    def received(self, host: "Host", event: Event) -> None:
        """The core is about to be given `event`."""

    def performing(self, host: "Host", effect: Effect) -> None:
        """`effect` is about to be carried out."""

    def replying(self, host: "Host", token: int, request: object, response: object) -> None:
        """The answer to `request` is about to leave."""

    def counted(self, host: "Host") -> None:
        """The core has settled what came in, maybe within a turn; nothing is carried out yet."""

    def settled(self, host: "Host", effects: list[Effect]) -> None:
        """The core has had a turn, and everything that it asked for is under way."""


class _Asked(NamedTuple):
    """An incoming request that waits for its reply."""

    message: Message
    since_us: int


class Host:
    """One node of a simulated cluster."""

    def __init__(
        self,
        *,
        node_id: int,
        world: VirtualTime,
        network: Network,
        disk: NodeDisk,
        clock: Clock,
        speech: Speech,
        counts: Counts,
        watch: Watch,
        start_core: "Callable[[Host], Core]",
        listener: str = "CONTROLLER",
        turns_us: tuple[int, ...] = TURNS_US,
    ) -> None:
        self.node_id = node_id
        self.disk = disk
        self.clock = clock
        self.core: Core | None = None
        self._watched: _Watched | None = None  # the same core
        self.incarnation = 0
        self.resumed_us = 0  # when it last came out of a pause
        self.stopped = ""  # why the process ended by itself; empty if it did not
        self.must_not_stop = True  # a stop by an error is a bug, unless the disk has failed
        self.on_stop: Callable[[Host], None] = lambda _host: None
        self._world = world
        self._network = network
        self._speech = speech
        self._counts = counts
        self._watch = watch
        self._start_core = start_core
        self._listener = listener  # of all requests
        self._random: Random = world.fork(f"host/{node_id}")
        self._sent: dict[int, Token] = {}  # by correlation: our requests without an answer
        self._turn: Turn[_Asked] = Turn()
        self._pace = Pace(world.fork(f"turns/{node_id}"), turns_us)
        self._has_turn = False  # a turn is scheduled
        self._next_token = 0
        self._tick_at_us: int | None = None
        self._due_ms: int | None = None  # the core's deadline after its last turn
        self._tick_generation = 0
        self._ticks_idle = 0  # in a row, each with a deadline in the past after it
        self._is_paused = False
        self._storage_failed = False
        self._companion: Companion | None = None
        self._performers: dict[type[Effect], Callable[[Any], None]] = {}  # of its own effects

    # --- process ------------------------------------------------------------------------

    @property
    def directory_id(self) -> UUID:
        """Another one after the disk was wiped."""
        return directory_of(self.node_id, self.disk.generation)

    @property
    def is_up(self) -> bool:
        return self.core is not None

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    @property
    def now_ms(self) -> int:
        return self.clock.local_ms(self._world.now_us)

    @property
    def waited_us(self) -> int:
        """How long the oldest request has waited for its reply; 0 if none waits."""
        since_us = min((asked.since_us for asked in self._turn.unanswered), default=None)
        return 0 if since_us is None else self._world.now_us - since_us

    def start(self) -> None:
        """Recover the disk and run a new process on it."""
        assert self.core is None, self.node_id
        self.incarnation += 1
        self.stopped = ""
        self._storage_failed = False
        self.disk.attach(self.hear)
        try:
            self.core = self._start_core(self)
        except ANY_ERROR as error:
            self._blame_core(error)
        self._watched = _Watched(self.core, self, self._watch)
        self._take_turn()

    def crash(self, *, power_loss: bool) -> None:
        """End the process as it stands; what the disk keeps is the disk's business."""
        assert self.core is not None, self.node_id
        self.core = self._watched = None
        self._is_paused = False
        self._has_turn = False
        self._tick_generation += 1
        self._tick_at_us = None
        self._due_ms = None
        self._sent.clear()
        asked = list(self._turn.unanswered)
        self._turn = Turn()
        if self._companion is not None:
            self._companion.die(silently=power_loss)
            self._companion = None
        self.disk.crash(power_loss=power_loss)
        if not power_loss:  # the system closes the connections of a process that died
            for waiting in asked:
                self._refuse(waiting.message)

    def pause(self) -> None:
        """Stop the process for a while, as a long garbage collection or SIGSTOP does."""
        if not self._is_paused:
            self._is_paused = True
            if self._companion is not None:
                self._companion.pause()

    def resume(self) -> None:
        """Go on. What came in meanwhile waited in the sockets: a few turns take it all."""
        if not self._is_paused:
            return
        self._is_paused = False
        self.resumed_us = self._world.now_us
        self._begin_turn()
        self._schedule_tick()
        if self._companion is not None:
            self._companion.resume()

    def command(self, action: Callable[[int], None]) -> None:
        """Do something to the running core at once, as its operator or application would."""
        if self.core is None or self._is_paused:
            return
        self._turn.add(action)
        self._take_turn()

    # --- network ------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """A message for this node got through."""
        if message.is_request:
            self._deliver_request(message)
        elif message.correlation in self._sent:
            token = self._sent.pop(message.correlation)
            if isinstance(message.body, _Refused):
                self._counts.fired("disconnected")
                self.hear(RequestFailed(token=token, failure=Failure.DISCONNECTED))
            else:
                self.hear(Response(token=token, body=message.body))

    def _deliver_request(self, message: Message) -> None:
        if self.core is None:
            self._refuse(message)
            return
        self._next_token += 1
        request = Request(
            token=self._next_token,
            body=message.body,
            listener=self._listener,
            lacking=lacking_in(message.body, message.version),
        )
        self._turn.add_request(request, _Asked(message=message, since_us=self._world.now_us))
        self._begin_turn()

    def _refuse(self, message: Message) -> None:
        self._respond(message, _Refused())

    def _respond(self, message: Message, body: object) -> None:
        self._network.send(
            Message(
                source=self.node_id,
                target=message.source,
                channel=message.channel,
                correlation=message.correlation,
                is_request=False,
                body=body,
            )
        )

    def _send(self, effect: Send) -> None:
        correlation = self._world.sequence()
        target = _node_at(effect.to)
        try:
            body, version = request_as_heard(effect.body, self._speech, (self.node_id, target))
        except CannotExpress:  # the turn that asks goes on, and what follows is its next round
            self._turn.add(RequestFailed(token=effect.token, failure=Failure.UNSUPPORTED_VERSION))
            return
        self._sent[correlation] = effect.token
        self._network.send(
            Message(
                source=self.node_id,
                target=target,
                channel=effect.channel,
                correlation=correlation,
                is_request=True,
                body=body,
                version=version,
            )
        )

        def give_up() -> None:
            token = self._sent.pop(correlation, None)
            if token is not None:
                self._counts.fired("timed_out")
                self.hear(RequestFailed(token=token, failure=Failure.TIMED_OUT))

        self._world.after(effect.timeout_ms * 1000, give_up)

    def _reply(self, effect: Reply) -> None:
        try:
            asked = self._turn.answered(effect.token)
        except ANY_ERROR as error:
            self._blame_core(error)
        if effect.body is None:
            return
        self._watch.replying(self, effect.token, asked.message.body, effect.body)
        between = (self.node_id, asked.message.source)
        heard = answer_as_heard(effect.body, asked.message.version, self._speech, between)
        self._respond(asked.message, heard)

    def _hang_up(self, effect: HangUp) -> None:
        self._refuse(self._turn.answered(effect.token).message)

    # --- what else the node has -----------------------------------------------------------

    def accompany(self, companion: Companion) -> None:
        """Pause `companion` with this process from now on, and end it with it."""
        self._companion = companion

    def perform_with(self, kind: type[Effect], perform: Callable[[Any], None]) -> None:
        """Have effects of this type carried out by `perform`."""
        self._performers[kind] = perform

    # --- turns --------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """Give the core `event` in its next turn."""
        if self.core is not None:
            self._turn.add(event)
            self._begin_turn()

    def _begin_turn(self) -> None:
        """Take a turn, at once or soon: what comes in until then is of the same turn."""
        if self._has_turn or self._is_paused:
            return
        wait_us = self._pace.wait_us()
        if wait_us == 0:
            self._take_turn()
            return
        self._has_turn = True
        incarnation = self.incarnation

        def due() -> None:
            if incarnation == self.incarnation and self.core is not None:
                self._has_turn = False
                if not self._is_paused:
                    self._take_turn()

        self._world.after(wait_us, due)

    def _take_turn(self) -> None:
        """Take a turn, and another as long as something waits."""
        watched = self._watched
        assert watched is not None, self.node_id
        control_max = self._pace.control_max()
        while True:
            try:
                effects = self._turn.take(watched, self.now_ms, control_max=control_max)
            except ANY_ERROR as error:
                self._blame_core(error)
            if not self._carry_out(effects) or self._watched is not watched:
                return
            if not (self._turn.inbox.control or self._turn.inbox.clients):
                break
        self._schedule_tick()

    def _carry_out(self, effects: list[Effect]) -> bool:
        """Returns whether the process goes on."""
        stop: Stop | None = None
        for effect in effects:
            if isinstance(effect, Stop):
                stop = stop or effect
                continue
            self._watch.performing(self, effect)
            if not isinstance(effect, Trace):
                self._performers.get(type(effect), self.disk.perform)(effect)
        told = self._turn.leaving(self.disk.take_failures())
        for effect in told:
            self._watch.performing(self, effect)
            self._tell(effect)
        for event in self.disk.begin_syncs():
            self._turn.add(event)
        self._watch.settled(self, [*effects, *told])
        if stop is not None:
            self._stop(stop)
        return stop is None

    def _tell(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case Reply():
                self._reply(effect)
            case HangUp():
                self._hang_up(effect)
            case _:
                self._performers[type(effect)](effect)

    def received(self, event: Event) -> None:
        """The core is about to be given this."""
        self._storage_failed |= isinstance(event, StorageFailed)
        self._watch.received(self, event)

    def _blame_core(self, error: BaseException) -> NoReturn:
        """What a core raises ends the run: a core never raises for what a peer sent."""
        if isinstance(error, _JUDGEMENTS):
            raise error
        detail = f"node {self.node_id}: {type(error).__name__}: {described(error)}"
        raise Crash("raised", detail) from error

    def _stop(self, stop: Stop) -> None:
        self._watch.performing(self, stop)
        if stop.exit_code != 0 and not self._storage_failed and self.must_not_stop:
            raise Crash("stopped", f"node {self.node_id}: {stop.reason}")
        self.stopped = stop.reason
        if stop.exit_code == 0:
            self.disk.close()
        if self._companion is not None and stop.exit_code == 0:
            self._companion.close()
        self.crash(power_loss=False)
        self.on_stop(self)

    # --- time ---------------------------------------------------------------------------

    def _schedule_tick(self) -> None:
        """Have one timer that is not later than the deadline; an early one looks again."""
        if self.core is None or self._is_paused:
            return
        try:
            deadline_ms = self._due_ms = self.core.deadline_ms()
        except ANY_ERROR as error:
            self._blame_core(error)
        if deadline_ms is None:
            return
        now_us = self._world.now_us
        late_us = below(self._random, _TICK_LATE_US)
        due_us = max(now_us, self.clock.world_us(deadline_ms)) + late_us
        if self._tick_at_us is not None and self._tick_at_us <= due_us:
            return
        self._tick_at_us = due_us
        self._tick_generation += 1
        generation = self._tick_generation
        self._world.at(due_us, partial(self._timer, generation))

    def _timer(self, generation: int) -> None:
        if generation != self._tick_generation:
            return
        self._tick_at_us = None
        if self.core is None or self._is_paused:
            return
        if self._is_due():
            self._take_turn()
            self._check_progress()
        else:
            self._schedule_tick()

    def _is_due(self) -> bool:
        return self._due_ms is not None and self._due_ms <= self.now_ms

    def _check_progress(self) -> None:
        """A core whose deadline stays in the past would keep a real process busy for nothing."""
        self._ticks_idle = self._ticks_idle + 1 if self._is_due() else 0
        if self._ticks_idle > _IDLE_TICKS_MAX:
            raise Crash("loop", f"node {self.node_id}: the deadline stays in the past")


def _node_at(to: Endpoint) -> int:
    """A bootstrap server has no id: its host names the node."""
    return to.node_id if to.node_id >= 0 else int(to.host.removeprefix("node-"))


class _Watched:
    """A core of which its host sees each event, and who watches it each settlement."""

    __slots__ = ("_core", "_host", "_watch", "deadline_ms", "ends_batch", "take_effects")

    def __init__(self, core: Core, host: Host, watch: Watch) -> None:
        self._core, self._host, self._watch = core, host, watch
        self.take_effects = core.take_effects
        self.ends_batch, self.deadline_ms = core.ends_batch, core.deadline_ms

    def receive(self, event: Event, now_ms: int) -> None:
        self._host.received(event)
        self._core.receive(event, now_ms)

    def settle(self, now_ms: int) -> None:
        self._core.settle(now_ms)
        self._watch.counted(self._host)


@dataclass(frozen=True, slots=True)
class _Refused:
    """In place of a response: the connection broke or was never made."""
