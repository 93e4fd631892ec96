"""The driver with a small core, over real sockets on loopback and real files."""

import asyncio
import errno
import os
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorum.core.effects import (
    Append,
    Durability,
    Effect,
    Event,
    Failure,
    Read,
    ReadDone,
    Reply,
    Request,
    RequestFailed,
    Response,
    Send,
    Stop,
    StorageFailed,
    Stored,
    Token,
    Trace,
)
from quorum.core.inbox import Inbox
from quorum.core.storage import METADATA_LOG
from quorum.core.turn import CLIENTS_MAX, CONTROL_MAX
from quorum.core.types import Endpoint
from quorum.log.files.checkpoints import CLEAN_SHUTDOWN
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage
from quorum.log.files.sync_pace import SyncPace
from quorum.node.driver import Driver, describe_trace
from quorum.node.listening import CannotListen, Listener
from tests.quorum.log_files import FailingSystem, batch
from wire.admission import Admission
from wire.api_table import ListenerKind, api_versions_response
from wire.message import replace
from wire.messages.features import ApiVersionsRequest
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.registration import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wire.primitives import METADATA_TOPIC_ID
from wire.serving import ServerLimits
from wire.tcp_client import ClientLimits, ConnectionPool, SendFailure
from wire.tcp_server import Server

HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=1, broker_epoch=1, current_metadata_offset=0, want_fence=False, want_shut_down=False
)
DESCRIBE = DescribeClusterRequest()
PATIENT = ClientLimits(connect_seconds=9.0)  # the first use of an API loads its module


