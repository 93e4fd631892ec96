"""A simulated cluster: controllers, brokers and clients, all of them shipped cores but the clients.

The quorum's own invariants are checked here too, and on top of them those of the metadata and of
the partitions. What happens to a cluster is decided by `cluster_run` (at random) or by a
schedule (`jepsen_like.scenarios.cluster.directed_cluster`).
"""

from collections.abc import Mapping
from uuid import UUID

from broker.broker import Broker
from controller.metadata.image import MetadataImage
from jepsen_like.sim.assemblies.cluster.clients.client import Client, ClientSettings
from jepsen_like.sim.assemblies.cluster.clients.cluster_administrator import Admin
from jepsen_like.sim.assemblies.cluster.clients.group_consumers import GroupConsumer
from jepsen_like.sim.assemblies.cluster.clients.group_members import GroupMember
from jepsen_like.sim.assemblies.cluster.clients.operators import (
    GroupCommits,
    GroupReads,
    Operator,
    RecordDeletion,
    SettingChanges,
    WideTopics,
)
from jepsen_like.sim.assemblies.cluster.clients.pipelined_client import PipelinedClient
from jepsen_like.sim.assemblies.cluster.clients.transactional_producers import (
    CommittedReader,
    TransactionalProducer,
)
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.invariants.broker_invariants import (
    BrokerJudge,
    BrokerTurns,
    CleanStops,
    LaggingMembers,
    SettingInvariants,
    ToldEnds,
)
from jepsen_like.sim.assemblies.cluster.invariants.consumer_invariants import ConsumerInvariants
from jepsen_like.sim.assemblies.cluster.invariants.controller_invariants import ControllerInvariants
from jepsen_like.sim.assemblies.cluster.invariants.group_invariants import (
    GroupInvariants,
    MembershipInvariants,
)
from jepsen_like.sim.assemblies.cluster.invariants.metadata_answers import (
    ImagesOfTurn,
    MetadataAnswers,
)
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.transaction_invariants import (
    TransactionInvariants,
)
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Acknowledged, Key
from jepsen_like.sim.assemblies.cluster.nodes import (
    BROKER_LISTENER,
    ClusterNode,
    start_broker,
    start_controller,
)
from jepsen_like.sim.assemblies.quorum.clients.asking import CLIENT_CHANNEL
from jepsen_like.sim.assemblies.quorum.simulated_quorum import invariants_of, world_of
from jepsen_like.sim.time.deadline_timer import Clock
from jepsen_like.sim.time.virtual_time import Streams
from jepsen_like.sim.world.assembly import Assembly
from jepsen_like.sim.world.client_releases import NEWEST
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from jepsen_like.sim.world.turn_invariants import TurnInvariants
from jepsen_like.workloads.workload import NewTopic
from quorum.core.effects import Core, Effect

__all__ = ["Cluster"]

_DATA_DIRECTORY = 0xDA7A


