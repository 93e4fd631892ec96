"""A simulated cluster: controllers, brokers and clients, all of them shipped cores but the clients.

The same world as that of the quorum alone (`jepsen_like.sim.quorum.simulation`): virtual time, a
faulty network, disks that break every promise beyond the contract. The quorum's own invariants are
checked here too, and on top of them those of the metadata and of the partitions.

Wires the parts and hands every event to the invariants. What happens to a cluster is decided by
`cluster_run` (at random) or by a scenario (`cluster_stage`).
"""

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from struct import Struct
from uuid import UUID

from broker.broker import Broker
from controller.controller import Controller
from jepsen_like.sim.cluster.admin import Admin, AdminSettings
from jepsen_like.sim.cluster.clean_stops import CleanStops
from jepsen_like.sim.cluster.client import Client, ClientSettings, Judge
from jepsen_like.sim.cluster.metadata_invariants import MetadataInvariants
from jepsen_like.sim.cluster.nodes import (
    BROKER_LISTENER,
    ClusterNode,
    start_broker,
    start_controller,
)
from jepsen_like.sim.cluster.options import CLUSTER_FAULT_KINDS, ClusterOptions
from jepsen_like.sim.cluster.partition_invariants import PartitionInvariants
from jepsen_like.sim.cluster.unjudged_clients import UnjudgedClients
from jepsen_like.sim.codec import Codec
from jepsen_like.sim.counts import Counts
from jepsen_like.sim.disk import Disk
from jepsen_like.sim.host import Host, Watch
from jepsen_like.sim.logtree import LogTree
from jepsen_like.sim.network import Network
from jepsen_like.sim.node_clock import Clock
from jepsen_like.sim.quorum.asking import CLIENT_CHANNEL
from jepsen_like.sim.quorum.invariants import Invariants, Watcher
from jepsen_like.sim.unjudged import Tolerance, TolerantTree, Unjudged
from jepsen_like.sim.world import World
from quorum.core.effects import Core, Effect, Event
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ReplicaKey
from wire.primitives import METADATA_TOPIC_ID

__all__ = ["Cluster"]

_DIGEST = Struct(">qqqqqq")
_DATA_DIRECTORY = 0xDA7A


