"""A simulated cluster of one of the designs of ZooKeeper mode that is directed, with an ensemble.

Which design it is is a setting, so that a schedule is played on the one that has a weakness and on
the one that mends it. Beside messages and processes, who directs it can stop a broker at the very
question to ZooKeeper that it has just asked. Where the production is judged, `ZkJudge` looks on,
and the cluster must come to rest.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from broker.partition.partition import Partition
from controller.zk.zk_metadata import topic_id_of
from jepsen_like.clients.admin_client import deletion
from jepsen_like.scenarios.cluster.directed_clients import DirectedClients, Produced
from jepsen_like.scenarios.cluster.directed_cluster import WAIT_MS
from jepsen_like.scenarios.language.forms import Names
from jepsen_like.scenarios.settings import ZkSettings
from jepsen_like.scenarios.stage.machines import SimulatedMachines
from jepsen_like.scenarios.stage.story import Awaiting, News, Production, Story
from jepsen_like.scenarios.zookeeper.zk_promises import ZkJudge, is_led, must_rest, writes
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Key
from jepsen_like.sim.assemblies.designs.zk_cluster import PATIENCE, ZkCluster, ZkOptions
from jepsen_like.sim.ensemble.zk_client import EnsembleClient
from jepsen_like.sim.ensemble.zk_state import ZkPartition
from jepsen_like.sim.time.pace import AT_ONCE
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect
from quorum.zookeeper.zk_effects import ZkRequest
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import DESIGNS
from wire.zk.session import Create, Operation, Result
from wire.zk.switches import without
from wire.zk.znodes import TopicAssignment, decode_epoch

__all__ = ["DirectedZooKeeper"]

_EVENTS_MAX = 200_000
_STEP_US = 1_000
_SETTLED_MS = 300  # after a topic has its leader


class DirectedZooKeeper(Awaiting, Observer):
    """One partition that counts. `settings`: as in `ZkSettings`."""

    machines: SimulatedMachines
    streams = None
    asked: Callable[[int, Operation], None] = staticmethod(lambda _node, _operation: None)

    def __init__(self, production: Production, **settings: Any) -> None:
        self._production = production
        wanted = ZkSettings(**settings)
        self.cluster = cluster = ZkCluster(production.seed, _options(wanted))
        world = cluster.world
        production.now_us = lambda: world.now_us
        self.design = cluster.options.design
        self.story = Story()
        self.names = Names(lambda: self.brokers)
        self.names.changing["controller"] = lambda: self.controller
        self.watched = ZkPartition(self.design, TopicPartition(TOPIC, 0), cluster.ensemble.data)
        self._news = News("ZooKeeper", self.names, self.note)
        self.machines = SimulatedMachines(
            world,
            self.names,
            note=self.note,
            looked=self._look,
            poll_us=_STEP_US,
            events_max=_EVENTS_MAX,
        )
        self._judge = ZkJudge(is_judging=production.is_judged)
        self._clients = DirectedClients(
            production, self._judge, self.names, self.story, timeout_ms=WAIT_MS
        )
        self.sent = self._clients.sent
        turned_off = f" without {wanted.without}" if wanted.without else ""
        self.note(f"the design is {wanted.design}{turned_off}")
        world.observe(self)
        cluster.start()
        self._administrator = EnsembleClient(
            cluster.ensemble, "administrator", timeout_ms=60_000, hear=lambda _event: None
        )
        self._administrator.start()
        self.until(self._is_ready, "all brokers serve", bound="L-BR")
        self._clients.host = cluster.add(self._clients)

    def _is_ready(self) -> bool:
        has_controller = self.controller is not None or not self.design.has_controller
        nodes = [self.cluster.nodes.get(each) for each in self.brokers]
        return has_controller and all(node and node.broker.serves_clients for node in nodes)

    def performing(self, host: Host, effect: Effect) -> None:
        """`asked` hears what a broker asks of ZooKeeper, before it is asked."""
        if isinstance(effect, ZkRequest):
            self.asked(host.node_id, effect.operation)

    def _look(self) -> None:
        state, epoch = self.watched.state, self.cluster.ensemble.data(paths.CONTROLLER_EPOCH)
        if state is not None:
            self._news.look(state.leader, state.leader_epoch, state.isr)
            if self.design.has_controller:
                self._judge.look(state, 0 if epoch is None else decode_epoch(epoch))

    # --- what is known ------------------------------------------------------------------

    @property
    def brokers(self) -> tuple[int, ...]:
        return self.cluster.options.brokers

    @property
    def controller(self) -> int | None:
        return self.cluster.active_controller

    def others(self, *nodes: int | None) -> tuple[int, ...]:
        return tuple(each for each in self.brokers if each not in nodes)

    @property
    def key(self) -> Key:
        return topic_id_of(TOPIC), 0

    @property
    def leader(self) -> int:
        return self.watched.leader

    @property
    def isr(self) -> set[int]:
        return self.watched.isr

    def partition(self, node: int, topic: str = TOPIC) -> Partition | None:
        """None where the broker is down, or has no such replica."""
        found = self.cluster.node(node)
        return None if found is None else found.replica(TopicPartition(topic, 0))

    def leads(self, node: int, topic: str = TOPIC) -> bool:
        """Does it take itself for the leader?"""
        found = self.cluster.node(node)
        return found is not None and found.leads(TopicPartition(topic, 0))

    def leader_among(self, nodes: Iterable[int]) -> int:
        return next(node for node in nodes if self.leads(node))

    def not_the_controller(self) -> int:
        return [node for node in self.brokers if node != self.controller][-1]

    def end_offset(self, node: int) -> int:
        found = self.partition(node)
        return found.open_log.end_offset if found is not None and found.log else 0

    def told_isrs(self) -> set[tuple[int, ...]]:
        """What brokers would tell a client."""
        images = [node.broker.cluster.image for node in self.cluster.up]
        return {
            state.isr
            for image in images
            if (topic := image.topic(TOPIC)) is not None
            for _, state in image.partitions_of(topic.id)
        }

    def has_topic(self, topic: str) -> bool:
        return self.cluster.ensemble.data(paths.topic(topic)) is not None

    def is_registered(self, node: int) -> bool:
        """Does ZooKeeper show it as a broker that lives?"""
        return self.cluster.ensemble.data(paths.broker(node)) is not None

    def candidacies(self, nodes: Iterable[int]) -> int:
        """How often these have stood for an election, so far."""
        return sum(self.cluster.nodes[node].by_replicas.counts["stood"] for node in nodes)

    # --- time ---------------------------------------------------------------------------

    def note(self, what: str) -> None:
        self._production.note(what)

    def _told_instead(self) -> str:
        return f"; {self.watched.state}"

    def must(self, is_so: bool, rule: str, detail: str) -> None:
        """What the schedule itself has measured."""
        if not is_so and self._production.is_judged:
            raise Violation(rule, detail)

    # --- processes ----------------------------------------------------------------------

    def stop(self, node: int) -> None:
        """Tell the process to end in good order, and do not wait for it."""
        self.note(f"{self.names.of(node)} is told to stop in order")
        self.cluster.shut_down(node)

    def wipe(self, node: int) -> None:
        self.note(f"{self.names.of(node)} loses its disk")
        self.cluster.hosts[node].disk.wipe()

    def pause_at(self, node: int, asks: Callable[[Operation], bool], what: str) -> None:
        """The node stops when it has asked that of ZooKeeper, before it hears the answer."""
        paused: list[bool] = []

        def look(who: int, operation: Operation) -> None:
            if not paused and who == node and asks(operation):
                paused.append(True)
                self.machines.pause(node)

        self.asked = look
        self.until(lambda: bool(paused), what)

    def cut_session(self, node: int) -> None:
        self.note(f"{self.names.of(node)} finds no way to ZooKeeper")
        self.cluster.cut_session(node)

    def heal_session(self, node: int) -> None:
        self.note(f"{self.names.of(node)} finds ZooKeeper again")
        self.cluster.heal_session(node)

    # --- requests -----------------------------------------------------------------------

    def ask_zookeeper(self, operation: Operation) -> None:
        """As an administrator does."""
        results: list[Result] = []
        path = getattr(operation, "path", "")
        self.note(f"an administrator asks ZooKeeper: {type(operation).__name__} {path}")
        session_id = self._administrator.session_id
        self._administrator.ask(operation, session_id=session_id, done=results.append)
        assert self.machines.reach(lambda: bool(results), WAIT_MS), operation

    def create(self, *replicas: int, topic: str = TOPIC) -> tuple[int, ...]:
        """A topic of one partition; who leads it, and the others.

        Where there is a controller the first of them leads, else the one that was quickest.
        """
        data = TopicAssignment(partitions={0: replicas}).encode()
        self.ask_zookeeper(Create(path=paths.topic(topic), data=data))
        self.until(
            lambda: (
                any(self.leads(each, topic) for each in replicas)
                and all(self.partition(each, topic) is not None for each in replicas)
            ),
            f"{topic} has its leader",
        )
        self.machines.run(_SETTLED_MS)
        return tuple(sorted(replicas, key=lambda node: not self.leads(node, topic)))

    def delete(self, topic: str) -> None:
        """Asked for by a client, who is not waited for."""
        self.note(f"a client wants {topic} deleted")
        node = self.controller or self.cluster.up[0].broker.config.node_id
        self._clients.order(node, deletion(topic, WAIT_MS))

    def produce(self, value: str, to: int) -> Produced:
        """With acks=all; the answer is awaited by the schedule."""
        return self._clients.produce(self.key, value, to)

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """All is healed and everybody started: what was promised must be there, and go on."""
        self.note("everything is let go, and everybody is started")
        self.machines.messages.release()
        for node in self.brokers:
            host = self.cluster.hosts[node]
            if not host.is_up:
                host.start()
            host.resume()
        with suppress(*() if self._production.is_judged else (Stuck, Violation)):
            must_rest(self, led=self._check_acknowledged)
        self._read_everything()
        self._production.end()

    def _check_acknowledged(self) -> None:
        led = self.partition(self.leader)
        assert led is not None
        self.machines.reach(lambda: led.open_log.high_watermark == led.open_log.end_offset, 3_000)
        self._judge.check_log(self.leader, led.open_log.end_offset)

    def _read_everything(self) -> None:
        """What lies behind a lost record shows that it is not only late."""
        if not self.machines.reach(lambda: is_led(self), WAIT_MS):
            return
        writes(self)
        reader = self._clients.read(self.key, self.leader)
        self.machines.reach(lambda: reader.is_done, 3_000)


def _options(wanted: ZkSettings) -> ZkOptions:
    return ZkOptions(
        design=without(DESIGNS[wanted.design], wanted.without),
        brokers=tuple(range(1, wanted.brokers + 1)),
        session_timeout_ms=wanted.session_timeout_ms,
        ack_timeout_ms=wanted.ack_timeout_ms,
        turns_us=AT_ONCE,
        lag_time_max_ms=wanted.lag_time_max_ms,
        of_replicas=replace(PATIENCE, queue_max=wanted.queue_max),
        properties={"unclean.leader.election.enable": str(wanted.unclean).lower()},
    )
