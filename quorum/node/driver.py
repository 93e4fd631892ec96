"""Runs one core for real: sockets, timers and storage on one asyncio loop.

    async with Driver(storage, listeners=..., client_id=...) as driver:  # listens
        stop = await driver.run(make_core(driver.ports))                 # until the core stops

`quorum.core.turn` says what a turn is and what may leave when. Between turns the loop looks at the
sockets, so that a flood of client requests delays a vote by a slice at most.

Time is monotonic, anchored to the wall clock at the start. Each effect is carried out by the
performer of its type; an engine with effects of its own brings performers for them
(`perform_with`). An exception out of a core ends `run`: it is a bug, and a process that went on
after one would answer from a state that nobody has thought of.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self, get_args

from quorum.core.config_effects import CheckConfigs, ConfigsChanged, ConfigsChecked
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
    Trace,
)
from quorum.core.inbox import Action
from quorum.core.storage import Storage, StorageEffect
from quorum.core.turn import LONG_SECONDS, Turn
from quorum.node.driver_counts import ApiCounts, DriverCounts
from quorum.node.listening import Listener, cannot_listen
from quorum.node.throttling import Throttle
from wire.admission import Admission
from wire.api_table import ListenerKind, api_by_key, api_of
from wire.capabilities import lacking
from wire.message import Message
from wire.security.connection_count import ConnectionCount
from wire.security.protocols import ClientSecurity
from wire.serving import Received, ServerLimits
from wire.tcp_client import Address, ClientLimits, ConnectionPool, SendFailure
from wire.tcp_server import Server

__all__ = ["Driver", "describe_trace"]

_ROUNDS_MAX = 8  # in a row: a log that is read from its start is one answer after the other


class _Asker(Protocol):
    """Where a request came from: a server, for its connection, or this process."""

    def reply(self, token: int, body: object) -> None: ...

    def hang_up(self, token: int) -> None: ...


@dataclass(frozen=True, slots=True)
class _Inside:
    """A question from inside this process (`Driver.ask`)."""

    answered: asyncio.Future[object]

    def reply(self, _token: int, body: object) -> None:
        if not self.answered.done():  # the asker may have been cancelled
            self.answered.set_result(body)

    def hang_up(self, token: int) -> None:
        self.reply(token, None)


class _Metered(Message):
    """A request whose use is measured; `use` is what the throttle has to know of it."""

    throttle: Throttle
    use: object
    server: Server


class _Asked(Message):
    """A request that waits for the core's reply."""

    asker: _Asker
    counts: ApiCounts
    at_seconds: float
    metered: _Metered | None = None


def describe_trace(trace: Trace) -> str:
    """One line that grep finds: the event, then key=value."""
    return " ".join([trace.event, *(f"{name}={value}" for name, value in trace.fields)])


def _ignore(trace: Trace) -> None:
    """The default: traces are lost."""


