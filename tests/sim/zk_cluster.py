"""An ensemble with clients, and what each of them has heard, in order."""

from dataclasses import dataclass, field

from jepsen_like.sim.ensemble.zk_client import EnsembleClient
from jepsen_like.sim.ensemble.zk_ensemble import Ensemble
from jepsen_like.sim.time.virtual_time import VirtualTime
from wire.zk.session import (
    Operation,
    Result,
    Session,
    SessionChanged,
    SessionEvent,
    SessionState,
    WatchFired,
)

__all__ = ["Heard", "ZkCluster"]

EVENTS_MAX = 1_000_000


@dataclass
class Heard:
    """One client's view. `told` has results and events as they came."""

    told: list[Result | SessionEvent] = field(default_factory=list)
    session: Session = field(default_factory=Session)

    @property
    def states(self) -> list[SessionState]:
        return [each.state for each in self.told if isinstance(each, SessionChanged)]

    @property
    def watches(self) -> list[WatchFired]:
        return [each for each in self.told if isinstance(each, WatchFired)]


class ZkCluster:
    def __init__(self, *, servers: int = 3, seed: int = 1, timeout_ms: int = 1000) -> None:
        self.world = VirtualTime(seed)
        self.ensemble = Ensemble(self.world, servers=servers)
        self.timeout_ms = timeout_ms
        self.heard: dict[str, Heard] = {}
        self.clients: dict[str, EnsembleClient] = {}

    def client(self, name: str) -> EnsembleClient:
        """A new one, which is connected when this returns."""
        heard = self.heard[name] = Heard()

        def hear(event: SessionEvent) -> None:
            heard.told.append(event)
            if isinstance(event, SessionChanged):
                heard.session.become(event, self.world.now_ms)

        client = EnsembleClient(self.ensemble, name, timeout_ms=self.timeout_ms, hear=hear)
        self.clients[name] = client
        client.start()
        self.run_ms(100)
        assert heard.session.is_connected, heard.told
        return client

    def run_ms(self, milliseconds: int) -> None:
        self.world.run_until(self.world.now_us + milliseconds * 1000, events_max=EVENTS_MAX)

    def send(self, name: str, operation: Operation) -> list[Result]:
        """Ask without waiting; the list gets the answer."""
        answers: list[Result] = []
        heard = self.heard[name]

        def done(result: Result) -> None:
            answers.append(result)
            heard.told.append(result)

        self.clients[name].ask(operation, session_id=heard.session.id, done=done)
        return answers

    def ask(self, name: str, operation: Operation) -> Result:
        answers = self.send(name, operation)
        for _ in range(1000):
            if answers:
                break
            self.run_ms(1)
        assert len(answers) == 1, (operation, answers)
        return answers[0]
