"""What happens to a simulated quorum, step by step. Its invariants are checked after every event.

Links and disks are healthy and no faults are drawn: the scenario does everything. Only delays
differ from seed to seed. What must come and does not is `Stuck`. Every step is noted in the
production's account, and what clients of the quorum see (`quorum.clients`) is its history.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from jepsen_like.faults.cut_links import both_ways
from jepsen_like.sim.host import Host
from jepsen_like.sim.network import LinkCut, Message
from jepsen_like.sim.node_disk import DiskFaults
from jepsen_like.sim.observer import Observer
from jepsen_like.sim.pace import AT_ONCE
from jepsen_like.sim.quorum.administrator import ADMINISTRATOR, Administrator
from jepsen_like.sim.quorum.appending_clients import Clients
from jepsen_like.sim.quorum.quorum_options import Options
from jepsen_like.sim.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.violation import Stuck
from quorum.core.effects import Effect
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ReplicaKey

__all__ = ["Scenario"]

_EVENTS_MAX = 300_000
_WAIT_MS = 2_000
_ANSWER_MS = 500  # for the last question
CALM = Options(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    fetch_max_wait_ms=50,
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    shutdown_timeout_ms=100,
    propose_interval_ms=20,
    turns_us=AT_ONCE,
)


class Scenario(Observer):
    """`options` are those of a quorum."""

    def __init__(self, production: Production, **options: Any) -> None:
        wanted = replace(CALM, **options)
        self.quorum = SimulatedQuorum(production.seed, wanted, is_judged=production.is_judged)
        self._world = world = self.quorum.world
        self.counts = self.quorum.counts.by_kind
        self.administrator = Administrator(
            world=world,
            network=self.quorum.network,
            view=self.quorum.invariants.view,
            counts=self.quorum.counts,
            timeout_ms=self.quorum.options.request_timeout_ms,
        )
        world.delivers_elsewhere[ADMINISTRATOR] = self.administrator.deliver
        self._production = production
        self._clients = Clients(production, self.quorum)
        self._led: dict[int, int | None] = {}  # by node: the epoch that it leads
        world.observe(self)
        self._cuts: list[LinkCut] = []
        self.quorum.start()
        production.note(f"{wanted.voters} voters, kraft.version {wanted.kraft_version}")

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

    def note(self, what: str) -> None:
        self._production.note(what)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Note who leads, when that changes."""
        node, replica = host.node_id, self.quorum.replicas[host.node_id]
        led = replica.leader.epoch if replica.leads else None
        before = self._led.get(node)
        if led != before:
            self._led[node] = led
            self.note(f"{node} leads epoch {led}" if led else f"{node} leads {before} no more")

    def _reach(self, bound: str, condition: Callable[[], bool], within_ms: int, what: str) -> None:
        """Stuck under the name of `bound` if it does not come true."""
        if not self._world.reaches(condition, within_ms, _EVENTS_MAX):
            raise Stuck(bound, f"not within {within_ms} ms: {what}; {self.quorum.summary()}")

    def leads(self, node: int) -> tuple[int | None, int]:
        """Whom the node takes for the leader, and of which epoch."""
        leader = self.quorum.replicas[node].leader
        return leader.leader_id, leader.epoch

    # --- steps --------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        self._world.run_until(self._world.now_us + ms * 1000, events_max=_EVENTS_MAX)

    def until(self, bound: str, condition: Callable[[], bool], what: str) -> None:
        self._reach(bound, condition, _WAIT_MS, what)
        self.note(what)

    def leader(self, among: Iterable[int] | None = None, within_ms: int = _WAIT_MS) -> int:
        """Wait until one of `among` leads, and all of them that are up know it."""
        nodes = self.nodes if among is None else list(among)
        found: list[int] = []

        def is_led() -> bool:
            up = [node for node in nodes if self.host(node).is_up]
            told = {self.quorum.replicas[node].leader for node in up}
            leading = [node for node in up if self.quorum.replicas[node].leads]
            found[:] = leading
            return len(told) == 1 and len(leading) == 1

        self._reach("L-EL", is_led, within_ms, "one of them leads, and all know it")
        return found[0]

    def first_leader(self, among: Iterable[int]) -> int:
        """As soon as one of them leads, whoever knows it."""
        nodes = list(among)

        def leading() -> list[int]:
            return [node for node in nodes if self.quorum.replicas[node].leads]

        self._reach("L-EL", lambda: bool(leading()), _WAIT_MS, "one of them leads")
        return leading()[0]

    def commits(self, records: int = 5, within_ms: int = _WAIT_MS) -> None:
        """Wait until so many more records are committed."""
        goal = self.committed + records
        what = f"{records} more records are committed"
        self._reach("L-HW", lambda: self.committed >= goal, within_ms, what)
        self.note(what)

    def propose(self) -> None:
        self.note("the leader is given a batch")
        self.quorum.propose()

    def propose_if_leading(self, node: int) -> None:
        """If this node takes itself for the leader, it is given a batch."""
        replica = self.quorum.replicas[node]
        if replica.application.leads_epoch is not None:
            self.note(f"{node} is given a batch")
            self.host(node).command(replica.propose)

    def converges(self, within_ms: int = 3000) -> None:
        """All logs that are up are the same, and all of it is committed and applied."""
        self._reach("L-EL", lambda: self.quorum.leader() is not None, within_ms, "somebody leads")
        self.quorum.stop_proposing()
        before = self.quorum.invariants.committed_offset
        self.quorum.propose()
        what = "all logs are the same, and committed"
        self._reach("L-HW", lambda: self.quorum.has_converged(above=before), within_ms, what)
        self.note(what)
        self.quorum.resume_proposing()

    def finish(self) -> None:
        """Everything is healed, and everybody started: the quorum must come to rest.

        Then whoever leads is asked for all that there is.
        """
        self.note("everything is healed, and everybody started")
        self.heal()
        for host in self.quorum.hosts:
            host.disk.faults = self.quorum.options.disks
            if not host.is_up:
                host.start()
        if self._production.is_judged:
            self.converges()
        else:
            self.quorum.stop_proposing()
            self.run(_WAIT_MS)
        self._clients.ask_leaders()
        self.run(_ANSWER_MS)
        self._production.end()

    def stays(self, ms: int) -> None:
        """Nothing is committed, although there is time."""
        before = self.committed
        self.run(ms)
        assert self.committed == before, self.quorum.summary()

    # --- faults -------------------------------------------------------------------------

    def kill(self, *nodes: int, power_loss: bool = False) -> None:
        for node in nodes:
            self.note(f"{node} {'loses power' if power_loss else 'is killed'}")
            self._led.pop(node, None)
            self.host(node).crash(power_loss=power_loss)

    def restart(self, *nodes: int) -> None:
        for node in nodes:
            self.note(f"{node} is started")
            self.host(node).start()

    def shut_down(self, node: int) -> None:
        """In good order."""
        self.note(f"{node} is told to stop in order")
        host = self.host(node)
        host.command(self.quorum.replicas[node].shut_down)
        assert self._world.reaches(lambda: not host.is_up, 1000, _EVENTS_MAX)

    def wipe(self, node: int) -> None:
        """Its disk is lost; it comes back with an empty one."""
        self.kill(node)
        self.note(f"{node} loses its disk")
        self.host(node).disk.wipe()
        self.restart(node)

    def disk(self, node: int, faults: DiskFaults) -> None:
        """How this node's disk is from now on."""
        self.host(node).disk.faults = faults

    def cut(self, side: Iterable[int], *, requests_only: bool = False) -> None:
        """Between these nodes and all others."""
        inside = set(side)
        others = [node for node in self.nodes if node not in inside]
        links = both_ways(sorted(inside), others)
        if requests_only:
            self.quorum.network.takes = lambda message: _is_request_over(message, links)
        else:
            self.note(f"{sorted(inside)} are cut off from {others}")
            self._cut(links)

    def cut_between(self, one: int, others: Iterable[int]) -> None:
        """Both ways, between one node and these."""
        others = sorted(others)
        self.note(f"{one} is cut off from {others}")
        self._cut(both_ways([one], others))

    def _cut(self, links: list[tuple[int, int]]) -> None:
        self._cuts.append(self.quorum.network.cut(links, kind="partition"))

    def heal(self) -> None:
        if self._cuts:
            self.note("the links are whole again")
        self.quorum.network.takes = lambda _message: False
        for cut in self._cuts:
            self.quorum.network.heal(cut)
        self._cuts.clear()

    # --- voters and snapshots -----------------------------------------------------------

    def add_voter(self, node: int, to: int | None = None) -> None:
        self.note(f"an administrator adds voter {node}")
        self.administrator.add(self.host(to or self.leader()), self.host(node))

    def remove_voter(self, voter: ReplicaKey, to: int | None = None) -> None:
        self.note(f"an administrator removes voter {voter.id}")
        self.administrator.remove(self.host(to or self.leader()), voter)

    def has_voters(self, *voters: int, within_ms: int = _WAIT_MS) -> None:
        what = f"the voters are {[*voters]}"
        self._reach("L-MC", lambda: self.voters == [*voters], within_ms, what)
        self.note(what)

    def log_start(self, node: int) -> int:
        return self.host(node).disk.log(METADATA_LOG).written.start_offset


def _is_request_over(message: Message, links: list[tuple[int, int]]) -> bool:
    return message.is_request and (message.source, message.target) in links
