"""The simulated ensemble: what a client may rely on, and what it must not."""

import pytest

from tests.sim.zk_cluster import ZkCluster
from wire.message import replace
from wire.zk.session import (
    REQUEST_BYTES_MAX,
    Check,
    Children,
    Committed,
    Create,
    Created,
    Data,
    Delete,
    Error,
    Exists,
    Failed,
    Found,
    GetChildren,
    GetData,
    Multi,
    SessionState,
    SetData,
    WatchFired,
    WatchKind,
    Written,
)

CONNECTING, CONNECTED, CLOSED = (
    SessionState.CONNECTING,
    SessionState.CONNECTED,
    SessionState.CLOSED,
)


def two(**options: int) -> ZkCluster:
    cluster = ZkCluster(**options)
    cluster.client("a")
    cluster.client("b")
    return cluster


def test_ephemeral_node_goes_with_its_session_and_watchers_hear_of_it() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/e", is_ephemeral=True))
    assert isinstance(cluster.ask("b", Exists(path="/e", watch=True)), Found)
    cluster.clients["a"].die(silently=True)
    cluster.run_ms(600)
    assert cluster.heard["b"].watches == []
    cluster.run_ms(600)
    assert cluster.heard["b"].watches == [WatchFired(path="/e", kind=WatchKind.DELETED)]


def test_orderly_close_does_not_wait_for_the_time_out() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/e", is_ephemeral=True))
    cluster.clients["a"].close()
    cluster.run_ms(20)
    assert cluster.ask("b", GetData(path="/e")) == Failed(error=Error.NO_NODE)


def test_event_comes_before_the_result_that_shows_the_change() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/n"))
    cluster.ask("b", GetData(path="/n", watch=True))
    del cluster.heard["b"].told[:]
    cluster.ask("a", SetData(path="/n", data=b"new"))
    while True:
        answer = cluster.ask("b", GetData(path="/n"))
        assert isinstance(answer, Data)
        if answer.data == b"new":
            break
    told = cluster.heard["b"].told
    assert told.index(WatchFired(path="/n", kind=WatchKind.DATA_CHANGED)) == len(told) - 2


def test_client_of_a_server_that_lags_reads_what_was() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/n", data=b"old"))
    cluster.run_ms(20)
    for server in cluster.ensemble.servers.values():
        server.lag_us = 0 if server.id == cluster.clients["a"]._server_id else 50_000
    assert cluster.clients["b"]._server_id != cluster.clients["a"]._server_id
    cluster.ask("a", SetData(path="/n", data=b"new"))
    stale = cluster.ask("b", GetData(path="/n"))
    assert isinstance(stale, Data)
    assert stale.data == b"old"
    cluster.run_ms(60)
    fresh = cluster.ask("b", GetData(path="/n"))
    assert isinstance(fresh, Data)
    assert fresh.data == b"new"


def test_own_write_is_seen_by_the_next_read() -> None:
    cluster = two()
    for server in cluster.ensemble.servers.values():
        server.lag_us = 30_000
    cluster.send("a", Create(path="/n", data=b"mine"))
    read = cluster.send("a", GetData(path="/n"))
    cluster.run_ms(100)
    assert isinstance(read[0], Data)


@pytest.mark.parametrize("seed", range(8))
def test_watch_outlives_a_disconnection_and_tells_what_was_missed(seed: int) -> None:
    cluster = two(seed=seed)
    cluster.ask("a", Create(path="/n"))
    cluster.ask("a", Create(path="/quiet"))
    cluster.run_ms(20)
    cluster.ask("b", GetData(path="/n", watch=True))
    cluster.ask("b", GetData(path="/quiet", watch=True))
    cluster.ask("b", GetChildren(path="/", watch=True))
    cluster.ensemble.hang_up(cluster.heard["b"].session.id)
    cluster.ask("a", SetData(path="/n", data=b"1"))
    cluster.ask("a", SetData(path="/n", data=b"2"))
    cluster.run_ms(300)
    heard = cluster.heard["b"]
    assert heard.states == [CONNECTING, CONNECTED, CONNECTING, CONNECTED]
    assert heard.watches == [WatchFired(path="/n", kind=WatchKind.DATA_CHANGED)]
    cluster.ask("a", SetData(path="/quiet", data=b"3"))
    cluster.ask("a", Delete(path="/n"))
    cluster.run_ms(20)
    assert heard.watches[1:] == [
        WatchFired(path="/quiet", kind=WatchKind.DATA_CHANGED),
        WatchFired(path="/", kind=WatchKind.CHILDREN_CHANGED),
    ]