class ToyCore:
    """Answers two requests, keeps a list of what it was told, and does what a test queues."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ticks: list[int] = []
        self.effects: list[Effect] = []
        self.deadline: int | None = None
        self.on_event: Callable[[Event, int], None] = lambda event, now_ms: None
        self.on_settle: Callable[[], None] = lambda: None

    def receive(self, event: Event, now_ms: int) -> None:
        self.events.append(event)
        if isinstance(event, Request):
            self._answer(event)
        self.on_event(event, now_ms)

    def _answer(self, request: Request) -> None:
        match request.body:
            case ApiVersionsRequest():
                body: Any = api_versions_response(ListenerKind.CONTROLLER)
            case BrokerHeartbeatRequest():
                body = BrokerHeartbeatResponse()
            case DescribeClusterRequest():
                body = DescribeClusterResponse(cluster_id="toy", controller_id=1, brokers=())
            case other:
                raise AssertionError(other)
        self.effects.append(Reply(token=request.token, body=body))

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        self.on_settle()
        if self.deadline is None or now_ms < self.deadline:
            return
        self.ticks.append(now_ms)
        self.deadline = None
        self.effects.append(Stop(reason="the time is up", exit_code=0))

    def deadline_ms(self) -> int | None:
        return self.deadline

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects


def run(work: Coroutine[Any, Any, None]) -> None:
    async def within_limits() -> None:
        async with asyncio.timeout(10):
            await work

    asyncio.run(within_limits())


def make_driver(path: Path, disk: Disk | None = None, **options: Any) -> Driver:
    storage = FileStorage(str(path), disk=disk)
    storage.load(METADATA_LOG, METADATA_TOPIC_ID)
    while storage.is_busy:  # with the jobs of its start: beside them no sync is inline
        assert storage.take_events() == []
    listener = Listener(name="L", kind=ListenerKind.CONTROLLER, host="127.0.0.1", port=0)
    return Driver(storage, listeners=[listener], client_id="toy", client_limits=PATIENT, **options)


def make_breakable_driver(path: Path) -> tuple[Driver, FailingSystem]:
    system = FailingSystem()
    return make_driver(path, Disk(system=system)), system


async def heartbeat_and_end(driver: Driver, core: "ToyCore") -> tuple[object, Stop]:
    """What a client hears of its heartbeat, and why the core then stopped."""
    async with ConnectionPool(client_id="test", limits=PATIENT) as pool:
        async with driver, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(driver.run(core))
            await open_channels(driver, pool, "c")
            answer = asyncio.get_running_loop().create_future()
            pool.send(
                "127.0.0.1", driver.ports["L"], "c", HEARTBEAT, timeout_ms=60_000,
                done=answer.set_result,
            )  # fmt: skip
            stop = await running
        return await answer, stop


async def open_channels(driver: Driver, pool: ConnectionPool, *channels: str) -> None:
    """Connect, and have the versions exchanged."""
    port = driver.ports["L"]
    for channel in channels:
        answer = asyncio.get_running_loop().create_future()
        pool.send(
            "127.0.0.1", port, channel, DESCRIBE, timeout_ms=5000, done=answer.set_result
        )  # fmt: skip
        await answer


def append(number: int) -> Append:
    return Append(
        log=METADATA_LOG,
        token=Token("raft", number),
        records=batch(number),
        durability=Durability.SYNCED,
    )


def read(number: int) -> Read:
    token = Token("t", number)
    return Read(log=METADATA_LOG, token=token, start_offset=0, end_offset=9, bytes_max=1000)


def test_request_gets_its_reply_and_is_counted(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()
        async with make_driver(tmp_path) as driver, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(driver.run(core))
            async with ConnectionPool(client_id="test", limits=PATIENT) as pool:
                answer = asyncio.get_running_loop().create_future()
                pool.send(
                    "127.0.0.1", driver.ports["L"], "c", DESCRIBE, timeout_ms=5000,
                    done=answer.set_result,
                )  # fmt: skip
                assert (await answer).cluster_id == "toy"
            driver.stop("enough")
            assert await running == Stop(reason="enough", exit_code=0)
        request = next(e for e in core.events if isinstance(e, Request) and e.body == DESCRIBE)
        assert (request.listener, request.client_id) == ("L", "test")
        assert request.client_host == "127.0.0.1"
        assert driver.counts.describe()["requests"] == {"api_versions": 1, "describe_cluster": 1}

    run(work())


def test_control_request_overtakes_a_flood_of_clients(tmp_path: Path) -> None:
    """A thousand client requests lie in the queue when one heartbeat arrives."""
    flood = 1000

    async def work() -> None:
        core = ToyCore()
        limits = ServerLimits(outstanding_max=2 * flood)
        async with (
            make_driver(tmp_path, server_limits=limits) as driver,
            asyncio.TaskGroup() as tasks,
            ConnectionPool(client_id="test", limits=PATIENT) as pool,
        ):
            answered = 0
            heartbeat_after = -1
            all_answered = asyncio.Event()

            def client_done(answer: object) -> None:
                nonlocal answered
                assert isinstance(answer, DescribeClusterResponse), answer
                answered += 1
                if answered == flood:
                    all_answered.set()

            def control_done(answer: object) -> None:
                nonlocal heartbeat_after
                assert isinstance(answer, BrokerHeartbeatResponse), answer
                heartbeat_after = answered

            def ask(channel: str, body: object, done: Callable[[Any], None]) -> None:
                port = driver.ports["L"]
                pool.send("127.0.0.1", port, channel, body, timeout_ms=9000, done=done)

            running = tasks.create_task(driver.run(core))
            await open_channels(driver, pool, "clients", "control")
            core.events.clear()

            def on_event(event: Event, now_ms: int) -> None:
                if len(core.events) == 1:  # the flood has come in
                    ask("control", HEARTBEAT, control_done)

            core.on_event = on_event
            for _ in range(flood):
                ask("clients", DESCRIBE, client_done)
            await all_answered.wait()
            driver.stop("enough")
            await running
        kinds = [type(e.body) for e in core.events if isinstance(e, Request)]
        assert len(kinds) == flood + 1
        place = kinds.index(BrokerHeartbeatRequest)
        assert place < flood - 100, f"after {place} of {flood} client requests"
        assert heartbeat_after < flood

    run(work())


def test_client_requests_wait_while_there_is_anything_of_the_control_plane() -> None:
    inbox = Inbox()
    client = Request(token=1, body=DESCRIBE)
    control = Request(token=2, body=HEARTBEAT)
    inbox.add_request(client)
    inbox.add_request(control)
    inbox.add_request(control)
    assert list(inbox.take(control_max=1, clients_max=1)) == [control]
    assert list(inbox.take(control_max=1, clients_max=1)) == [control, client]
    assert not inbox.control
    assert not inbox.clients


def test_without_priority_a_command_waits_behind_the_clients_that_came_before_it() -> None:
    plain, aware = Inbox(prioritises=False), Inbox()
    client = Request(token=1, body=DESCRIBE)
    command = Request(token=2, body=HEARTBEAT)
    for inbox in (plain, aware):
        inbox.add_request(client)
        inbox.add_request(command)
    assert list(plain.take(control_max=9, clients_max=9)) == [client, command]
    assert list(aware.take(control_max=9, clients_max=9)) == [command, client]


def test_stored_comes_back_and_appends_of_a_turn_share_a_sync(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()

        def on_event(event: Event, now_ms: int) -> None:
            if isinstance(event, Stored):
                core.effects.append(Stop(reason="stored", exit_code=0))

        core.on_event = on_event
        async with make_driver(tmp_path) as driver:
            core.effects += [append(number) for number in range(50)]
            await driver.run(core)
        assert core.events == [Stored(log=METADATA_LOG, token=Token("raft", 49))]
        assert driver.counts.syncs.count == 1
        assert driver.counts.syncs.tokens == 50

    run(work())


def test_what_leaves_does_not_wait_for_an_inline_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader's followers write while it syncs; what must wait, the core has held back."""
    driver, system = make_breakable_driver(tmp_path)
    core = ToyCore()
    monkeypatch.setattr(SyncPace, "is_inline", True)
    flush = Server.flush

    def left(server: Server) -> None:
        system.calls.append("left")
        flush(server)

    monkeypatch.setattr(Server, "flush", left)

    def write(event: Event, now_ms: int) -> None:
        if isinstance(event, Request) and isinstance(event.body, BrokerHeartbeatRequest):
            system.calls.clear()
            core.effects.insert(0, append(0))
        elif isinstance(event, Stored):
            core.effects.append(Stop(reason="stored", exit_code=0))

    core.on_event = write

    async def work() -> None:
        answer, _ = await heartbeat_and_end(driver, core)
        assert isinstance(answer, BrokerHeartbeatResponse)
        calls = [call for call in system.calls if call in ("pwrite", "left", "fdatasync")]
        assert calls[:3] == ["pwrite", "left", "fdatasync"]

    run(work())


