"""Drives one core on virtual time: the sibling of the asyncio driver `quorum.node.driver`.

A host is one node: a disk that stays, and a process that comes and goes. It runs the core by the
same turns as the driver does (`quorum.core.turn`). So one message becomes one turn, and more of
them:

    1. `deliver` makes an event of a message (`calls.py`), which waits for the next turn;
    2. `_begin_turn` draws how soon that comes, and so how much is in it (`pace.py`);
    3. `_take_turn` gives the core what waits, and has it settle once;
    4. `_write` gives the effects to the disk; then, or a little later, `_finish` has the messages
       leave, and begins syncs;
    5. at the core's deadline (`deadline_timer.py`) there is a turn without a message, unless the
       core has nothing to do (`settles_idly`).

It decides nothing about faults: `crash`, `pause` and the rest are called by the injectors of
`jepsen_like.sim.faults`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

from jepsen_like.sim.disks.shipped_disk import NodeDisk
from jepsen_like.sim.time.deadline_timer import Clock, DeadlineTimer
from jepsen_like.sim.time.ending import ANY_ERROR, described
from jepsen_like.sim.time.pace import TURNS_US, Pace
from jepsen_like.sim.time.virtual_time import EventsSpent, VirtualTime
from jepsen_like.sim.violation import BrokenRule, Crash
from jepsen_like.sim.world.calls import Calls
from jepsen_like.sim.world.codec import Speech
from jepsen_like.sim.world.network import Message, Network
from jepsen_like.sim.world.observer import Companion, Observer, Observers, WatchedCore
from quorum.core.config_effects import CheckConfigs, ConfigsChanged, ConfigsChecked
from quorum.core.effects import Core, Effect, Event, HangUp, Reply, Send, Stop, Trace
from quorum.core.inbox import Inbox
from quorum.core.turn import Turn

__all__ = ["Host", "directory_of"]

_JUDGEMENTS = (BrokenRule, EventsSpent)  # by the simulator, while a core is called


def directory_of(node_id: int, generation: int = 0) -> UUID:
    """The id of a node's disk; `generation` counts how often it was wiped."""
    return UUID(int=node_id << 64 | generation << 16 | 0xD15C)


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
        speech: Speech | None,
        watch: Observer | Observers,
        start_core: "Callable[[Host], Core]",
        listener: str = "CONTROLLER",
        turns_us: tuple[int, ...] = TURNS_US,
        prioritises: bool = True,
    ) -> None:
        """`prioritises`: its turns take the control plane before clients."""
        self.node_id = node_id
        self.disk = disk
        self.clock = clock
        self.core: Core | None = None
        self._watched: WatchedCore | None = None  # the same core
        self.incarnation = 0
        self.resumed_us = 0  # when it last came out of a pause
        self.turn_ms = 0  # when the core was last given something, on the clock of the node
        self.stopped = ""  # why the process ended by itself; empty if it did not
        self.must_not_stop = True  # a stop by an error is a bug, unless the disk has failed
        self.on_stop: Callable[[Host], None] = lambda _host: None
        # Settle a core that is cheap to ask; True if nothing came of it and no turn is needed.
        self.settles_idly: Callable[[int], bool] = lambda _now_ms: False
        self._world = world
        self._watch = watch
        self._start_core = start_core
        self._calls = Calls(
            node_id=node_id,
            world=world,
            network=network,
            speech=speech,
            listener=listener,
        )
        self._timer = DeadlineTimer(node_id, world, self._timer_rings)
        self._prioritises = prioritises
        self._turn: Turn[_Asked] = Turn(prioritises=prioritises)
        self._pace = Pace(world, node_id, turns_us)
        self._has_turn = False  # a turn is scheduled
        self._shares = 0, 0  # of the control plane and of clients, in the turn that is taken
        self._unfinished: list[Effect] | None = None  # of a turn whose messages have not left yet
        self.is_paused = False
        self._companion: Companion | None = None
        self.asked_for: list[Effect] = []  # by the core, in this turn
        self.answers: list[Event] = []  # those of the disk to the writes of this turn
        self._performers: dict[type[Effect], Callable[[Any], None]] = {  # all others: the disk
            Send: self._send,
            Reply: self._reply,
            HangUp: self._hang_up,
            Trace: lambda _trace: None,
            ConfigsChanged: lambda _changed: None,
            CheckConfigs: lambda check: self.hear(ConfigsChecked(token=check.token, problem=None)),
        }

    # --- process ------------------------------------------------------------------------

    @property
    def directory_id(self) -> UUID:
        """Another one after the disk was wiped."""
        return directory_of(self.node_id, self.disk.generation)

    @property
    def is_up(self) -> bool:
        return self.core is not None

    @property
    def now_ms(self) -> int:
        return self.clock.local_ms(self._world.now_us)

    @property
    def waiting(self) -> Inbox:
        """What the core is to be given in its next turns."""
        return self._turn.inbox

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
        self._unfinished = None
        self.disk.attach(self.hear)
        try:
            self.core = self._start_core(self)
        except ANY_ERROR as error:
            self._blame_core(error)
        self._watched = WatchedCore(self.core, self, self._watch)
        self._take_turn()

    def crash(self, *, power_loss: bool) -> None:
        """End the process as it stands; what the disk keeps is the disk's business."""
        assert self.core is not None, self.node_id
        self.core = self._watched = None
        self.is_paused = False
        self._has_turn = False
        self._unfinished = None
        self._timer.stop()
        self._calls.forget()
        asked = list(self._turn.unanswered)
        self._turn = Turn(prioritises=self._prioritises)
        if self._companion is not None:
            self._companion.die(silently=power_loss)
            self._companion = None
        self.disk.crash(power_loss=power_loss)
        if not power_loss:  # the system closes the connections of a process that died
            for waiting in asked:
                self._calls.refuse(waiting.message)

    def pause(self) -> None:
        """Stop the process for a while, as a long garbage collection or SIGSTOP does."""
        if not self.is_paused:
            self.is_paused = True
            if self._companion is not None:
                self._companion.pause()

    def resume(self) -> None:
        """Go on. What came in meanwhile waited in the sockets: a few turns take it all."""
        if not self.is_paused:
            return
        self.is_paused = False
        self.resumed_us = self._world.now_us
        if self._unfinished is not None:
            self._finish_late()
        if self.core is None:
            return
        self._begin_turn()
        self._set_timer()
        if self._companion is not None:
            self._companion.resume()

    def command(self, action: Callable[[int], None]) -> None:
        """Do something to the running core at once, as its operator or application would."""
        if self.core is None or self.is_paused:
            return
        while self._unfinished is not None:  # whoever commands sees at once what comes of it
            self._finish_late()
        if self.core is not None:
            self._turn.add(action)
            self._take_turn()

    # --- what else the node has -----------------------------------------------------------

    def accompany(self, companion: Companion) -> None:
        """Pause `companion` with this process from now on, and end it with it."""
        self._companion = companion

    def perform_with(self, kind: type[Effect], perform: Callable[[Any], None]) -> None:
        """Have effects of this type carried out by `perform`."""
        self._performers[kind] = perform

    # --- turns --------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """A message for this node got through: it is an event of the next turn."""
        if not message.is_request:
            event = self._calls.answer(message)
            if event is not None:
                self.hear(event)
        elif self.core is None:
            self._calls.refuse(message)
        else:
            asked = _Asked(message=message, since_us=self._world.now_us)
            self._turn.add_request(self._calls.request(message), asked)
            self._begin_turn()

    def hear(self, event: Event) -> None:
        """Give the core `event` in its next turn."""
        if self.core is not None:
            self._turn.add(event)
            self._begin_turn()

    def _begin_turn(self) -> None:
        """Take a turn, at once or soon: what comes in until then is of the same turn."""
        if self._has_turn or self.is_paused or self._unfinished is not None:
            return
        wait_us = self._pace.wait_us()
        if wait_us == 0:
            self._take_turn()
        else:
            self._take_turn_in(wait_us)

    def _take_turn_in(self, wait_us: int) -> None:
        self._has_turn = True
        incarnation = self.incarnation

        def due() -> None:
            if incarnation == self.incarnation and self.core is not None:
                self._has_turn = False
                if not self.is_paused and self._unfinished is None:
                    self._take_turn()

        self._world.after(wait_us, due)

    def _take_turn(self) -> None:
        """Take a turn, and another as long as something waits."""
        self._shares = self._pace.control_max(), self._pace.clients_max()
        while True:
            effects = self._take()
            self._write(effects)
            lasts_us = self._pace.lasts_us()
            if lasts_us:
                self._finish_in(lasts_us, effects)
                return
            if not self._finish(effects):
                return

    def _take(self) -> list[Effect]:
        """Give the core its share of what waits; returns what it asks for, but for messages."""
        assert self._watched is not None, self.node_id
        self.asked_for = []
        self.turn_ms = self.now_ms
        control_max, clients_max = self._shares
        try:
            return self._turn.take(
                self._watched, self.turn_ms, control_max=control_max, clients_max=clients_max
            )
        except ANY_ERROR as error:
            self._blame_core(error)

    def _write(self, effects: list[Effect]) -> None:
        for effect in effects:
            if not isinstance(effect, Stop):
                self._perform(effect)
        self.answers = self.disk.take_failures()

    def _finish_in(self, lasts_us: int, effects: list[Effect]) -> None:
        """Have the messages of this turn leave later; what comes in meanwhile waits."""
        self._unfinished = effects

        def due() -> None:
            if self._unfinished is effects and not self.is_paused:
                self._finish_late()

        self._world.after(lasts_us, due)

    def _finish_late(self) -> None:
        effects, self._unfinished = self._unfinished, None
        if effects is not None and self._finish(effects):
            self._take_turn()

    def _finish(self, effects: list[Effect]) -> bool:
        """Have the messages leave, and begin syncs; returns whether another turn follows."""
        incarnation = self.incarnation
        told = self._turn.leaving(self.answers)
        for effect in told:
            self._perform(effect)
        for event in self.disk.begin_syncs():
            self._turn.add(event)
        self._watch.settled(self, [*effects, *told])
        stop = next((each for each in effects if isinstance(each, Stop)), None)
        if stop is not None:
            self._stop(stop)
        if self.core is None or self.incarnation != incarnation or self._unfinished is not None:
            return False
        if self._must_go_on():
            return True
        self._set_timer()
        return False

    def _must_go_on(self) -> bool:
        inbox = self._turn.inbox
        if not (inbox.control or inbox.clients):
            return False
        if self._pace.limits_clients:  # those that wait come after what else comes meanwhile
            self._shares = self._shares[0], 0
            if not inbox.control:
                if not self._has_turn:
                    self._take_turn_in(max(1, self._pace.wait_us()))
                return False
        return True

    def _perform(self, effect: Effect) -> None:
        self._watch.performing(self, effect)
        self._performers.get(type(effect), self.disk.perform)(effect)

    def _send(self, effect: Send) -> None:
        failed = self._calls.send(effect, self.hear)
        if failed is not None:  # this turn goes on, and what follows is its next round
            self._turn.add(failed)

    def _hang_up(self, effect: HangUp) -> None:
        self._calls.refuse(self._turn.answered(effect.token).message)

    def _reply(self, effect: Reply) -> None:
        try:
            asked = self._turn.answered(effect.token).message
        except ANY_ERROR as error:
            self._blame_core(error)
        if effect.body is not None:
            self._watch.replying(self, effect.token, asked.body, effect.body)
            self._calls.reply(asked, effect.body)

    def _set_timer(self) -> None:
        if self.core is None or self.is_paused:
            return
        try:
            deadline_ms = self.core.deadline_ms()
        except ANY_ERROR as error:
            self._blame_core(error)
        self._timer.set(deadline_ms, self.clock)

    def _timer_rings(self) -> None:
        if self.core is None or self.is_paused or self._unfinished is not None:
            return
        now_ms = self.now_ms
        if not self._timer.is_due(now_ms):
            self._set_timer()
            return
        if self._settles_idly(now_ms):
            self._pace.skip_turn()
            self._set_timer()
        else:
            self._take_turn()
        if self._unfinished is None:
            self._timer.check_progress(now_ms)

    def _settles_idly(self, now_ms: int) -> bool:
        """Settle without a turn, if nothing waits. Returns whether that was all there was to do."""
        inbox = self._turn.inbox
        try:
            return not inbox.control and not inbox.clients and self.settles_idly(now_ms)
        except ANY_ERROR as error:
            self._blame_core(error)

    # --- its end ------------------------------------------------------------------------

    def _blame_core(self, error: BaseException) -> NoReturn:
        """What a core raises ends the run: a core never raises for what a peer sent."""
        if isinstance(error, _JUDGEMENTS):
            raise error
        detail = f"node {self.node_id}: {type(error).__name__}: {described(error)}"
        raise Crash("raised", detail) from error

    def _stop(self, stop: Stop) -> None:
        self._watch.performing(self, stop)
        assert self._watched is not None, self.node_id
        if stop.exit_code != 0 and not self._watched.storage_failed and self.must_not_stop:
            raise Crash("stopped", f"node {self.node_id}: {stop.reason}")
        self.stopped = stop.reason
        if stop.exit_code == 0:
            self.disk.close()
        if self._companion is not None and stop.exit_code == 0:
            self._companion.close()
        self.crash(power_loss=False)
        self.on_stop(self)
