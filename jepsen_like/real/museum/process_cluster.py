"""A cluster of processes that is directed, as `DirectedCluster` is in the simulator.

What the controller has committed is asked of its HTTP side. Messages are held by the proxies.
"""

import time
from collections.abc import Mapping
from typing import Any

from jepsen_like.clients.admin_client import creation, reassignment
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.museum.process_clients import RealClients
from jepsen_like.real.museum.process_partition import (
    SETTLED_MS,
    TIMEOUT_MS,
    TOPIC,
    WAIT_MS,
    ProcessPartition,
)
from jepsen_like.real.museum.rig import Rig, reaches
from jepsen_like.scenarios.stage.story import News, Production
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.workloads.workload import NewTopic
from wire.messages.partitions import (
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from wire.messages.topics import CreateTopicsResponse
from wire.primitives import parse_uuid

__all__ = ["ProcessCluster"]

_LAST = "!"
_CAUGHT_UP_SECONDS = 0.7  # a new leader hears from its followers what is committed


class ProcessCluster(ProcessPartition):
    def __init__(
        self,
        production: Production,
        rig: Rig,
        *,
        replicas: int,
        min_insync_replicas: int,
        unclean: bool,
    ) -> None:
        super().__init__(production, rig)
        self._news = News("metadata", self.names, self.note)
        self.controller = rig.cluster.layout.controllers[0].id
        configs = {
            "min.insync.replicas": str(min_insync_replicas),
            "unclean.leader.election.enable": "true" if unclean else "false",
        }
        topic_id = self._create(replicas, configs)
        self._clients = RealClients(production, TOPIC, topic_id, self.lock)
        self.until(lambda: len(self.isr) == replicas, "all are in sync")
        self.until(lambda: self._clients.is_served(self._address(self.leader)), "it is served")
        self._cast()

    def _create(self, replicas: int, configs: Mapping[str, str]) -> Any:
        new = NewTopic(name=TOPIC, partitions=1, replication_factor=replicas, configs=configs)
        with self._any_broker() as client:
            client.ask(creation(new, TIMEOUT_MS), CreateTopicsResponse)
        found = reaches(lambda: bool(self._topic(self.controller)), WAIT_MS)
        assert found, "the topic was not created"
        return parse_uuid(self._rig.page(self.controller, f"/v1/topics/{TOPIC}")["topic_id"])

    # --- what is known ------------------------------------------------------------------

    def _topic(self, node: int) -> dict[str, Any]:
        """The partition, as this node's metadata has it; {} if it says nothing."""
        found = self._rig.page(node, f"/v1/topics/{TOPIC}").get("partitions", [])
        return found[0] if found else {}

    @property
    def leader(self) -> int:
        return int(self._topic(self.controller).get("leader", -1))

    @property
    def isr(self) -> set[int]:
        return set(self._topic(self.controller).get("isr", ()))

    def _cast(self) -> None:
        """a leads at first, b and c are the other replicas."""
        state = self._topic(self.controller)
        cast = [state["leader"], *(each for each in state["replicas"] if each != state["leader"])]
        self.names.changing["controller"] = lambda: self.controller
        self.names.name("abcd", cast)
        self.note(", ".join(f"{self.names.of(node)} is broker {node}" for node in cast))

    def epoch(self, node: int) -> int:
        """The leader epoch in the metadata of the node."""
        return int(self._topic(node).get("leader_epoch", -1))

    def is_fenced(self, node: int) -> bool:
        return bool(self._registration(node).get("fenced", True))

    def broker_epoch(self, node: int) -> int:
        return int(self._registration(node).get("epoch", -1))

    def _registration(self, node: int) -> dict[str, Any]:
        brokers = self._rig.page(self.controller, "/v1/node").get("metadata", {}).get("brokers", [])
        return next((broker for broker in brokers if broker["id"] == node), {})

    # --- the account, and what must hold --------------------------------------------------

    def _look(self) -> None:
        """Note what has become of the partition, and judge it."""
        if not self.names.changing:
            return
        state = self._topic(self.controller)
        if not state:
            return
        self._news.look(state["leader"], state["leader_epoch"], state["isr"])
        if self._production.is_judged and len(state["isr"]) > 1:
            self._nobody_is_fenced(state)

    def _nobody_is_fenced(self, state: dict[str, Any]) -> None:
        """M-FEN. Asked twice, before and after: else it may have come back in between."""
        for node in state["isr"]:
            before = self._registration(node)
            if not before.get("fenced"):
                continue
            is_member = node in self.isr and len(self.isr) > 1
            if is_member and self._registration(node) == before:
                raise Violation(
                    "M-FEN", f"{self.names.of(node)} is fenced, and in sync: {self.isr}"
                )

    # --- requests -----------------------------------------------------------------------

    def elect(self, node: int) -> None:
        self.note(f"an administrator has {self.names.of(node)} elected")
        is_elected = self._elects(node)
        assert is_elected, f"{self.names.of(node)} is not elected: {self._topic(self.controller)}"

    def _elects(self, node: int) -> bool:
        replicas = self._topic(self.controller)["replicas"]
        rest = [replica for replica in replicas if replica != node]
        move = reassignment(f"{TOPIC}-0", [node, *rest], TIMEOUT_MS)
        try:
            with self._any_broker() as client:
                client.ask(move, AlterPartitionReassignmentsResponse)
                client.ask(ElectLeadersRequest(timeout_ms=TIMEOUT_MS), ElectLeadersResponse)
        except ClusterError as error:
            self.note(f"no election: {error}")
            return False
        return reaches(lambda: self.leader == node, WAIT_MS)

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything is let go, everybody started; all are in sync; every replica is read."""
        self._restore()
        self._rig.cluster.wait_ready()
        replicas = set(self._topic(self.controller)["replicas"])
        is_settled = reaches(lambda: self.isr == replicas, SETTLED_MS)
        if not is_settled and self._production.is_judged:
            state = self._topic(self.controller)
            raise Stuck("L-ISR", f"not within {SETTLED_MS} ms: {state['isr']} of {replicas}")
        self._write_behind()
        self._read_everything(replicas)
        self._production.end()

    def _write_behind(self) -> None:
        leader = self.leader
        if leader >= 0:
            last = self.produce(_LAST, to=leader)
            reaches(lambda: last.is_answered, SETTLED_MS)

    def _read_everything(self, replicas: set[int]) -> None:
        first = self.leader
        for node in (first, *sorted(replicas - {first})):
            if node >= 0 and node in self.isr and (node == first or self._elects(node)):
                self._read_of(node)

    def _read_of(self, node: int) -> None:
        """When it knows that it leads, and what is committed."""
        reaches(lambda: self.epoch(node) == self.epoch(self.controller), WAIT_MS)
        time.sleep(_CAUGHT_UP_SECONDS)
        self.note(f"a reader begins at the beginning, at {self.names.of(node)}")
        self._clients.read(self._address(node))
