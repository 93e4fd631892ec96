"""What happens to a simulated quorum, step by step. Its invariants are checked after every event.

Links and disks are healthy and no faults are drawn: the scenario does everything. Only delays
differ from seed to seed.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from jepsen_like.sim.host import Host
from jepsen_like.sim.network import Message
from jepsen_like.sim.quorum.administrator import Administrator
from jepsen_like.sim.quorum.options import Options
from jepsen_like.sim.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.world import World
from quorum.storage.contract import METADATA_LOG
from quorum.types import ReplicaKey

__all__ = ["Scenario"]

_EVENTS_MAX = 300_000
_CUT = "cut_two_way"
CALM = Options(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    fetch_max_wait_ms=50,
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    shutdown_timeout_ms=100,
    propose_interval_ms=20,
)


class Scenario:
    def __init__(self, seed: int, **options: Any) -> None:
        world = World(seed)
        self.quorum = SimulatedQuorum(world, replace(CALM, **options))
        self.counts = self.quorum.counts.by_kind
        self.administrator = Administrator(
            world=world,
            network=self.quorum.network,
            view=self.quorum.invariants.view,
            counts=self.quorum.counts,
            timeout_ms=self.quorum.options.request_timeout_ms,
        )
        self.quorum.delivers_elsewhere = self.administrator.deliver
        self._world = world
        self._cuts: list[list[tuple[int, int]]] = []
        self.quorum.start()

    def host(self, node: int) -> Host:
        return self.quorum.hosts[node - 1]

    def key(self, node: int) -> ReplicaKey:
        return ReplicaKey(node, self.host(node).directory_id)

    @property
    def nodes(self) -> list[int]:
        return [host.node_id for host in self.quorum.hosts]

    @property
    def committed(self) -> int:
        return self.quorum.invariants.committed_offset

    @property
    def voters(self) -> list[int]:
        return [voter.id for voter in self.quorum.invariants.view.committed_voters]

    # --- steps --------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        self._world.run_until(self._world.now_us + ms * 1000, events_max=_EVENTS_MAX)

    def leader(self, among: Iterable[int] | None = None, within_ms: int = 2000) -> int:
        """Wait until one of `among` leads, and all of them that are up know it."""
        nodes = self.nodes if among is None else list(among)
        found: list[int] = []

        def is_led() -> bool:
            up = [node for node in nodes if self.host(node).is_up]
            told = {self.quorum.replicas[node].leader for node in up}
            leading = [node for node in up if self.quorum.replicas[node].leads]
            found[:] = leading
            return len(told) == 1 and len(leading) == 1

        assert self.quorum.reaches(is_led, within_ms, _EVENTS_MAX), self.quorum.summary()
        return found[0]

    def commits(self, records: int = 5, within_ms: int = 2000) -> None:
        """Wait until so many more records are committed."""
        goal = self.committed + records
        reached = self.quorum.reaches(lambda: self.committed >= goal, within_ms, _EVENTS_MAX)
        assert reached, f"{self.committed} < {goal}: {self.quorum.summary()}"

    def converges(self, within_ms: int = 3000) -> None:
        """All logs that are up are the same, and all of it is committed and applied."""
        is_led = self.quorum.reaches(
            lambda: self.quorum.leader() is not None, within_ms, _EVENTS_MAX
        )
        assert is_led, self.quorum.summary()
        self.quorum.stop_proposing()
        self.quorum.propose()
        reached = self.quorum.reaches(self.quorum.has_converged, within_ms, _EVENTS_MAX)
        assert reached, self.quorum.summary()
        self.quorum.resume_proposing()

    def stays(self, ms: int) -> None:
        """Nothing is committed, although there is time."""
        before = self.committed
        self.run(ms)
        assert self.committed == before, self.quorum.summary()

    # --- faults -------------------------------------------------------------------------

    def kill(self, *nodes: int, power_loss: bool = False) -> None:
        for node in nodes:
            self.host(node).crash(power_loss=power_loss)

    def restart(self, *nodes: int) -> None:
        for node in nodes:
            self.host(node).start()

    def shut_down(self, node: int) -> None:
        """In good order."""
        host = self.host(node)
        host.command(self.quorum.replicas[node].shut_down)
        assert self.quorum.reaches(lambda: not host.is_up, 1000, _EVENTS_MAX)

    def wipe(self, node: int) -> None:
        """Its disk is lost; it comes back with an empty one."""
        self.kill(node)
        self.host(node).disk.wipe()
        self.restart(node)

    def cut(self, side: Iterable[int], *, requests_only: bool = False) -> None:
        """Between these nodes and all others."""
        inside = set(side)
        others = [node for node in self.nodes if node not in inside]
        links = [(a, b) for a in sorted(inside) for b in others]
        links += [(b, a) for a, b in links]
        if requests_only:
            self.quorum.network.takes = lambda message: _is_request_over(message, links)
        else:
            self.quorum.network.cut(links, kind=_CUT, holding=False)
            self._cuts.append(links)

    def heal(self) -> None:
        self.quorum.network.takes = lambda _message: False
        for links in self._cuts:
            self.quorum.network.heal(links, kind=_CUT)
        self._cuts.clear()

    # --- voters and snapshots -----------------------------------------------------------

    def add_voter(self, node: int, to: int | None = None) -> None:
        self.administrator.add(self.host(to or self.leader()), self.host(node))

    def remove_voter(self, voter: ReplicaKey, to: int | None = None) -> None:
        self.administrator.remove(self.host(to or self.leader()), voter)

    def has_voters(self, *voters: int, within_ms: int = 2000) -> None:
        reached = self.quorum.reaches(lambda: self.voters == [*voters], within_ms, _EVENTS_MAX)
        assert reached, (self.voters, self.quorum.summary())

    def log_start(self, node: int) -> int:
        return self.host(node).disk.log(METADATA_LOG).written.start_offset


def _is_request_over(message: Message, links: list[tuple[int, int]]) -> bool:
    return message.is_request and (message.source, message.target) in links
