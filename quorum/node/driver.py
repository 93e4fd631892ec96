"""Runs one core for real: sockets, timers and storage on one asyncio loop.

    async with Driver(storage, listeners=..., client_id=...) as driver:  # listens
        stop = await driver.run(make_core(driver.ports))                 # until the core stops

The loop takes turns. A turn gives the core what has come in (the control plane first, then a slice
of client requests), ticks it if its deadline has passed, and carries out its effects in order.
Appends of one turn share a sync. Between turns the loop looks at the sockets, so that a flood of
client requests delays a vote by a slice at most.

Time is monotonic, anchored to the wall clock at the start. Decides nothing else: what an effect
means is told in `quorum.core.effects`. An exception out of a core ends `run`: it is a bug, and a
process that goes on after one would answer from a state that nobody has thought of.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Protocol, Self, assert_never

from quorum.core.effects import (
    Append,
    Configure,
    Core,
    DeleteLog,
    Effect,
    Event,
    Failure,
    FindTimestamp,
    OpenLog,
    RaftosRequest,
    Read,
    ReadSnapshot,
    ReceiveSnapshot,
    Reply,
    Request,
    RequestFailed,
    ResetLog,
    Response,
    Retain,
    SaveCheckpoint,
    SaveElection,
    SaveSnapshot,
    Send,
    Stop,
    StorageFailed,
    Trace,
    Trim,
    Truncate,
    ZkEvent,
    ZkRequest,
    ZkResult,
)
from quorum.core.inbox import Action, Inbox
from quorum.core.storage import METADATA_LOG, Storage, StorageEvent
from quorum.node.driver_counts import DriverCounts
from quorum.node.listening import Listener, cannot_listen
from wire.api_table import api_by_key, api_of
from wire.batch import headers
from wire.tcp import (
    Address,
    ClientLimits,
    ConnectionPool,
    Received,
    SendFailure,
    Server,
    ServerLimits,
)
from wire.zk.session import Error, Failed, Result, SessionEvent, ZkClient

__all__ = ["Driver", "describe_trace"]

_CONTROL_MAX = 1000  # events of the control plane in a turn: a turn must end
_CLIENTS_MAX = 64  # requests of clients in a turn
_CLIENTS_SECONDS = 0.002  # and how long they may take: a few syncs' worth
_ROUNDS_MAX = 8  # answers of the disk that are given to the core within the turn
_ROUNDS_SECONDS = 0.01  # a log that is read from its start comes as one answer after the other


class _Asker(Protocol):
    """Whoever has asked: a server for its connection, or this process itself."""

    def reply(self, token: int, body: object) -> None: ...

    def hang_up(self, token: int) -> None: ...


@dataclass(frozen=True, slots=True)
class _Inside:
    answered: asyncio.Future[object]

    def reply(self, _token: int, body: object) -> None:
        if not self.answered.done():  # who asked may have gone
            self.answered.set_result(body)

    def hang_up(self, token: int) -> None:
        self.reply(token, None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that waits for the core's reply."""

    server: _Asker
    api: str
    at_seconds: float


def describe_trace(trace: Trace) -> str:
    """One line that grep finds: the event, then key=value."""
    return " ".join([trace.event, *(f"{name}={value}" for name, value in trace.fields)])