def test_inline_sync_that_fails_is_told_after_what_left_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, system = make_breakable_driver(tmp_path)
    core = ToyCore()
    monkeypatch.setattr(SyncPace, "is_inline", True)

    def write(event: Event, now_ms: int) -> None:
        if isinstance(event, Request) and isinstance(event.body, BrokerHeartbeatRequest):
            system.fail("fdatasync", errno.EIO)
            core.effects.insert(0, append(0))
        elif isinstance(event, StorageFailed):
            core.effects.append(Stop(reason=event.reason, exit_code=1))

    core.on_event = write

    async def work() -> None:
        answer, stop = await heartbeat_and_end(driver, core)
        assert isinstance(answer, BrokerHeartbeatResponse)
        assert "sync" in stop.reason
        assert driver.counts.syncs.inline == 1
        told = [event for event in core.events if isinstance(event, Stored | StorageFailed)]
        assert [(type(event), event.token) for event in told] == [(StorageFailed, append(0).token)]

    run(work())


def test_read_is_answered_within_the_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorum.node.driver.LONG_SECONDS", 60.0)  # whatever the machine has to do

    async def work() -> None:
        core = ToyCore()

        def on_event(event: Event, now_ms: int) -> None:
            if isinstance(event, ReadDone):
                assert driver.counts.turns == 0
                core.effects.append(Stop(reason="read", exit_code=0))

        core.on_event = on_event
        async with make_driver(tmp_path) as driver:
            core.effects += [append(0), read(2)]
            await driver.run(core)
        assert [e.records for e in core.events if isinstance(e, ReadDone)] == [batch(0)]

    run(work())


def test_chain_of_reads_leaves_the_sockets_their_turns(tmp_path: Path) -> None:
    """A node that takes in a long log still answers votes and hears its leader."""
    reads = 100

    async def work() -> None:
        core = ToyCore()
        core.effects.append(append(0))

        def on_event(event: Event, now_ms: int) -> None:
            match event:
                case ReadDone(token=Token(number=number)) if number < reads:
                    core.effects.append(read(number + 1))
                case ReadDone():
                    core.effects.append(Stop(reason="read", exit_code=0))

        core.on_event = on_event
        core.effects.append(read(1))
        async with make_driver(tmp_path) as driver:
            turns_of_others = 0

            async def other() -> None:
                nonlocal turns_of_others
                while True:
                    turns_of_others += 1
                    await asyncio.sleep(0)

            beside = asyncio.create_task(other())
            await driver.run(core)
            beside.cancel()
        assert turns_of_others > reads // 10, driver.counts.turns

    run(work())


