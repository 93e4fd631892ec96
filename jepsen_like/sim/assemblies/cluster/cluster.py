"""A simulated cluster: controllers, brokers and clients, all of them shipped cores but the clients.

The quorum's own invariants are checked here too, and on top of them those of the metadata and of
the partitions. What happens to a cluster is decided by `cluster_run` (at random) or by a
schedule (`jepsen_like.scenarios.directed_cluster`).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from broker.broker import Broker
from broker.groups.offsets_topic import OFFSETS_TOPIC
from controller.controller import Controller
from jepsen_like.faults.fault import Injector
from jepsen_like.sim.assemblies.cluster.clean_stops import CleanStops
from jepsen_like.sim.assemblies.cluster.client import Client, ClientSettings, Judge
from jepsen_like.sim.assemblies.cluster.cluster_administrator import Admin, AdminSettings
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.controller_invariants import ControllerInvariants
from jepsen_like.sim.assemblies.cluster.group_commits import (
    GroupCommits,
    GroupInvariants,
    GroupReads,
)
from jepsen_like.sim.assemblies.cluster.images_of_turn import ImagesOfTurn
from jepsen_like.sim.assemblies.cluster.lagging_members import LaggingMembers
from jepsen_like.sim.assemblies.cluster.metadata_answers import MetadataAnswers
from jepsen_like.sim.assemblies.cluster.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.nodes import (
    BROKER_LISTENER,
    ClusterNode,
    start_broker,
    start_controller,
)
from jepsen_like.sim.assemblies.cluster.one_at_a_time import Operator
from jepsen_like.sim.assemblies.cluster.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.pipelined_client import PipelinedClient
from jepsen_like.sim.assemblies.cluster.record_deletion import RecordDeletion
from jepsen_like.sim.assemblies.cluster.setting_changes import SettingChanges
from jepsen_like.sim.assemblies.cluster.setting_invariants import SettingInvariants
from jepsen_like.sim.assemblies.cluster.told_ends import ToldEnds
from jepsen_like.sim.assemblies.cluster.unjudged_clients import UnjudgedClients
from jepsen_like.sim.assemblies.cluster.wide_topics import WideTopics
from jepsen_like.sim.assemblies.quorum.asking import CLIENT_CHANNEL, Asking
from jepsen_like.sim.assemblies.quorum.invariants import Invariants
from jepsen_like.sim.time.node_clock import Clock
from jepsen_like.sim.time.virtual_time import Streams
from jepsen_like.sim.world.client_releases import NEWEST, ClientRelease
from jepsen_like.sim.world.codec import Codec
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from jepsen_like.sim.world.world import Digest, World
from quorum.core.effects import Core, Effect
from quorum.core.types import ReplicaKey

__all__ = ["Cluster"]

_DATA_DIRECTORY = 0xDA7A


class Cluster(Observer):
    """All hosts by node id; `nodes` holds the process of each that is up. A `Site`."""

    performing_kinds = CleanStops.KINDS

    def __init__(
        self,
        seed: int,
        options: ClusterOptions,
        tracer: Observer | None = None,
        *,
        is_judged: bool = True,
        streams: Streams | None = None,
    ) -> None:
        """Not judged: invariants are looked at, and may break."""
        self.options = options
        self.controllers: Sequence[int] = options.controllers
        self.brokers: Sequence[int] = options.brokers
        self.keeps_power = () if options.brokers_lose_power else options.brokers
        self.injectors: Mapping[str, Injector] = {}
        self.world = world = World(
            seed,
            links=options.quorum.links,
            disks=options.quorum.disks,
            files=options.quorum.files,
            has_partitions=True,
            turns_us=options.quorum.turns_us,
            is_judged=is_judged,
            streams=streams,
        )
        if options.quorum.codecs:
            nodes = (*options.controllers, *options.brokers)
            world.speak(Codec(world.fork("codec")), nodes=nodes)
        self.counts, self.network, self.hosts = world.counts, world.network, world.hosts
        self.nodes: dict[int, ClusterNode] = {}
        self._clean_stops = CleanStops()
        self._build_invariants()
        self.judge: Judge = self.partitions
        if world.tolerance is not None:
            self.judge = UnjudgedClients(self.partitions, world.tolerance)
        self._digest = Digest(world, lambda host: self._node_of(host).state)
        world.observe(self._digest)
        if tracer is not None:
            tracer.attach(world, self._node_of)
            world.observe(tracer)
        for judge in (self.quorum, self, self.images_of_turn, self.answers):
            world.judge(judge)
        for rule in (ControllerInvariants, LaggingMembers, ToldEnds):
            world.judge(rule(self._node_of))
        for node_id in (*options.controllers, *options.brokers):
            world.add(
                node_id,
                self._start_core,
                clock=Clock(offset_ms=world.fork(f"clock/{node_id}").randrange(600_000)),
                listener=BROKER_LISTENER if node_id in options.brokers else "CONTROLLER",
            )
        # On a connection a request arrives once, and who asks again does so in the open. Most
        # requests bear to come twice, but not these: an AlterPartition that was refused while its
        # replica was fenced must not come again when it is not (Apache Kafka relies on that too).
        self.network.once = (CLIENT_CHANNEL, "forwarding", "alter-partition")
        self.client = self._client()
        self.admin = self._admin()
        self.wide_topics = self._wide_topics()
        self.operators: tuple[Operator, ...] = (
            self.admin,
            self.wide_topics,
            self._record_deletion(),
            *self._group_clients(),
            self._setting_changes(),
        )
        world.add_client(self.client)
        for operator in self.operators:
            if operator.interval_ms:
                world.add_client(operator)

    def _build_invariants(self) -> None:
        options, world = self.options, self.world
        timeout_us = 2 * options.quorum.fetch_timeout_ms * 1500 + 10_000
        self.metadata = MetadataInvariants(lambda: world.events_done, self.counts.fired)
        self.quorum = Invariants(
            world=world,
            voters=tuple(map(ReplicaKey, options.controllers)),
            check_quorum_us=timeout_us,
            replica_of=self._node_of,
            says_state=self.metadata.says_state,
        )
        self.partitions = PartitionInvariants(
            moment=lambda: world.events_done,
            hosts=self.hosts,
            broker_of=self.broker,
            metadata=self.metadata,
        )
        self.images_of_turn = ImagesOfTurn(
            node_of=self._node_of, images_between=self.metadata.images_between
        )
        self.answers = MetadataAnswers(node_of=self._node_of, images=self.images_of_turn)

    def _node_of(self, host: Host) -> ClusterNode:
        return self.nodes[host.node_id]

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
        known: dict[str, Any] = {
            "settings": settings,
            "random": self.world.fork("client"),
            "next_serial": self.world.sequence,
            "judge": self.judge,
            "fired": self.counts.fired,
            "asking": self._asking(options.operations.client_release),
        }
        if options.is_idempotent and options.operations.in_flight_max > 1:
            return PipelinedClient(
                **known,
                in_flight_max=options.operations.in_flight_max,
                refused_sequence=self.partitions.refused_sequence,
            )
        return Client(**known)

    def _asking(self, release: ClientRelease) -> Asking:
        if release is not NEWEST:
            self.counts.fired("older_client")
        return Asking(release)

    def _admin(self) -> Admin:
        options = self.options
        settings = AdminSettings(
            controllers=options.controllers,
            brokers=options.brokers,
            partitions=options.partitions,
            replication_factor=options.replication_factor,
            # Old versions of Produce and Fetch know but names.
            reuses_names=(
                not options.quorum.codecs and options.operations.client_release is NEWEST
            ),
        )
        return Admin(
            settings=settings,
            timeout_ms=options.client_timeout_ms,
            interval_ms=options.admin_interval_ms,
            random=self.world.fork("admin"),
            next_serial=self.world.sequence,
        )

    def _wide_topics(self) -> WideTopics:
        options = self.options
        return WideTopics(
            controllers=options.controllers,
            brokers=options.brokers,
            timeout_ms=options.client_timeout_ms,
            interval_ms=options.operations.wide_interval_ms,
            random=self.world.fork("wide topics"),
            next_serial=self.world.sequence,
            fired=self.counts.fired,
        )

    def _record_deletion(self) -> RecordDeletion:
        options = self.options
        return RecordDeletion(
            led=self.client.led,
            deletable=lambda key: self.partitions.watched[key].deletable,
            timeout_ms=options.client_timeout_ms,
            interval_ms=options.operations.deletion_interval_ms,
            random=self.world.fork("record deletion"),
            fired=self.counts.fired,
        )

    def _group_clients(self) -> tuple[Operator, Operator]:
        options, operations = self.options, self.options.operations
        invariants = GroupInvariants(
            node_of=self._node_of,
            watched=partial(self.partitions.named, f"{OFFSETS_TOPIC}-0"),
            fired=self.counts.fired,
        )
        has_reader = operations.reader_release is not NEWEST and operations.commit_interval_ms > 0
        if operations.commit_interval_ms:
            self.world.judge(invariants)
        commits = GroupCommits(
            controllers=options.controllers,
            brokers=options.brokers,
            replication_factor=options.replication_factor,
            acknowledged=invariants.acknowledged,
            timeout_ms=options.client_timeout_ms // 4,
            interval_ms=operations.commit_interval_ms,
            random=self.world.fork("group commits"),
        )
        reads = GroupReads(
            commits=invariants.commits,
            told=invariants.told,
            timeout_ms=options.client_timeout_ms // 4,
            interval_ms=operations.commit_interval_ms if has_reader else 0,
            random=self.world.fork("group reads"),
            asking=self._asking(operations.reader_release if has_reader else NEWEST),
        )
        return commits, reads

    def _setting_changes(self) -> SettingChanges:
        options = self.options
        if options.operations.setting_interval_ms:
            settings = SettingInvariants(
                node_of=self._node_of,
                partitions=self.partitions,
                images=self.images_of_turn,
                fired=self.counts.fired,
            )
            self.world.judge(settings)
        return SettingChanges(
            controllers=options.controllers,
            unit_ms=options.quorum.election_timeout_ms,
            asks_min_isr=self.partitions.asks_min_isr,
            timeout_ms=options.client_timeout_ms // 2,
            interval_ms=options.operations.setting_interval_ms,
            random=self.world.fork("setting changes"),
            fired=self.counts.fired,
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
                directory_ids=self._directories_of(node_id),
                previous_epoch=self._clean_stops.started(node_id),
            )
        self.nodes[node_id] = node
        return node.member

    def wipe(self, node_id: int) -> None:
        """Take away what a broker that is down has of partitions, and leave it the directory."""
        host = self.hosts[node_id]
        assert not host.is_up, node_id
        host.disk.wipe_partitions()
        self._clean_stops.wiped(node_id)

    def _directories_of(self, node_id: int) -> tuple[UUID, ...]:
        first = node_id << 64 | _DATA_DIRECTORY
        return tuple(UUID(int=first + place) for place in range(self.options.directories))

    def fail_directory(self, node_id: int, directory_id: UUID) -> None:
        """The broker's directory fails, and with it its mark of an orderly stop."""
        self._clean_stops.wiped(node_id)
        self.hosts[node_id].disk.fail_directory(directory_id)

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

    def resign(self, node_id: int) -> None:
        """Make the active controller give up its leadership, whatever it is that the node leads."""
        for controller in self.controllers:
            node = self.nodes[controller]
            if self.hosts[controller].is_up and node.leads:
                self.hosts[controller].command(node.resign)

    def shut_down(self, node_id: int) -> None:
        self.hosts[node_id].command(self.nodes[node_id].shut_down)

    # --- Observer -------------------------------------------------------------------------

    def started(self, host: Host) -> None:
        self.partitions.started(host)

    def performing(self, host: Host, effect: Effect) -> None:
        broker = self.nodes[host.node_id].broker
        if broker is not None:
            self._clean_stops.performing(broker, effect)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        node = self.nodes[host.node_id]
        self.metadata.committed(self.quorum.committed)
        if node.controller is not None:
            image = node.controller.image
            self.metadata.shows(host.node_id, "controller", image, image.at.offset)
        if node.broker is not None:
            broker = node.broker
            if broker.cluster.is_published:
                next_offset = broker.metadata.published_offset + 1
                self.metadata.shows(host.node_id, "broker", broker.cluster.image, next_offset)
            self.partitions.settled(host, broker, effects)

    @property
    def digest(self) -> str:
        return str(self._digest)
