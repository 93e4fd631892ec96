"""A simulated cluster that a scenario, a schedule or a test directs: controllers, brokers, and one
topic of one partition, orders-0.

Nothing happens to it by itself. Who directs it holds a few messages back, and stops a few processes
at the right moments; the invariants look on as in every run. `finish` heals all and demands that
the cluster comes to rest with everything that was promised.
"""

from contextlib import suppress

from broker.broker import Broker
from broker.partition.partition import LeaderOf, Partition
from controller.metadata.image import BrokerImage
from controller.metadata.partitions import PartitionState
from jepsen_like.clients.admin_client import reassignment
from jepsen_like.scenarios.cluster.cluster_story import ClusterStory
from jepsen_like.scenarios.cluster.directed_clients import DirectedClients, Produced
from jepsen_like.scenarios.cluster.directed_transactions import COORDINATED, DirectedTransactions
from jepsen_like.scenarios.language.forms import Misused, Names
from jepsen_like.scenarios.stage.machines import SimulatedMachines
from jepsen_like.scenarios.stage.steady_streams import SteadyStreams
from jepsen_like.scenarios.stage.story import Awaiting, News, Production, Story
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.cluster_run import check_end
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Key
from jepsen_like.sim.assemblies.cluster.liveness import Convergence, is_ready
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.time.virtual_time import EventsSpent
from jepsen_like.sim.violation import Stuck, Violation
from wire.messages.partitions import ElectLeadersRequest

__all__ = ["PARTITION", "WAIT_MS", "DirectedCluster"]

PARTITION = f"{TOPIC}-0"
WAIT_MS = Awaiting.wait_ms
_LAST = "!"
_LEADING_MS = 2_000  # until an elected leader knows of it, or a reader has all


