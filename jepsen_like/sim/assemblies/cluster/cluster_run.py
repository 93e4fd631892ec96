"""One run of a simulated cluster: a safety phase full of faults, then healing, then liveness.

    start       mostly without faults, until all is up and in sync
    safety      faults of every kind that the options enable; invariants after every event
    healing     links whole, disks honest, the dead restarted
    liveness    a controller (L-EL), brokers (L-BR), leaders (L-PL), full ISRs (L-ISR), a write
                acknowledged in every partition (L-WR); then no more writes, and all logs the same
                (L-HW); then everything that was promised is looked for
    L-STOP      in some runs most controllers die at the end: nothing is decided any more

A run is a function of its seed: the same seed gives the same digest in any process.
"""

from collections import Counter
from collections.abc import Sequence

from broker.groups.offsets_topic import OFFSETS_TOPIC
from controller.metadata.image import ResourceType
from jepsen_like.planted.every_bug import BUGS, planted
from jepsen_like.sim.assemblies.cluster.clients.cluster_administrator import SETTING, Expected
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.cluster_faults import (
    ClusterFaults,
    DirectoryFailures,
    StaleBrokers,
)
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions, draw_run
from jepsen_like.sim.assemblies.cluster.invariants.group_invariants import PLACE
from jepsen_like.sim.assemblies.cluster.invariants.watched import Watched
from jepsen_like.sim.assemblies.cluster.liveness import Convergence, is_ready, led_as_told
from jepsen_like.sim.assemblies.quorum.drawn_faults import DrawnFaults
from jepsen_like.sim.assemblies.quorum.simulation import (
    Outcome,
    ending_of_run,
    outcome_of,
    set_faults,
    wait_for_disks,
)
from jepsen_like.sim.faults.virtual_injectors import injectors
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.sim.world.interception import Interception
from jepsen_like.sim.world.observer import Observer
from quorum.core.storage import METADATA_LOG
from wire.batch import records_of

__all__ = ["ClusterRun", "check_end", "run_cluster"]


_EVENTS_MAX = 1_000_000  # a run that needs more makes no progress
_READY_MS = 5_000  # for a cluster to start without faults: bounds are judged after healing


