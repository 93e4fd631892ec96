"""A design of ZooKeeper mode in processes that is directed, as `DirectedZooKeeper` is.

What is so is read from ZooKeeper, by a client of its own; whether a broker takes itself for the
leader is asked of it as a client would. Time-outs, and the times that a schedule runs, are twice
the simulator's, since processes share a machine. Proxies stand between brokers, and before
ZooKeeper; not before the client of its own.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from controller.zk.zk_metadata import topic_id_of
from jepsen_like.clients.admin_client import deletion
from jepsen_like.faults.cut_links import both_ways
from jepsen_like.real.impairments import Cut, Imposed
from jepsen_like.real.injection.zookeeper_faults import zookeeper_nodes
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.museum.process_clients import RealClients
from jepsen_like.real.museum.process_partition import TIMEOUT_MS, TOPIC, WAIT_MS, ProcessPartition
from jepsen_like.real.museum.rig import Rig, reaches
from jepsen_like.scenarios.settings import ZkSettings
from jepsen_like.scenarios.stage.story import News, Production
from jepsen_like.scenarios.zookeeper.zk_promises import is_led, must_rest, writes
from jepsen_like.sim.ensemble.zk_state import ZkPartition
from jepsen_like.sim.violation import Stuck
from wire.messages.topics import DeleteTopicsResponse
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.znodes import ControllerOwner, TopicAssignment

__all__ = ["PACE", "ProcessZooKeeper", "server_properties"]

PACE = 2  # how much longer than in the simulator everything takes
_SETTLED_BEGINNING_MS = 500


class ProcessZooKeeper(ProcessPartition):
    """To be entered, and left."""

    def __init__(self, production: Production, rig: Rig, *, design: Design) -> None:
        super().__init__(production, rig, pace=PACE)
        self._design = design
        self._zookeeper = KazooClient(hosts=rig.cluster.layout.zookeeper_connect)
        self.watched = self._partition_of(TOPIC)
        self._news = News("ZooKeeper", self.names, self.note)
        self._is_watching = False
        self.names.changing["controller"] = lambda: self.controller
        self._clients = self._clients_of(TOPIC)
        self._sessions: dict[int, Imposed] = {}
        self.note(f"the design is {design.name}")

    def __enter__(self) -> Self:
        self._zookeeper.start(timeout=WAIT_MS / 1000)
        return self

    def __exit__(self, *_: object) -> None:
        self._zookeeper.stop()
        self._zookeeper.close()

    def _clients_of(self, topic: str) -> RealClients:
        return RealClients(self._production, topic, topic_id_of(topic), self.lock)

    def _partition_of(self, topic: str) -> ZkPartition:
        return ZkPartition(self._design, TopicPartition(topic, 0), self._znode)

    # --- what is known ------------------------------------------------------------------

    @property
    def controller(self) -> int | None:
        data = self._znode(paths.CONTROLLER)
        return None if data is None else ControllerOwner.decode(data).broker_id

    @property
    def leader(self) -> int:
        return self.watched.leader

    @property
    def isr(self) -> set[int]:
        return self.watched.isr

    def leads(self, node: int, topic: str = TOPIC) -> bool:
        """Does it take itself for the leader?"""
        is_up = self._rig.is_up(node)
        return is_up and self._clients_of(topic).is_served(self._address(node))

    def leader_among(self, nodes: Iterable[int]) -> int:
        return next(node for node in nodes if self.leads(node))

    def not_the_controller(self) -> int:
        return [node for node in self.brokers if node != self.controller][-1]

    def told_isrs(self) -> set[tuple[int, ...]]:
        """What brokers would tell a client."""
        pages = [self._rig.page(node, f"/v1/topics/{TOPIC}") for node in self.brokers]
        return {tuple(row["isr"]) for page in pages for row in page.get("partitions", ())}

    def has_topic(self, topic: str) -> bool:
        return self._znode(paths.topic(topic)) is not None

    def _znode(self, path: str) -> bytes | None:
        try:
            data: bytes = self._zookeeper.get(path)[0]
        except NoNodeError:
            return None
        return data

    def _look(self) -> None:
        state = self.watched.state if self._is_watching else None
        if state is not None:
            self._news.look(state.leader, state.leader_epoch, state.isr)

    # --- the way to ZooKeeper -----------------------------------------------------------------

    def cut_session(self, node: int) -> None:
        self.note(f"{self.names.of(node)} finds no way to ZooKeeper")
        directions = both_ways([node], zookeeper_nodes(self._rig.cluster.layout))
        self._sessions[node] = self._rig.mesh.impose(Cut(), directions)

    def heal_session(self, node: int) -> None:
        self.note(f"{self.names.of(node)} finds ZooKeeper again")
        self._rig.mesh.lift(self._sessions.pop(node))

    # --- requests -----------------------------------------------------------------------

    def create(self, *replicas: int, topic: str = TOPIC) -> tuple[int, ...]:
        """A topic of one partition; who leads it, and the others."""
        self.note(f"an administrator creates the node of {topic}")
        data = TopicAssignment(partitions={0: replicas}).encode()
        self._zookeeper.create(paths.topic(topic), data)
        partition = self._partition_of(topic)

        def is_whole_and_led() -> bool:
            return partition.is_whole and any(self.leads(each, topic) for each in replicas)

        self.until(is_whole_and_led, f"{topic} has its leader, and all are in sync")
        self.machines.run(_SETTLED_BEGINNING_MS)
        self._is_watching |= topic == TOPIC
        return tuple(sorted(replicas, key=lambda node: not self.leads(node, topic)))

    def delete(self, topic: str) -> None:
        self.note(f"a client wants {topic} deleted")
        with suppress(ClusterError), self._any_broker() as client:
            client.ask(deletion(topic, TIMEOUT_MS), DeleteTopicsResponse)

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """All is healed and everybody started: what was promised must be there, and go on."""
        self._restore()
        self._rig.cluster.wait_ready()
        with suppress(*() if self._production.is_judged else (Stuck,)):
            must_rest(self)
        self._read_everything()
        self._production.end()

    def _read_everything(self) -> None:
        """What lies behind a lost record shows that it is not only late."""
        if reaches(lambda: is_led(self), WAIT_MS) and writes(self):
            self.note(f"a reader begins at the beginning, at {self.names.of(self.leader)}")
            self._clients.read(self._address(self.leader))


def server_properties(wanted: ZkSettings) -> dict[str, str]:
    """What a schedule's settings are to processes."""
    return {
        "zookeeper.session.timeout.ms": str(PACE * wanted.session_timeout_ms),
        "controller.socket.timeout.ms": str(PACE * wanted.ack_timeout_ms),
        "replica.lag.time.max.ms": str(PACE * 2 * wanted.lag_time_max_ms),
        "quorumlab.state.queue.max": str(wanted.queue_max),
        "quorumlab.zk.without": wanted.without,
        "unclean.leader.election.enable": "false",
    }