class Driver:
    def __init__(
        self,
        storage: Storage,
        *,
        listeners: Sequence[Listener],
        client_id: str,
        trace: Callable[[Trace], None] = _ignore,
        server_limits: ServerLimits | None = None,
        client_limits: ClientLimits | None = None,
        dial_overrides: Mapping[Address, Address] | None = None,
        security_of: Callable[[str], ClientSecurity] = lambda _channel: ClientSecurity(),
        prioritises: bool = True,
    ) -> None:
        """`prioritises`: the control plane before clients."""
        self.ports: dict[str, int] = {}  # by name of the listener, once it listens
        self.broker_epoch = -1  # left in the mark of an orderly stop (KIP-966)
        self._turn: Turn[_Asked] = Turn(prioritises=prioritises)
        self.counts = DriverCounts(storage.syncs, self._turn.inbox)
        self._storage = storage
        self._listeners = listeners
        self._servers: dict[str, Server] = {}  # by name of the listener
        self._counted: dict[ListenerKind, ConnectionCount] = defaultdict(ConnectionCount)
        self._trace = trace
        self._server_limits = server_limits
        self._pool = ConnectionPool(
            client_id=client_id,
            security_of=security_of,
            limits=client_limits,
            dial_overrides=dial_overrides,
            traffic=self.counts.traffic,
        )
        self._tokens = count(1)
        self._core: Core | None = None
        self._ended: asyncio.Future[None] | None = None  # `run` waits for it
        self._has_turn = False  # one is on its way
        self._due_ms: int | None = None  # the core's deadline after its last turn
        self._stop: Stop | None = None
        self._throttle: Throttle | None = None
        self._measures = False  # the throttle had limits when a request last came
        self._answer_seconds = 0.0  # the share that each answer has of its turn
        self._storage_calls = True  # it may have something new
        self._timers: list[tuple[int, asyncio.TimerHandle]] = []  # by deadline, the earliest last
        self.turn_began_ns = time.monotonic_ns()  # when the core was last given events
        self._wall_offset_ns = time.time_ns() - self.turn_began_ns
        self._exit = AsyncExitStack()
        self._performers: dict[type[Effect], Callable[[Any], None]] = {
            **dict.fromkeys(get_args(StorageEffect), storage.perform),
            Send: self._send,
            Reply: self._reply,
            HangUp: self._hang_up,
            Stop: self._stop_with,
            Trace: trace,
            ConfigsChanged: lambda _: None,
            CheckConfigs: lambda check: self.hear(ConfigsChecked(token=check.token, problem=None)),
        }

    def now_ms(self) -> int:
        """The time as the core is told it."""
        return (time.monotonic_ns() + self._wall_offset_ns) // 1_000_000

    def perform_with(self, kind: type[Effect], perform: Callable[[Any], None]) -> None:
        """Have effects of this type carried out by `perform`."""
        self._performers[kind] = perform

    def throttle_with(self, throttle: Throttle) -> None:
        """Have clients wait as `throttle` says."""
        self._throttle = throttle

    def hear(self, event: Event) -> None:
        """Give the core `event` in its next turn."""
        self._turn.add(event)
        self._wake()

    def call(self, action: Action) -> None:
        """Do something to the core in its next turn, and carry out what it leads to."""
        self._turn.add(action)
        self._wake()

    async def ask(self, body: object) -> object:
        """Ask the core as a client would, from inside the process; None if it gives no answer.

        `body` need have no form on the wire.
        """
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        token = next(self._tokens)
        counts = self.counts.of(type(body).__name__)
        asked = _Asked(asker=_Inside(answered), counts=counts, at_seconds=time.perf_counter())
        self._turn.add_request(Request(token=token, body=body), asked)
        self._wake()
        return await answered

    def secure(self, listener: Listener) -> None:
        """Secure and limit new connections of a listener so; those of before live on."""
        server = self._servers[listener.name]
        server.security = listener.security
        server.limits = listener.limits or server.limits

    def stop(self, reason: str, exit_code: int = 0) -> None:
        """End `run` without asking the core."""
        self._stop = self._stop or Stop(reason=reason, exit_code=exit_code)
        self._wake()

    # --- life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Listen. Requests wait until `run` has a core for them. A failure closes the storage."""
        try:
            await self._exit.enter_async_context(self._pool)
            for listener in self._listeners:
                await self._listen(listener)
        except BaseException:
            await self._close(broker_epoch=None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send the answers that are ready, close the connections, then the storage.

        An orderly stop leaves its mark; anything else does not.
        """
        is_orderly = error is None and self._stop is not None and self._stop.exit_code == 0
        await self._close(broker_epoch=self.broker_epoch if is_orderly else None)

    async def _close(self, *, broker_epoch: int | None) -> None:
        for _, timer in self._timers:
            timer.cancel()
        try:
            await self._exit.aclose()  # without the error, which a task group would wrap
        finally:
            await asyncio.to_thread(self._storage.close, broker_epoch=broker_epoch)

    async def run(self, core: Core) -> Stop:
        """Drive `core` until it stops, or `stop` is called."""
        loop = asyncio.get_running_loop()
        is_woken = False

        def take_events() -> None:
            nonlocal is_woken
            is_woken = False  # before the events are taken: what comes later wakes again
            self._storage_calls = True
            self._wake()

        def wake() -> None:
            nonlocal is_woken
            if not is_woken:
                is_woken = True
                loop.call_soon_threadsafe(take_events)

        self._storage.wake_with(wake)
        self._core = core
        self._due_ms = core.deadline_ms()
        self._ended = loop.create_future()
        self._wake()
        try:
            await self._ended
        finally:
            self._core = None
        assert self._stop is not None, "only a Stop, or an error, ends it"
        return self._stop

    def _wake(self) -> None:
        """Have a turn taken once the sockets have been looked at."""
        if self._core is not None and not self._has_turn:
            self._has_turn = True
            asyncio.get_running_loop().call_soon(self._take_turn, self._core)

    def _take_turn(self, core: Core) -> None:
        self._has_turn = False
        if self._core is None or self._ended is None or self._ended.done():
            return
        try:
            if self._stop is None:
                self._take_rounds(core)
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._ended.set_exception(error)
            return
        if self._stop is not None:
            self._ended.set_result(None)
        elif self._turn.inbox.control or self._turn.inbox.clients:
            # After what has come in meanwhile is read: no time-out strikes while its answer lies
            # in a socket. What is called soon runs before the readers that the loop finds next.
            asyncio.get_running_loop().call_soon(self._wake)
        elif self._due_ms is not None:
            self._set_timer(self._due_ms)

    async def _listen(self, listener: Listener) -> None:
        server = Server(
            listener=listener.name,
            kind=listener.kind,
            receive=self._receive,
            tokens=self._tokens,
            security=listener.security,
            limits=listener.limits or self._server_limits,
            traffic=self.counts.traffic,
            gathers=True,
            admit=partial(self._admit, listener.name),
            counted=self._counted[listener.kind],
        )
        self._servers[listener.name] = server
        try:
            self.ports[listener.name] = await server.start(listener.host, listener.port)
        except OSError as error:
            address = f"{listener.host}:{listener.port} ({listener.name})"
            raise cannot_listen(address, listener.port, "listeners", error) from error
        self._exit.push_async_callback(server.stop)

    def _set_timer(self, deadline_ms: int) -> None:
        """Wake up at the deadline. A later timer stays: it will be needed again."""
        timers = self._timers
        if timers and timers[-1][0] <= deadline_ms:
            return
        at_seconds = (deadline_ms * 1_000_000 - self._wall_offset_ns) / 1e9
        timer = asyncio.get_running_loop().call_at(at_seconds, self._time_is_up, deadline_ms)
        timers.append((deadline_ms, timer))

    def _time_is_up(self, deadline_ms: int) -> None:
        """A timer has gone off; what it was set for may be over, or later by now."""
        while self._timers and self._timers[-1][0] <= deadline_ms:
            self._timers.pop()
        if self._due_ms is not None and self._due_ms <= self.now_ms():
            self._wake()
        elif self._due_ms is not None:
            self._set_timer(self._due_ms)

    # --- turns ------------------------------------------------------------------------------

    def _take_rounds(self, core: Core) -> None:
        """One turn, and more of them at once, for the disk's answers, as long as it has some.

        Clients come into the first only: then it is time to look at the sockets, as it is once some
        milliseconds have passed.
        """
        began = time.perf_counter()
        self.turn_began_ns = time.monotonic_ns()
        now_ms = (self.turn_began_ns + self._wall_offset_ns) // 1_000_000
        if self._storage_calls:
            self._storage_calls = False
            for event in self._storage.take_events():
                self._turn.add(event)
        clients_max = self._turn.clients_max
        for _ in range(_ROUNDS_MAX):
            if not self._round(core, now_ms, clients_max) or self._stop is not None:
                break
            clients_max = 0
            if time.perf_counter() - began > LONG_SECONDS:
                break  # others may have been waiting to be heard
        self._due_ms = core.deadline_ms()
        self.counts.turns += 1
        self.counts.busy_seconds += time.perf_counter() - began

    def _round(self, core: Core, now_ms: int, clients_max: int) -> bool:
        """Take one turn: write, then send, then sync. Returns whether the disk has answered.

        No message waits for the sync of its own turn, for the core holds back what must: a leader's
        followers write while it syncs.
        """
        turn, storage, performers = self._turn, self._storage, self._performers
        began = time.perf_counter()
        effects = turn.take(core, now_ms, clients_max=clients_max)
        seconds = time.perf_counter() - began
        if clients_max or seconds > LONG_SECONDS:
            turn.lasted(seconds)
        for effect in effects:
            performers[type(effect)](effect)
        answers = storage.take_answers() if effects else []
        if self._measures:
            answered = sum(type(effect) is Reply for effect in turn.unsent)
            self._answer_seconds = seconds / max(answered, 1)
        if turn.unsent or answers:
            for effect in turn.leaving(answers):
                performers[type(effect)](effect)
            for server in self._servers.values():
                if server.unwritten:
                    server.flush()
        synced = storage.take_events() if effects else []
        for event in synced:
            turn.add(event)
        return bool(answers or synced)

    # --- in and out -------------------------------------------------------------------------

    def _receive(self, received: Received) -> None:
        asked, server = received.request, self._servers[received.listener]
        row = api_by_key(asked.api_key)
        request = Request(
            token=received.token,
            body=asked.body,
            listener=received.listener,
            client_id=asked.client_id,
            client_host=received.client_host,
            principal=received.principal,
            lacking=lacking(type(asked.body), asked.api_version),
            frame=asked.frame,
            forwarder=received.forwarder,
        )
        metered = None
        throttle = self._throttle
        self._measures = throttle is not None and throttle.has_limits
        if throttle is not None and self._measures:
            request, use = throttle.received(request)
            if use is not None:
                metered = _Metered(throttle=throttle, use=use, server=server)
        counts = self.counts.of("unknown" if row is None else row.name)
        counts.received += 1
        asked_by = _Asked(
            asker=server, counts=counts, at_seconds=time.perf_counter(), metered=metered
        )
        self._turn.add_request(request, asked_by)
        self._wake()

    def _stop_with(self, stop: Stop) -> None:
        self._stop = self._stop or stop

    def _send(self, send: Send) -> None:
        def done(outcome: object) -> None:
            event: Event
            if isinstance(outcome, SendFailure):
                event = RequestFailed(token=send.token, failure=Failure[outcome.name])
            else:
                event = Response(token=send.token, body=outcome)
            self._turn.add(event)
            self._wake()

        to = send.to
        self.counts.asked(api_of(type(send.body)).name)
        self._pool.send(
            to.host, to.port, send.channel, send.body, timeout_ms=send.timeout_ms, done=done
        )

    def _reply(self, reply: Reply) -> None:
        asked = self._turn.answered(reply.token)
        if asked.metered is None:
            asked.asker.reply(reply.token, reply.body)
        else:
            self._reply_metered(reply, asked.metered)
        asked.counts.took(time.perf_counter() - asked.at_seconds)

    def _reply_metered(self, reply: Reply, metered: _Metered) -> None:
        throttle, server, now_ms = metered.throttle, metered.server, self.now_ms()
        body, mute_ms = throttle.leaving(
            metered.use, reply.body, seconds=self._answer_seconds, now_ms=now_ms
        )
        began = time.perf_counter()
        server.mute(reply.token, mute_ms)
        server.reply(reply.token, body)
        throttle.written(metered.use, seconds=time.perf_counter() - began, now_ms=now_ms)

    def _admit(self, listener: str, host: str) -> Admission:
        if self._throttle is None:
            return Admission()
        return self._throttle.connected(listener, host, self.now_ms())

    def _hang_up(self, hang_up: HangUp) -> None:
        self._turn.answered(hang_up.token).asker.hang_up(hang_up.token)