class ClusterRun:
    def __init__(
        self,
        seed: int,
        options: ClusterOptions | None = None,
        tracer: Observer | None = None,
        *,
        wants: frozenset[str] = frozenset(),
    ) -> None:
        """`wants`: what it surely has, where that is drawn: see `draw_run`."""
        if options is None:
            options = draw_run(VirtualTime(seed), wants=wants)
        self.options = options
        self.cluster = cluster = Cluster(seed, options, tracer)
        self._world = world = cluster.world
        self._messages = Interception(world.network, world.deliver)
        known = injectors(cluster, self._messages)
        self._faults = DrawnFaults(world, options.quorum, injectors=known, leads=cluster.leads)
        self._cluster_faults = ClusterFaults(cluster, known)
        self._directory_failures = DirectoryFailures(cluster)
        world.observe(StaleBrokers(cluster))

    def run(self, events_max: int = _EVENTS_MAX) -> None:
        """All phases; raises Violation, Stuck, Crash or EventsSpent."""
        for host in self.cluster.hosts.values():
            host.start()
        convergence = Convergence(self.cluster, events_max=events_max)
        if self.options.calm_start:
            set_faults(self._world)
            convergence.reach("L-ISR", is_ready, _READY_MS)
            set_faults(self._world, self.options.quorum.links, self.options.quorum.disks)
        self._faults.begin()
        self._cluster_faults.begin()
        self._directory_failures.begin()
        end_us = self._world.now_us + self.options.quorum.safety_ms * 1000
        self._world.run_until(end_us, events_max=events_max)
        self._heal(events_max)
        if self._directory_failures.heal():
            convergence.learn_of_failed_directories()
            self._directory_failures.repair_all()
        convergence.run()
        check_end(self.cluster)
        if self.options.quorum.voters > 1 and self._world.seed % 4 == 0:
            self._stops(events_max)

    def _heal(self, events_max: int) -> None:
        """No more faults."""
        set_faults(self._world)
        for operator in self.cluster.operators:
            operator.works = False
        for member in self.cluster.members:
            member.is_restless = False
        self._messages.release_all()
        self._cluster_faults.heal()
        self._faults.heal()
        wait_for_disks(self._world, events_max)

    def _stops(self, events_max: int) -> None:
        """L-STOP: most controllers die, and nothing is decided any more; brokers serve on.

        What one of the dead has made durable may be committed still: its fetch is on its way.
        """
        cluster, options = self.cluster, self.options
        dead = options.controllers[: len(options.controllers) // 2 + 1]
        held = [cluster.hosts[node_id].disk.log(METADATA_LOG).durable.copy() for node_id in dead]
        for node_id in dead:
            cluster.hosts[node_id].crash(power_loss=False)
        lasting_ms = 2 * options.session_timeout_ms + options.quorum.election_bound_ms
        self._world.run_until(self._world.now_us + lasting_ms * 1000, events_max=events_max)
        last = cluster.quorum.committed[-1]
        if not any(log.holds(last) for log in held):
            raise Violation(
                "L-STOP",
                f"without {dead} of {options.controllers}, the metadata went on to {last}, which"
                " none of them had",
            )
        if why := led_as_told(cluster):
            raise Stuck("L-STOP", f"without controllers the brokers do not serve on: {why}")


def _wanted_by(plants: Sequence[str]) -> frozenset[str]:
    """A run must have this, so that these planted bugs can be found in it."""
    wanted = {
        "members": any(name in BUGS["group"] for name in plants),
        "transactions": any(name in BUGS["transaction"] for name in plants),
        "consumers": any(name in BUGS["consumer"] for name in plants),
        "directories": any(name in BUGS["directory"] for name in plants),
        "partition storage": any(
            name in BUGS["partition_file"] or name in BUGS["partition_file_survivors"]
            for name in plants
        ),
    }
    return frozenset(what for what, is_wanted in wanted.items() if is_wanted)


def run_cluster(
    seed: int,
    *,
    options: ClusterOptions | None = None,
    plant: str | None = None,
    until_event: int | None = None,
    tracer: Observer | None = None,
    wants: frozenset[str] = frozenset(),
) -> Outcome:
    """Run one seed, on the shipped rules or with the planted bug `plant`.

    `wants`: what it surely has, see `draw_run`.
    """
    with planted(plant):
        wanted = wants | _wanted_by((plant or "").split(","))
        simulation = ClusterRun(seed, options, tracer, wants=wanted)
        ending = ending_of_run(simulation.run, until_event, events_max=_EVENTS_MAX)
        cluster = simulation.cluster
        return outcome_of(
            cluster.world, simulation.options.quorum, cluster.quorum, cluster.digest, ending
        )


def check_end(cluster: Cluster) -> None:
    """The last check: everything that was promised is there (D-ACK, D-ONE, H-IO, M-LOST).

    The cluster is healed and quiet, and all logs of a partition are the same. Records are looked
    for in partitions that were not excused.
    """
    _keeps_decisions(cluster)
    if cluster.options.transaction_version:
        _keeps_transactions(cluster)
    for watched in cluster.partitions.watched.values():
        state = watched.state
        if state is None or watched.excused:
            continue
        values: dict[int, bytes] = {}
        for node_id in state.replicas:
            written = cluster.hosts[node_id].disk.log(watched.name).written
            values = _values(written)
            start_offset = min(written.start_offset, watched.deletable.start_offset)
            _keeps_acknowledged(watched, node_id, values, start_offset)
            _keeps_read(watched, node_id, values, start_offset)
        if cluster.options.is_idempotent and not watched.name.startswith(OFFSETS_TOPIC):
            _has_no_duplicate(watched, values)


def _keeps_transactions(cluster: Cluster) -> None:
    def written_of(watched: Watched) -> Content:
        assert watched.state is not None
        return cluster.hosts[watched.state.replicas[0]].disk.log(watched.name).written

    def offset_of(group: str) -> int | None:
        known = [
            coordinator.offsets.committed[group][PLACE].offset
            for node_id in cluster.options.brokers
            if (broker := cluster.broker(node_id)) is not None
            for coordinator in broker.coordinators
            if PLACE in coordinator.offsets.committed.get(group, {})
        ]
        return next(iter(known), None)

    cluster.transactions.check_end(written_of, offset_of)


def _keeps_decisions(cluster: Cluster) -> None:
    """M-LOST: what the operators were promised is so, and what they were refused is not."""
    image = cluster.metadata.image
    wide = cluster.wide_topics.expected.items()
    expected = {name: Expected(partitions=count) for name, count in wide}
    for name, wanted in {**cluster.admin.expected, **expected}.items():
        topic = image.topic(name)
        count = 0 if topic is None else len(list(topic.partitions()))
        setting = image.config(ResourceType.TOPIC, name).get(SETTING)
        if (count, setting) != (wanted.partitions, wanted.setting):
            raise Violation(
                "M-LOST", f"{name} has {count} partitions and {SETTING}={setting}, not {wanted}"
            )


def _values(written: Content) -> dict[int, bytes]:
    return {
        record.offset: record.value or b""
        for entry in written.entries
        if not entry.is_control
        for record in records_of(entry.records)
    }


def _keeps_acknowledged(
    watched: Watched, node_id: int, values: dict[int, bytes], start_offset: int
) -> None:
    """D-ACK: every record that was acknowledged with acks=all is at its offset, everywhere, from
    `start_offset` on: what lies before was deleted."""
    for batch in watched.acknowledged:
        for offset, value in enumerate(batch.values, batch.base_offset):
            if offset >= start_offset and values.get(offset) != value:
                raise Violation(
                    "D-ACK",
                    f"{watched.name} of {node_id}: {value!r} was acknowledged at {offset}, where"
                    f" there is {values.get(offset)!r}",
                )


def _keeps_read(
    watched: Watched, node_id: int, values: dict[int, bytes], start_offset: int
) -> None:
    """D-ONE: every record that was read is still there, but for those that were deleted."""
    for offset, value in watched.read.items():
        if offset >= start_offset and values.get(offset) != value:
            raise Violation(
                "D-ONE",
                f"{watched.name} of {node_id}: {value!r} was read at {offset}, where there is"
                f" {values.get(offset)!r}",
            )


def _has_no_duplicate(watched: Watched, values: dict[int, bytes]) -> None:
    """H-IO: what an idempotent producer sent is in the log once, however often it was repeated."""
    twice = [value for value, count in Counter(values.values()).items() if count > 1]
    if twice:
        raise Violation("H-IO", f"{watched.name}: {twice} stand there more than once")
