"""Faults that only a cluster knows, beside those of its quorum, drawn from a seed.

    cut-controllers   a broker cannot reach the controllers, or they not it, and still fetches
    hold-rpc          one kind of message between two nodes is held, and comes or is lost later, as
                      with a slow thread, or with a connection that hangs while others go on
    wipe              a broker dies, what it had of partitions is lost, and it comes back

And directories of brokers fail. Each group draws when and whom from a random stream of its own.
"""

from collections.abc import Mapping
from functools import partial

from jepsen_like.faults.fault import Fault, InForce, Injector
from jepsen_like.histories.history import Value
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.quorum.drawn_faults import Chance
from jepsen_like.sim.disks.node_disk import DataDirectories
from jepsen_like.sim.faults.virtual_processes import start_again
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect

__all__ = ["ClusterFaults", "DirectoryFailures", "StaleBrokers"]

_HELD_CHANNELS = (
    "alter-partition",
    "heartbeat",
    "metadata-fetch",
    "replica-fetch",
    "replica-fetch",
    "replica-fetch",
)
_DIES = 0.5  # chance that a process dies while its directory is away


class ClusterFaults:
    def __init__(self, cluster: Cluster, injectors: Mapping[str, Injector]) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._injectors = injectors
        self._chance = Chance(cluster.world, "cluster-faults")
        self._random = self._chance.random
        self._in_force: list[InForce] = []  # of links: processes are the quorum's

    def begin(self) -> None:
        for kind, mean_ms in self._options.nemesis_ms.items():
            self._chance.often(mean_ms, partial(self._strike, kind))

    def heal(self) -> None:
        """No more faults."""
        self._chance.is_over = True
        for in_force in self._in_force:
            in_force.heal()

    def _strike(self, kind: str) -> None:
        broker = self._random.choice(self._options.brokers)
        match kind:
            case "cut-controllers":
                lasts_ms = 2 * self._options.session_timeout_ms
                self._in_force.append(self._inject(kind, broker, self._drawn_cut(), lasts_ms))
            case "hold-rpc":
                lasts_ms = self._options.session_timeout_ms // 2
                self._in_force.append(self._inject(kind, broker, self._drawn_hold(), lasts_ms))
            case "wipe":
                if self._cluster.hosts[broker].is_up:
                    self._inject(kind, broker, {}, self._options.quorum.down_ms)
            case _:
                raise AssertionError(kind)

    def _inject(
        self, kind: str, broker: int, parameters: Mapping[str, Value], lasts_ms: int
    ) -> InForce:
        fault = Fault(kind=kind, parameters=parameters)
        in_force = self._injectors[kind].inject(fault, [broker])
        self._chance.once(lasts_ms, in_force.heal)
        return in_force

    def _drawn_cut(self) -> Mapping[str, Value]:
        direction = self._random.choice(("out", "in", "both"))
        return {"direction": direction, "holding": self._random.random() < 0.3}

    def _drawn_hold(self) -> Mapping[str, Value]:
        options, random = self._options, self._random
        channel = random.choice(_HELD_CHANNELS)
        others = options.brokers if channel == "replica-fetch" else options.controllers
        return {
            "channel": channel,
            "others": [random.choice(others)],
            "direction": "request" if random.random() < 0.5 else "response",
            "loses": random.random() >= 0.7,
        }


class DirectoryFailures:
    """In some runs each broker has several data directories, and now and then one of them fails
    (KIP-858): the broker reports it with its heartbeats and goes on with the others.

    Some processes die, and start again without the directory. A repaired directory is used from the
    next process on. A broker never loses all of them.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._fired = cluster.counts.fired
        self._chance = Chance(cluster.world, "directory failures")

    def begin(self) -> None:
        if self._options.directory_failure_ms:
            self._chance.often(self._options.directory_failure_ms, self._strike)

    def heal(self) -> bool:
        """No more failures by chance. Returns whether a directory has failed and stays so, which
        is for the controller to learn."""
        self._chance.is_over = True
        if self._options.directories == 1:
            return False
        if not any(self._directories(node).unreadable for node in self._options.brokers):
            self._fail_one()
        return True

    def repair_all(self) -> None:
        for node in self._options.brokers:
            self._repair(node)

    def _strike(self) -> None:
        node = self._fail_one()
        if node is None:
            return
        session_ms = self._options.session_timeout_ms
        if self._chance.random.random() < _DIES:
            self._chance.once(session_ms // 2, lambda: self._start_without(node))
        self._chance.once(2 * session_ms, lambda: self._repair_in_time(node))

    def _fail_one(self) -> int | None:
        """Returns whose; None if there is none that may fail."""
        places = [
            (node, directory_id)
            for node in self._options.brokers
            if self._cluster.hosts[node].is_up and not self._directories(node).unreadable
            for directory_id in sorted(set(self._directories(node).homes.values()))
        ]
        if not places:
            return None
        node, directory_id = self._chance.random.choice(places)
        self._fired("directory_failed")
        self._cluster.fail_directory(node, directory_id)
        return node

    def _start_without(self, node: int) -> None:
        host = self._cluster.hosts[node]
        if not self._chance.is_over and self._directories(node).unreadable and host.is_up:
            self._fired("started_without_directory")
            host.crash(power_loss=False)
            start_again(host)

    def _repair_in_time(self, node: int) -> None:
        if not self._chance.is_over:
            self._repair(node)

    def _repair(self, node: int) -> None:
        """The process that runs has given the directory up for good: another one takes over."""
        directories, host = self._directories(node), self._cluster.hosts[node]
        if not directories.unreadable:
            return
        self._fired("directory_repaired")
        directories.unreadable.clear()
        if host.is_up:
            host.crash(power_loss=False)
            start_again(host)

    def _directories(self, node: int) -> DataDirectories:
        return self._cluster.hosts[node].disk.directories


class StaleBrokers(Observer):
    """An operator who restarts a broker whose epoch is not the registered one any more.

    A registration that the network held back may arrive when its process is dead and the next one
    has registered. It gets a new epoch, which no process has; the living process keeps the old one
    and is refused for good. As in Apache Kafka, an operator has to restart it.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: set[tuple[int, int]] = set()  # node id and number of the process

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Is a later epoch registered than the one that the broker knows as its own?"""
        own = self._cluster.metadata.image.brokers.get(host.node_id)
        broker = None if own is None else self._cluster.broker(host.node_id)
        if broker is None or own is None or not 0 <= broker.broker_epoch < own.epoch:
            return
        incarnation = host.incarnation
        if (host.node_id, incarnation) not in self._found:
            self._found.add((host.node_id, incarnation))
            self._cluster.world.after(0, lambda: self._replace(host, incarnation))

    def _replace(self, host: Host, incarnation: int) -> None:
        if host.is_up and host.incarnation == incarnation:
            self._cluster.counts.fired("superseded")
            host.crash(power_loss=False)
            host.start()