def _ignore(trace: Trace) -> None:
    """Without anybody to tell, a trace is lost."""


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
        prioritises: bool = True,
    ) -> None:
        """`prioritises`: the control plane before clients (see `quorum.core.inbox`)."""
        self.ports: dict[str, int] = {}  # by name of the listener, once it listens
        self.broker_epoch = -1  # left in the mark of an orderly stop (KIP-966)
        self.counts = DriverCounts(storage.syncs)
        self._storage = storage
        self._listeners = listeners
        self._trace = trace
        self._server_limits = server_limits
        self._pool = ConnectionPool(
            client_id=client_id,
            limits=client_limits,
            dial_overrides=dial_overrides,
            traffic=self.counts.traffic,
        )
        self._tokens = count(1)
        self._asked: dict[int, _Asked] = {}
        self._inbox = Inbox(prioritises=prioritises)
        self._core: Core | None = None
        self._ended: asyncio.Future[None] | None = None  # the end of `run`
        self._has_turn = False  # one is on its way
        self._due_ms: int | None = None  # the deadline of the core after its last turn
        self._stop: Stop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0  # when it goes off
        self.turn_began_ns = time.monotonic_ns()  # when the core was last given events
        self._wall_offset_ns = time.time_ns() - self.turn_began_ns
        self._exit = AsyncExitStack()
        self._zk: ZkClient | None = None
        self.ask_raftos: Callable[[RaftosRequest], None] | None = None  # where that is the engine

    def now_ms(self) -> int:
        """The time that the core is told."""
        return (time.monotonic_ns() + self._wall_offset_ns) // 1_000_000

    def use_zookeeper(self, client: ZkClient) -> None:
        """Ask `client` what the core asks of ZooKeeper. Its events go to `zk_event`."""
        self._zk = client

    def zk_event(self, event: SessionEvent) -> None:
        self._hear(ZkEvent(event=event))

    def call(self, action: Action) -> None:
        """Do something to the core in its turn, and carry out what it leads to."""
        self._inbox.add(action)
        self._wake()

    async def ask(self, body: object) -> object:
        """Ask the core as a client would, from inside the process: `body` need have no form on the
        wire. None where the core gives no answer.
        """
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        token = next(self._tokens)
        self._asked[token] = _Asked(_Inside(answered), type(body).__name__, time.perf_counter())
        self._inbox.add(Request(token=token, body=body))
        self._wake()
        return await answered

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
        """Answer what is answered, close the connections, then the storage.

        An orderly stop leaves its mark; anything else does not.
        """
        is_orderly = error is None and self._stop is not None and self._stop.exit_code == 0
        await self._close(broker_epoch=self.broker_epoch if is_orderly else None)

    async def _close(self, *, broker_epoch: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._exit.aclose()  # without the error, which a task group would wrap
        finally:
            await asyncio.to_thread(self._storage.close, broker_epoch=broker_epoch)

    async def run(self, core: Core) -> Stop:
        """Drive `core` until it stops, or `stop` is called."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(self._wake)

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
        """There is something to do: a turn comes after the sockets have had theirs."""
        if self._core is not None and not self._has_turn:
            self._has_turn = True
            asyncio.get_running_loop().call_soon(self._take_turn, self._core)

    def _take_turn(self, core: Core) -> None:
        self._has_turn = False
        if self._core is None or self._ended is None or self._ended.done():
            return
        try:
            if self._stop is None:
                self._turn(core)
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._ended.set_exception(error)
            return
        if self._stop is not None:
            self._ended.set_result(None)
        elif self._inbox:
            self._wake()
        else:
            self._set_timer(self._due_ms)

    async def _listen(self, listener: Listener) -> None:
        def receive(received: Received) -> None:
            self._receive(server, received)

        server = Server(
            listener=listener.name,
            kind=listener.kind,
            receive=receive,
            tokens=self._tokens,
            limits=self._server_limits,
            traffic=self.counts.traffic,
        )
        try:
            self.ports[listener.name] = await server.start(listener.host, listener.port)
        except OSError as error:
            address = f"{listener.host}:{listener.port} ({listener.name})"
            raise cannot_listen(address, listener.port, "listeners", error) from error
        self._exit.push_async_callback(server.stop)

    def _set_timer(self, deadline_ms: int | None) -> None:
        """Wake up at the deadline. A timer that goes off too early does no harm, and stays."""
        if deadline_ms is None or (self._timer is not None and self._timer_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        at_seconds = (deadline_ms * 1_000_000 - self._wall_offset_ns) / 1e9
        self._timer_ms = deadline_ms
        self._timer = asyncio.get_running_loop().call_at(at_seconds, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self._wake()

    # --- turns ------------------------------------------------------------------------------

    def _turn(self, core: Core) -> None:
        started = time.perf_counter()
        self.turn_began_ns = time.monotonic_ns()
        now_ms = self.now_ms()
        self._gather()
        for _ in range(_CONTROL_MAX):
            event = self._inbox.next_control()
            if event is None:
                break
            self._give(core, event, now_ms)
        clients_until = time.perf_counter() + _CLIENTS_SECONDS
        for _ in range(_CLIENTS_MAX):
            request = self._inbox.next_client()
            if request is None:
                break
            core.receive(request, now_ms)
            if time.perf_counter() > clients_until:
                break
        if self._due_ms is not None and self._due_ms <= now_ms:
            core.tick(now_ms)
        self._carry_out(core, now_ms)
        self._due_ms = core.deadline_ms()
        self._count_turn(time.perf_counter() - started)

    def _carry_out(self, core: Core, now_ms: int) -> None:
        """Effects in their order; what the disk answers at once, the core gets at once."""
        until = time.perf_counter() + _ROUNDS_SECONDS
        for _ in range(_ROUNDS_MAX):
            events = self._obey(core.take_effects())
            if self._stop is not None or not events:
                return
            for event in events:
                core.receive(event, now_ms)
            if time.perf_counter() > until:
                break
        for event in self._obey(core.take_effects()):
            self._inbox.add(event)
        self._wake()  # more may have come of it

    def _obey(self, effects: list[Effect]) -> list[StorageEvent]:
        """What is told to others leaves last: a write that fails at once must not be confirmed to
        a client, nor claimed in a fetch. Nothing of this turn leaves then.
        """
        told: list[Reply | Send | ZkRequest] = []
        for effect in effects:
            if isinstance(effect, Reply | Send | ZkRequest):
                told.append(effect)
            else:
                self._perform(effect)
        self._storage.begin_syncs()
        events = self._storage.take_events()
        has_failed = any(isinstance(event, StorageFailed) for event in events)
        for each in told:
            if has_failed:
                self._withhold(each)
            else:
                self._perform(each)
        return events

    def _withhold(self, told: Reply | Send | ZkRequest) -> None:
        """Whoever waits for it must not wait for ever: the core may go on without that disk."""
        match told:
            case Reply():
                self._asked.pop(told.token).server.hang_up(told.token)
            case Send():
                self._hear(RequestFailed(token=told.token, failure=Failure.DISCONNECTED))
            case ZkRequest():
                lost = Failed(error=Error.CONNECTION_LOSS)
                self._hear(ZkResult(token=told.token, result=lost))

    def _gather(self) -> None:
        for event in self._storage.take_events():
            self._inbox.add(event)

    def _give(self, core: Core, event: Event | Action, now_ms: int) -> None:
        if callable(event):
            event(now_ms)
        else:
            core.receive(event, now_ms)

    def _count_turn(self, seconds: float) -> None:
        counts, inbox = self.counts, self._inbox
        counts.turns += 1
        counts.busy_seconds += seconds
        counts.control_longest = inbox.control_longest
        counts.clients_longest = inbox.clients_longest
        counts.control_length = inbox.control_length
        counts.clients_length = inbox.clients_length

    def _count_records(self, batches: bytes) -> None:
        counts = sum(header.record_count for _, header in headers(batches))
        self.counts.metadata_records += counts

    # --- in and out -------------------------------------------------------------------------

    def _receive(self, server: Server, received: Received) -> None:
        asked = received.request
        row = api_by_key(asked.api_key)
        api = "unknown" if row is None else row.name
        request = Request(
            token=received.token,
            body=asked.body,
            listener=received.listener,
            client_id=asked.client_id,
            client_host=received.client_host,
            api_version=asked.api_version,
            frame=asked.frame,
            forwarded=received.forwarded,
        )
        self._asked[received.token] = _Asked(server, api, time.perf_counter())
        self.counts.received(api)
        self._inbox.add_request(request, asked.api_key)
        self._wake()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case Reply():
                self._reply(effect)
            case (
                Append()
                | Truncate()
                | SaveElection()
                | Read()
                | FindTimestamp()
                | SaveSnapshot()
                | ReceiveSnapshot()
                | ReadSnapshot()
                | ResetLog()
                | Trim()
                | Retain()
                | OpenLog()
                | Configure()
                | DeleteLog()
                | SaveCheckpoint()
            ):
                if isinstance(effect, Append) and effect.log == METADATA_LOG:
                    self._count_records(effect.records)
                self._storage.perform(effect)
            case ZkRequest():
                self._ask_zookeeper(effect)
            case RaftosRequest():
                assert self.ask_raftos is not None, "a core asks for raftos, and there is none"
                self.ask_raftos(effect)
            case Stop():
                self._stop = self._stop or effect
            case Trace():
                self._trace(effect)
            case _:
                assert_never(effect)

    def _send(self, send: Send) -> None:
        def done(outcome: object) -> None:
            event: Event
            if isinstance(outcome, SendFailure):
                event = RequestFailed(token=send.token, failure=Failure[outcome.name])
            else:
                event = Response(token=send.token, body=outcome)
            self._hear(event)

        to = send.to
        self.counts.asked(api_of(type(send.body)).name)
        self._pool.send(
            to.host, to.port, send.channel, send.body, timeout_ms=send.timeout_ms, done=done
        )

    def _ask_zookeeper(self, request: ZkRequest) -> None:
        def done(result: Result) -> None:
            self._hear(ZkResult(token=request.token, result=result))

        assert self._zk is not None, "a core asks for ZooKeeper, and there is none"
        self._zk.ask(request.operation, session_id=request.session_id, done=done)

    def _hear(self, event: Event) -> None:
        self._inbox.add(event)
        self._wake()

    def _reply(self, reply: Reply) -> None:
        asked = self._asked.pop(reply.token, None)
        assert asked is not None, f"request {reply.token} has been answered, or never came"
        asked.server.reply(reply.token, reply.body)
        self.counts.answered(asked.api, time.perf_counter() - asked.at_seconds)
