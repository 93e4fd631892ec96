"""A stage in ZooKeeper mode: one design on an ensemble in memory, and someone who directs.

As `Stage` is for the quorum: the director holds single messages and stops processes at the right
moments, here also at the very question to ZooKeeper that a broker has just asked. Which design is
staged is a setting, so that a schedule is played on the one that has a weakness and on the one that
mends it; `without` switches one field of the design off.

Where the production is judged, `ZkJudge` looks on, and at the end the cluster must come to rest:
L-PL (the leader leads), L-WR (a write is acknowledged), L-ISR (all replicas are in sync).
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from broker.partition import LeaderOf, Partition
from controller.metadata.znode_image import topic_id_of
from jepsen_like.clients.topic_requests import deletion
from jepsen_like.sim.cluster.client import TOPIC, Key
from jepsen_like.sim.host import Host
from jepsen_like.sim.interception import Interception, Matches, Rule
from jepsen_like.sim.network import Message
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.stage_clients import Produced, StageClients
from jepsen_like.sim.schedules.zk_judge import ZkJudge
from jepsen_like.sim.schedules.zk_state import partition_state
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.sim.world import World
from jepsen_like.sim.zk_client import EnsembleClient
from jepsen_like.sim.zk_cluster import PATIENCE, ZkCluster, ZkOptions
from quorum.effects import Effect
from quorum.zk_effects import ZkRequest
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.primitives import ZERO_UUID
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import DESIGNS
from wire.zk.session import Create, Data, GetData, Operation, Result
from wire.zk.znodes import PartitionState, TopicAssignment, decode_epoch

__all__ = ["THE_PARTITION", "ZkStage"]

WAIT_MS = 20_000
_EVENTS_MAX = 200_000
_STEP_US = 1_000
_LAST = b"!"
_TRIES = 3
THE_PARTITION = TopicPartition(TOPIC, 0)


class _Directed(ZkCluster):
    """`asked` hears what a broker asks of ZooKeeper, before it is asked."""

    asked: Callable[[int, Operation], None] = staticmethod(lambda _node, _operation: None)

    def performing(self, host: Host, effect: Effect) -> None:
        super().performing(host, effect)
        if isinstance(effect, ZkRequest):
            self.asked(host.node_id, effect.operation)


class ZkStage:
    """One partition that counts. `design` is a name; `replicas` how many it has, of the brokers."""

    def __init__(
        self,
        production: Production,
        *,
        design: str,
        without: str = "",
        brokers: int = 3,
        lag_time_max_ms: int = 1000,
        session_timeout_ms: int = 1000,
        queue_max: int = 1000,
        unclean: bool = False,
    ) -> None:
        self._production = production
        self.design = DESIGNS[design]
        if without:
            self.design = replace(self.design, **{without: False})  # type: ignore[arg-type]
        world = World(production.seed)
        production.now_us = lambda: world.now_us
        self.cluster = _Directed(
            world,
            ZkOptions(
                design=self.design,
                brokers=tuple(range(1, brokers + 1)),
                session_timeout_ms=session_timeout_ms,
                lag_time_max_ms=lag_time_max_ms,
                of_replicas=replace(PATIENCE, queue_max=queue_max),
                properties={"unclean.leader.election.enable": str(unclean).lower()},
            ),
        )
        self.messages = Interception(
            self.cluster.network,
            lambda message: self.cluster.hosts[message.target].deliver(message),
        )
        self._names: dict[int, str] = {}
        self._shown = ""
        self._judge = ZkJudge(is_judging=production.is_judged)
        self._clients = StageClients(production, self._judge, timeout_ms=WAIT_MS)
        production.note(f"the design is {design}" + (f" without {without}" if without else ""))
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
            self._introduce(cast)
        return cast

    def _introduce(self, cast: tuple[int, ...]) -> None:
        self._names.update(zip(cast, "abcd", strict=False))
        named = ", ".join(f"{self.name(node)} is broker {node}" for node in cast)
        controller = self.controller
        others = "" if controller is None else f"; broker {controller} is the controller"
        self._production.note(named + others)

    def name(self, node: int) -> str:
        return self._names.get(node, f"broker {node}")

    @property
    def key(self) -> Key:
        return topic_id_of(TOPIC), 0

    @property
    def state(self) -> PartitionState | None:
        """As ZooKeeper has it."""
        return partition_state(self.design, THE_PARTITION, self._znode)

    @property
    def leader(self) -> int:
        state = self.state
        return -1 if state is None else state.leader

    @property
    def isr(self) -> set[int]:
        state = self.state
        return set() if state is None else set(state.isr)

    def partition(self, node: int, topic: str = TOPIC) -> Partition | None:
        """None where the broker is down, or has no such replica."""
        if node not in self.cluster.nodes or not self.cluster.hosts[node].is_up:
            return None
        found = self.cluster.nodes[node].broker.replicas.find(topic, ZERO_UUID, 0)
        return found if isinstance(found, Partition) else None

    def leads(self, node: int, topic: str = TOPIC) -> bool:
        """Does it take itself for the leader?"""
        found = self.partition(node, topic)
        return found is not None and isinstance(found.role, LeaderOf)

    def follows(self, node: int, leader: int) -> bool:
        found = self.partition(node)
        return found is not None and found.leader_id == leader

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
        return self._znode(paths.topic(topic)) is not None

    def is_registered(self, node: int) -> bool:
        return self._znode(paths.broker(node)) is not None

    def _znode(self, path: str) -> bytes | None:
        """The data, as the ensemble has it now."""
        found = self.cluster.ensemble.tree.read(GetData(path=path))
        return found.data if isinstance(found, Data) else None

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
        if self._reaches(condition, within_ms):
            self._production.note(what)
            return
        assert bound, f"the schedule never came to this: {what}; {self.state}"
        raise Stuck(bound, f"not within {within_ms} ms: {what}; {self.state}")

    def _reaches(self, condition: Callable[[], bool], within_ms: int) -> bool:
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
        state, epoch = self.state, self._znode(paths.CONTROLLER_EPOCH)
        if state is None:
            return
        self._show(state)
        if self.design.has_controller:
            self._judge.look(state, 0 if epoch is None else decode_epoch(epoch))

    def _show(self, state: PartitionState) -> None:
        isr = ", ".join(sorted(map(self.name, state.isr)))
        leader = "nobody" if state.leader < 0 else self.name(state.leader)
        shown = f"{leader} leads in epoch {state.leader_epoch}; in sync: {isr or 'nobody'}"
        if shown != self._shown:
            self._shown = shown
            self._production.note(f"ZooKeeper: {shown}")

    def must(self, is_so: bool, rule: str, detail: str) -> None:
        """What the schedule itself has measured."""
        if not is_so and self._production.is_judged:
            raise Violation(rule, detail)

    # --- processes ----------------------------------------------------------------------------

    def kill(self, node: int) -> None:
        self._production.note(f"{self.name(node)} is killed")
        self.cluster.crash(node)

    def start(self, node: int) -> None:
        self._production.note(f"{self.name(node)} is started")
        self.cluster.restart(node)

    def shut_down(self, node: int) -> None:
        self._production.note(f"{self.name(node)} is told to stop in order")
        self.cluster.stop(node)

    def pause(self, node: int) -> None:
        self._production.note(f"{self.name(node)} is paused")
        self.cluster.pause(node)

    def resume(self, node: int) -> None:
        self._production.note(f"{self.name(node)} goes on")
        self.cluster.resume(node)

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
        assert self._reaches(lambda: bool(results), WAIT_MS), operation

    # --- messages -----------------------------------------------------------------------------

    def hold(
        self, body: type, *, target: int, source: int | None = None, times: int | None = None
    ) -> Rule:
        is_request = body.__name__.endswith("Request")
        count = "every" if times is None else "one" if times == 1 else f"{times} times"
        ends = "" if source is None else f"from {self.name(source)} "

        def matches(message: Message) -> bool:
            is_it = isinstance(message.body, body) and message.is_request == is_request
            return is_it and message.target == target and source in (None, message.source)

        what = f"{count} {body.__name__} {ends}to {self.name(target)}"
        return self._hold(matches, what, times=times)

    def _hold(self, matches: Matches, what: str, *, times: int | None = None) -> Rule:
        self._production.note(f"the network holds {what}")
        return self.messages.hold(matches, times=times)

    def stop_fetching(self, follower: int, leader: int) -> Rule:
        def matches(message: Message) -> bool:
            asks = isinstance(message.body, FetchRequest)
            ends = (message.source, message.target)
            return (asks and ends == (follower, leader)) or (
                isinstance(message.body, FetchResponse) and ends == (leader, follower)
            )

        what = f"every fetch of {self.name(follower)} from {self.name(leader)}"
        return self._hold(matches, what)

    def let_go(self, *rules: Rule) -> None:
        count = sum(len(rule.kept) for rule in rules)
        self._production.note(f"the network lets go of what it held ({count} messages)")
        for rule in rules:
            self.messages.release(rule)

    def drop(self, *rules: Rule) -> None:
        for rule in rules:
            self._production.note(f"the network loses what it held ({len(rule.kept)} messages)")
            self.messages.drop(rule)

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
        self.messages.release_all()
        for node in self.brokers:
            host = self.cluster.hosts[node]
            if not host.is_up:
                host.start()
            host.resume()
        with suppress(*() if self._production.is_judged else (Stuck, Violation)):
            self._must_rest()
        self._read_everything()
        self._production.end()

    def _must_rest(self) -> None:
        self.until(lambda: self.leads(self.leader), "the leader leads", bound="L-PL")
        self._check_acknowledged()
        if not self._writes():
            raise Stuck("L-WR", f"nothing is acknowledged any more; {self.state}")
        self.until(self._is_whole, "all replicas are in sync", bound="L-ISR")

    def _writes(self) -> bool:
        """Again where the leader changes meanwhile, as a client would."""
        for _ in range(_TRIES):
            self._reaches(lambda: self.leads(self.leader), WAIT_MS)
            last = self.produce(_LAST, to=self.leader)
            self._reaches(partial(_is_answered, last), WAIT_MS)
            if last.is_acknowledged:
                return True
            self.wait(300)
        return False

    def _is_whole(self) -> bool:
        data = self._znode(paths.topic(TOPIC))
        assert data is not None
        return self.isr == set(TopicAssignment.decode(data).partitions[0])

    def _check_acknowledged(self) -> None:
        led = self.partition(self.leader)
        assert led is not None
        self._reaches(lambda: led.open_log.high_watermark == led.open_log.end_offset, 3_000)
        self._judge.check_log(self.leader, led.open_log.end_offset)

    def _read_everything(self) -> None:
        """What lies behind a lost record shows that it is not only late."""
        if not self._reaches(lambda: self.leader >= 0 and self.leads(self.leader), WAIT_MS):
            return
        self._writes()
        reader = self._clients.read(self.key, self.leader)
        self._host.command(lambda _now_ms: None)
        self._reaches(lambda: reader.is_done, 3_000)


def _is_answered(produced: Produced) -> bool:
    return produced.is_answered