def test_clients_come_into_the_first_round_of_a_turn_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the disk answers at once, whoever is at the sockets is not kept waiting for long."""
    monkeypatch.setattr("quorum.node.driver.LONG_SECONDS", 60.0)  # whatever the machine has to do

    async def work() -> None:
        core = ToyCore()
        rounds: list[set[type]] = []
        turns: list[int] = []

        def on_event(event: Event, now_ms: int) -> None:
            if isinstance(event, Request) and not rounds:
                core.effects += [append(0), read(1)] if len(core.effects) == 1 else []

        def on_settle() -> None:
            rounds.append({type(event) for event in core.events} - {Stored})
            turns.append(driver.counts.turns)
            core.events.clear()

        core.on_event, core.on_settle = on_event, on_settle
        async with make_driver(tmp_path) as driver, asyncio.TaskGroup() as tasks:
            asked = [
                tasks.create_task(driver.ask(DescribeClusterRequest()))
                for _ in range(CLIENTS_MAX + 1)
            ]
            await asyncio.sleep(0)
            running = tasks.create_task(driver.run(core))
            await asyncio.gather(*asked)
            driver.stop("asked enough")
            await running
        kinds = [(turn, kinds) for turn, kinds in zip(turns, rounds, strict=True) if kinds]
        assert kinds == [(0, {Request}), (0, {ReadDone}), (1, {Request})]

    run(work())


def test_sockets_are_looked_at_after_a_long_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.node.driver.LONG_SECONDS", -1.0)

    async def work() -> None:
        core = ToyCore()
        turns: list[int] = []
        disk_was_heard = asyncio.Event()

        def on_event(event: Event, now_ms: int) -> None:
            turns.append(driver.counts.turns)
            if isinstance(event, Request):
                core.effects += [append(0), read(1)]
            else:
                disk_was_heard.set()

        core.on_event = on_event
        async with make_driver(tmp_path) as driver, asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(driver.ask(DescribeClusterRequest()))
            await asyncio.sleep(0)
            running = tasks.create_task(driver.run(core))
            await asked
            await disk_was_heard.wait()
            driver.stop("asked enough")
            await running
        assert turns[0] < turns[1], "the disk is heard in a later turn"

    run(work())


@pytest.mark.parametrize(
    ("slow", "clients"),
    [
        pytest.param("core", [CLIENTS_MAX, CLIENTS_MAX // 2, CLIENTS_MAX // 2], id="core"),
        pytest.param("disk", [CLIENTS_MAX, CLIENTS_MAX], id="disk"),
    ],
)
def test_turn_after_one_in_which_the_core_took_long_has_fewer_clients(
    slow: str, clients: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk is no reason: the core has only to be given less of what it is slow with."""
    seconds = 0.0
    clock = SimpleNamespace(
        perf_counter=lambda: seconds, monotonic_ns=time.monotonic_ns, time_ns=time.time_ns
    )
    monkeypatch.setattr("quorum.node.driver.time", clock)

    async def work() -> None:
        core = ToyCore()
        taken: list[int] = []

        def take_long() -> None:
            nonlocal seconds
            seconds += 0.02

        def on_event(event: Event, now_ms: int) -> None:
            if not taken and len(core.events) == 1:
                core.effects.append(append(0))
                if slow == "core":
                    take_long()

        def on_settle() -> None:
            taken.append(sum(isinstance(event, Request) for event in core.events))
            core.events.clear()

        core.on_event, core.on_settle = on_event, on_settle
        async with make_driver(tmp_path) as driver, asyncio.TaskGroup() as tasks:
            if slow == "disk":
                driver.perform_with(Append, lambda _append: take_long())
            asked = [
                tasks.create_task(driver.ask(DescribeClusterRequest())) for _ in range(sum(clients))
            ]
            await asyncio.sleep(0)
            running = tasks.create_task(driver.run(core))
            await asyncio.gather(*asked)
            driver.stop("asked enough")
            await running
        assert [count for count in taken if count] == clients

    run(work())


