"""A simulated quorum that is directed, step by step, by a scenario, a schedule or a test.

Links and disks are healthy and no faults are drawn: who directs it does everything. Only delays
differ from seed to seed. The invariants are checked after every event. A step that must come to
pass and does not is `Stuck`. What clients of the quorum see is the history of the production.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from jepsen_like.scenarios.language.forms import Names
from jepsen_like.scenarios.quorum.quorum_story import QuorumStory
from jepsen_like.scenarios.stage.machines import SimulatedMachines
from jepsen_like.scenarios.stage.steady_streams import SteadyStreams
from jepsen_like.scenarios.stage.story import Production, Story
from jepsen_like.sim.assemblies.quorum.appending_clients import Clients
from jepsen_like.sim.assemblies.quorum.clients.administrator import Administrator
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.simulated_quorum import SimulatedQuorum, SimulatedReplica
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.time.pace import AT_ONCE
from jepsen_like.sim.time.virtual_time import EventsSpent
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import Message
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ReplicaKey
from wire.batch import data_batch

__all__ = ["DirectedQuorum"]

_EVENTS_MAX = 300_000
_WAIT_MS = 2_000
_ANSWER_MS = 500  # for the last question
_REST_MS = 100  # what is under way arrives, and all hear what is committed
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


class DirectedQuorum(Observer):
    """`changed`: options of the quorum."""

    def __init__(
        self,
        production: Production,
        options: Options = CALM,
        *,
        streams: SteadyStreams | None = None,
        tracer: QuorumStory | None = None,
        **changed: Any,
    ) -> None:
        wanted = replace(options, **changed)
        self.quorum = quorum = SimulatedQuorum(
            production.seed, wanted, tracer=tracer, is_judged=production.is_judged, streams=streams
        )
        self._world = world = quorum.world
        self.counts = quorum.counts.by_kind
        self.names = Names(lambda: self.nodes)
        self.machines = SimulatedMachines(
            world,
            self.names,
            note=production.note,
            forget=self._forget,
            events_max=_EVENTS_MAX if tracer is None else None,
        )
        self.streams = streams
        self.story = Story()
        self.note = production.note
        self._tracer = tracer
        if tracer is not None:
            self.story, tracer.slow = tracer.story, self.machines.slow
        self._production = production
        self._administrator = Administrator(quorum)
        self._clients = Clients(production, quorum)
        self._led: dict[int, int | None] = {}  # by node: the epoch that it leads
        world.observe(self)
        quorum.start()
        self.note(f"{wanted.voters} voters, kraft.version {wanted.kraft_version}")

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Note who leads, when that changes."""
        node, replica = host.node_id, self.quorum.nodes[host.node_id]
        led = replica.leader.epoch if replica.leads else None
        before = self._led.get(node)
        if led != before:
            self._led[node] = led
            name = self.names.of(node)
            self.note(f"{name} leads epoch {led if led else f'{before} no more'}")

    # --- what is known ------------------------------------------------------------------

    def host(self, node: int) -> Host:
        return self.quorum.hosts[node - 1]

    def replica(self, node: int) -> SimulatedReplica:
        return self.quorum.nodes[node]

    @property
    def nodes(self) -> list[int]:
        return [host.node_id for host in self.quorum.hosts]

    def others(self, *nodes: int) -> list[int]:
        return [node for node in self.nodes if node not in nodes]

    @property
    def committed(self) -> int:
        return self.committed_offset()

    def committed_offset(self) -> int:
        """Up to which records are committed by now."""
        return self.quorum.invariants.committed_offset

    def epoch(self, node: int) -> int:
        """The epoch in which the node is by now."""
        return self.replica(node).leader.epoch

    @property
    def voters(self) -> list[int]:
        return [voter.id for voter in self.quorum.invariants.view.committed_voters]

    @property
    def newest_leader(self) -> int | None:
        """The node that takes itself for the leader, in the newest epoch if there are several."""
        leading = [node for node in self.machines.up if self.replica(node).leads]
        return max(leading, key=lambda node: self.replica(node).leader.epoch, default=None)

    def leads(self, node: int) -> tuple[int | None, int]:
        """Whom the node takes for the leader, and of which epoch."""
        leader = self.replica(node).leader
        return leader.leader_id, leader.epoch

    def is_followed(self, leader: int) -> bool:
        """Do all nodes that it reaches follow it?"""
        known = self.replica(leader).leader
        reached = [node for node in self.machines.up if not self.machines.are_cut(leader, node)]
        return all(self.replica(node).leader == known for node in reached)

    def takes_records(self, node: int) -> bool:
        """It leads, and has committed the first record of its epoch."""
        application = self.replica(node).application
        return node in self.machines.up and application.leads_epoch is not None

    def written(self, node: int) -> Content:
        return self.host(node).disk.log(METADATA_LOG).written

    def durable(self, node: int) -> Content:
        return self.host(node).disk.log(METADATA_LOG).durable

    def end_offset(self, node: int) -> int:
        """Where its log ends by now."""
        return self.replica(node).end_offset

    def log_start(self, node: int) -> int:
        return self.written(node).start_offset

    def is_led_by_one(self, among: Iterable[int]) -> bool:
        """One of these leads, and those of them that are up know it."""
        return self.who_leads(among) is not None

    def who_leads(self, among: Iterable[int]) -> int | None:
        """One of these leads, and all of them that are up know it."""
        up = [node for node in among if self.host(node).is_up]
        told = {self.replica(node).leader for node in up}
        leading = [node for node in up if self.replica(node).leads]
        return leading[0] if len(told) == 1 and len(leading) == 1 else None

    # --- time ---------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        self.machines.run(ms)

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        bound: str = "L-HW",
        within_ms: int = _WAIT_MS,
    ) -> None:
        self._reach(bound, condition, within_ms, what)
        self.note(what)

    def _reach(self, bound: str, condition: Callable[[], bool], within_ms: int, what: str) -> None:
        """Stuck under the name of `bound` if it does not come true."""
        if not self._world.reaches(condition, within_ms, _EVENTS_MAX):
            raise Stuck(bound, f"not within {within_ms} ms: {what}; {self.quorum.summary()}")

    def leader(self, among: Iterable[int] | None = None, within_ms: int = _WAIT_MS) -> int:
        """Wait until one of these nodes leads, and those of them that are up know it."""
        nodes = self.nodes if among is None else list(among)
        what = "one of them leads, and all know it"
        self._reach("L-EL", lambda: self.who_leads(nodes) is not None, within_ms, what)
        leader = self.who_leads(nodes)
        assert leader is not None
        return leader

    def first_leader(self, among: Iterable[int]) -> int:
        """Wait until one of these nodes leads, whoever knows it."""
        nodes = list(among)

        def leading() -> list[int]:
            return [node for node in nodes if self.replica(node).leads]

        self._reach("L-EL", lambda: bool(leading()), _WAIT_MS, "one of them leads")
        return leading()[0]

    def commits(self, records: int = 5, within_ms: int = _WAIT_MS) -> None:
        """Wait until so many more records are committed."""
        goal = self.committed + records
        what = f"{records} more records are committed"
        self.until(lambda: self.committed >= goal, what, within_ms=within_ms)

    def rest(self) -> None:
        """Wait until nothing more is written, and all know one log committed."""
        self.quorum.let_propose(False)
        self.run(_REST_MS)

    def converges(self, within_ms: int = 3000) -> None:
        """Wait until all logs that are up are the same, committed and applied."""
        self._reach("L-EL", lambda: self.quorum.leader() is not None, within_ms, "somebody leads")
        self.quorum.let_propose(False)
        before = self.committed
        self.quorum.propose()
        what = "all logs are the same, and committed"
        self.until(lambda: self.quorum.has_converged(above=before), what, within_ms=within_ms)
        self.quorum.let_propose(True)

    def must_lead_on(self, node: int, epoch: int) -> None:
        """An error if something has deposed it (L-ST)."""
        after = self.leads(node)
        if after != (node, epoch) and self._production.is_judged:
            before = (node, epoch)
            raise Violation("L-ST", f"leader and epoch were {before}, and are now {after}")

    def finish(self) -> None:
        """Everything is healed, and everybody started: the quorum must come to rest.

        Then whoever leads is asked for all that there is.
        """
        self.note("everything is healed, and everybody started")
        self.heal()
        self.machines.messages.lose()
        for host in self.quorum.hosts:
            host.disk.faults = self.quorum.options.disks
            host.resume()
            if not host.is_up:
                host.start()
        if self._production.is_judged:
            self.converges()
        else:
            self.quorum.let_propose(False)
            with suppress(EventsSpent):
                self.run(_WAIT_MS)
        self._clients.ask_leaders()
        self.run(_ANSWER_MS)
        self._production.end()

    # --- records ------------------------------------------------------------------------

    def stop_proposing(self) -> None:
        """Applications give their leaders no records."""
        self.quorum.let_propose(False)

    def resume_proposing(self) -> None:
        """Applications give their leaders records now and then."""
        self.quorum.let_propose(True)

    def propose(self, node: int) -> None:
        """The node is given a batch, if it takes itself for the leader."""
        if self.replica(node).application.leads_epoch is not None:
            self.note(f"{self.names.of(node)} is given a batch")
            self.host(node).command(self.replica(node).propose)

    def write(self, leader: int, records: int) -> None:
        """Each in a batch of its own: no other log can end within one."""
        quorum, host, raft = self.quorum, self.host(leader), self.replica(leader).raft

        def propose(now_ms: int) -> None:
            for _ in range(records):
                value = quorum.world.sequence().to_bytes(8, "big")
                batch = data_batch([value], timestamp_ms=now_ms)
                quorum.proposes(host, [value], raft.append(batch, now_ms))

        self.note(f"{self.names.of(leader)} is given {records} record{'s' * (records > 1)}")
        host.command(propose)

    def write_to_one_end(self, records: int, one: int, other: int) -> None:
        """Write to both, until their logs end at the same offset."""
        self.write(one, records)
        self.write(other, records)
        shorter, longer = sorted((one, other), key=self.end_offset)
        missing = self.end_offset(longer) - self.end_offset(shorter)
        if missing:
            self.write(shorter, missing)

    def restart_until(self, node: int, other: int) -> None:
        """Each election of a third node adds a record to its log."""
        while self.end_offset(node) < self.end_offset(other):
            self.kill(node)
            self.restart(node)
            self.leader(self.others(other))

    def commit_unheard(self, batches: int, leader: int, by: Iterable[int]) -> None:
        """These followers commit the last batches of the leader, which does not hear so.

        That matters, since a node stops before it takes back what it knows to be committed. No
        answer of the leader arrives at them any more: cut it off next, or kill it.
        """
        followers = set(by)
        self.rest()
        for _ in range(batches):
            self.propose(leader)
        end_offset = self.end_offset(leader)
        self.until(
            lambda: all(self.end_offset(node) == end_offset for node in followers),
            f"{self.names.listed(sorted(followers))} have it",
        )

        def is_news(message: Message) -> bool:
            is_told = message.source == leader and message.target in followers
            return is_told and not message.is_request

        self.note(f"no answer of {self.names.of(leader)} arrives any more")
        self.machines.hold(is_news)
        replica = self.replica(leader)
        self.until(lambda: replica.high_watermark == end_offset, "it is committed")

    # --- faults -------------------------------------------------------------------------

    def wake(self, node: int) -> None:
        """It does what is due, so that what comes next comes alone."""
        self.host(node).command(lambda _now_ms: None)

    def _forget(self, node: int) -> None:
        """Its process has ended."""
        self._led.pop(node, None)
        if self._tracer is not None:
            self._tracer.forget(node)

    def kill(self, *nodes: int, power_loss: bool = False) -> None:
        """Chance says how much of what is not synced a loss of power takes."""
        for node in nodes:
            self.note(f"{self.names.of(node)} {'loses power' if power_loss else 'is killed'}")
            self._forget(node)
            self.host(node).crash(power_loss=power_loss)

    def restart(self, *nodes: int) -> None:
        for node in nodes:
            self.machines.restart(node)

    def stop(self, node: int) -> None:
        self.host(node).command(self.replica(node).shut_down)

    def resign(self, node: int) -> None:
        self.note(f"{self.names.of(node)} resigns")
        self.host(node).command(self.replica(node).resign)

    def wipe(self, node: int) -> None:
        """Its disk is lost, while no process runs."""
        self.note(f"{self.names.of(node)} loses its disk")
        self.host(node).disk.wipe()

    def cut(self, side: Iterable[int]) -> None:
        """Between these nodes and all others."""
        inside = list(side)
        self.machines.cut(inside, self.others(*inside))

    def heal(self) -> None:
        self.machines.heal()

    # --- voters -------------------------------------------------------------------------

    def add_voter(self, node: int, to: int | None = None) -> None:
        """Ask the other, which takes itself for the leader, to let this node vote."""
        self.note(f"an administrator adds voter {self.names.of(node)}")
        self._administrator.add(self.host(to or self.leader()), self.host(node))

    def remove_voter(self, voter: ReplicaKey, to: int | None = None) -> None:
        self.note(f"an administrator removes voter {self.names.of(voter.id)}")
        self._administrator.remove(self.host(to or self.leader()), voter)