class DirectedCluster(Awaiting):
    """Controllers have the first numbers, brokers the next."""

    machines: SimulatedMachines

    def __init__(
        self,
        production: Production,
        options: ClusterOptions,
        *,
        streams: SteadyStreams | None = None,
        tracer: ClusterStory | None = None,
        poll_us: int = 1_000,
        events_max: int | None = None,
    ) -> None:
        self.cluster = cluster = Cluster(
            production.seed, options, is_judged=production.is_judged, streams=streams
        )
        world = cluster.world
        production.now_us = lambda: world.now_us
        self.streams = streams
        self.story = Story()
        self.names = Names(lambda: self.machines.nodes)
        self.names.changing["controller"] = lambda: self.controller
        self.topics: dict[str, Key] = {}  # beside orders, by the name that a scenario gives them
        self._production = production
        if tracer is not None:
            self.story, tracer.cluster = tracer.story, cluster
            world.observe(tracer)
        self.machines = SimulatedMachines(
            world,
            self.names,
            note=production.note,
            looked=self._look if tracer is None else None,
            forget=(lambda _node: None) if tracer is None else tracer.forget,
            poll_us=poll_us,
            events_max=events_max,
        )
        self.clients = DirectedClients(
            production,
            cluster,
            self.names,
            self.story,
            timeout_ms=options.client_timeout_ms,
            reads_committed=cluster.has_read_committed if options.transaction_version else None,
        )
        self.clients.host = world.add_client(self.clients)
        self.sent = self.clients.sent
        self.transactions = DirectedTransactions(
            cluster, self.machines, production, self.names, self.story, self.sent
        )
        self._convergence = Convergence(cluster, events_max=self.machines.events_max, patience=2)
        self._news = News("metadata", self.names, self.note)
        for host in cluster.hosts.values():
            host.start()

    # --- what is known ------------------------------------------------------------------

    @property
    def controllers(self) -> tuple[int, ...]:
        return self.cluster.options.controllers

    @property
    def brokers(self) -> tuple[int, ...]:
        return self.cluster.options.brokers

    def node(self, node: int) -> ClusterNode:
        return self.cluster.nodes[node]

    @property
    def active_controller(self) -> int | None:
        return self.cluster.active_controller

    @property
    def controller(self) -> int:
        """The newest that takes itself for the active one, or the first if none does."""
        leading = [node for node in self.controllers if self.node(node).leads]
        newest = max(leading, key=lambda node: self.node(node).leader.epoch, default=None)
        return self.controllers[0] if newest is None else newest

    def registered(self, node: int) -> BrokerImage | None:
        return self.cluster.metadata.image.brokers.get(node)

    def is_fenced(self, node: int) -> bool | None:
        """None while it has never been registered."""
        registered = self.registered(node)
        return None if registered is None else registered.fenced

    def metadata_end(self, node: int) -> int:
        """Where its metadata log ends by now."""
        return self.node(node).end_offset

    def broker_epoch(self, node: int) -> int:
        """The epoch with which the broker is registered by now."""
        return self.cluster.metadata.image.brokers[node].epoch

    @property
    def is_ready(self) -> bool:
        """Is there a topic, and are all replicas in sync and all brokers registered?"""
        return is_ready(self.cluster) == ""

    @property
    def key(self) -> Key:
        """Raises Misused before there is a topic."""
        for key in self.cluster.partitions.watched:
            return key
        raise Misused(f"there is no {PARTITION}: `deliver until ready` waits for {PARTITION}")

    @property
    def partition(self) -> PartitionState | None:
        """As committed; None before there is one."""
        watched = self.cluster.partitions.watched.values()
        return next((each.state for each in watched), None)

    @property
    def state(self) -> PartitionState:
        state = self.partition
        assert state is not None, "there is no partition yet"
        return state

    @property
    def leader(self) -> int:
        return self.state.leader

    @property
    def isr(self) -> set[int]:
        return set() if self.partition is None else set(self.partition.isr)

    @property
    def replicas(self) -> tuple[int, ...]:
        """As they are committed, also where that breaks an invariant."""
        state = self.cluster.metadata.image.partition(*self.key)
        assert state is not None
        return state.replicas

    def broker(self, node: int) -> Broker:
        broker = self.cluster.broker(node)
        assert broker is not None, f"{node} is down"
        return broker

    def replica(self, node: int) -> Partition | None:
        """None where the broker is down, or has not heard of the partition."""
        broker = self.cluster.broker(node)
        if broker is None or not self.cluster.partitions.watched:
            return None
        found = broker.replicas.find("", *self.key)
        return found if isinstance(found, Partition) and found.log is not None else None

    def end_offset(self, node: int) -> int:
        """0 while it has not heard of the partition."""
        replica = self.replica(node)
        return 0 if replica is None else replica.open_log.end_offset

    def epoch(self, node: int) -> int:
        """The leader epoch in which the node leads or follows; -1 if it does neither."""
        replica = self.replica(node)
        return -1 if replica is None else replica.leader_epoch

    def is_leading(self, node: int, key: Key | None = None) -> bool:
        """Does it take itself for the leader?"""
        found = self.broker(node).replicas.find("", *(self.key if key is None else key))
        return isinstance(found, Partition) and isinstance(found.role, LeaderOf)

    def written(self, node: int) -> Content:
        stored = self.cluster.hosts[node].disk.logs.get(PARTITION)
        return Content([]) if stored is None else stored.written

    # --- the account --------------------------------------------------------------------

    def cast(self) -> None:
        """a leads at first, b and c are the other replicas; a broker without one comes next."""
        state = self.state
        rest = [replica for replica in state.replicas if replica != state.leader]
        idle = [broker for broker in self.brokers if broker not in state.replicas]
        cast = [state.leader, *rest, *idle]
        self.names.name("abcdefgh", cast)
        named = ", ".join(f"{self.names.of(node)} is broker {node}" for node in cast)
        self.note(f"{named}; min.insync.replicas is {self.cluster.options.min_insync_replicas}")
        self._look()

    def _look(self) -> None:
        """Note what has become of the partition, if that is news and the nodes have names."""
        state = self.partition
        if state is None or self.names.of(self.brokers[0]).isdecimal():
            return
        self._news.look(state.leader, state.leader_epoch, state.isr)

    def note(self, what: str) -> None:
        self._production.note(what)

    def _told_instead(self) -> str:
        return f"; {self.partition}"

    def begin(self, start_ms: int) -> None:
        """Wait until all are up, and give out the names."""
        self._convergence.reach("L-BR", is_ready, start_ms)
        self.cast()

    # --- processes and disks ------------------------------------------------------------

    def stop(self, node: int) -> None:
        """Tell the process to end in good order, and do not wait for it."""
        self.note(f"{self.names.of(node)} is told to stop in order")
        self.cluster.hosts[node].command(self.node(node).shut_down)

    def wipe(self, node: int) -> None:
        if node not in self.brokers:
            raise Misused(f"{node} is no broker: a controller's disk stays here")
        self.note(f"{self.names.of(node)} loses its disk")
        self.cluster.wipe(node)

    def resign(self, node: int) -> None:
        self.cluster.hosts[node].command(self.node(node).resign)

    def hold_reads(self, node: int) -> None:
        """Its disk reads nothing of orders-0 until `release reads of NODE`."""
        self.note(f"the disk of {self.names.of(node)} is slow to read")
        self._disk(node).held_reads[PARTITION] = []

    def has_held_reads(self, node: int) -> bool:
        """Its disk has been asked, and has not read."""
        return any(self._disk(node).held_reads.values())

    def release_reads(self, node: int) -> None:
        """Its disk has read what it was asked for."""
        self.note(f"the disk of {self.names.of(node)} has read")
        self._disk(node).let_reads_go(PARTITION)

    def _disk(self, node: int) -> Disk:
        disk = self.cluster.hosts[node].disk
        assert isinstance(disk, Disk), disk
        return disk

    # --- clients ------------------------------------------------------------------------

    def produce(self, value: str, to: int, producer: tuple[int, int] = (-1, -1)) -> Produced:
        """With acks=all; the answer is not awaited."""
        return self.clients.produce(self.key, value, to, producer)

    def read(self, of: int) -> None:
        self.clients.read(self.key, of)

    def read_to_the_end(self, of: int, within_ms: int = WAIT_MS, *, is_last: bool = False) -> bool:
        reader = self.clients.read(self.key, of, is_last=is_last)
        return self.machines.reach(lambda: reader.is_done, within_ms)

    def ask(self, node: int, body: object) -> object:
        """Anything, by a client whose history is not judged, and wait for the answer."""
        self.note(f"a client sends {type(body).__name__} to {self.names.of(node)}")
        answers: list[object] = []
        self.clients.order(node, body, answers.append)
        self.until(lambda: bool(answers), "it is answered")
        return answers[0]

    def write_register(self, value: int, to: int) -> None:
        """A client sets a topic's config, and is waited for."""
        process = self.clients.write_register(value, to)
        self.until(lambda: not self._production.is_open(process), f"{value} is written")

    def begin_register(self, value: int, to: int) -> None:
        """A client sets a topic's config, and is not waited for."""
        self.clients.write_register(value, to)

    def read_register(self, of: int) -> None:
        """A client asks this controller for what is committed."""
        process = self.clients.read_register(of)
        self.until(lambda: not self._production.is_open(process), "a client has looked it up")

    def reassign(self, replicas: list[int]) -> None:
        """An administrator wants these replicas and no others, and is not waited for."""
        self.note(f"an administrator wants the replicas to be {self.names.listed(replicas)}")
        self.clients.order(self.controller, reassignment(PARTITION, replicas))

    def prefer(self, node: int, controller: int) -> None:
        """Make it the first of the replicas, and have the first one elected."""

        def elect(_answer: object) -> None:
            self.clients.ask(controller, ElectLeadersRequest(), lambda _answer, _now_ms: None)

        self.clients.order(controller, reassignment(PARTITION, self._first(node)), elect)

    def _first(self, node: int) -> list[int]:
        return [node, *(replica for replica in self.state.replicas if replica != node)]

    def elect(self, node: int) -> None:
        """An administrator has this node, which is in sync, elected.

        Brokers learn of it when they do.
        """
        self.note(f"an administrator has {self.names.of(node)} elected")
        is_elected = self._elects(node, PARTITION)
        assert is_elected, f"{node} is not elected: {self.state}"

    def elect_coordinator(self, node: int) -> None:
        """An administrator has this node, which is in sync, elected for `__transaction_state-0`."""
        self.note(f"an administrator has {self.names.of(node)} coordinate transactions")
        assert self._elects(node, COORDINATED), f"{node} does not coordinate"

    def _elects(self, node: int, partition: str) -> bool:
        watched = self.cluster.partitions.watched[self.transactions.key_of(partition)]
        assert watched.state is not None
        first = [node, *(replica for replica in watched.state.replicas if replica != node)]
        self.clients.order(self.controller, reassignment(partition, first))

        def is_first() -> bool:
            return watched.state is not None and watched.state.replicas[0] == node

        if not self.machines.reach(is_first, WAIT_MS):
            return False
        self.clients.order(self.controller, ElectLeadersRequest())
        return self.machines.reach(
            lambda: watched.state is not None and watched.state.leader == node, WAIT_MS
        )

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything is let go and everybody started: the cluster must come to rest.

        Then a last record is written, and every replica leads once and is read from the beginning,
        so that clients can see what became of each of the logs.
        """
        self.note("everything is let go, and everybody is started")
        self.machines.heal()
        self.machines.messages.release()
        for host in self.cluster.hosts.values():
            host.resume()
            if not host.is_up:
                host.start()
        excused = () if self._production.is_judged else (Stuck, Violation, EventsSpent)
        with suppress(*excused):
            self._convergence.run()
            check_end(self.cluster)
        with suppress(*excused):
            self._write_behind()
            self._read_everything()
        self._production.end()

    def _write_behind(self) -> None:
        """A record that is read shows that what lies before it is not only late."""
        if self.leader in self.isr:
            last = self.produce(_LAST, to=self.leader)
            self.machines.reach(lambda: last.is_answered, _LEADING_MS)

    def _read_everything(self) -> None:
        first = self.leader
        if first in self.isr:
            self._read_of(first)
        for node in self.state.replicas:
            if node != first and node in self.isr and self._elects(node, PARTITION):
                self._read_of(node)

    def _read_of(self, node: int) -> None:
        """A leader that was elected just now may not know it yet, nor what is committed."""
        if not self.machines.reach(lambda: self.is_leading(node), _LEADING_MS):
            return
        self.machines.reach(lambda: self._knows_all(node), _LEADING_MS)
        self.read_to_the_end(node, _LEADING_MS, is_last=True)

    def _knows_all(self, node: int) -> bool:
        replica = self.replica(node)
        return replica is not None and (
            replica.open_log.high_watermark == replica.open_log.end_offset
        )