def test_lost_connection_leaves_open_whether_a_write_was_done() -> None:
    outcomes = set()
    for seed in range(20):
        cluster = two(seed=seed)
        answer = cluster.send("a", Create(path="/n"))
        cluster.world.run_until(cluster.world.now_us + 700, events_max=10_000)
        cluster.ensemble.hang_up(cluster.heard["a"].session.id)
        cluster.run_ms(300)
        if answer == [Failed(error=Error.CONNECTION_LOSS)]:
            outcomes.add(type(cluster.ask("b", GetData(path="/n"))))
    assert outcomes == {Data, Failed}


def test_nothing_goes_out_while_disconnected() -> None:
    cluster = two()
    cluster.ensemble.hang_up(cluster.heard["a"].session.id)
    cluster.run_ms(3)
    assert not cluster.heard["a"].session.is_connected
    assert cluster.ask("a", Create(path="/n")) == Failed(error=Error.CONNECTION_LOSS)
    cluster.run_ms(300)
    assert cluster.heard["a"].session.is_connected
    assert cluster.ask("b", GetData(path="/n")) == Failed(error=Error.NO_NODE)


def test_what_a_session_asks_while_it_is_ended_is_not_done() -> None:
    """An ephemeral node that was created then would have nobody to go with."""
    cluster = two()
    cluster.ensemble.expire(cluster.heard["a"].session.id)
    for path in ("/e", "/f"):
        cluster.send("a", Create(path=path, is_ephemeral=True))
    cluster.run_ms(300)
    assert cluster.ensemble.tree.paths() == ["/"]


def test_operation_of_an_expired_session_never_goes_out_on_the_next() -> None:
    cluster = two()
    expired = cluster.heard["a"].session.id
    cluster.ensemble.expire(expired)
    cluster.run_ms(300)
    heard = cluster.heard["a"]
    assert heard.states == [CONNECTING, CONNECTED, CONNECTING, CLOSED, CONNECTING, CONNECTED]
    assert heard.session.id != expired
    answers: list[object] = []
    cluster.clients["a"].ask(Create(path="/n"), session_id=expired, done=answers.append)
    cluster.run_ms(20)
    assert answers == [Failed(error=Error.SESSION_EXPIRED)]
    assert cluster.ask("b", GetData(path="/n")) == Failed(error=Error.NO_NODE)


def test_client_that_is_cut_off_does_not_hear_that_its_session_has_ended() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/e", is_ephemeral=True))
    cluster.clients["a"].cut()
    cluster.run_ms(3000)
    heard = cluster.heard["a"]
    assert heard.states == [CONNECTING, CONNECTED, CONNECTING]
    due_ms = heard.session.may_have_expired_at_ms
    assert due_ms is not None
    assert due_ms < cluster.world.now_ms
    assert cluster.ask("b", GetData(path="/e")) == Failed(error=Error.NO_NODE)
    cluster.clients["a"].heal()
    cluster.run_ms(500)
    assert heard.states[3:] == [CLOSED, CONNECTING, CONNECTED]


def test_short_cut_goes_unnoticed_and_costs_nothing() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/e", is_ephemeral=True))
    cluster.clients["a"].cut()
    answer = cluster.send("a", SetData(path="/e", data=b"late"))
    cluster.run_ms(300)
    assert answer == []
    cluster.clients["a"].heal()
    cluster.run_ms(20)
    assert isinstance(answer[0], Written)
    assert cluster.heard["a"].states == [CONNECTING, CONNECTED]


def test_paused_process_learns_of_its_end_when_it_wakes() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/e", is_ephemeral=True))
    cluster.clients["a"].pause()
    cluster.run_ms(2000)
    assert cluster.ask("b", GetData(path="/e")) == Failed(error=Error.NO_NODE)
    assert cluster.heard["a"].states == [CONNECTING, CONNECTED]
    zombie = cluster.send("a", Create(path="/zombie"))
    cluster.clients["a"].resume()
    cluster.run_ms(500)
    assert zombie == [Failed(error=Error.CONNECTION_LOSS)]
    assert cluster.heard["a"].states[2:] == [CONNECTING, CLOSED, CONNECTING, CONNECTED]
    assert cluster.ask("b", GetData(path="/zombie")) == Failed(error=Error.NO_NODE)


