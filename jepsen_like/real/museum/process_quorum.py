"""A metadata quorum of processes that is directed, as `DirectedQuorum` is in the simulator.

What the simulator's quorum commits are numbers; here clients create topics, and list them at the
end: a set that may lose nothing. Time-outs are five times those of the simulator's quorum, and so
is the time that a schedule lets go by. Observers are brokers; one is there even if none is wanted,
since clients ask brokers.
"""

from collections.abc import Iterable
from contextlib import suppress

from jepsen_like.clients.admin_client import creation
from jepsen_like.histories.history import Kind
from jepsen_like.real.kafka_client import NotConnected
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.museum.process_partition import WAIT_MS, DirectedProcesses
from jepsen_like.real.museum.rig import Rig, reaches
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.workloads.workload import NewTopic
from wire.errors import ErrorCode
from wire.messages.topics import CreateTopicsResponse

__all__ = ["QUORUM_SETTINGS", "ProcessQuorum"]

_PACE = 5  # the simulator's election takes 100 ms
_TIMEOUT_MS = 3_000
_TRIES_MAX = 10

QUORUM_SETTINGS = {
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "500",
    "controller.quorum.request.timeout.ms": "2000",
}


class ProcessQuorum(DirectedProcesses):
    bound = "L-HW"

    def __init__(self, production: Production, rig: Rig, *, observers: int) -> None:
        self._topics = 0
        self._led: tuple[int | None, int] = (None, -1)
        layout = rig.cluster.layout
        self._voters = [node.id for node in layout.controllers]
        self.nodes = [*self._voters, *(node.id for node in layout.brokers[:observers])]
        super().__init__(production, rig, self.nodes, pace=_PACE)
        self.note(f"voters {self._voters}, {'in the log' if layout.dynamic else 'static'}")

    def leads(self, node: int) -> tuple[int | None, int]:
        """Whom the node takes for the leader, and of which epoch."""
        quorum = self._rig.page(node, "/v1/node").get("quorum", {})
        return quorum.get("leader_id"), quorum.get("epoch", -1)

    # --- time ---------------------------------------------------------------------------

    def _look(self) -> None:
        """Note who leads, when that changes."""
        told = [self.leads(node) for node in self._voters if self._rig.is_up(node)]
        newest = max(told, key=lambda each: each[1], default=self._led)
        if newest != self._led and newest[0] is not None:
            self._led = newest
            self.note(f"{self.names.of(newest[0])} leads epoch {newest[1]}")

    def _told_instead(self) -> str:
        told = ", ".join(f"{node} says {self.leads(node)}" for node in self.nodes)
        return f"; leader and epoch: {told}"

    def epoch(self, node: int) -> int:
        return self.leads(node)[1]

    def must_lead_on(self, node: int, epoch: int) -> None:
        after = self.leads(node)
        if after != (node, epoch) and self._production.is_judged:
            before = (node, epoch)
            raise Violation("L-ST", f"leader and epoch were {before}, and are now {after}")

    # --- steps --------------------------------------------------------------------------

    def leader(self, among: Iterable[int] | None = None) -> int:
        """One of `among` leads, and all of them that are up know it."""
        nodes = self.nodes if among is None else list(among)
        found: list[int] = []

        def is_led() -> bool:
            told = {self.leads(node) for node in nodes if self._rig.is_up(node)}
            found[:] = [leader for leader, _ in told if leader in nodes]
            return len(told) == 1 and len(found) == 1

        self.until(is_led, "one leads, and all know it", bound="L-EL")
        return found[0]

    def commits(self, records: int = 5) -> None:
        """Create a topic, which is more than one record."""
        assert records > 0, records
        is_done = any(self._creates() for _ in range(_TRIES_MAX))
        if not is_done:
            raise Stuck("L-HW", f"no topic was created in {_TRIES_MAX} tries")

    def _creates(self) -> bool:
        self._topics += 1
        name = f"topic-{self._topics}"
        body = creation(NewTopic(name=name, partitions=1, replication_factor=1), _TIMEOUT_MS)
        production = self._production
        process = production.invoke("add", name)
        try:
            with self._any_broker(_TIMEOUT_MS + 1000) as client:
                code = client.ask(body, CreateTopicsResponse).topics[0].error_code
        except ClusterError as error:
            kind = Kind.FAIL if isinstance(error, NotConnected) else Kind.INFO
            production.complete(process, kind, error=str(error))
            return False
        is_done = code is ErrorCode.NONE
        production.complete(
            process, Kind.OK if is_done else Kind.INFO, error=None if is_done else code.name
        )
        if is_done:
            self.note(f"a client is told that {name} is created")
        return is_done

    # --- faults -------------------------------------------------------------------------

    def wipe(self, node: int) -> None:
        """Its disk is lost; it comes back with an empty one."""
        self.note(f"{self.names.of(node)} loses its disk")
        self._rig.replace_disk(node)

    # --- the end ------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything is healed, everybody started; then each node lists the topics that it has."""
        self._restore("everything is healed, and everybody started")
        with suppress(*() if self._production.is_judged else (ClusterError,)):
            self._rig.cluster.wait_ready(WAIT_MS / 1000)
        reaches(lambda: len({self._offset(node) for node in self.nodes}) == 1, WAIT_MS)
        for node in self.nodes:
            self._lists(node)
        self._production.end()

    def _offset(self, node: int) -> int:
        return int(self._rig.page(node, "/v1/node").get("metadata", {}).get("offset", -1))

    def _lists(self, node: int) -> None:
        process = self._production.invoke("read", None, node=node)
        listed = self._rig.page(node, "/v1/topics").get("topics")
        if listed is None:
            self._production.complete(process, Kind.FAIL, error="no answer")
        else:
            self._production.complete(process, Kind.OK, listed)
            self.note(f"{node} lists {', '.join(listed) or 'nothing'}")
