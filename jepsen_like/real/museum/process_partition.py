"""Every directed cluster of processes has an account and machines; one with a topic has its
partition, too.

Decides nothing of what a scenario may ask; `ProcessQuorum`, `ProcessCluster` and `ProcessZooKeeper`
do.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import Address
from jepsen_like.real.museum.process_clients import RealClients
from jepsen_like.real.museum.process_machines import ProcessMachines
from jepsen_like.real.museum.rig import Rig
from jepsen_like.scenarios.cluster.directed_clients import Produced, number_of
from jepsen_like.scenarios.language.forms import Misused, Names
from jepsen_like.scenarios.stage.story import Awaiting, Production, Story
from wire.batch import headers
from wire.varint import Malformed

__all__ = ["SETTLED_MS", "TIMEOUT_MS", "TOPIC", "WAIT_MS", "DirectedProcesses", "ProcessPartition"]

TOPIC = "orders"
WAIT_MS = 15_000
SETTLED_MS = 10_000  # after healing: until all are in sync
TIMEOUT_MS = 10_000


class DirectedProcesses(Awaiting, ABC):
    machines: ProcessMachines
    wait_ms = WAIT_MS
    streams = None

    def __init__(
        self, production: Production, rig: Rig, nodes: Sequence[int], *, pace: int = 1
    ) -> None:
        """`nodes` are those that a scenario names; `pace` as for `ProcessMachines`."""
        self._production = production
        self._rig = rig
        self.story = Story()
        self.names = Names(lambda: nodes)
        self.lock = threading.Lock()  # around the production, which clients' threads write to
        self.machines = ProcessMachines(
            rig, self.names, note=self.note, looked=self._look, pace=pace
        )
        began = time.monotonic()
        production.now_us = lambda: int((time.monotonic() - began) * 1e6)

    @abstractmethod
    def _look(self) -> None:
        """Note what has become of the cluster, and judge it."""

    def note(self, what: str) -> None:
        with self.lock:
            self._production.note(what)

    def stop(self, node: int) -> None:
        raise Misused("an orderly stop ends the process that the schedule goes on with")

    def _any_broker(self, timeout_ms: int = TIMEOUT_MS) -> Client:
        up = [node for node in self._rig.cluster.layout.brokers if self._rig.is_up(node.id)]
        return Client([(node.host, node.port) for node in up], timeout_ms / 1000)

    def _restore(self, what: str = "everything is let go, and everybody is started") -> None:
        """Let everything go, and start every node that is down; `what` is noted."""
        self.note(what)
        self.machines.heal_all()
        self._rig.start_the_dead()


class ProcessPartition(DirectedProcesses):
    _clients: RealClients

    def __init__(self, production: Production, rig: Rig, *, pace: int = 1) -> None:
        self.brokers = tuple(node.id for node in rig.cluster.layout.brokers)
        self.sent: dict[str, Produced] = {}
        super().__init__(production, rig, self.brokers, pace=pace)

    def wipe(self, node: int) -> None:
        self.note(f"{self.names.of(node)} loses its disk")
        self._rig.wipe_partitions(node)

    def end_offset(self, node: int) -> int:
        """By its file."""
        data = self._rig.cluster.layout.node(node).data
        try:
            content = (data / f"{TOPIC}-0" / "00000000000000000000.log").read_bytes()
            ends = [header.next_offset for _, header in headers(content)]
        except (OSError, Malformed):
            return 0  # not there yet, or in the midst of a write
        return ends[-1] if ends else 0

    def _address(self, node: int) -> Address:
        layout = self._rig.cluster.layout.node(node)
        return layout.host, layout.port

    def produce(self, value: str, to: int) -> Produced:
        named = f"{value} ({number_of(value)} in the history)"
        self.note(f"a client sends {named} to {self.names.of(to)}")
        self.sent[value] = self._clients.produce(value, self._address(to))
        return self.sent[value]
