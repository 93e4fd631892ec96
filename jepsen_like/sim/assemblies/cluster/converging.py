"""A healed cluster comes to rest: the bounds of liveness.py, one after the other."""

from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.liveness import (
    Missing,
    brokers_are_up,
    controller_is_active,
    directories_are_known,
    everything_is_settled,
    failures_are_known,
    follows_metadata,
    in_sync,
    led,
    written_since,
)
from jepsen_like.sim.violation import Stuck

__all__ = ["Convergence"]

_POLL_US = 5_000  # how often it is looked at


class Convergence:
    """Runs the world until what must come true has; raises Stuck when a bound is exceeded.

    `patience`: how much longer than a bound it may take.
    """

    def __init__(self, cluster: Cluster, *, events_max: int, patience: int = 3) -> None:
        self._cluster = cluster
        self._events_max = events_max
        self._patience = patience

    def learn_of_failed_directories(self) -> None:
        """They have not been repaired yet."""
        self._have_brokers()
        self.reach("L-DIR", failures_are_known, self._cluster.options.unfencing_bound_ms)

    def _have_brokers(self) -> None:
        options = self._cluster.options
        election_ms = options.quorum.election_bound_ms + options.quorum.catch_up_bound_ms
        self.reach("L-EL", controller_is_active, election_ms)
        self.reach("L-BR", brokers_are_up, options.unfencing_bound_ms)

    def run(self) -> None:
        cluster, options = self._cluster, self._cluster.options
        self._have_brokers()
        self.reach("L-PL", led, options.session_timeout_ms)
        self.reach("L-ISR", in_sync, options.in_sync_bound_ms)
        write_ms = 2 * options.client_timeout_ms + options.lag_time_max_ms
        if options.produce_interval_ms:
            watched = cluster.partitions.watched
            before = {key: partition.acknowledgements for key, partition in watched.items()}
            self.reach("L-WR", written_since(before), write_ms)
        if options.directories > 1:
            self.reach("L-DIR", directories_are_known, options.unfencing_bound_ms)
        cluster.client.produces = False
        self.reach("L-HW", everything_is_settled, write_ms)
        self.reach("L-BR", follows_metadata(cluster), options.quorum.catch_up_bound_ms)

    def reach(self, bound: str, missing: Missing, bound_ms: int) -> None:
        world = self._cluster.world
        end_us = world.now_us + self._patience * bound_ms * 1000
        while why := missing(self._cluster):
            if world.now_us >= end_us:
                raise Stuck(bound, f"after {self._patience * bound_ms} ms: {why}")
            next_us = min(end_us, world.now_us + _POLL_US)
            world.run_until(next_us, events_max=self._events_max)
