"""A stage in ZooKeeper mode: one design on an ensemble in memory, and someone who directs.

As `Stage` is for the quorum: the director holds single messages and stops processes at the right
moments, here also at the very question to ZooKeeper that a broker has just asked. Which design is
staged is a setting, so that a schedule is played on the one that has a weakness and on the one that
mends it. Where the production is judged, `ZkJudge` looks on, and the cluster must come to rest.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from broker.partition import Partition
from controller.zk.zk_metadata import topic_id_of
from jepsen_like.clients.admin_client import deletion
from jepsen_like.sim.cluster.client import TOPIC, Key
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.stage_clients import Produced, StageClients
from jepsen_like.sim.schedules.stage_settings import WAIT_MS, ZkStageSettings
from jepsen_like.sim.schedules.staged_faults import StagedFaults
from jepsen_like.sim.schedules.zk_account import ZkAccount
from jepsen_like.sim.schedules.zk_directed import DirectedCluster
from jepsen_like.sim.schedules.zk_judge import ZkJudge
from jepsen_like.sim.schedules.zk_rest import is_led, must_rest, writes
from jepsen_like.sim.schedules.zk_state import ZkPartition
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.sim.zk_client import EnsembleClient
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Operation, Result
from wire.zk.znodes import TopicAssignment, decode_epoch

__all__ = ["ZkStage"]

_EVENTS_MAX = 200_000
_STEP_US = 1_000


class ZkStage:
    """One partition that counts. `settings`: as in `ZkStageSettings`."""

    def __init__(self, production: Production, **settings: Any) -> None:
        self._production = production
        wanted = ZkStageSettings(**settings)
        self.cluster = DirectedCluster.of(production.seed, wanted)
        world = self.cluster.world
        production.now_us = lambda: world.now_us
        self.design = self.cluster.options.design
        self.counted = ZkPartition(
            self.design, TopicPartition(TOPIC, 0), self.cluster.ensemble.data
        )
        self._account = ZkAccount(self.counted, {}, production.note)
        self.name = self._account.name
        faults = StagedFaults(world, note=production.note, name=self.name)
        self.kill, self.start = faults.kill, faults.start
        self.pause, self.resume = faults.pause, faults.resume
        self.hold, self.stop_fetching = faults.hold, faults.stop_fetching
        self.let_go, self.drop = faults.let_go, faults.drop
        self._messages = faults.messages
        self._judge = ZkJudge(is_judging=production.is_judged)
        self._clients = StageClients(production, self._judge, timeout_ms=WAIT_MS)
        without = f" without {wanted.without}" if wanted.without else ""
        production.note(f"the design is {wanted.design}{without}")
        self.cluster.start()
        self._administrator = EnsembleClient(
            self.cluster.ensemble, "administrator", timeout_ms=60_000, hear=lambda _event: None
        )
        self._administrator.start()
        self.until(self._is_ready, "all brokers serve", bound="L-BR")
        self._host = self.cluster.add(self._clients)

    def _is_ready(self) -> bool:
        has_controller = self.controller is not None or not self.design.has_controller
        nodes = [self.cluster.nodes.get(each) for each in self.brokers]
        return has_controller and all(node and node.broker.serves_clients for node in nodes)

    # --- what is known ------------------------------------------------------------------------

    @property
    def brokers(self) -> tuple[int, ...]:
        return self.cluster.options.brokers

    @property
    def controller(self) -> int | None:
        return self.cluster.active_controller

    def others(self, *nodes: int | None) -> tuple[int, ...]:
        return tuple(each for each in self.brokers if each not in nodes)

    def create(self, *replicas: int, topic: str = TOPIC) -> tuple[int, ...]:
        """A topic of one partition; who leads it, and the others. They are a, b, c.

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
        self.wait(300)
        cast = tuple(sorted(replicas, key=lambda node: not self.leads(node, topic)))
        if topic == TOPIC:
            self._account.introduce(cast, self.controller)
        return cast

    @property
    def key(self) -> Key:
        return topic_id_of(TOPIC), 0

    @property
    def leader(self) -> int:
        return self.counted.leader

    @property
    def isr(self) -> set[int]:
        return self.counted.isr

    def partition(self, node: int, topic: str = TOPIC) -> Partition | None:
        """None where the broker is down, or has no such replica."""
        found = self.cluster.node(node)
        return None if found is None else found.replica(TopicPartition(topic, 0))

    def leads(self, node: int, topic: str = TOPIC) -> bool:
        """Does it take itself for the leader?"""
        found = self.cluster.node(node)
        return found is not None and found.leads(TopicPartition(topic, 0))

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
        return self.cluster.ensemble.data(paths.broker(node)) is not None

    def candidacies(self, nodes: Iterable[int]) -> int:
        """How often these have stood for an election, so far."""
        return sum(self.cluster.nodes[node].by_replicas.counts["stood"] for node in nodes)

    # --- time ---------------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        for _ in range(ms):
            self._step()

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        bound: str = "",
        within_ms: int = WAIT_MS,
    ) -> None:
        """Stuck under the name of `bound`; without one, the schedule is not what it should be."""
        if self.reaches(condition, within_ms):
            self._production.note(what)
            return
        assert bound, f"the schedule never came to this: {what}; {self.counted.state}"
        raise Stuck(bound, f"not within {within_ms} ms: {what}; {self.counted.state}")

    def reaches(self, condition: Callable[[], bool], within_ms: int) -> bool:
        for _ in range(within_ms):
            if condition():
                return True
            self._step()
        return condition()

    def _step(self) -> None:
        world = self.cluster.world
        world.run_until(world.now_us + _STEP_US, events_max=_EVENTS_MAX)
        self._look()

    # --- judging ------------------------------------------------------------------------------

    def _look(self) -> None:
        state, epoch = self._account.look(), self.cluster.ensemble.data(paths.CONTROLLER_EPOCH)
        if state is not None and self.design.has_controller:
            self._judge.look(state, 0 if epoch is None else decode_epoch(epoch))

    def must(self, is_so: bool, rule: str, detail: str) -> None:
        """What the schedule itself has measured."""
        if not is_so and self._production.is_judged:
            raise Violation(rule, detail)

    # --- processes ----------------------------------------------------------------------------

    def shut_down(self, node: int) -> None:
        self._production.note(f"{self.name(node)} is told to stop in order")
        self.cluster.stop(node)

    def pause_at(self, node: int, asks: Callable[[Operation], bool], what: str) -> None:
        """The node stops when it has asked that of ZooKeeper, before it hears the answer."""
        paused: list[bool] = []

        def look(who: int, operation: Operation) -> None:
            if not paused and who == node and asks(operation):
                paused.append(True)
                self.pause(node)

        self.cluster.asked = look
        self.until(lambda: bool(paused), what)

    def cut_session(self, node: int) -> None:
        self._production.note(f"{self.name(node)} finds no way to ZooKeeper")
        self.cluster.cut_session(node)

    def heal_session(self, node: int) -> None:
        self._production.note(f"{self.name(node)} finds ZooKeeper again")
        self.cluster.heal_session(node)

    def ask_zookeeper(self, operation: Operation) -> None:
        """As an administrator does."""
        results: list[Result] = []
        session_id = self._administrator.session_id
        path = getattr(operation, "path", "")
        self._production.note(f"an administrator asks ZooKeeper: {type(operation).__name__} {path}")
        self._administrator.ask(operation, session_id=session_id, done=results.append)
        assert self.reaches(lambda: bool(results), WAIT_MS), operation

    # --- requests -----------------------------------------------------------------------------

    def delete(self, topic: str) -> None:
        """Asked for by a client, who is not waited for."""
        self._production.note(f"a client wants {topic} deleted")
        node = self.controller or self.cluster.up[0].broker.config.node_id
        self._clients.ask(node, deletion(topic, WAIT_MS), lambda _answer, _now_ms: None)
        self._host.command(lambda _now_ms: None)

    def produce(self, value: bytes, to: int) -> Produced:
        """With acks=all; the answer is awaited by the schedule."""
        self._production.note(f"a client sends {value.decode()} to {self.name(to)}")
        produced = self._clients.produce(self.key, value, to)
        self._host.command(lambda _now_ms: None)
        return produced

    # --- the end ------------------------------------------------------------------------------

    def finish(self) -> None:
        """All is healed and everybody started: what was promised must be there, and go on."""
        self._production.note("everything is let go, and everybody is started")
        self._messages.release_all()
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
        self.reaches(lambda: led.open_log.high_watermark == led.open_log.end_offset, 3_000)
        self._judge.check_log(self.leader, led.open_log.end_offset)

    def _read_everything(self) -> None:
        """What lies behind a lost record shows that it is not only late."""
        if not self.reaches(lambda: is_led(self), WAIT_MS):
            return
        writes(self)
        reader = self._clients.read(self.key, self.leader)
        self._host.command(lambda _now_ms: None)
        self.reaches(lambda: reader.is_done, 3_000)