class Cluster:
    """All hosts by node id; `nodes` holds the process of each that is up."""

    def __init__(
        self,
        world: World,
        options: ClusterOptions,
        tracer: Watcher | None = None,
        *,
        is_judged: bool = True,
    ) -> None:
        """Not judged: invariants are looked at, and may break."""
        self.world = world
        tolerance = Tolerance()
        self._watch: Watch = self if is_judged else Unjudged(self, tolerance)
        self._new_tree: Callable[..., LogTree] = (
            LogTree if is_judged else partial(TolerantTree, tolerance)
        )
        self.options = options
        self.counts = Counts(CLUSTER_FAULT_KINDS)
        self.nodes: dict[int, ClusterNode] = {}
        self.hosts: dict[int, Host] = {}
        self.settled_too: Callable[[Host, list[Effect]], None] = lambda _host, _effects: None
        self._tracer = tracer
        if tracer is not None:
            tracer.attach(world)
        self._digest = blake2b(digest_size=8)
        self._trees: dict[tuple[str, UUID], LogTree] = {}
        self._clean_stops = CleanStops()
        self._codec = Codec(world.fork("codec")) if options.quorum.codecs else None
        self._build_invariants()
        self.judge: Judge = (
            self.partitions if is_judged else UnjudgedClients(self.partitions, tolerance)
        )
        self.network = Network(
            world=world,
            random=world.fork("network"),
            counts=self.counts,
            faults=options.quorum.links,
            deliver=lambda message: self.hosts[message.target].deliver(message),
        )
        for node_id in (*options.controllers, *options.brokers):
            self.hosts[node_id] = self._host(node_id)
        # On a connection a request arrives once, and who asks again does so in the open. Most
        # requests bear to come twice, but not these: an AlterPartition that was refused while its
        # replica was fenced must not come again when it is not (Apache Kafka relies on that too).
        self.network.once = (CLIENT_CHANNEL, "forwarding", "alter-partition")
        self.client = self._client()
        self.admin = self._admin()
        self.add_client(self.client)
        if options.admin_interval_ms:
            self.add_client(self.admin)

    def _build_invariants(self) -> None:
        options, world = self.options, self.world
        timeout_us = 2 * options.quorum.fetch_timeout_ms * 1500 + 10_000
        self.metadata = MetadataInvariants(lambda: world.events_done)
        self.quorum = Invariants(
            world=world,
            voters=tuple(map(ReplicaKey, options.controllers)),
            check_quorum_us=timeout_us,
            says_state=self.metadata.says_state,
        )
        self.partitions = PartitionInvariants(
            moment=lambda: world.events_done,
            hosts=self.hosts,
            broker_of=self.broker,
            metadata=self.metadata,
        )

    def _host(self, node_id: int) -> Host:
        is_broker = node_id in self.options.brokers
        disk = self._disk(node_id)
        disk.saved = lambda _log, election: self.quorum.saved(node_id, election)
        return Host(
            node_id=node_id,
            world=self.world,
            network=self.network,
            disk=disk,
            clock=Clock(offset_ms=self.world.fork(f"clock/{node_id}").randrange(600_000)),
            codec=self._codec,
            counts=self.counts,
            watch=self._watch,
            start_core=self._start_core,
            listener=BROKER_LISTENER if is_broker else "CONTROLLER",
            turns_us=self.options.quorum.turns_us,
        )

    def add_client(self, core: Core) -> Host:
        """A host that nobody judges: clients judge."""
        node_id = max(self.hosts) + 1
        host = self.hosts[node_id] = Host(
            node_id=node_id,
            world=self.world,
            network=self.network,
            disk=self._disk(node_id),
            clock=Clock(),
            codec=self._codec,
            counts=self.counts,
            watch=_NobodyWatches(),
            start_core=lambda _host: core,
            turns_us=self.options.quorum.turns_us,
        )
        return host

    def _disk(self, node_id: int) -> Disk:
        return Disk(
            world=self.world,
            random=self.world.fork(f"disk/{node_id}"),
            counts=self.counts,
            faults=self.options.quorum.disks,
            tree_of=self._tree_of,
        )

    def _tree_of(self, log: str, topic_id: UUID) -> LogTree:
        if log == METADATA_LOG:
            topic_id = METADATA_TOPIC_ID
        known = self._trees.get((log, topic_id))
        if known is None:
            rules = () if log == METADATA_LOG else ("D-ONE", "D-DIV")
            known = self._new_tree(*rules)
            self._trees[(log, topic_id)] = known
        return known

    def _client(self) -> Client:
        options = self.options
        settings = ClientSettings.of(
            brokers=options.brokers,
            partitions=options.partitions,
            replication_factor=options.replication_factor,
            configs={
                "min.insync.replicas": str(options.min_insync_replicas),
                "unclean.leader.election.enable": "true" if options.unclean else "false",
            },
            timeout_ms=options.client_timeout_ms,
            interval_ms=options.produce_interval_ms,
            is_idempotent=options.is_idempotent,
        )
        return Client(
            settings=settings,
            random=self.world.fork("client"),
            next_serial=self.world.sequence,
            judge=self.judge,
        )

    def _admin(self) -> Admin:
        options = self.options
        settings = AdminSettings(
            controllers=options.controllers,
            brokers=options.brokers,
            partitions=options.partitions,
            replication_factor=options.replication_factor,
            timeout_ms=options.client_timeout_ms,
            interval_ms=options.admin_interval_ms,
            reuses_names=not options.quorum.codecs,  # old versions of Fetch know but names
        )
        return Admin(
            settings=settings,
            random=self.world.fork("admin"),
            next_serial=self.world.sequence,
        )

    # --- processes ------------------------------------------------------------------------

    def _start_core(self, host: Host) -> Core:
        node_id = host.node_id
        if node_id in self.options.controllers:
            node = start_controller(host, self.options, self.world)
        else:
            node = start_broker(
                host,
                self.options,
                self.world,
                directory_id=UUID(int=node_id << 64 | _DATA_DIRECTORY),
                previous_epoch=self._clean_stops.started(node_id),
            )
        self.nodes[node_id] = node
        self.quorum.started(host, node)
        self.partitions.started(host)
        return node.member

    def wipe(self, node_id: int) -> None:
        """Take away what a broker that is down has of partitions, and leave it the directory."""
        host = self.hosts[node_id]
        assert not host.is_up, node_id
        for log in [log for log in host.disk.logs if log != METADATA_LOG]:
            del host.disk.logs[log]
        host.disk.checkpoints.clear()
        self._clean_stops.wiped(node_id)

    def broker(self, node_id: int) -> Broker | None:
        """The broker that runs on this node; None while it is down."""
        host = self.hosts.get(node_id)
        return self.nodes[node_id].broker if host is not None and host.is_up else None

    def active_controller(self) -> Controller | None:
        """The newest controller that takes itself for the active one."""
        active = [
            node
            for node_id in self.options.controllers
            if self.hosts[node_id].is_up
            and (node := self.nodes[node_id]).controller is not None
            and node.controller.is_active
        ]
        newest = max(active, key=lambda node: node.leader.epoch, default=None)
        return None if newest is None else newest.controller

    def leads(self, node_id: int) -> bool:
        """Does the node lead the metadata log, or a partition?"""
        node = self.nodes[node_id]
        return node.leads or (node.broker is not None and len(node.broker.leaders) > 0)

    def resign_controller(self) -> None:
        """Make the active controller give up its office."""
        for node_id in self.options.controllers:
            node = self.nodes[node_id]
            if self.hosts[node_id].is_up and node.leads:
                self.hosts[node_id].command(node.resign)

    # --- Watch ----------------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        self.quorum.received(host, event)
        if self._tracer is not None:
            self._tracer.received(host, event)

    def performing(self, host: Host, effect: Effect) -> None:
        if self._tracer is not None:
            self._tracer.performing(host, effect)
        self.quorum.performing(host, effect)
        broker = self.nodes[host.node_id].broker
        if broker is not None:
            self._clean_stops.performing(broker, effect)

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        self.quorum.replying(host, token, request, response)

    def counted(self, host: Host) -> None:
        self.quorum.counted(host)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        node = self.nodes[host.node_id]
        leader, high_watermark = node.leader, node.high_watermark
        self._digest.update(
            _DIGEST.pack(
                self.world.now_us,
                host.node_id << 32 | len(effects),
                leader.epoch,
                -1 if leader.leader_id is None else leader.leader_id,
                -1 if high_watermark is None else high_watermark,
                node.end_offset,
            )
        )
        if self._tracer is not None:
            self._tracer.settled(host, node)
        self.quorum.settled(host, effects)
        self.metadata.committed(self.quorum.committed)
        if node.controller is not None:
            image = node.controller.image
            self.metadata.shows(host.node_id, "controller", image, image.at.offset)
        if node.broker is not None:
            broker = node.broker
            if broker.cluster.is_published:
                next_offset = broker.metadata.published_offset + 1
                self.metadata.shows(host.node_id, "broker", broker.cluster.image, next_offset)
            self.partitions.settled(host, broker)
        self.settled_too(host, effects)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


class _NobodyWatches:
    """In place of the invariants."""

    def received(self, host: Host, event: Event) -> None:
        pass

    def performing(self, host: Host, effect: Effect) -> None:
        pass

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        pass

    def counted(self, host: Host) -> None:
        pass

    def settled(self, host: Host, effects: list[Effect]) -> None:
        pass