def test_inline_sync_is_told_within_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SyncPace, "is_inline", True)
    monkeypatch.setattr("quorum.node.driver.LONG_SECONDS", 60.0)  # whatever the disk has to do

    async def work() -> None:
        core = ToyCore()
        turns: list[int] = []

        def on_event(event: Event, now_ms: int) -> None:
            turns.append(driver.counts.turns)
            core.effects.append(Stop(reason="stored", exit_code=0))

        core.on_event = on_event
        async with make_driver(tmp_path) as driver:
            core.effects.append(append(0))
            await driver.run(core)
        assert turns == [0], "in the second round of the first turn"

    run(work())


def test_tick_comes_at_the_deadline(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()
        async with make_driver(tmp_path) as driver:
            core.deadline = driver.now_ms() + 30
            wanted = core.deadline
            stop = await driver.run(core)
        assert stop.reason == "the time is up"
        assert len(core.ticks) == 1
        assert core.ticks[0] >= wanted

    run(work())


def test_no_time_out_strikes_while_its_answer_lies_in_a_socket(tmp_path: Path) -> None:
    """A turn has more events than it may take, and lasts until its deadline has passed."""
    peer, ours = socket.socketpair()
    ours.setblocking(False)
    asks, follows, answer = (
        Stored(log=METADATA_LOG, token=Token("core", number)) for number in range(3)
    )

    async def work() -> None:
        core = ToyCore()

        def on_event(event: Event, now_ms: int) -> None:
            if event == asks:
                core.deadline = now_ms + 1
                peer.send(b"answer")
                while driver.now_ms() <= core.deadline:
                    pass
            elif event == answer:
                core.deadline = None
                core.effects.append(Stop(reason="it was heard", exit_code=0))

        def read() -> None:
            ours.recv(100)
            driver.hear(answer)

        core.on_event = on_event
        asyncio.get_running_loop().add_reader(ours, read)
        async with make_driver(tmp_path) as driver:
            driver.hear(asks)
            for _ in range(CONTROL_MAX):
                driver.hear(follows)
            assert (await driver.run(core)).reason == "it was heard"
        asyncio.get_running_loop().remove_reader(ours)

    run(work())
    peer.close()
    ours.close()


def test_core_has_a_turn_at_every_deadline(tmp_path: Path) -> None:
    """By a deadline that has passed, a core asks for another turn at once, and again after it."""

    class AlwaysDue(ToyCore):
        def deadline_ms(self) -> int | None:
            return 0

    async def work() -> None:
        core = AlwaysDue()
        turns = 0

        def on_settle() -> None:
            nonlocal turns
            turns += 1
            if turns == 3:
                core.effects.append(Stop(reason="the third", exit_code=0))

        core.on_settle = on_settle
        async with make_driver(tmp_path) as driver:
            assert (await driver.run(core)).reason == "the third"

    run(work())


def test_send_is_answered_by_another_driver(tmp_path: Path) -> None:
    async def work() -> None:
        asking, answering = ToyCore(), ToyCore()

        def on_event(event: Event, now_ms: int) -> None:
            if isinstance(event, Response):
                asking.effects.append(Stop(reason="answered", exit_code=0))

        asking.on_event = on_event
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        async with (
            make_driver(tmp_path / "a") as first,
            make_driver(tmp_path / "b") as second,
            asyncio.TaskGroup() as tasks,
        ):
            other = tasks.create_task(second.run(answering))
            to = Endpoint(2, "127.0.0.1", second.ports["L"])
            send = Send(
                token=Token("raft", 1), to=to, channel="raft", body=HEARTBEAT, timeout_ms=5000
            )
            asking.effects.append(send)
            await first.run(asking)
            second.stop("enough")
            await other
        assert asking.events == [Response(token=Token("raft", 1), body=BrokerHeartbeatResponse())]

    run(work())


def test_send_to_nobody_fails(tmp_path: Path) -> None:
    async def work() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            core = ToyCore()

            def on_event(event: Event, now_ms: int) -> None:
                core.effects.append(Stop(reason="failed", exit_code=0))

            core.on_event = on_event
            async with make_driver(tmp_path) as driver:
                to = Endpoint(2, "127.0.0.1", port)
                send = Send(
                    token=Token("raft", 1), to=to, channel="raft", body=HEARTBEAT, timeout_ms=5000
                )
                core.effects.append(send)
                await driver.run(core)
        failed = RequestFailed(token=Token("raft", 1), failure=Failure.DISCONNECTED)
        assert core.events == [failed]

    run(work())


def test_orderly_stop_leaves_its_mark_and_a_failure_does_not(tmp_path: Path) -> None:
    async def work(exit_code: int, path: Path) -> None:
        core = ToyCore()
        core.effects.append(Stop(reason="so", exit_code=exit_code))
        async with make_driver(path) as driver:
            driver.broker_epoch = 41
            await driver.run(core)

    for name in ("orderly", "failed"):
        (tmp_path / name).mkdir()
    run(work(0, tmp_path / "orderly"))
    run(work(1, tmp_path / "failed"))
    mark = tmp_path / "orderly" / CLEAN_SHUTDOWN
    assert mark.read_bytes() == b'{"version":0,"brokerEpoch":41}'
    assert not (tmp_path / "failed" / CLEAN_SHUTDOWN).exists()


def test_orderly_stop_after_a_failure_leaves_no_mark(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()
        core.effects.append(Stop(reason="the disk is full", exit_code=1))
        async with make_driver(tmp_path) as driver:
            await driver.run(core)
            driver.stop("a signal came while the node was ending")
        assert not (tmp_path / CLEAN_SHUTDOWN).exists()

    run(work())


def test_first_of_two_stops_of_a_core_is_why_it_ended(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()
        first = Stop(reason="the disk is full", exit_code=1)
        core.effects += [first, Stop(reason="removed from the quorum", exit_code=0)]
        async with make_driver(tmp_path) as driver:
            assert await driver.run(core) == first

    run(work())


def test_core_hears_nothing_after_its_stop(tmp_path: Path) -> None:
    """The disk has answered within the turn that stops, which otherwise begins another at once."""

    async def work() -> None:
        core = ToyCore()
        core.effects += [append(0), read(1), Stop(reason="enough", exit_code=0)]
        async with make_driver(tmp_path) as driver:
            await driver.run(core)
        assert core.events == []

    run(work())


def test_bug_in_a_core_ends_the_run(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()

        def on_event(event: Event, now_ms: int) -> None:
            raise ZeroDivisionError("a bug")

        core.on_event = on_event
        core.effects.append(append(0))
        async with make_driver(tmp_path) as driver:
            await driver.run(core)

    with pytest.raises(ZeroDivisionError):
        run(work())
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()


def test_storage_failure_reaches_the_core(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()

        def on_event(event: Event, now_ms: int) -> None:
            if isinstance(event, StorageFailed):
                core.effects.append(Stop(reason=event.reason, exit_code=1))

        core.on_event = on_event
        async with make_driver(tmp_path) as driver:
            core.effects.append(append(0))
            os.rename(tmp_path / METADATA_LOG, tmp_path / "gone")
            stop = await driver.run(core)
        assert stop.exit_code == 1
        assert "No such file" in stop.reason

    run(work())


def test_taken_port_is_named(tmp_path: Path) -> None:
    async def work() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            storage = FileStorage(str(tmp_path))
            listener = Listener(name="B", kind=ListenerKind.BROKER, host="127.0.0.1", port=port)
            with pytest.raises(CannotListen, match=rf"127.0.0.1:{port} \(B\)"):
                async with Driver(storage, listeners=[listener], client_id="toy"):
                    pass

    run(work())


def test_call_is_carried_out_in_a_turn(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()
        traces: list[Trace] = []
        async with make_driver(tmp_path, trace=traces.append) as driver:

            def leave(now_ms: int) -> None:
                core.effects.append(Trace(event="leaving", fields=(("node", 1), ("why", "asked"))))
                core.effects.append(Stop(reason="asked", exit_code=0))

            driver.call(leave)
            assert (await driver.run(core)).reason == "asked"
        assert [describe_trace(trace) for trace in traces] == ["leaving node=1 why=asked"]

    run(work())


def test_answer_to_an_asker_that_was_cancelled_is_dropped(tmp_path: Path) -> None:
    async def work() -> None:
        core = ToyCore()
        async with make_driver(tmp_path) as driver, asyncio.TaskGroup() as tasks:
            gone = tasks.create_task(driver.ask(DESCRIBE))
            await asyncio.sleep(0)  # its request is on its way
            gone.cancel()
            running = tasks.create_task(driver.run(core))
            assert isinstance(await driver.ask(DESCRIBE), DescribeClusterResponse)
            driver.stop("enough")
            await running
        assert len(core.events) == 2

    run(work())


def test_nothing_is_confirmed_that_the_disk_refused(tmp_path: Path) -> None:
    driver, system = make_breakable_driver(tmp_path)
    core = ToyCore()

    def write(event: Event, now_ms: int) -> None:
        if isinstance(event, Request) and isinstance(event.body, BrokerHeartbeatRequest):
            system.fail("pwrite", errno.ENOSPC)
            core.effects.insert(0, append(0))
        elif isinstance(event, StorageFailed):
            core.effects.append(Stop(reason=event.reason, exit_code=1))

    core.on_event = write

    async def work() -> None:
        answer, stop = await heartbeat_and_end(driver, core)
        assert "No space left" in stop.reason
        assert not isinstance(answer, BrokerHeartbeatResponse)

    run(work())


def test_core_that_goes_on_after_a_failure_waits_for_nothing_withheld(tmp_path: Path) -> None:
    """A broker may lose one of its disks: what it asked and answered in that turn is settled."""
    driver, system = make_breakable_driver(tmp_path)
    core = ToyCore()
    asked = Send(
        token=Token("toy", 7),
        to=Endpoint(1, "127.0.0.1", 1),
        channel="c",
        body=HEARTBEAT,
        timeout_ms=60_000,
    )

    def write(event: Event, now_ms: int) -> None:
        if isinstance(event, Request) and isinstance(event.body, BrokerHeartbeatRequest):
            system.fail("pwrite", errno.ENOSPC)
            core.effects[:0] = [append(0), asked]
        elif isinstance(event, RequestFailed) and event.token == asked.token:
            core.effects.append(Stop(reason="told", exit_code=0))

    core.on_event = write

    async def work() -> None:
        answer, stop = await heartbeat_and_end(driver, core)
        assert answer is SendFailure.DISCONNECTED
        assert stop.reason == "told"

    run(work())


# --- quotas ---------------------------------------------------------------------------------


class Meter:
    """A throttle that has DescribeCluster wait, as long as it has limits."""

    def __init__(self) -> None:
        self.has_limits = False
        self.admitted: list[str] = []
        self.told: list[tuple[object, str]] = []

    def connected(self, listener: str, host: str, now_ms: int) -> Admission:
        self.admitted.append(f"{listener} {host}")
        return Admission()

    def received(self, request: Request) -> tuple[Request, object | None]:
        assert self.has_limits, "there is nothing to be measured for"
        if not isinstance(request.body, DescribeClusterRequest):
            return request, None
        return request, request.client_id

    def leaving(
        self, use: object, body: object, *, seconds: float, now_ms: int
    ) -> tuple[object, int]:
        assert isinstance(body, DescribeClusterResponse)
        assert seconds > 0, "a turn takes time"
        self.told.append((use, "leaving"))
        return replace(body, throttle_time_ms=60_000), 60_000

    def written(self, use: object, *, seconds: float, now_ms: int) -> None:
        assert seconds > 0
        self.told.append((use, "written"))


def test_clients_wait_as_the_throttle_says_if_it_has_limits(tmp_path: Path) -> None:
    async def work() -> None:
        driver, core, meter = make_driver(tmp_path), ToyCore(), Meter()
        driver.throttle_with(meter)
        pool = ConnectionPool(client_id="test", limits=PATIENT)
        async with pool, driver, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(driver.run(core))
            answers: asyncio.Queue[Any] = asyncio.Queue()

            def ask(body: object) -> None:
                port = driver.ports["L"]
                pool.send("127.0.0.1", port, "c", body, timeout_ms=9000, done=answers.put_nowait)

            ask(DESCRIBE)
            assert (await answers.get()).throttle_time_ms == 0
            assert (meter.told, meter.admitted) == ([], ["L 127.0.0.1"])
            meter.has_limits = True
            ask(HEARTBEAT)
            assert isinstance(await answers.get(), BrokerHeartbeatResponse)
            assert meter.told == []
            ask(DESCRIBE)
            assert (await answers.get()).throttle_time_ms == 60_000
            assert meter.told == [("test", "leaving"), ("test", "written")]
            received = len(core.events)
            ask(HEARTBEAT)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(core.events) == received, "the connection is muted"
            driver.stop("enough")
            await running

    run(work())
