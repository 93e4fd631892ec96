"""Faults that only a cluster knows, beside those of its quorum (`jepsen_like.sim.quorum.nemesis`).

    deaf        a broker cannot reach the controllers, or they not it, and fetches on all the same
    stalled     one kind of message between two nodes is held back, and comes or is lost later
    superseded  a broker whose epoch is not the registered one any more is restarted
    wiped       a broker dies, what it had of partitions is lost, and it comes back

Draws when and whom from a random stream of its own.

A registration that the network held back may arrive when its process is dead and the next one has
registered. Nobody answers to the epoch that it gets, and the living process is stale for good: as
in Apache Kafka, somebody has to restart it. Here an operator does.
"""

from jepsen_like.sim.cluster.cluster import Cluster
from jepsen_like.sim.host import Host
from jepsen_like.sim.interception import Interception
from jepsen_like.sim.network import Message
from jepsen_like.sim.observer import Observer
from quorum.core.effects import Effect

__all__ = ["ClusterFaults"]

Link = tuple[int, int]
_STALLED_CHANNELS = (
    "alter-partition",
    "heartbeat",
    "metadata-fetch",
    "replica-fetch",
    "replica-fetch",
    "replica-fetch",
)


class ClusterFaults(Observer):
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._world = cluster.world
        self._random = cluster.world.fork("cluster-faults")
        self._messages = Interception(
            cluster.network, lambda message: cluster.hosts[message.target].deliver(message)
        )
        self._cuts: list[list[Link]] = []
        self._superseded: set[tuple[int, int]] = set()  # node id and number of the process
        self._is_over = False

    def begin(self) -> None:
        for kind in self._options.nemesis_ms:
            self._next(kind)

    def heal(self) -> None:
        self._is_over = True
        self._messages.release_all()
        for links in self._cuts:
            self._cluster.network.heal(links, kind="deaf")
        self._cuts.clear()

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Is a later epoch registered than the one that the broker knows as its own?"""
        broker = self._cluster.broker(host.node_id)
        own = self._cluster.metadata.image.brokers.get(host.node_id)
        if broker is None or own is None:
            return
        if not 0 <= broker.broker_epoch < own.epoch:
            return
        incarnation = host.incarnation
        if (host.node_id, incarnation) not in self._superseded:
            self._superseded.add((host.node_id, incarnation))
            self._world.after(0, lambda: self._replace(host, incarnation))

    def _replace(self, host: Host, incarnation: int) -> None:
        if host.is_up and host.incarnation == incarnation:
            self._cluster.counts.fired("superseded")
            host.crash(power_loss=False)
            host.start()

    def _next(self, kind: str) -> None:
        delay_us = self._draw_us(self._options.nemesis_ms[kind])
        self._world.after(delay_us, lambda: self._strike(kind))

    def _strike(self, kind: str) -> None:
        if self._is_over:
            return
        broker_id = self._random.choice(self._options.brokers)
        match kind:
            case "deaf":
                self._deafen(broker_id)
            case "stalled":
                self._stall(broker_id)
            case "wiped":
                self._wipe(broker_id)
            case _:
                raise AssertionError(kind)
        self._next(kind)

    def _deafen(self, broker_id: int) -> None:
        out = [(broker_id, controller) for controller in self._options.controllers]
        back = [(target, source) for source, target in out]
        links = self._random.choice((out, back, out + back))
        self._cluster.network.cut(links, kind="deaf", holding=self._random.random() < 0.3)
        self._cuts.append(links)

        def heal() -> None:
            if any(other is links for other in self._cuts):
                self._cuts = [other for other in self._cuts if other is not links]
                self._cluster.network.heal(links, kind="deaf")

        self._world.after(self._draw_us(2 * self._options.session_timeout_ms), heal)

    def _stall(self, broker_id: int) -> None:
        """As one slow thread does, or one connection that hangs while others go on."""
        options, random = self._options, self._random
        channel = random.choice(_STALLED_CHANNELS)
        others = options.brokers if channel == "replica-fetch" else options.controllers
        other = random.choice(others)
        is_request = random.random() < 0.5
        link = (broker_id, other) if is_request else (other, broker_id)

        def matches(message: Message) -> bool:
            is_there = (message.source, message.target) == link
            return is_there and message.is_request == is_request and message.channel == channel

        rule = self._messages.hold(matches)
        ends = self._messages.release if random.random() < 0.7 else self._messages.drop

        def end() -> None:
            if rule.kept:
                self._cluster.counts.fired("stalled", len(rule.kept))
            ends(rule)

        self._world.after(self._draw_us(options.session_timeout_ms // 2), end)

    def _wipe(self, broker_id: int) -> None:
        host = self._cluster.hosts[broker_id]
        if not host.is_up:
            return
        self._cluster.counts.fired("wiped")
        host.crash(power_loss=False)
        self._cluster.wipe(broker_id)
        incarnation = host.incarnation

        def restart() -> None:
            if not host.is_up and host.incarnation == incarnation:
                host.start()

        self._world.after(self._draw_us(self._options.quorum.down_ms), restart)

    def _draw_us(self, mean_ms: int) -> int:
        return 1 + int(self._random.expovariate(1 / (mean_ms * 1000)))
