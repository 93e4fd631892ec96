"""T-CTL, T-ORD and T-WH: what a turn takes, does and tells is compared with what was asked."""

import pytest

from jepsen_like.planted.every_bug import BUGS, planted
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.time.pace import AT_ONCE, LASTS_US, TURNS_US, Pace, limits_clients, takes_time
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import Message
from jepsen_like.sim.world.turn_invariants import TurnInvariants
from quorum.core.effects import (
    Append,
    Effect,
    Event,
    Failure,
    Reply,
    Request,
    RequestFailed,
    Send,
    StorageFailed,
    Token,
)
from quorum.core.turn import CLIENTS_MAX
from quorum.core.types import Endpoint
from tests.sim.test_host import Bench
from wire.batch import data_batch
from wire.messages.fetching import FetchRequest, ReplicaState
from wire.messages.metadata import MetadataRequest

BROKEN = {
    "fails_no_withheld_send": "T-WH: node 1 withholds Send.* which fails 0 times",
    "forgets_what_came_before_a_failure": "T-ORD",
    "hangs_up_on_nobody": "T-WH: node 1 withholds Reply.* which fails 0 times",
    "hears_last_of_its_disk": "T-CTL: node 1 takes the control plane before a failure of the disk",
    "takes_clients_first": "T-CTL: node 1 takes a client",
    "takes_followers_for_clients": "T-CTL: node 1 takes a client before the control plane",
    "tells_before_it_writes": "T-ORD",
    "tells_though_a_write_failed": "T-WH",
    "writes_log_by_log": "T-ORD",
}
CLIENT = MetadataRequest(topics=None)
FOLLOWER = FetchRequest(
    max_wait_ms=0, min_bytes=0, topics=(), replica_state=ReplicaState(replica_id=2)
)


def asked(body: object, number: int) -> Message:
    return Message(2, 1, "test", number, True, body)


def append(log: str) -> Append:
    return Append(log=log, token=Token("test", 1), records=data_batch([b"x"], timestamp_ms=0))


def send(number: int) -> Send:
    to = Endpoint(2, "node-2", 1)
    return Send(token=Token("test", number), to=to, channel="test", body="ask", timeout_ms=100)


def take_turns() -> None:
    """Turns of all sizes, as the pace draws them, with something of each kind."""
    bench = Bench(watch=TurnInvariants(), turns_us=(1_000,))
    host = bench.hosts[1]
    for number in range(20):
        lost = RequestFailed(token=Token("test", number), failure=Failure.DISCONNECTED)
        failed = StorageFailed(log="c", token=Token("test", number), reason="test")
        take_together(bench, [asked(CLIENT, 2 * number), asked(FOLLOWER, 2 * number + 1)], lost)
        take_together(bench, [], lost, failed)
        ask_for(bench, append(f"b{number}"), append(f"a{number}"), send(number))
    assert host.is_up


def take_together(bench: Bench, requests: list[Message], *events: Event) -> None:
    host = bench.hosts[1]
    host.pause()
    for message in requests:
        host.deliver(message)
    for event in events:
        host.hear(event)
    host.resume()
    bench.run(10)


def ask_for(bench: Bench, *effects: Effect) -> None:
    bench.hosts[1].command(lambda _now_ms: bench.cores[1].effects.extend(effects))


def fail_a_write() -> Host:
    """In a turn that asks a peer and answers another, which gives up waiting."""
    bench = Bench(watch=TurnInvariants())
    host, core = bench.hosts[1], bench.cores[1]
    core.mute = True
    take_together(bench, [asked(FOLLOWER, 1)])
    (request,) = (event for _, event in core.events if isinstance(event, Request))
    host.disk.faults = DiskFaults(write_failure=1.0)
    ask_for(bench, append("a"), send(1), Reply(token=request.token, body="too early"))
    kinds = [type(event) for event in bench.answers()]
    assert kinds == [Request, StorageFailed, RequestFailed]
    return host


def do_everything() -> None:
    take_turns()
    assert fail_a_write().waited_us == 0, "the connection is closed"


def test_turns_have_few_requests_of_clients_in_one_run_of_eight() -> None:
    drawn = [limits_clients(VirtualTime(seed)) for seed in range(400)]
    assert 30 <= sum(drawn) <= 70

    def limits(*, has_few: bool, turns_us: tuple[int, ...] = TURNS_US) -> set[int]:
        pace = Pace(VirtualTime(drawn.index(has_few)), 1, turns_us)
        return {pace.clients_max() for _ in range(50)}

    assert limits(has_few=True) == {1, 2, CLIENTS_MAX}
    assert limits(has_few=False) == limits(has_few=True, turns_us=AT_ONCE) == {CLIENTS_MAX}