@pytest.mark.parametrize("seed", range(5))
def test_new_leader_keeps_what_was_committed_and_gives_sessions_their_time_again(
    seed: int,
) -> None:
    cluster = two(seed=seed)
    cluster.ask("a", Create(path="/e", is_ephemeral=True))
    session_ids = cluster.ensemble.session_ids
    assert cluster.ensemble.leader_id is not None
    cluster.ensemble.kill(cluster.ensemble.leader_id)
    cluster.run_ms(1500)
    assert cluster.heard["a"].session.is_connected
    assert cluster.ensemble.session_ids == session_ids
    assert isinstance(cluster.ask("b", GetData(path="/e")), Data)
    assert isinstance(cluster.ask("b", SetData(path="/e", data=b"2", version=0)), Written)


def test_minority_serves_nobody() -> None:
    cluster = two()
    cluster.ensemble.kill(1)
    cluster.ensemble.kill(2)
    cluster.run_ms(5000)
    assert not cluster.heard["a"].session.is_connected
    cluster.ensemble.restart(1)
    cluster.run_ms(2000)
    assert cluster.heard["a"].session.is_connected


def test_restarted_server_catches_up() -> None:
    cluster = two()
    cluster.ensemble.kill(3)
    cluster.run_ms(500)
    for number in range(10):
        cluster.ask("a", Create(path=f"/{number}"))
    cluster.ensemble.restart(3)
    cluster.run_ms(100)
    trees = {tuple(server.tree.paths()) for server in cluster.ensemble.servers.values()}
    assert len(trees) == 1


def test_multi_is_done_as_a_whole_or_not_at_all() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/epoch", data=b"1"))
    stale = Multi(
        writes=(
            Create(path="/n"),
            Create(path="/n/s-", is_sequential=True),
            Check(path="/epoch", version=1),
        )
    )
    assert cluster.ask("a", stale) == Failed(error=Error.BAD_VERSION, index=2)
    assert cluster.ask("a", GetData(path="/n")) == Failed(error=Error.NO_NODE)
    fresh = replace(stale, writes=(*stale.writes[:2], Check(path="/epoch", version=0)))
    committed = cluster.ask("a", fresh)
    assert isinstance(committed, Committed)
    assert committed.results[1] == Created(path="/n/s-0000000000")


def test_request_that_is_too_large_costs_the_connection() -> None:
    cluster = two()
    fits = Create(path="/n", data=bytes(REQUEST_BYTES_MAX - 100))
    assert isinstance(cluster.ask("a", fits), Created)
    too_large = SetData(path="/n", data=bytes(REQUEST_BYTES_MAX))
    assert cluster.ask("a", too_large) == Failed(error=Error.CONNECTION_LOSS)
    cluster.run_ms(300)
    assert cluster.heard["a"].states == [CONNECTING, CONNECTED, CONNECTING, CONNECTED]


def test_watches_and_traffic_are_counted() -> None:
    cluster = two()
    cluster.ask("a", Create(path="/n"))
    cluster.run_ms(20)
    for name in ("a", "b"):
        cluster.ask(name, GetChildren(path="/n", watch=True))
    assert cluster.ensemble.watch_count == 2
    cluster.ask("a", Create(path="/n/child"))
    cluster.run_ms(20)
    assert cluster.ensemble.watch_count == 0
    assert cluster.ensemble.traffic["WatchFired"] == 2
    assert cluster.ensemble.traffic["GetChildren"] == 2


def test_same_seed_gives_the_same_run() -> None:
    def run() -> list[object]:
        cluster = two(seed=7)
        for number in range(20):
            cluster.send("a", Create(path=f"/{number}", is_ephemeral=number % 2 == 0))
        cluster.send("b", GetChildren(path="/", watch=True))
        cluster.ensemble.kill(2)
        cluster.run_ms(3000)
        return [*cluster.heard["a"].told, *cluster.heard["b"].told]

    assert run() == run()


def test_children_are_told_in_order_of_their_names() -> None:
    cluster = two()
    for name in ("b", "c", "a"):
        cluster.ask("a", Create(path=f"/{name}"))
    found = cluster.ask("a", GetChildren(path="/"))
    assert isinstance(found, Children)
    assert found.names == ("a", "b", "c")
