"""The host keeps a driver's promises, whatever the network and the disk do."""

from dataclasses import dataclass, field

import pytest

from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.time.deadline_timer import Clock
from jepsen_like.sim.time.pace import TURNS_US
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Crash
from jepsen_like.sim.world.codec import Speech
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import LinkFaults, Message, Network
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import (
    Effect,
    Event,
    Failure,
    Reply,
    Request,
    RequestFailed,
    Response,
    Send,
    Stop,
    Token,
)
from quorum.core.types import Endpoint
from wire.writing import CannotExpress


@dataclass
class Echo:
    """Replies to what it is asked, and keeps what happens to it."""

    mute: bool = False
    events: list[tuple[int, Event]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    due_ms: int | None = None

    def receive(self, event: Event, now_ms: int) -> None:
        self.events.append((now_ms, event))
        if isinstance(event, Request) and not self.mute:
            self.effects.append(Reply(token=event.token, body=f"re: {event.body}"))

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        if self.due_ms is not None and self.due_ms <= now_ms:
            self.ticks.append(now_ms)
            self.due_ms = None

    def deadline_ms(self) -> int | None:
        return self.due_ms

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects


class Bench:
    """Two hosts with an `Echo` each."""

    def __init__(
        self,
        clock: Clock | None = None,
        watch: Observer | None = None,
        speech: Speech | None = None,
        turns_us: tuple[int, ...] = TURNS_US,
        seed: int = 1,
        **faults: float,
    ) -> None:
        self.watch, self.speech, self.turns_us = (
            watch or Observer(),
            speech,
            turns_us,
        )
        self.world = VirtualTime(seed)
        self.counts = self.world.counts
        self.network = Network(
            world=self.world,
            random=self.world.fork("network"),
            faults=LinkFaults(**faults),  # type: ignore[arg-type]
            deliver=self.deliver,
        )
        self.cores = {1: Echo(), 2: Echo()}
        self.hosts = {node: self.host(node, clock or Clock()) for node in self.cores}
        for host in self.hosts.values():
            host.start()

    def host(self, node: int, clock: Clock) -> Host:
        disk = Disk(
            world=self.world,
            random=self.world.fork(f"disk/{node}"),
            faults=DiskFaults(),
            tree_of=lambda _name, _topic_id: LogTree(),
        )
        return Host(
            node_id=node,
            world=self.world,
            network=self.network,
            disk=disk,
            clock=clock,
            speech=self.speech,
            watch=self.watch,
            start_core=lambda _host: self.cores[node],
            turns_us=self.turns_us,
        )

    def deliver(self, message: Message) -> None:
        self.hosts[message.target].deliver(message)

    def ask(self, number: int, timeout_ms: int = 100) -> Token:
        """Node 1 asks node 2."""
        token = Token("test", number)
        self.hosts[1].command(
            lambda _now_ms: self.cores[1].effects.append(
                Send(
                    token=token,
                    to=Endpoint(2, "node-2", 1),
                    channel="test",
                    body=f"ask {number}",
                    timeout_ms=timeout_ms,
                )
            )
        )
        return token

    def run(self, ms: int = 1000) -> None:
        self.world.run_until(self.world.now_us + ms * 1000, events_max=100_000)

    def answers(self) -> list[Event]:
        return [event for _, event in self.cores[1].events]


def test_request_is_answered_by_its_response() -> None:
    bench = Bench()
    token = bench.ask(1)
    bench.run()
    assert bench.answers() == [Response(token=token, body="re: ask 1")]


def test_request_is_answered_once_however_often_it_arrives() -> None:
    bench = Bench(duplication=1.0)
    token = bench.ask(1)
    bench.run()
    assert bench.answers() == [Response(token=token, body="re: ask 1")]
    assert len(bench.cores[2].events) == 2


def test_request_without_answer_times_out_and_a_late_answer_is_dropped() -> None:
    bench = Bench()
    cut = bench.network.cut([(2, 1)], kind="partition-one-way", holding=True)
    token = bench.ask(1, timeout_ms=50)
    bench.run()
    bench.network.heal(cut)
    bench.run()
    assert bench.answers() == [RequestFailed(token=token, failure=Failure.TIMED_OUT)]


def test_request_to_a_dead_process_is_refused() -> None:
    bench = Bench()
    bench.hosts[2].crash(power_loss=True)
    token = bench.ask(1)
    bench.run()
    assert bench.answers() == [RequestFailed(token=token, failure=Failure.DISCONNECTED)]


@pytest.mark.parametrize(
    ("power_loss", "failure"), [(False, Failure.DISCONNECTED), (True, Failure.TIMED_OUT)]
)
def test_death_with_a_request_at_hand_closes_the_connection_unless_power_is_lost(
    power_loss: bool, failure: Failure
) -> None:
    bench = Bench()
    bench.cores[2].mute = True
    token = bench.ask(1, timeout_ms=500)
    bench.run(100)
    bench.hosts[2].crash(power_loss=power_loss)
    bench.run()
    assert bench.answers() == [RequestFailed(token=token, failure=failure)]


def test_paused_process_gets_its_events_when_it_resumes() -> None:
    bench = Bench()
    bench.hosts[2].pause()
    bench.ask(1, timeout_ms=5000)
    bench.run(500)
    assert bench.cores[2].events == []
    bench.hosts[2].resume()
    bench.run(500)
    assert len(bench.answers()) == 1


def test_tick_comes_at_the_deadline_and_not_before() -> None:
    bench = Bench()
    core, host = bench.cores[1], bench.hosts[1]
    due_ms = host.now_ms + 200

    def set_deadline(_now_ms: int) -> None:
        core.due_ms = due_ms

    core.settle = lambda now_ms: core.ticks.append(now_ms)  # type: ignore[method-assign]
    host.command(set_deadline)
    core.ticks.clear()
    bench.world.run_until(bench.world.now_us + 199_000, events_max=1000)
    assert core.ticks == []
    with pytest.raises(Crash, match="deadline stays in the past"):
        bench.run(1000)  # this core never moves its deadline on
    assert core.ticks[0] in (due_ms, due_ms + 1)


def test_answering_twice_is_a_broken_contract() -> None:
    bench = Bench()
    bench.ask(1)
    bench.run()
    [(_, asked)] = bench.cores[2].events
    assert isinstance(asked, Request)
    with pytest.raises(Crash, match="has been answered"):
        bench.hosts[2].command(
            lambda _now_ms: bench.cores[2].effects.append(Reply(token=asked.token, body="again"))
        )


def test_send_that_no_version_can_express_fails_after_the_turn_that_asks() -> None:
    """Else a core has a turn in the midst of carrying out the one before (seed 160004711)."""
    order: list[str] = []

    class Speechless:
        def request(self, body: object, between: tuple[int, int]) -> object:
            raise CannotExpress(str(body))

        def response(self, body: object, between: tuple[int, int]) -> object:
            return body

    class Looking(Observer):
        def settled(self, host: Host, effects: list[Effect]) -> None:
            order.append("carried out")

        def received(self, host: Host, event: Event) -> None:
            order.append(type(event).__name__)

    bench = Bench(watch=Looking(), speech=Speechless(), turns_us=(0,))
    order.clear()
    bench.ask(1)
    assert order == ["carried out", "RequestFailed", "carried out"]


@pytest.mark.parametrize(("exit_code", "raises"), [(0, False), (1, True)])
def test_stop_without_a_fault_to_explain_it_is_a_crash(exit_code: int, raises: bool) -> None:
    bench = Bench()
    stopped: list[Host] = []
    bench.hosts[1].on_stop = stopped.append

    def stop(_now_ms: int) -> None:
        bench.cores[1].effects.append(Stop(reason="enough", exit_code=exit_code))

    if raises:
        with pytest.raises(Crash, match="enough"):
            bench.hosts[1].command(stop)
    else:
        bench.hosts[1].command(stop)
        assert stopped == [bench.hosts[1]]
        assert not bench.hosts[1].is_up


@pytest.mark.parametrize("drift_ppm", [-50_000, -1, 0, 1, 50_000])
@pytest.mark.parametrize("local_ms", [1_700_000_000_001, 1_700_000_012_345, 1_700_003_600_000])
def test_clock_finds_the_first_moment_of_a_local_time(drift_ppm: int, local_ms: int) -> None:
    clock = Clock(offset_ms=0, drift_ppm=drift_ppm)
    world_us = clock.world_us(local_ms)
    assert clock.local_ms(world_us) == local_ms
    assert clock.local_ms(world_us - 3) < local_ms


def test_last_turn_of_a_process_is_looked_at_before_it_ends() -> None:
    """What it has said and saved in that turn outlives it."""
    bench = Bench()
    host = bench.hosts[1]
    running: list[bool] = []
    host._watch.settled = lambda host, _effects: running.append(host.is_up)  # type: ignore[method-assign]
    host.command(lambda _now_ms: bench.cores[1].effects.append(Stop(reason="done", exit_code=0)))
    assert running == [True]
    assert not host.is_up
