"""kazoo's traps, on a real server: what is promised when connections and sessions go."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from jepsen_like.real.processes import is_alive
from jepsen_like.real.zookeeper import NoZooKeeper, ZooKeeper, missing_reason
from tests.integration.real_zookeeper import KazooClients, paused, started
from wire.zk.session import (
    REQUEST_BYTES_MAX,
    Create,
    Created,
    Data,
    Error,
    Exists,
    Failed,
    GetData,
    SessionState,
    SetData,
    WatchFired,
    WatchKind,
    Written,
)

REASON = missing_reason()
pytestmark = [
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
    pytest.mark.extra,  # a ZooKeeper of its own
]

CONNECTING, CONNECTED, CLOSED = (
    SessionState.CONNECTING,
    SessionState.CONNECTED,
    SessionState.CLOSED,
)
ONCE = (CONNECTING, CONNECTED)
LOST = Failed(error=Error.CONNECTION_LOSS)
TIMEOUT_MS = 3000  # a client notices a silent server a third of it before its session ends


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with started(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def clients(zookeeper: ZooKeeper, request: pytest.FixtureRequest) -> Iterator[KazooClients]:
    """`a` and `b`, under a path of the test's own."""
    with asyncio.Runner() as runner:
        connect = f"{zookeeper.connect}/tests/{request.node.name}"
        opened = KazooClients(runner, connect, timeout_ms=TIMEOUT_MS)
        opened.open("a")
        opened.open("b")
        yield opened
        opened.close_all()


def test_operation_of_an_expired_session_never_goes_out_on_the_next(
    clients: KazooClients, zookeeper: ZooKeeper
) -> None:
    (created,) = clients.ask("a", Create(path="/e", is_ephemeral=True))
    assert isinstance(created, Created)
    expired = clients.session["a"].id
    assert created.stat is not None
    assert created.stat.ephemeral_owner == expired
    end_session(clients, zookeeper)
    assert clients.session["a"].id != expired
    refused = clients.ask("a", Create(path="/late"), session_id=expired)
    assert refused == [Failed(error=Error.SESSION_EXPIRED)]
    assert clients.ask("b", GetData(path="/late"), GetData(path="/e")) == [
        Failed(error=Error.NO_NODE),
        Failed(error=Error.NO_NODE),
    ]


def end_session(clients: KazooClients, zookeeper: ZooKeeper) -> None:
    """A client that knows the password can end it, unless its owner takes it back before that."""
    for _ in range(5):
        other = KazooClient(zookeeper.connect, client_id=clients.kazoo("a").client_id)
        other.start()
        other.stop()
        other.close()
        if clients.comes_to("a", CONNECTING, CLOSED, *ONCE, within_seconds=TIMEOUT_MS / 1000):
            return
    raise AssertionError(f"the session goes on: {clients.states('a')}")


def test_nothing_that_was_asked_while_disconnected_is_ever_done(
    clients: KazooClients, zookeeper: ZooKeeper
) -> None:
    clients.ask("a", Create(path="/n"), Create(path="/quiet"))
    clients.ask("a", GetData(path="/n", watch=True), GetData(path="/quiet", watch=True))
    before = clients.session["a"].id
    with paused(zookeeper, 1):
        clients.wait_for("a", *ONCE, CONNECTING)
        assert clients.ask("a", Create(path="/zombie"), SetData(path="/n", data=b"1")) == [LOST] * 2
        assert clients.session["a"].may_have_expired_at_ms is not None
    clients.wait_for("a", *ONCE, *ONCE)
    assert clients.session["a"].id == before
    assert clients.session["a"].timeout_ms == TIMEOUT_MS
    assert clients.ask("a", Exists(path="/zombie")) == [Failed(error=Error.NO_NODE)]
    (written,) = clients.ask("a", SetData(path="/quiet", data=b"2"))
    assert isinstance(written, Written)
    watches = [each for each in clients.told["a"] if isinstance(each, WatchFired)]
    assert watches == [WatchFired(path="/quiet", kind=WatchKind.DATA_CHANGED)]


