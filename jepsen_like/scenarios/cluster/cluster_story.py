"""Tells what happens in a cluster: who is the active controller, what the metadata says of brokers
and of the partition, what replicas append, and what is committed; which ISR changes brokers ask
for, and what nodes refuse one another.
"""

from broker.partition.partition import FollowerOf, LeaderOf, Partition
from controller.metadata.image import BrokerImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from jepsen_like.scenarios.cluster.directed_clients import values_in
from jepsen_like.scenarios.cluster.transaction_story import TransactionStory
from jepsen_like.scenarios.stage.story import Story, Told, appended_after, told_to_part
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect, Event, Reply, Request, Send, Stop, Truncate
from wire.errors import ErrorCode
from wire.messages.fetching import FetchedPartition, FetchRequest, FetchResponse
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from wire.messages.registration import BrokerRegistrationRequest
from wire.primitives import METADATA_TOPIC_ID

__all__ = ["ClusterStory"]


class ClusterStory(Observer):
    """Looks on at `cluster`, which is set before anything happens."""

    def __init__(self, story: Story, partition: str) -> None:
        self.cluster: Cluster
        self.story = story
        self._name = partition
        self._asked: dict[tuple[int, int], object] = {}  # by node and token: the request
        self._active: set[int] = set()
        self._told = Told(story)
        self._written: dict[int, Entry | None] = {}
        self._transactions = TransactionStory(story)

    def forget(self, node: int) -> None:
        """Its process has ended: what it says next is news."""
        self._active.discard(node)
        self._told.forget(node, ("role", "high watermark"))
        self._transactions.forget(node)

    # --- Observer -----------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        """How brokers follow the metadata log is told in the scenarios of a quorum."""
        match event:
            case Request(body=AlterPartitionRequest()):
                self._asked[host.node_id, event.token] = event.body
            case Request(body=FetchRequest(topics=topics)):
                if all(topic.topic_id != METADATA_TOPIC_ID for topic in topics):
                    self._asked[host.node_id, event.token] = event.body
            case _:
                pass

    def performing(self, host: Host, effect: Effect) -> None:
        node = host.node_id
        match effect:
            case Send(body=AlterPartitionRequest() as body):
                asked = body.topics[0].partitions[0]
                members = sorted(member.broker_id for member in asked.new_isr_with_epochs)
                self.story.tell(
                    f"{node} asks for the ISR {', '.join(map(str, members))},"
                    f" in partition epoch {asked.partition_epoch}"
                )
            case Send(body=BrokerRegistrationRequest()):
                self.story.tell(f"{node} asks to be registered")
            case Reply():
                self._replied(node, self._asked.pop((node, effect.token), None), effect.body)
            case Truncate(log=log, end_offset=end_offset) if log == self._name:
                self.story.tell(f"{node} truncates {log} to offset {end_offset}")
            case Stop(reason=reason):
                self.story.tell(f"{node} stops: {reason}")
                self.forget(node)
            case _:
                pass

    def settled(self, host: Host, effects: list[Effect]) -> None:
        node, cluster = host.node_id, self.cluster
        self._tell_controller(node, cluster)
        self._tell_metadata(cluster)
        self._tell_log(host)
        if cluster.options.transaction_version:
            self._transactions.tell(host, cluster)
        broker = cluster.broker(node)
        for partition in () if broker is None else broker.replicas:
            if partition.name == self._name:
                self._tell_replica(node, partition)

    def _replied(self, node: int, asked: object, answer: object) -> None:
        match asked, answer:
            case AlterPartitionRequest(broker_id=broker), AlterPartitionResponse() as told:
                results = [each for topic in told.topics for each in topic.partitions]
                errors = [told.error_code, *(result.error_code for result in results)]
                for error in errors:
                    if error is not ErrorCode.NONE:
                        self.story.tell(f"{node} refuses that to {broker}: {error.name}")
            case FetchRequest(replica_state=state), FetchResponse(responses=topics):
                for topic in topics:
                    for partition in topic.partitions:
                        self._fetched(node, state.replica_id, partition)
            case _:
                pass

    def _fetched(self, node: int, follower: int, answer: FetchedPartition) -> None:
        """Tell what a follower is answered; a client tells its answers itself."""
        diverging = answer.diverging_epoch
        if follower < 0:
            return
        if answer.error_code is not ErrorCode.NONE:
            self.story.tell(f"{node} refuses a fetch of {follower}: {answer.error_code.name}")
        elif diverging.end_offset >= 0:
            self.story.tell(told_to_part(node, follower, diverging))

    def _tell_controller(self, node: int, cluster: Cluster) -> None:
        running = cluster.nodes[node]
        is_active = running.controller is not None and running.controller.is_active
        if is_active and node not in self._active:
            self._active.add(node)
            self.story.tell(f"{node} is the active controller in epoch {running.leader.epoch}")
        elif not is_active and node in self._active:
            self._active.discard(node)
            self.story.tell(f"{node} is the active controller no more")

    def _tell_metadata(self, cluster: Cluster) -> None:
        for node, broker in cluster.metadata.image.brokers.items():
            told = _broker(broker)
            self._told.tell("broker", node, told, f"metadata: broker {node} is {told}")
        for watched in cluster.partitions.watched.values():
            if watched.name == self._name and watched.state is not None:
                told = _partition(watched.state)
                self._told.tell("partition", None, told, f"metadata: {self._name}: {told}")

    def _tell_log(self, host: Host) -> None:
        stored = host.disk.logs.get(self._name)
        if stored is None:
            return
        node = host.node_id
        for entry in appended_after(self._written.get(node), stored.written.entries):
            for offset, value in values_in(entry.records):
                self.story.tell(f"{node} appends {value} at {offset} in epoch {entry.epoch}")
        self._written[node] = stored.written.last

    def _tell_replica(self, node: int, partition: Partition) -> None:
        match partition.role:
            case LeaderOf(leader_epoch=epoch):
                self._tell_role(node, f"leads {self._name} in epoch {epoch}")
            case FollowerOf(leader_id=leader, leader_epoch=epoch) if leader != NO_LEADER:
                self._tell_role(node, f"follows {leader} in epoch {epoch}")
            case FollowerOf():
                self._tell_role(node, "has no leader to follow")
            case _:
                return
        end = partition.open_log.high_watermark or None  # nothing is told of the beginning
        self._told.tell(
            "high watermark", node, end, f"{node} knows that all before {end} is committed"
        )
        self._transactions.tell_stable(node, partition)

    def _tell_role(self, node: int, told: str) -> None:
        self._told.tell("role", node, told, f"{node} {told}")


def _broker(broker: BrokerImage) -> str:
    what = "fenced" if broker.fenced else "unfenced"
    return f"{what}, and shuts down" if broker.in_controlled_shutdown else what


def _partition(state: PartitionState) -> str:
    leader = "no leader" if state.leader == NO_LEADER else f"{state.leader} leads"
    told = (
        f"{leader}, epoch {state.leader_epoch}; in sync: {_ids(state.isr)};"
        f" partition epoch {state.partition_epoch}"
    )
    if state.eligible_leader_replicas:
        told += f"; eligible: {_ids(state.eligible_leader_replicas)}"
    return told


def _ids(nodes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sorted(nodes))) or "nobody"
