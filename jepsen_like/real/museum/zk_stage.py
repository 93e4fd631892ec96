"""A stage of processes for schedules of ZooKeeper mode: `ZooKeeperStage`, as the simulator has it.

What is so is read from ZooKeeper, by a client of its own; whether a broker takes itself for the
leader is asked of it as a client would. Time-outs are twice the simulator's, since processes share
a machine. Between brokers there are proxies, to ZooKeeper there are none.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from controller.metadata.znode_image import topic_id_of
from jepsen_like.clients.topic_requests import deletion
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.museum.clients import RealClients
from jepsen_like.real.museum.directing import SETTLED_MS, TIMEOUT_MS, TOPIC, WAIT_MS, Directing
from jepsen_like.real.museum.rig import Rig, reaches
from jepsen_like.rules import Armed, Frame
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.stage_clients import Produced, number_of
from jepsen_like.sim.schedules.zk_state import partition_state
from jepsen_like.sim.violation import Stuck
from wire.messages.delete_topics import DeleteTopicsResponse
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.znodes import ControllerOwner, PartitionState, TopicAssignment

__all__ = ["RealZkStage", "paced"]

_PACE = 2
_LAST = b"!"
_TRIES = 3
_SETTLED_BEGINNING_MS = 500
_OF = TopicPartition(TOPIC, 0)


@dataclass(frozen=True, slots=True)
class _Together:
    """Rules that a schedule knows as one."""

    rules: tuple[Armed[Frame], ...]

    @property
    def kept(self) -> Sequence[object]:
        return [each for rule in self.rules for each in rule.kept]


class RealZkStage(Directing):
    """To be entered, and left."""

    def __init__(self, production: Production, rig: Rig, *, design: Design) -> None:
        super().__init__(production, rig)
        self._design = design
        self._shown = ""
        self.brokers = tuple(node.id for node in rig.cluster.layout.brokers)
        self._zookeeper = KazooClient(hosts=rig.cluster.layout.zookeeper_connect)
        self._clients = self._clients_of(TOPIC)
        self.note(f"the design is {design.name}")

    def __enter__(self) -> Self:
        self._zookeeper.start(timeout=WAIT_MS / 1000)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zookeeper.stop()
        self._zookeeper.close()

    def _clients_of(self, topic: str) -> RealClients:
        return RealClients(self._production, topic, topic_id_of(topic), self.lock)

    # --- what is known ------------------------------------------------------------------

    @property
    def controller(self) -> int | None:
        data = self._znode(paths.CONTROLLER)
        return None if data is None else ControllerOwner.decode(data).broker_id

    def others(self, *nodes: int | None) -> tuple[int, ...]:
        return tuple(each for each in self.brokers if each not in nodes)

    @property
    def _state(self) -> PartitionState | None:
        return partition_state(self._design, _OF, self._znode)

    @property
    def leader(self) -> int:
        state = self._state
        return -1 if state is None else state.leader

    @property
    def isr(self) -> set[int]:
        state = self._state
        return set() if state is None else set(state.isr)

    def leads(self, node: int, topic: str = TOPIC) -> bool:
        """Does it take itself for the leader?"""
        is_up = self._rig.is_up(node)
        return is_up and self._clients_of(topic).is_served(self._address(node))

    def told_isrs(self) -> set[tuple[int, ...]]:
        """What brokers would tell a client."""
        pages = [self._rig.page(node, f"/v1/topics/{TOPIC}") for node in self.brokers]
        return {tuple(row["isr"]) for page in pages for row in page.get("partitions", ())}

    def has_topic(self, topic: str) -> bool:
        return self._znode(paths.topic(topic)) is not None

    def _replicas(self, topic: str = TOPIC) -> tuple[int, ...]:
        data = self._znode(paths.topic(topic))
        return () if data is None else TopicAssignment.decode(data).partitions[0]

    def _znode(self, path: str) -> bytes | None:
        try:
            data: bytes = self._zookeeper.get(path)[0]
        except NoNodeError:
            return None
        return data

    def _look(self) -> None:
        state = self._state if self._names else None
        if state is None:
            return
        isr = ", ".join(sorted(map(self.name, state.isr)))
        leader = "nobody" if state.leader < 0 else self.name(state.leader)
        shown = f"{leader} leads in epoch {state.leader_epoch}; in sync: {isr or 'nobody'}"
        if shown != self._shown:
            self._shown = shown
            self.note(f"ZooKeeper: {shown}")

    # --- messages -----------------------------------------------------------------------

    def hold(
        self, body: type, *, target: int, source: int | None = None, times: int | None = None
    ) -> _Together:
        return _Together((self._hold(body, source, target, times),))

    def stop_fetching(self, follower: int, leader: int) -> _Together:
        return _Together(self._hold_fetches(follower, leader))

    def let_go(self, *together: _Together) -> None:
        self._let_go(*(rule for each in together for rule in each.rules))

    def drop(self, *together: _Together) -> None:
        self._drop(*(rule for each in together for rule in each.rules))

    # --- requests -----------------------------------------------------------------------

    def create(self, *replicas: int, topic: str = TOPIC) -> tuple[int, ...]:
        """A topic of one partition; who leads it, and the others. They are a, b, c."""
        self.note(f"an administrator creates the node of {topic}")
        data = TopicAssignment(partitions={0: replicas}).encode()
        self._zookeeper.create(paths.topic(topic), data)
        of = TopicPartition(topic, 0)

        def is_led() -> bool:
            state = partition_state(self._design, of, self._znode)
            is_whole = state is not None and set(state.isr) == set(replicas)
            return is_whole and any(self.leads(each, topic) for each in replicas)

        self.until(is_led, f"{topic} has its leader, and all are in sync")
        self.wait(_SETTLED_BEGINNING_MS)
        cast = tuple(sorted(replicas, key=lambda node: not self.leads(node, topic)))
        if topic == TOPIC:
            self._introduce(cast)
        return cast

    def _introduce(self, cast: tuple[int, ...]) -> None:
        self._names.update(zip(cast, "abcd", strict=False))
        named = ", ".join(f"{self.name(node)} is broker {node}" for node in cast)
        controller = self.controller
        others = "" if controller is None else f"; broker {controller} is the controller"
        self.note(named + others)

    def delete(self, topic: str) -> None:
        self.note(f"a client wants {topic} deleted")
        with suppress(ClusterError), self._any_broker() as client:
            client.ask(deletion(topic, TIMEOUT_MS), DeleteTopicsResponse)

    def produce(self, value: bytes, to: int) -> Produced:
        named = f"{value.decode()} ({number_of(value)} in the history)"
        self.note(f"a client sends {named} to {self.name(to)}")
        return self._clients.produce(value, self._address(to))

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """All is healed and everybody started: what was promised must be there, and go on."""
        self.note("everything is let go, and everybody is started")
        self._rig.mesh.heal()
        self._rig.start_the_dead()
        self._rig.cluster.wait_ready()
        with suppress(*() if self._production.is_judged else (Stuck,)):
            self._must_rest()
        self._read_everything()
        self._production.end()

    def _must_rest(self) -> None:
        self.until(self._is_led, "the leader leads", bound="L-PL")
        if not self._writes():
            raise Stuck("L-WR", f"nothing is acknowledged any more; {self._state}")
        self.until(
            lambda: self.isr == set(self._replicas()),
            "all replicas are in sync",
            bound="L-ISR",
            within_ms=SETTLED_MS,
        )

    def _is_led(self) -> bool:
        leader = self.leader
        return leader >= 0 and self.leads(leader)

    def _writes(self) -> bool:
        """Again where the leader changes meanwhile, as a client would."""
        for _ in range(_TRIES):
            reaches(self._is_led, WAIT_MS)
            last = self.produce(_LAST, to=self.leader)
            reaches(partial(_is_answered, last), WAIT_MS)
            if last.is_acknowledged:
                return True
            self.wait(_SETTLED_BEGINNING_MS)
        return False

    def _read_everything(self) -> None:
        """What lies behind a lost record shows that it is not only late."""
        if reaches(self._is_led, WAIT_MS) and self._writes():
            self.note(f"a reader begins at the beginning, at {self.name(self.leader)}")
            self._clients.read(self._address(self.leader))


def _is_answered(produced: Produced) -> bool:
    return produced.is_answered


def paced(ms: int) -> str:
    """A time-out of the simulator, for processes."""
    return str(_PACE * ms)
