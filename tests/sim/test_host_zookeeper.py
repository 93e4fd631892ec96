"""A process and its client of ZooKeeper: asked by an effect, heard as events, gone together."""

from jepsen_like.sim.ensemble.zk_client import EnsembleClient
from jepsen_like.sim.ensemble.zk_ensemble import Ensemble
from jepsen_like.sim.world.host import Host
from quorum.core.effects import Event, Stop, Token
from quorum.zookeeper.zk_effects import ZkEvent, ZkRequest, ZkResult, ask_by, session_hearer
from tests.sim.test_host import Bench
from wire.zk.session import (
    Create,
    Created,
    SessionChanged,
    SessionState,
)


class ZkBench(Bench):
    def __init__(self) -> None:
        super().__init__()
        self.ensemble = Ensemble(self.world)
        self.connect(self.hosts[1])
        self.run(100)

    def connect(self, host: Host) -> None:
        name = f"{host.node_id}/{host.incarnation}"
        hear = session_hearer(host)
        client = EnsembleClient(self.ensemble, name, timeout_ms=1000, hear=hear)
        host.accompany(client)
        ask_by(host, client)
        client.start()

    def states(self) -> list[SessionState]:
        return [
            event.event.state
            for event in self.answers()
            if isinstance(event, ZkEvent) and isinstance(event.event, SessionChanged)
        ]

    def create(self, path: str) -> None:
        (session_id,) = self.ensemble.session_ids
        effect = ZkRequest(
            token=Token("test", 1),
            session_id=session_id,
            operation=Create(path=path, is_ephemeral=True),
        )
        self.hosts[1].command(lambda _now_ms: self.cores[1].effects.append(effect))
        self.run(100)


def test_request_to_zookeeper_is_answered_with_its_token() -> None:
    bench = ZkBench()
    bench.create("/n")
    answer: Event = bench.answers()[-1]
    assert isinstance(answer, ZkResult)
    assert answer.token == Token("test", 1)
    assert isinstance(answer.result, Created)
    assert bench.states() == [SessionState.CONNECTING, SessionState.CONNECTED]


def test_session_of_a_killed_process_lives_until_its_time_is_over() -> None:
    bench = ZkBench()
    bench.create("/n")
    bench.hosts[1].crash(power_loss=False)
    bench.run(500)
    assert "/n" in bench.ensemble.tree.paths()
    bench.run(1000)
    assert bench.ensemble.tree.paths() == ["/"]


def test_process_that_stops_in_good_order_ends_its_session() -> None:
    bench = ZkBench()
    bench.create("/n")
    stop = Stop(reason="enough", exit_code=0)
    bench.hosts[1].command(lambda _now_ms: bench.cores[1].effects.append(stop))
    bench.run(20)
    assert bench.ensemble.tree.paths() == ["/"]


def test_paused_process_hears_of_its_expiry_after_it_wakes() -> None:
    bench = ZkBench()
    bench.create("/n")
    bench.hosts[1].pause()
    bench.run(2000)
    assert bench.ensemble.session_ids == ()
    assert len(bench.states()) == 2
    bench.hosts[1].resume()
    bench.run(1000)
    assert bench.states()[2:] == [
        SessionState.CONNECTING,
        SessionState.CLOSED,
        SessionState.CONNECTING,
        SessionState.CONNECTED,
    ]