class Cluster(Assembly[ClusterNode], Observer):
    """All hosts by node id; it is the `Judge` of its clients, too."""

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
        self.controllers, self.brokers = options.controllers, options.brokers
        self.keeps_power = () if options.brokers_lose_power else options.brokers
        world = world_of(seed, options.quorum, is_judged=is_judged, streams=streams)
        super().__init__(world, lambda host: self.nodes[host.node_id].state)
        self.hosts = world.hosts
        if tracer is not None:
            tracer.attach(world, self.node_of)
            world.observe(tracer)
        self._put_invariants()
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
        self._put_clients()

    def _put_invariants(self) -> None:
        options, world, operations = self.options, self.world, self.options.operations
        fired = self.counts.fired
        self.metadata = MetadataInvariants(lambda: world.events_done, fired)
        says_state = self.metadata.says_state
        self.quorum = invariants_of(world, options.quorum, self.node_of, says_state)
        self.partitions = PartitionInvariants(
            moment=lambda: world.events_done,
            hosts=self.hosts,
            broker_of=self.broker,
            metadata=self.metadata,
        )
        images = ImagesOfTurn(self.metadata.images_between)
        self._clean_stops = CleanStops(self._broker_of)
        self._groups = GroupInvariants(self.partitions, fired)
        lagging, told_ends = LaggingMembers(), ToldEnds(self._broker_of)
        membership = MembershipInvariants(self._broker_of, self._groups, fired)
        by_turn: list[BrokerJudge] = [images, lagging, told_ends]
        if operations.commit_interval_ms:
            by_turn.append(self._groups)
        if operations.member_count:
            by_turn.append(membership)
        self.transactions = TransactionInvariants(
            self.partitions, fired, version=options.transaction_version
        )
        if options.transaction_version:
            by_turn.append(self.transactions)
        self._consumers = ConsumerInvariants(
            self._broker_of, self.partitions, lambda: world.events_done, fired
        )
        if operations.consumer_count:
            by_turn.append(self._consumers)
        rules: list[Observer] = [
            TurnInvariants(),
            self.quorum,
            self,
            BrokerTurns(self._broker_of, by_turn),
            self._clean_stops,
            images,
            MetadataAnswers(self._broker_of, images),
            ControllerInvariants(self.node_of),
            lagging,
            told_ends,
        ]
        if operations.setting_interval_ms:
            rules.append(SettingInvariants(self._broker_of, images, self.partitions, fired))
        if operations.member_count:
            rules.append(membership)
        if operations.consumer_count:
            rules.append(self._consumers)
        for rule in rules:
            world.judge(rule)

    def _put_clients(self) -> None:
        world, options, operations = self.world, self.options, self.options.operations
        self.client = self._client()
        self.admin = Admin(world, options)
        self.wide_topics = WideTopics(world, options)
        self.operators: tuple[Operator, ...] = (
            self.admin,
            self.wide_topics,
            RecordDeletion(world, options, self.client, self.partitions),
            GroupCommits(world, options, self._groups),
            GroupReads(world, options, self._groups),
            SettingChanges(world, options, self.partitions),
        )
        numbers = range(operations.member_count)
        self.members: tuple[GroupMember | GroupConsumer, ...] = (
            *(GroupMember(world, options, number) for number in numbers),
            *(
                GroupConsumer(world, options, self._consumers, number)
                for number in range(operations.consumer_count)
            ),
        )
        producers = range(operations.transaction_producers)
        self.producers = tuple(
            TransactionalProducer(world, options, self.client, self.transactions, number)
            for number in producers
        )
        if self.producers:
            reader = CommittedReader(world, options, self.client, self.transactions)
            self.operators = (*self.operators, *self.producers, reader)
        working = [operator for operator in self.operators if operator.interval_ms]
        for core in (self.client, *working, *self.members):
            world.add_client(core)
            if core.release is not NEWEST:
                self.counts.fired("older_client")

    def _client(self) -> Client:
        options, operations = self.options, self.options.operations
        settings = ClientSettings(
            brokers=options.brokers,
            topic=NewTopic(
                name=TOPIC,
                partitions=options.partitions,
                replication_factor=options.replication_factor,
                configs={
                    "min.insync.replicas": str(options.min_insync_replicas),
                    "unclean.leader.election.enable": "true" if options.unclean else "false",
                },
            ),
            timeout_ms=options.client_timeout_ms,
            interval_ms=options.produce_interval_ms,
            is_idempotent=options.is_idempotent,
            in_flight_max=operations.in_flight_max,
            release=operations.client_release,
        )
        is_pipelined = options.is_idempotent and operations.in_flight_max > 1
        kind = PipelinedClient if is_pipelined else Client
        random, fired = self.world.fork("client"), self.counts.fired
        return kind(settings, random, self.world.sequence, self, fired)

    def _broker_of(self, host: Host) -> Broker | None:
        return self.nodes[host.node_id].broker

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
                previous_epoch=self._clean_stops.starts(node_id),
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
        host = self.hosts.get(node_id)
        return self.nodes[node_id].broker if host is not None and host.is_up else None

    @property
    def active_controller(self) -> int | None:
        """The newest controller that takes itself for the active one."""
        active = [
            node_id
            for node_id in self.controllers
            if self.hosts[node_id].is_up
            and (controller := self.nodes[node_id].controller) is not None
            and controller.is_active
        ]
        return max(active, key=lambda node_id: self.nodes[node_id].leader.epoch, default=None)

    @property
    def epoch(self) -> int:
        running = (node.leader.epoch for each, node in self.nodes.items() if self.hosts[each].is_up)
        return max(running, default=0)

    def image(self, node_id: int) -> MetadataImage | None:
        controller = self.nodes[node_id].controller
        if controller is None or not self.hosts[node_id].is_up:
            return super().image(node_id)
        return controller.image

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

    # --- Observer -------------------------------------------------------------------------

    def started(self, host: Host) -> None:
        self.partitions.started(host)
        self.transactions.started(host)

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

    # --- Judge ----------------------------------------------------------------------------

    def acknowledged(self, key: Key, batch: Acknowledged) -> None:
        with self.world.judging:
            self.partitions.acknowledged(key, batch)

    def has_read(self, key: Key, offset: int, value: bytes) -> None:
        with self.world.judging:
            self.partitions.has_read(key, offset, value)

    def has_read_committed(
        self, key: Key, start: int, end: int, given: Mapping[int, bytes]
    ) -> None:
        """A reader of transactions has gone from one offset to another, and was given this."""
        with self.world.judging:
            self.transactions.has_read(key, start, end, given)

    def refused_position(self, key: Key, offset: int) -> None:
        with self.world.judging:
            self.partitions.refused_position(key, offset)

    def refused_sequence(self, key: Key, sequence: int) -> None:
        with self.world.judging:
            self.partitions.refused_sequence(key, sequence)