def test_watch_tells_after_a_disconnection_what_it_missed(
    clients: KazooClients, zookeeper: ZooKeeper
) -> None:
    """The write reaches a server that stands still, and is done before anybody is connected."""
    clients.ask("a", Create(path="/n"))
    clients.ask("b", Exists(path="/n", watch=True), Exists(path="/new", watch=True))
    with paused(zookeeper, 1):
        lost = clients.ask("a", SetData(path="/n", data=b"1"), Create(path="/new"))
        clients.wait_for("b", *ONCE, CONNECTING)
    assert lost == [LOST, LOST]
    clients.wait_for("a", *ONCE, *ONCE)
    clients.wait_for("b", *ONCE, *ONCE)
    found, created = clients.ask("a", GetData(path="/n"), GetData(path="/new"))
    assert isinstance(found, Data)
    clients.settle("b")
    watches = [each for each in clients.told["b"] if isinstance(each, WatchFired)]
    expected = []
    if found.data == b"1":  # nobody knows whether a lost write is done
        expected.append(WatchFired(path="/n", kind=WatchKind.DATA_CHANGED))
    if isinstance(created, Data):
        expected.append(WatchFired(path="/new", kind=WatchKind.CREATED))
    assert sorted(watches, key=repr) == sorted(expected, key=repr)


def test_request_that_is_too_large_costs_the_connection(clients: KazooClients) -> None:
    (fits,) = clients.ask("a", Create(path="/n", data=bytes(REQUEST_BYTES_MAX - 200)))
    assert isinstance(fits, Created)
    assert clients.ask("a", SetData(path="/n", data=bytes(REQUEST_BYTES_MAX))) == [LOST]
    clients.wait_for("a", *ONCE, *ONCE)


def test_thousands_of_operations_are_pipelined_and_answered_in_order(
    zookeeper: ZooKeeper,
) -> None:
    with asyncio.Runner() as runner:
        clients = KazooClients(runner, f"{zookeeper.connect}/many", timeout_ms=30_000)
        clients.open("a")
        clients.ask("a", Create(path="/n"))
        answers = clients.ask("a", *[SetData(path="/n", data=b"x") for _ in range(2000)])
        clients.close_all()
    versions = [answer.stat.version for answer in answers if isinstance(answer, Written)]
    assert versions == list(range(1, 2001))


def test_ensemble_goes_on_without_its_leader(tmp_path: Path) -> None:
    with started(tmp_path / "zk", count=3) as zookeeper, asyncio.Runner() as runner:
        roles = {server.id: zookeeper.role(server) for server in zookeeper.servers}
        assert sorted(roles.values()) == ["follower", "follower", "leader"]
        clients = KazooClients(runner, zookeeper.connect, timeout_ms=4 * TIMEOUT_MS)
        clients.open("a")
        before = clients.session["a"].id
        clients.ask("a", Create(path="/e", is_ephemeral=True))
        leader = next(server_id for server_id, role in roles.items() if role == "leader")
        zookeeper.kill(leader)
        answers = clients.ask("a", SetData(path="/e", data=b"1"))
        if answers == [LOST]:
            clients.wait_for("a", *ONCE, *ONCE)
            answers = clients.ask("a", SetData(path="/e", data=b"1"))
        assert isinstance(answers[0], Written)
        assert clients.session["a"].id == before
        clients.close_all()


def test_servers_are_found_again_by_their_directory_and_leave_no_process(tmp_path: Path) -> None:
    with started(tmp_path / "zk") as zookeeper:
        (server,) = zookeeper.servers
        assert zookeeper.role(server) == "standalone"
        again = ZooKeeper.open(tmp_path / "zk")
        assert again.connect == zookeeper.connect
        process = again.process(server)
        with pytest.raises(NoZooKeeper, match="runs already"):
            again.start(1)
    assert process is not None
    assert not is_alive(process)
    assert again.process(server) is None
    assert again.role(server) == ""
