"""Faults that only a cluster knows, beside those of its quorum, drawn from a seed.

    cut-controllers   a broker cannot reach the controllers, or they not it, and still fetches
    hold-rpc          one kind of message between two nodes is held, and comes or is lost later, as
                      with a slow thread, or with a connection that hangs while others go on
    wipe              a broker dies, what it had of partitions is lost, and it comes back

Draws when and whom from a random stream of its own.
"""

from collections.abc import Mapping

from jepsen_like.faults.fault import Fault, InForce, Injector
from jepsen_like.histories.history import Value
from jepsen_like.sim.assemblies.cluster.cluster import Cluster

__all__ = ["ClusterFaults"]

_HELD_CHANNELS = (
    "alter-partition",
    "heartbeat",
    "metadata-fetch",
    "replica-fetch",
    "replica-fetch",
    "replica-fetch",
)


class ClusterFaults:
    def __init__(self, cluster: Cluster, injectors: Mapping[str, Injector]) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._world = cluster.world
        self._injectors = injectors
        self._random = cluster.world.fork("cluster-faults")
        self._in_force: list[InForce] = []  # of links: processes are the quorum's
        self._is_over = False

    def begin(self) -> None:
        for kind in self._options.nemesis_ms:
            self._next(kind)

    def heal(self) -> None:
        """No more faults."""
        self._is_over = True
        for in_force in self._in_force:
            in_force.heal()

    def _next(self, kind: str) -> None:
        delay_us = self._draw_us(self._options.nemesis_ms[kind])
        self._world.after(delay_us, lambda: self._strike(kind))

    def _strike(self, kind: str) -> None:
        if self._is_over:
            return
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
        self._next(kind)

    def _inject(
        self, kind: str, broker: int, parameters: Mapping[str, Value], lasts_ms: int
    ) -> InForce:
        fault = Fault(kind=kind, parameters=parameters)
        in_force = self._injectors[kind].inject(fault, [broker])
        self._world.after(self._draw_us(lasts_ms), in_force.heal)
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

    def _draw_us(self, mean_ms: int) -> int:
        return 1 + int(self._random.expovariate(1 / (mean_ms * 1000)))