def test_a_turn_that_is_skipped_draws_as_any_other() -> None:
    seed = next(seed for seed in range(400) if limits_clients(VirtualTime(seed)))
    one, other = (Pace(VirtualTime(seed), 1, (1_000,)) for _ in range(2))
    for _ in range(20):
        one.skip_turn()
        other.control_max()
        other.clients_max()
    drawn = [[(each.control_max(), each.clients_max()) for _ in range(20)] for each in (one, other)]
    assert drawn[0] == drawn[1]


def test_requests_that_a_turn_leaves_come_after_what_has_come_meanwhile() -> None:
    """In no more than a few of these runs the first turn takes all five."""
    seeds = [seed for seed in range(200) if limits_clients(VirtualTime(seed))]
    overtaken = 0
    for seed in seeds:
        bench = Bench(turns_us=(1_000,), seed=seed)
        host, core = bench.hosts[1], bench.cores[1]
        host.pause()
        for number in range(5):
            host.deliver(asked(CLIENT, number))
        host.resume()
        while not core.events:
            bench.world.run_until(bench.world.now_us + 1, events_max=1_000)
        lost = RequestFailed(token=Token("test", 1), failure=Failure.DISCONNECTED)
        host.hear(lost)
        bench.run(20)
        taken = [event for _, event in core.events]
        assert len(taken) == 6, f"seed {seed}"
        overtaken += taken.index(lost) < 5
    assert overtaken > len(seeds) / 2


def test_shipped_turn_keeps_its_rules() -> None:
    do_everything()


def test_every_bug_of_the_turn_is_here() -> None:
    assert {*BROKEN} == {*BUGS["turn"], *BUGS["cluster_turn"]}


@pytest.mark.parametrize("name", BROKEN)
def test_bug_of_the_turn_is_found(name: str) -> None:
    with planted(name), pytest.raises(Violation, match=BROKEN[name]):
        do_everything()


class HeldBack:
    """Node 1 has written, its message to node 2 has not left, and an event waits for it."""

    def __init__(self) -> None:
        seed = next(seed for seed in range(400) if takes_time(VirtualTime(seed)))
        self.bench = Bench(watch=TurnInvariants(), turns_us=(1,), seed=seed)
        self.host = self.bench.hosts[1]
        self.heard = [core.events for core in self.bench.cores.values()]
        late = False
        while not late:
            self.bench.run(20)
            for events in self.heard:
                events.clear()
            began_us = self.bench.world.now_us
            ask_for(self.bench, append("a"), send(1))
            self.host.hear(RequestFailed(token=Token("test", 2), failure=Failure.DISCONNECTED))
            late = not self.heard[0]
        assert self.bench.world.now_us == began_us


def test_what_comes_in_waits_while_messages_have_not_left() -> None:
    held = HeldBack()
    held.bench.run(20)
    mine, peers = held.heard
    assert [type(event) for _, event in mine[:1]] == [RequestFailed]
    assert [type(event) for _, event in peers] == [Request]


def test_a_pause_holds_messages_back_that_have_not_left() -> None:
    held = HeldBack()
    held.host.pause()
    held.bench.run(20)
    assert held.heard == [[], []]
    held.host.resume()
    held.bench.run(20)
    assert [type(event) for _, event in held.heard[1]] == [Request]


def test_a_crash_loses_messages_that_have_not_left() -> None:
    held = HeldBack()
    held.host.crash(power_loss=False)
    held.host.start()
    held.bench.run(20)
    assert held.heard[1] == []
    assert held.host.now_ms > 0


def test_time_passes_inside_turns_in_one_run_of_eight() -> None:
    drawn = [takes_time(VirtualTime(seed)) for seed in range(400)]
    assert 30 <= sum(drawn) <= 70

    def lasting(*, takes: bool, turns_us: tuple[int, ...] = TURNS_US) -> set[int]:
        pace = Pace(VirtualTime(drawn.index(takes)), 1, turns_us)
        return {pace.lasts_us() for _ in range(100)}

    assert lasting(takes=True) == set(LASTS_US)
    assert lasting(takes=False) == lasting(takes=True, turns_us=AT_ONCE) == {0}
