"""A stage for scripted schedules: a small cluster without random faults, and someone who directs.

The museum's bugs need a few messages held back and a few processes stopped at the right moments.
A schedule says just that; the invariants look on as in every run. `finish` heals all and demands
that the cluster comes to rest with everything that was promised. Every step is noted in the
production's account.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from broker.broker import Broker
from broker.partition import LeaderOf, Partition
from controller.metadata.partitions import PartitionState
from jepsen_like.sim.cluster.client import TOPIC, Key
from jepsen_like.sim.cluster.cluster import Cluster
from jepsen_like.sim.cluster.converging import Convergence
from jepsen_like.sim.cluster.end import check_end
from jepsen_like.sim.cluster.liveness import is_ready
from jepsen_like.sim.disk import Disk
from jepsen_like.sim.interception import Rule
from jepsen_like.sim.network import Message
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.stage_clients import Produced, StageClients, number_of
from jepsen_like.sim.schedules.stage_settings import WAIT_MS, StageSettings
from jepsen_like.sim.schedules.staged_faults import StagedFaults
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.sim.virtual_time import EventsSpent
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)

__all__ = ["Stage"]

_EVENTS_MAX = 20_000
_STEP_US = 1_000
_LAST = b"!"
_LEADING_MS = 2_000  # until an elected leader knows of it, or a reader has all


class Stage:
    """One topic of one partition. `settings`: as in `StageSettings`."""

    def __init__(self, production: Production, **settings: Any) -> None:
        self._production = production
        wanted = StageSettings(**settings)
        options = wanted.options(is_varied=production.seed != 0)
        self.cluster = Cluster(production.seed, options, is_judged=production.is_judged)
        world = self.cluster.world
        production.now_us = lambda: world.now_us
        faults = StagedFaults(world, note=production.note, name=self.name)
        self.kill, self.start = faults.kill, faults.start
        self.pause, self.resume = faults.pause, faults.resume
        self.hold, self.stop_fetching = faults.hold, faults.stop_fetching
        self.let_go, self.drop = faults.let_go, faults.drop
        self.messages = faults.messages
        self._names = dict.fromkeys(self.cluster.options.controllers[:1], "the controller")
        self._shown = ""
        self._clients = StageClients(production, self.cluster.judge, timeout_ms=WAIT_MS)
        self._host = self.cluster.world.add_client(self._clients)
        self._convergence = Convergence(self.cluster, events_max=_EVENTS_MAX, patience=2)
        for host in self.cluster.hosts.values():
            host.start()
        with _events_bounded():
            self._convergence.reach("L-BR", is_ready, wanted.start_ms)

    # --- the partition ------------------------------------------------------------------

    @property
    def controller(self) -> int:
        """The newest that takes itself for the active one, or the first if none does."""
        nodes, controllers = self.cluster.nodes, self.cluster.options.controllers
        leading = [node for node in controllers if nodes[node].leads]
        newest = max(leading, key=lambda node: nodes[node].leader.epoch, default=None)
        return controllers[0] if newest is None else newest

    def follows(self, node: int, controller: int) -> bool:
        """Does the node read the metadata of this controller?"""
        return self.cluster.nodes[node].leader.leader_id == controller

    @property
    def key(self) -> Key:
        return next(iter(self.cluster.partitions.watched))

    @property
    def state(self) -> PartitionState:
        """As the controller has committed it."""
        state = self.cluster.partitions.watched[self.key].state
        assert state is not None
        return state

    @property
    def leader(self) -> int:
        return self.state.leader

    @property
    def isr(self) -> set[int]:
        return set(self.state.isr)

    def cast(self) -> tuple[int, ...]:
        """The leader, and the other replicas in their order."""
        leader = self.leader
        cast = leader, *(replica for replica in self.state.replicas if replica != leader)
        self._names.update(zip(cast, "abcd", strict=False))
        self._names[self.controller] = "the controller"
        self._production.note(
            ", ".join(f"{self.name(node)} is broker {node}" for node in cast)
            + f"; min.insync.replicas is {self.cluster.options.min_insync_replicas}"
        )
        self._show()
        return cast

    def broker(self, node: int) -> Broker:
        broker = self.cluster.broker(node)
        assert broker is not None, f"{node} is down"
        return broker

    def partition(self, node: int) -> Partition:
        found = self.broker(node).replicas.find("", *self.key)
        assert isinstance(found, Partition), found
        return found

    def end_offset(self, node: int) -> int:
        """0 while it has not heard of the partition."""
        found = self.broker(node).replicas.find("", *self.key)
        return found.open_log.end_offset if isinstance(found, Partition) and found.log else 0

    def epoch(self, node: int) -> int:
        """The leader epoch in which the node leads or follows."""
        return self.partition(node).leader_epoch

    def high_watermark(self, node: int) -> int:
        return self.partition(node).open_log.high_watermark

    def is_fenced(self, node: int) -> bool:
        return self.cluster.metadata.image.brokers[node].fenced

    def broker_epoch(self, node: int) -> int:
        """As registered."""
        return self.cluster.metadata.image.brokers[node].epoch

    # --- the account --------------------------------------------------------------------

    def name(self, node: int) -> str:
        return self._names.get(node, str(node))

    def _show(self) -> None:
        """Note what has become of the partition, if that is news."""
        state = self.state
        leader = "nobody" if state.leader < 0 else self.name(state.leader)
        isr = ", ".join(sorted(map(self.name, state.isr)))
        shown = f"{leader} leads in epoch {state.leader_epoch}; in sync: {isr or 'nobody'}"
        if shown != self._shown and self._names:
            self._shown = shown
            self._production.note(f"metadata: {shown}")

    # --- time ---------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        self._run_for(ms * 1000)

    def _run_for(self, us: int) -> None:
        world = self.cluster.world
        with _events_bounded():
            world.run_until(world.now_us + us, events_max=_EVENTS_MAX)
        self._show()

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        bound: str = "",
        within_ms: int = WAIT_MS,
    ) -> None:
        """Stuck under the name of `bound` if it does not come true; without one, the schedule is
        not what it was meant to be."""
        if self._reaches(condition, within_ms):
            self._production.note(what)
            return
        assert bound, f"the schedule never came to this: {what}; {self.state}"
        raise Stuck(bound, f"not within {within_ms} ms: {what}")

    def _reaches(self, condition: Callable[[], bool], within_ms: int) -> bool:
        world = self.cluster.world
        end_us = world.now_us + within_ms * 1000
        while not condition():
            if world.now_us >= end_us:
                return False
            self._run_for(_STEP_US)
        return True

    # --- processes ----------------------------------------------------------------------

    def wipe(self, node: int) -> None:
        """Kill a broker, and take away what it had of partitions."""
        self.kill(node)
        self._production.note(f"{self.name(node)} loses its disk")
        self.cluster.wipe(node)

    def shut_down(self, node: int) -> None:
        self._production.note(f"{self.name(node)} is told to stop in order")
        self.cluster.hosts[node].command(self.broker(node).begin_shutdown)

    # --- messages -----------------------------------------------------------------------

    def divert(self, body: type, *, source: int, target: int, to: int) -> Rule:
        """One message arrives at another node, as on a connection that leads there."""
        what = f"{body.__name__} of {self.name(source)}"
        self._production.note(f"the next {what} will go astray, to {self.name(to)}")

        def matches(message: Message) -> bool:
            is_between = (message.source, message.target) == (source, target)
            if not is_between or not isinstance(message.body, body):
                return False
            self.cluster.hosts[to].deliver(message._replace(target=to))
            return True

        return self.messages.hold(matches, times=1)

    def hold_reads(self, node: int) -> None:
        """What the broker reads of the partition takes until `let_reads_go`."""
        self._production.note(f"the disk of {self.name(node)} is slow to read")
        self._disk(node).held_reads[self.partition(node).name] = []

    def has_held_reads(self, node: int) -> bool:
        return any(self._disk(node).held_reads.values())

    def let_reads_go(self, node: int) -> None:
        self._production.note(f"the disk of {self.name(node)} has read")
        self._disk(node).let_reads_go(self.partition(node).name)

    def _disk(self, node: int) -> Disk:
        disk = self.cluster.hosts[node].disk
        assert isinstance(disk, Disk), disk
        return disk

    # --- requests -----------------------------------------------------------------------

    def ask(self, node: int, body: object) -> object:
        """Anything, by a client whose history is not judged, and wait for the answer."""
        self._production.note(f"a client sends {type(body).__name__} to {self.name(node)}")
        answers: list[object] = []
        self._clients.ask(node, body, lambda answer, _now_ms: answers.append(answer))
        self._ask()
        self.until(lambda: bool(answers), "it is answered")
        return answers[0]

    def produce(self, value: bytes, to: int) -> Produced:
        """With acks=all; the answer is awaited by the schedule."""
        named = f"{value.decode()} ({number_of(value)} in the history)"
        self._production.note(f"a client sends {named} to {self.name(to)}")
        produced = self._clients.produce(self.key, value, to)
        self._ask()
        return produced

    def elect(self, node: int) -> None:
        """Let `node`, which is in sync, lead. Brokers learn of it when they do."""
        self._production.note(f"an administrator has {self.name(node)} elected")
        is_elected = self._elects(node)
        assert is_elected, f"{node} is not elected: {self.state}"

    def _elects(self, node: int) -> bool:
        rest = tuple(replica for replica in self.state.replicas if replica != node)
        partition = ReassignablePartition(partition_index=self.key[1], replicas=(node, *rest))
        move = AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(name=TOPIC, partitions=(partition,)),)
        )
        self._clients.ask(self.controller, move, _ignore)
        self._ask()
        if not self._reaches(lambda: self.state.replicas[0] == node, WAIT_MS):
            return False
        self._clients.ask(self.controller, ElectLeadersRequest(), _ignore)
        self._ask()
        return self._reaches(lambda: self.leader == node, WAIT_MS)

    def _ask(self) -> None:
        """Have the client's core send what it wants."""
        self._host.command(lambda _now_ms: None)

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything is let go and everybody started: the cluster must come to rest.

        Then a last record is written, and every replica leads once and is read from the beginning,
        so that clients can see what became of each of the logs.
        """
        self._production.note("everything is let go, and everybody is started")
        self.messages.release_all()
        for host in self.cluster.hosts.values():
            if not host.is_up:
                host.start()
        with suppress(*() if self._production.is_judged else (Stuck, Violation)):
            with _events_bounded():
                self._convergence.run()
            check_end(self.cluster)
        self._write_behind()
        self._read_everything()
        self._production.end()

    def _write_behind(self) -> None:
        """A record that is read shows that what lies before it is not only late."""
        if self.leader in self.isr:
            last = self.produce(_LAST, to=self.leader)
            self._reaches(lambda: last.error is not None, _LEADING_MS)

    def _read_everything(self) -> None:
        first = self.leader
        if first in self.isr:
            self._read_of(first)
        for node in self.state.replicas:
            if node != first and node in self.isr and self._elects(node):
                self._read_of(node)

    def _read_of(self, node: int) -> None:
        """A leader that was elected just now may not know it yet, nor what is committed."""
        if not self._reaches(lambda: self.is_leading(node, self.key), _LEADING_MS):
            return
        self._reaches(lambda: self.high_watermark(node) == self.end_offset(node), _LEADING_MS)
        self._production.note(f"a reader begins at the beginning, at {self.name(node)}")
        reader = self._clients.read(self.key, node)
        self._ask()
        self._reaches(lambda: reader.is_done, _LEADING_MS)

    def is_leading(self, node: int, key: Key) -> bool:
        found = self.broker(node).replicas.find("", *key)
        return isinstance(found, Partition) and isinstance(found.role, LeaderOf)


@contextmanager
def _events_bounded() -> Iterator[None]:
    """A cluster that never comes to rest is stuck as well."""
    try:
        yield
    except EventsSpent as spent:
        raise Stuck("events", f"no rest after {spent} events") from spent


def _ignore(_answer: object, _now_ms: int) -> None:
    pass
