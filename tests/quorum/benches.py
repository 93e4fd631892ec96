"""Two nodes that can ask each other, run by the asyncio driver or by the simulator's host.

    async with OnSockets(tmp_path) as bench:  # or Simulated(tmp_path)
        bench.feed(event, Ask(body))          # all of it has come in before the next turn of node 1
        await bench.until(lambda: ...)

The nodes are scripted cores, unless `cores` brings others. Both benches keep the contract of
`quorum.core.effects` and `quorum.core.turn`, which `test_turn_contract.py` tests.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from errno import ENOSPC
from pathlib import Path
from typing import Any, Protocol, Self, cast

from jepsen_like.sim.disks.disk import Disk as SimulatedDisk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.time.deadline_timer import Clock
from jepsen_like.sim.time.pace import Pace
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Crash
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import LinkFaults, Message, Network
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Core, Effect, Event, Reply, Request
from quorum.core.inbox import Action
from quorum.core.storage import METADATA_LOG
from quorum.core.turn import CLIENTS_MAX, CONTROL_MAX
from quorum.core.types import Endpoint
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage
from quorum.node.driver import Driver
from quorum.node.listening import Listener
from tests.quorum.log_files import FailingSystem
from wire.api_table import ListenerKind, api_versions_response
from wire.messages.features import ApiVersionsRequest, ApiVersionsResponse
from wire.primitives import METADATA_TOPIC_ID
from wire.tcp_client import ClientLimits

__all__ = ["BENCHES", "SETTLED", "Ask", "Bench", "OnSockets", "Scripted", "Simulated"]

SETTLED = "settled"
_PATIENT = ClientLimits(connect_seconds=9.0)  # the first use of an API loads its module


@dataclass
class Scripted:
    """A core that follows a script, and notes its events and the effects carried out for it."""

    notes: list[object] = field(default_factory=list)  # never `SETTLED` twice in a row
    script: Callable[[Event], Iterable[Effect]] = lambda event: ()
    is_decisive: Callable[[Event], bool] = lambda event: False
    due_ms: int | None = None
    late_ms: list[int] = field(default_factory=list)  # how long after its deadline it was settled
    changed: Callable[[], None] = lambda: None
    effects: list[Effect] = field(default_factory=list)

    def receive(self, event: Event, now_ms: int) -> None:
        if isinstance(event, Request) and isinstance(event.body, ApiVersionsRequest):
            body = api_versions_response(ListenerKind.CONTROLLER)
            self.effects.append(Reply(token=event.token, body=body))
            return
        self.note(event)
        self.effects += self.script(event)

    def ends_batch(self, event: Event) -> bool:
        return self.is_decisive(event)

    def settle(self, now_ms: int) -> None:
        if self.due_ms is not None and self.due_ms <= now_ms:
            self.late_ms.append(now_ms - self.due_ms)
            self.due_ms = None
        if not self.notes or self.notes[-1] != SETTLED:
            self.note(SETTLED)
        self.changed()

    def deadline_ms(self) -> int | None:
        return self.due_ms

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    def performing(self, effect: Effect) -> None:
        is_handshake = isinstance(effect, Reply) and isinstance(effect.body, ApiVersionsResponse)
        if not is_handshake:
            self.note(effect)

    def note(self, what: object) -> None:
        self.notes.append(what)
        self.changed()

    def heard(self, *kinds: type) -> list[Any]:
        return [each for each in self.notes if isinstance(each, kinds or Event)]


@dataclass(frozen=True)
class Ask:
    """A request from inside the process, where there is one: its answer is in `Bench.answers`."""

    body: object


Make = Callable[[Any, Any, int], Core]  # of (LogState, ElectionState, now_ms)


class Bench(Protocol):
    """Nodes 1 and 2; `feed` and `answers` are of node 1."""

    scripts: dict[int, Scripted]
    answers: list[tuple[int, object]]  # number of the Ask, and its answer: None for a hang-up
    ended: dict[int, str]  # by node whose run has ended: the reason of its Stop, or the error

    def at(self, node: int) -> Endpoint: ...

    def now_ms(self) -> int: ...

    def feed(self, *inputs: Event | Action | Ask) -> None:
        """Let all of it come in before the next turn: first events, then questions."""

    def hear(self, event: Event) -> None:
        """Let `event` come in now, even within a turn."""

    def fail_writes(self) -> None: ...

    def perform_with(self, kind: type[Effect], perform: Callable[[Any], None]) -> None: ...

    async def until(self, is_so: Callable[[], object]) -> None: ...


class OnSockets:
    def __init__(self, path: Path, cores: Mapping[int, Make] | None = None) -> None:
        self.scripts = {1: Scripted(), 2: Scripted()}
        self.answers: list[tuple[int, object]] = []
        self.ended: dict[int, str] = {}
        self._path = path
        self._cores = cores or {}
        self._system = FailingSystem()
        self._drivers: dict[int, Driver] = {}
        self._lives: list[asyncio.Task[None]] = []
        self._asks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        for node in self.scripts:
            begun = asyncio.Event()
            self._lives.append(asyncio.create_task(self._live(node, begun)))
            await begun.wait()
        await self.until(lambda: all(driver.counts.turns for driver in self._drivers.values()))
        return self

    async def __aexit__(self, *_error: object) -> None:
        for driver in self._drivers.values():
            driver.stop("enough")
        await asyncio.gather(*self._lives)
        for ask in self._asks:
            ask.cancel()

    async def _live(self, node: int, begun: asyncio.Event) -> None:
        """Run a node until its core stops."""
        script = self.scripts[node]
        directory = self._path / str(node)
        directory.mkdir()
        storage = FileStorage(
            str(directory), disk=Disk(system=self._system) if node == 1 else Disk()
        )
        loaded = storage.load(METADATA_LOG, METADATA_TOPIC_ID)
        listener = Listener(name="L", kind=ListenerKind.CONTROLLER, host="127.0.0.1", port=0)
        driver = Driver(storage, listeners=[listener], client_id="t", client_limits=_PATIENT)
        for kind, perform in tuple(driver._performers.items()):
            driver.perform_with(kind, _noting(script, perform))
        script.changed = self._changed.set
        try:
            async with driver:
                self._drivers[node] = driver
                make = self._cores.get(node)
                begun.set()
                core: Core = script
                if make is not None:
                    core = make(loaded.state, loaded.election, driver.now_ms())
                self.ended[node] = (await driver.run(core)).reason
        except Exception as error:  # noqa: BLE001 - a test says which it expects
            self.ended[node] = str(error)
        self._changed.set()

    def at(self, node: int) -> Endpoint:
        return Endpoint(node, "127.0.0.1", self._drivers[node].ports["L"])

    def now_ms(self) -> int:
        return self._drivers[1].now_ms()

    def feed(self, *inputs: Event | Action | Ask) -> None:
        first = len(self._asks)
        asked = [each.body for each in inputs if isinstance(each, Ask)]
        self._asks += [
            asyncio.create_task(self._ask(first + number, body))
            for number, body in enumerate(asked)
        ]
        for each in inputs:
            if not isinstance(each, Ask):
                self._drivers[1].call(each) if callable(each) else self.hear(each)

    async def _ask(self, number: int, body: object) -> None:
        self.answers.append((number, await self._drivers[1].ask(body)))
        self._changed.set()

    def hear(self, event: Event) -> None:
        self._drivers[1].hear(event)

    def fail_writes(self) -> None:
        self._system.fail("pwrite", ENOSPC)

    def perform_with(self, kind: type[Effect], perform: Callable[[Any], None]) -> None:
        self._drivers[1].perform_with(kind, perform)

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()


def _noting(script: Scripted, perform: Callable[[Any], None]) -> Callable[[Any], None]:
    def noted(effect: Effect) -> None:
        script.performing(effect)
        perform(effect)

    return noted


class _Whole:
    """A pace by which all that has come in by the next microsecond is one turn."""

    limits_clients = False

    def wait_us(self) -> int:
        return 1

    def lasts_us(self) -> int:
        return 0

    def control_max(self) -> int:
        return CONTROL_MAX

    def clients_max(self) -> int:
        return CLIENTS_MAX


class Simulated(Observer):
    def __init__(self, _path: Path, cores: Mapping[int, Make] | None = None) -> None:
        self.scripts = {1: Scripted(), 2: Scripted()}
        self.answers: list[tuple[int, object]] = []
        self.ended: dict[int, str] = {}
        self._cores = cores or {}
        self._world = VirtualTime(1)
        self._network = Network(
            world=self._world,
            random=self._world.fork("network"),
            faults=LinkFaults(),
            deliver=self._deliver,
        )
        self._asked: dict[int, int] = {}  # by correlation
        self._numbers = 0
        self._hosts = {node: self._host(node) for node in self.scripts}

    def _host(self, node: int) -> Host:
        disk = SimulatedDisk(
            world=self._world,
            random=self._world.fork(f"disk/{node}"),
            faults=DiskFaults(),
            tree_of=lambda _name, _topic_id: LogTree(),
        )
        host = Host(
            node_id=node,
            world=self._world,
            network=self._network,
            disk=disk,
            clock=Clock(),
            speech=None,
            watch=self,
            start_core=self._start,
        )
        host._pace = cast(Pace, _Whole())
        host.on_stop = lambda stopped: self.ended.update({node: stopped.stopped})
        return host

    def _start(self, host: Host) -> Core:
        state, election = host.disk.recover(METADATA_LOG)
        make = self._cores.get(host.node_id)
        core: Core = self.scripts[host.node_id]
        return core if make is None else make(state, election, host.now_ms)

    async def __aenter__(self) -> Self:
        for host in self._hosts.values():
            host.start()
        return self

    async def __aexit__(self, *_error: object) -> None: ...

    def _deliver(self, message: Message) -> None:
        number = self._asked.pop(message.correlation, None) if not message.is_request else None
        if number is None:
            self._hosts[message.target].deliver(message)
        else:
            is_refused = type(message.body).__name__ == "_Refused"
            self.answers.append((number, None if is_refused else message.body))

    def at(self, node: int) -> Endpoint:
        return Endpoint(node, f"node-{node}", 1)

    def now_ms(self) -> int:
        return self._hosts[1].now_ms

    def feed(self, *inputs: Event | Action | Ask) -> None:
        host = self._hosts[1]
        host.pause()
        for each in inputs:
            if not isinstance(each, Ask):
                host._turn.add(each)
        for each in inputs:
            if isinstance(each, Ask):
                self._deliver_ask(each)
        host.resume()

    def _deliver_ask(self, ask: Ask) -> None:
        correlation = self._world.sequence()
        self._asked[correlation] = self._numbers
        self._numbers += 1
        self._hosts[1].deliver(
            Message(
                source=2,
                target=1,
                channel="inside",
                correlation=correlation,
                is_request=True,
                body=ask.body,
            )
        )

    def hear(self, event: Event) -> None:
        self._hosts[1].hear(event)

    def fail_writes(self) -> None:
        self._hosts[1].disk.faults = DiskFaults(write_failure=1.0)

    def perform_with(self, kind: type[Effect], perform: Callable[[Any], None]) -> None:
        self._hosts[1].perform_with(kind, perform)

    async def until(self, is_so: Callable[[], object]) -> None:
        end_us = self._world.now_us + 60_000_000
        while not is_so():
            assert self._world.now_us < end_us, "nothing more happens"
            try:
                self._world.run_until(self._world.now_us + 100, events_max=1_000_000)
            except Crash as crash:
                self.ended[1] = str(crash)

    # --- Observer -------------------------------------------------------------------------------

    def performing(self, host: Host, effect: Effect) -> None:
        self.scripts[host.node_id].performing(effect)


BENCHES: dict[str, type[OnSockets] | type[Simulated]] = {"driver": OnSockets, "host": Simulated}
