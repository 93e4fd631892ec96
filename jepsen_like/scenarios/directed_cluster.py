"""A cluster that does what a scenario says: controllers, brokers, and one partition, orders-0."""

from dataclasses import dataclass
from functools import partial

from broker.partition import Partition
from controller.metadata.image import BrokerImage
from controller.metadata.partitions import PartitionState
from jepsen_like.scenarios.cluster_story import ClusterStory
from jepsen_like.scenarios.forms import Misused
from jepsen_like.scenarios.machines import DISKS, LINKS, Machines
from jepsen_like.scenarios.scenario_client import ScenarioClient
from jepsen_like.scenarios.steady_streams import SteadyStreams
from jepsen_like.scenarios.story import Story
from jepsen_like.sim.cluster.client import TOPIC, Key
from jepsen_like.sim.cluster.cluster import Cluster
from jepsen_like.sim.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.cluster.liveness import is_ready
from jepsen_like.sim.cluster.nodes import ClusterNode
from jepsen_like.sim.content import Content
from jepsen_like.sim.pace import AT_ONCE
from jepsen_like.sim.quorum.quorum_options import Options
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)

__all__ = ["PARTITION", "ClusterSettings", "DirectedCluster"]

PARTITION = f"{TOPIC}-0"
_CLIENT_MS = 3_000  # until a client gives up


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    controllers: int
    brokers: int
    min_insync_replicas: int = 1
    unclean: bool = False  # unclean.leader.election.enable
    elr: bool = False  # eligible leader replicas (KIP-966)
    session_ms: int = 1_000  # broker.session.timeout.ms
    lag_ms: int = 1_000  # replica.lag.time.max.ms

    def options(self) -> ClusterOptions:
        return ClusterOptions(
            quorum=Options(
                voters=self.controllers,
                observers=self.brokers,
                election_timeout_ms=100,
                fetch_timeout_ms=300,
                fetch_max_wait_ms=50,
                election_backoff_max_ms=100,
                request_timeout_ms=300,
                turns_us=AT_ONCE,
                links=LINKS,
                disks=DISKS,
            ),
            replication_factor=self.brokers,
            min_insync_replicas=self.min_insync_replicas,
            unclean=self.unclean,
            elr=self.elr,
            heartbeat_interval_ms=self.session_ms // 5,
            session_timeout_ms=self.session_ms,
            lag_time_max_ms=self.lag_ms,
            fetch_wait_ms=100,
            produce_interval_ms=0,
            client_timeout_ms=_CLIENT_MS,
        )


class DirectedCluster:
    """Controllers have the first numbers, brokers the next. Not judged: as of a quorum."""

    def __init__(self, story: Story, settings: ClusterSettings, *, is_judged: bool) -> None:
        streams = SteadyStreams()
        self.story = story
        options = settings.options()
        self._told = ClusterStory(story, PARTITION)
        self._cluster = cluster = Cluster(0, options, is_judged=is_judged, streams=streams)
        self._told.cluster = cluster
        cluster.world.observe(self._told)
        self.machines = Machines(cluster.world, streams)
        self._client = ScenarioClient(story, cluster.judge, timeout_ms=_CLIENT_MS)
        self._client_host = cluster.world.add_client(self._client)
        self.machines.order_timers(self.machines.nodes)
        for host in cluster.hosts.values():
            host.start()

    # --- looking ------------------------------------------------------------------------

    @property
    def controllers(self) -> tuple[int, ...]:
        return self._cluster.options.controllers

    @property
    def brokers(self) -> tuple[int, ...]:
        return self._cluster.options.brokers

    def node(self, node: int) -> ClusterNode:
        return self._cluster.nodes[node]

    def registered(self, node: int) -> BrokerImage | None:
        return self._cluster.metadata.image.brokers.get(node)

    @property
    def is_ready(self) -> bool:
        """Is there a topic, and are all replicas in sync and all brokers registered?"""
        return is_ready(self._cluster) == ""

    @property
    def is_answered(self) -> bool:
        return self._client.is_quiet

    @property
    def active_controller(self) -> int | None:
        active = self._cluster.active_controller()
        return None if active is None else active.config.node_id

    @property
    def _key(self) -> Key | None:
        return next(iter(self._cluster.partitions.watched), None)

    @property
    def partition(self) -> PartitionState | None:
        """As committed; None before there is one."""
        return None if self._key is None else self._cluster.partitions.watched[self._key].state

    def replica(self, node: int) -> Partition | None:
        broker, key = self._cluster.broker(node), self._key
        if broker is None or key is None:
            return None
        found = broker.replicas.find("", *key)
        return found if isinstance(found, Partition) and found.log is not None else None

    def written(self, node: int) -> Content:
        stored = self._cluster.hosts[node].disk.logs.get(PARTITION)
        return Content([]) if stored is None else stored.written

    # --- doing --------------------------------------------------------------------------

    def forget(self, node: int) -> None:
        """Its process has ended."""
        self._told.forget(node)

    def stop(self, node: int) -> None:
        self._cluster.hosts[node].command(self.node(node).shut_down)

    def wipe(self, node: int) -> None:
        if node not in self.brokers:
            raise Misused(f"{node} is no broker: a controller's disk stays here")
        self._cluster.wipe(node)

    def resign(self, node: int) -> None:
        self._cluster.hosts[node].command(self.node(node).resign)

    def produce(self, value: str, *, to: int, producer: tuple[int, int] = (-1, -1)) -> None:
        assert self._key is not None
        self._client.produce(TOPIC, self._key, value, to=to, producer=producer)
        self._send()

    def read(self, *, of: int) -> None:
        assert self._key is not None
        self._client.read(TOPIC, self._key, of=of)
        self._send()

    def prefer(self, node: int, controller: int) -> None:
        """Make it the first of the replicas, and have the first one elected."""
        assert self.partition is not None
        rest = tuple(replica for replica in self.partition.replicas if replica != node)
        wanted = ReassignablePartition(partition_index=0, replicas=(node, *rest))
        topics = (ReassignableTopic(name=TOPIC, partitions=(wanted,)),)
        elect = partial(self._client.ask, controller, ElectLeadersRequest(), _nothing)
        self._client.ask(
            controller,
            AlterPartitionReassignmentsRequest(topics=topics),
            lambda _answer, _now_ms: elect(),
        )
        self._send()

    def _send(self) -> None:
        """Have the client's core send what it wants."""
        self._client_host.command(lambda _now_ms: None)


def _nothing(_answer: object, _now_ms: int) -> None:
    pass
