"""A stage for scripted schedules: a small cluster without random faults, and someone who directs.

The museum's bugs need a few messages held back and a few processes stopped at the right moments.
A schedule says just that; the invariants look on as in every run. `finish` heals all and demands
that the cluster comes to rest with everything that was promised.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from broker.broker import Broker
from broker.partition import Partition
from controller.metadata.partitions import PartitionState
from jepsen_like.sim.cluster.client import TOPIC, Acknowledged, Key
from jepsen_like.sim.cluster.cluster import Cluster
from jepsen_like.sim.cluster.converging import Convergence
from jepsen_like.sim.cluster.end import check_end
from jepsen_like.sim.cluster.liveness import is_ready
from jepsen_like.sim.cluster.options import ClusterOptions
from jepsen_like.sim.disk import DiskFaults
from jepsen_like.sim.interception import Interception, Rule
from jepsen_like.sim.network import LinkFaults, Message
from jepsen_like.sim.quorum.asking import Asking
from jepsen_like.sim.quorum.options import Options
from jepsen_like.sim.violation import Stuck
from jepsen_like.sim.world import EventsSpent, World
from quorum.effects import Effect, Event
from wire.batch import data_batch
from wire.errors import ErrorCode
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.elect_leaders import ElectLeadersRequest
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["Produced", "Stage"]

_EVENTS_MAX = 10_000
_WAIT_MS = 20_000  # for what a schedule waits for, unless it says otherwise
_START_MS = 1_000
_STEP_US = 1_000


@dataclass(slots=True)
class Produced:
    """A batch that was sent; `error` is None until it is answered."""

    value: bytes
    error: ErrorCode | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.error is ErrorCode.NONE


class Stage:
    """One topic of one partition; `options` as in `ClusterOptions`."""

    def __init__(
        self,
        *,
        brokers: int = 3,
        replicas: int = 3,
        min_insync_replicas: int = 1,
        lag_time_max_ms: int = 2_000,
        idle_interval_ms: int = 0,
        delay_us: int = 100,
        session_timeout_ms: int = 3_000,
        elr: bool = False,
    ) -> None:
        options = ClusterOptions(
            quorum=Options(
                voters=1,
                observers=brokers,
                fetch_timeout_ms=_WAIT_MS,  # who is told nothing keeps its controller
                request_timeout_ms=3_000,
                links=LinkFaults(delay_us_min=delay_us, delay_us_mean=1),
                disks=DiskFaults(sync_us_min=50, sync_us_mean=1),
            ),
            replication_factor=replicas,
            min_insync_replicas=min_insync_replicas,
            elr=elr,
            heartbeat_interval_ms=session_timeout_ms // 10,
            session_timeout_ms=session_timeout_ms,
            lag_time_max_ms=lag_time_max_ms,
            idle_interval_ms=idle_interval_ms,
            produce_interval_ms=0,
            client_timeout_ms=_WAIT_MS,
        )
        self.cluster = Cluster(World(0), options)
        self.messages = Interception(
            self.cluster.network,
            lambda message: self.cluster.hosts[message.target].deliver(message),
        )
        self._director = _Director()
        self._host = self.cluster.add_client(self._director)
        self._convergence = Convergence(self.cluster, events_max=_EVENTS_MAX, patience=2)
        for host in self.cluster.hosts.values():
            host.start()
        with _events_bounded():
            self._convergence.reach("L-BR", is_ready, _START_MS)

    # --- the partition ------------------------------------------------------------------

    @property
    def controller(self) -> int:
        return self.cluster.options.controllers[0]

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
        return leader, *(replica for replica in self.state.replicas if replica != leader)

    def broker(self, node: int) -> Broker:
        broker = self.cluster.broker(node)
        assert broker is not None, f"{node} is down"
        return broker

    def partition(self, node: int) -> Partition:
        found = self.broker(node).replicas.find("", *self.key)
        assert isinstance(found, Partition), found
        return found

    def end_offset(self, node: int) -> int:
        return self.partition(node).open_log.end_offset

    def high_watermark(self, node: int) -> int:
        return self.partition(node).open_log.high_watermark

    def is_fenced(self, node: int) -> bool:
        return self.cluster.metadata.image.brokers[node].fenced

    def broker_epoch(self, node: int) -> int:
        """As registered."""
        return self.cluster.metadata.image.brokers[node].epoch

    # --- time ---------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        self._run_for(ms * 1000)

    def _run_for(self, us: int) -> None:
        world = self.cluster.world
        with _events_bounded():
            world.run_until(world.now_us + us, events_max=_EVENTS_MAX)

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        bound: str = "",
        within_ms: int = _WAIT_MS,
    ) -> None:
        """Stuck under the name of `bound` if it does not come true; without one, the schedule is
        not what it was meant to be."""
        world = self.cluster.world
        end_us = world.now_us + within_ms * 1000
        while not condition():
            if world.now_us >= end_us:
                assert bound, f"the schedule never came to this: {what}; {self.state}"
                raise Stuck(bound, f"not within {within_ms} ms: {what}")
            self._run_for(_STEP_US)

    # --- processes ----------------------------------------------------------------------

    def kill(self, node: int) -> None:
        self.cluster.hosts[node].crash(power_loss=False)

    def start(self, node: int) -> None:
        self.cluster.hosts[node].start()

    def wipe(self, node: int) -> None:
        """Kill a broker, and take away what it had of partitions."""
        self.kill(node)
        self.cluster.wipe(node)

    def shut_down(self, node: int) -> None:
        self.cluster.hosts[node].command(self.broker(node).begin_shutdown)

    # --- requests -----------------------------------------------------------------------

    def hold(self, body: type, *, source: int, target: int, times: int | None = None) -> Rule:
        def matches(message: Message) -> bool:
            is_between = (message.source, message.target) == (source, target)
            return is_between and isinstance(message.body, body)

        return self.messages.hold(matches, times=times)

    def stop_fetching(self, follower: int, leader: int) -> tuple[Rule, Rule]:
        """Nothing of the leader's log gets to the follower, nor what is parked for it there."""
        asking = self.hold(FetchRequest, source=follower, target=leader)
        return asking, self.hold(FetchResponse, source=leader, target=follower)

    def let_go(self, *rules: Rule) -> None:
        for rule in rules:
            self.messages.release(rule)

    def produce(self, value: bytes, to: int) -> Produced:
        """With acks=all; the answer is awaited by the schedule."""
        produced = Produced(value)
        data = PartitionProduceData(index=self.key[1], records=data_batch([value], timestamp_ms=0))
        topic = TopicProduceData(name=TOPIC, topic_id=self.key[0], partition_data=(data,))
        body = ProduceRequest(acks=-1, timeout_ms=_WAIT_MS, topic_data=(topic,))

        def answered(answer: object, now_ms: int) -> None:
            produced.error = ErrorCode.REQUEST_TIMED_OUT
            if isinstance(answer, ProduceResponse):
                told = answer.responses[0].partition_responses[0]
                produced.error = told.error_code
                if produced.is_acknowledged:
                    batch = Acknowledged(base_offset=told.base_offset, values=(value,))
                    self.cluster.partitions.acknowledged(self.key, batch)

        self._ask(to, body, answered)
        return produced

    def elect(self, node: int) -> None:
        """Let `node`, which is in sync, lead. Brokers learn of it when they do."""
        rest = tuple(replica for replica in self.state.replicas if replica != node)
        partition = ReassignablePartition(partition_index=self.key[1], replicas=(node, *rest))
        move = AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(name=TOPIC, partitions=(partition,)),)
        )
        self._ask(self.controller, move, _ignore)
        self.until(lambda: self.state.replicas[0] == node, f"{node} is preferred")
        self._ask(self.controller, ElectLeadersRequest(), _ignore)
        self.until(lambda: self.leader == node, f"{node} is elected")

    def _ask(self, node: int, body: object, answered: Callable[[object, int], None]) -> None:
        self._director.asking.ask(node, body, _WAIT_MS, answered)
        self._host.command(lambda _now_ms: None)

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything is let go and everybody started: the cluster must come to rest."""
        self.messages.release_all()
        for host in self.cluster.hosts.values():
            if not host.is_up:
                host.start()
        with _events_bounded():
            self._convergence.run()
        check_end(self.cluster)


@contextmanager
def _events_bounded() -> Iterator[None]:
    """A cluster that never comes to rest is stuck as well."""
    try:
        yield
    except EventsSpent as spent:
        raise Stuck("events", f"no rest after {spent} events") from spent


class _Director:
    """A client core that asks what the schedule says."""

    def __init__(self) -> None:
        self.asking = Asking()

    def receive(self, event: Event, now_ms: int) -> None:
        self.asking.receive(event, now_ms)

    def tick(self, now_ms: int) -> None:
        pass

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        return self.asking.take()


def _ignore(_answer: object, _now_ms: int) -> None:
    pass
