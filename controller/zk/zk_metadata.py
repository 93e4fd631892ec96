"""The metadata that ZooKeeper holds: read by procedures, and made an image.

Controllers and brokers read the same nodes in the same way. A node that is gone by now, or that
cannot be decoded because a person wrote it, is left out: whoever needs it treats it as missing.
Whether calls are made one after another or are pipelined is the design's (`calls`).

An image is what every rule and every answer to a client is made from, in both modes; only its
origin differs. Topics of the ZooKeeper designs have no ids: theirs are made from their names, so
that every node that knows the name knows the id. A topic that was deleted and created again has the
same id, as it had none (KIP-516 came later): seed 000, discussion 5.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar
from uuid import UUID

from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import Change, CommittedBatch, record_count
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import BrokerImage, MetadataImage, ResourceType
from controller.metadata.partition_records import record_of
from controller.metadata.partitions import NO_LEADER, PartitionState
from quorum.zookeeper.zk_procedures import Procedure, all_at_once, one, one_by_one
from wire import metadata_records as records
from wire.zk import paths, znodes
from wire.zk import session as zk
from wire.zk.control_rpc import ListenerAddress, LiveBroker, TopicPartition
from wire.zk.designs import Design, Layout
from wire.zk.znodes import (
    BrokerRegistration,
    EntityConfig,
    InvalidZnode,
    PartitionIsr,
    PartitionLeader,
    ReplicaList,
    TopicAssignment,
)

__all__ = [
    "DEFAULT_ENTITY",
    "ENTITIES",
    "Assignments",
    "ClusterUpdate",
    "States",
    "assigned",
    "calls",
    "children",
    "decoded",
    "ensure_roots",
    "partitions_under",
    "read_all",
    "read_assignments",
    "read_brokers",
    "read_configs",
    "read_states",
    "read_topics",
    "readable",
    "state_path",
    "topic_id_of",
    "updated",
    "with_states",
    "write_over",
]

_ROUNDS_MAX = 100  # of others that are always faster
_T = TypeVar("_T")
_Key = TypeVar("_Key")
Assignments = Mapping[str, Mapping[int, tuple[int, ...]]]  # replicas by topic and partition
States = Mapping[TopicPartition, PartitionState]  # partition_epoch is the version of the node
ENTITIES = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers"}  # below /config
DEFAULT_ENTITY = "<default>"  # stands for all of its kind, as the resource name "" does
_ROOTS = {Layout.V2: paths.V2_ROOTS, Layout.V3: paths.V3_ROOTS, Layout.KAFKA: paths.KAFKA_ROOTS}


def calls(design: Design, operations: Iterable[zk.Operation]) -> Procedure[list[zk.Result]]:
    if design.pipelines_writes:
        return (yield from all_at_once(operations))
    return (yield from one_by_one(operations))


def readable(data: bytes | None, decode: Callable[[bytes], _T]) -> _T | None:
    """None if there is nothing, or if a person has written what cannot be decoded."""
    try:
        return None if data is None else decode(data)
    except InvalidZnode:
        return None


def decoded(result: zk.Result, decode: Callable[[bytes], _T]) -> _T | None:
    """As `readable`, of what a GetData found."""
    return readable(result.data if isinstance(result, zk.Data) else None, decode)


def ensure_roots(design: Design) -> Procedure[None]:
    """Create the nodes that everything else lies under; mostly they exist."""
    ordered = sorted(_ROOTS[design.layout], key=lambda path: path.count("/"))
    yield from all_at_once(zk.Create(path=path) for path in ordered)


def children(path: str, *, watch: bool = False) -> Procedure[tuple[str, ...]]:
    result = yield from one(zk.GetChildren(path=path, watch=watch))
    return result.names if isinstance(result, zk.Children) else ()


def partitions_under(root: str, *, watch: bool = True) -> Procedure[list[TopicPartition]]:
    """The partitions that an administrator has named below `root`; `watch` all of it."""
    found: list[TopicPartition] = []
    for topic in (yield from children(root, watch=watch)):
        names = yield from children(f"{root}/{topic}", watch=watch)
        found += (TopicPartition(topic, int(name)) for name in names if name.isdecimal())
    return found


def read_all(
    design: Design, nodes: Mapping[_Key, str], decode: Callable[[bytes], _T], *, watch: bool = False
) -> Procedure[dict[_Key, tuple[_T, zk.Stat]]]:
    """The decoded data at the paths of `nodes`, where it can be decoded."""
    results = yield from calls(design, (zk.GetData(path=at, watch=watch) for at in nodes.values()))
    return {
        key: (value, result.stat)
        for key, result in zip(nodes, results, strict=True)
        if isinstance(result, zk.Data) and (value := decoded(result, decode)) is not None
    }


def write_over(path: str, decide: Callable[[bytes | None], bytes | None]) -> Procedure[bool]:
    """Replace the data at `path`, or None, by what `decide` makes of it. None leaves it as it is.

    False: it was not written.
    """
    for _ in range(_ROUNDS_MAX):
        found = yield from one(zk.GetData(path=path))
        data = decide(found.data if isinstance(found, zk.Data) else None)
        if data is None:
            return False
        if isinstance(found, zk.Data):
            result = yield from one(zk.SetData(path=path, data=data, version=found.stat.version))
        else:
            yield from one(zk.Create(path=paths.parent(path)))  # it goes with its last child
            result = yield from one(zk.Create(path=path, data=data))
        if isinstance(result, zk.Written | zk.Created):
            return True
    return False


def state_path(design: Design, of: TopicPartition) -> str:
    if design.layout is Layout.V3:
        return paths.partition_leader_and_isr(of.topic, of.partition)
    return paths.partition_state(of.topic, of.partition)


# --- brokers --------------------------------------------------------------------------------


def read_brokers(design: Design, *, watch: bool = False) -> Procedure[dict[int, LiveBroker]]:
    """The live brokers, by id. `watch` their list."""
    names = yield from children(paths.BROKER_IDS, watch=watch)
    ids = sorted(int(name) for name in names if name.isdecimal())
    nodes = {each: paths.broker(each) for each in ids}
    found = yield from read_all(design, nodes, BrokerRegistration.decode)
    return {
        broker_id: LiveBroker(
            id=broker_id, listeners=_listeners(known), rack=known.rack, generation=stat.czxid
        )
        for broker_id, (known, stat) in found.items()
    }


def _listeners(registration: BrokerRegistration) -> tuple[ListenerAddress, ...]:
    """Version 1 has no endpoints: its one address is that of PLAINTEXT."""
    if not registration.endpoints:
        return (
            ListenerAddress(listener="PLAINTEXT", host=registration.host, port=registration.port),
        )
    found = []
    for text in registration.endpoints:
        listener, _, address = text.partition("://")
        host, _, port = address.rpartition(":")
        if port.isdecimal():
            found.append(ListenerAddress(listener=listener, host=host, port=int(port)))
    return tuple(found)


# --- topics ---------------------------------------------------------------------------------


def assigned(assignments: Assignments) -> list[TopicPartition]:
    """Every assigned partition, in order."""
    return [
        TopicPartition(topic, partition)
        for topic, partitions in sorted(assignments.items())
        for partition in sorted(partitions)
    ]


def with_states(assignments: Assignments, states: States) -> dict[TopicPartition, PartitionState]:
    """The state of every assigned partition, without a leader if ZooKeeper has none."""
    return {
        of: states.get(of)
        or PartitionState(replicas=assignments[of.topic][of.partition], isr=(), leader=NO_LEADER)
        for of in assigned(assignments)
    }


def read_assignments(
    design: Design, names: Iterable[str], *, watch: bool = False
) -> Procedure[dict[str, Mapping[int, tuple[int, ...]]]]:
    """The replicas of the topics among `names` that exist. `watch` each topic's data."""
    found = yield from read_topics(design, names, watch=watch)
    return {name: assignment.partitions for name, assignment in found.items()}


def read_topics(
    design: Design, names: Iterable[str], *, watch: bool = False
) -> Procedure[dict[str, TopicAssignment]]:
    """The same, with what is said to move."""
    nodes = {name: paths.topic(name) for name in names}
    found = yield from read_all(design, nodes, TopicAssignment.decode, watch=watch)
    return {name: assignment for name, (assignment, _) in found.items()}


def read_states(
    design: Design, assignments: Assignments, only: Iterable[TopicPartition] | None = None
) -> Procedure[dict[TopicPartition, PartitionState]]:
    """Leader and ISR of each assigned partition, or of those in `only`, that has them."""
    asked = tuple(assigned(assignments) if only is None else only)
    if design.layout is Layout.V2:
        return (yield from _read_replica_states(assignments, asked))
    nodes = {of: state_path(design, of) for of in asked}
    found = yield from read_all(design, nodes, znodes.PartitionState.decode)
    return {
        of: PartitionState(
            replicas=assignments.get(of.topic, {}).get(of.partition, state.isr),
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=stat.version,
        )
        for of, (state, stat) in found.items()
    }


def _read_replica_states(
    assignments: Assignments, asked: tuple[TopicPartition, ...]
) -> Procedure[dict[TopicPartition, PartitionState]]:
    """Leader, ISR and replicas are nodes of their own here; the assignment in a topic's node is
    that of its creation."""
    found = yield from all_at_once(
        zk.GetData(path=path(of.topic, of.partition))
        for of in asked
        for path in (paths.partition_leader, paths.partition_isr, paths.partition_replicas)
    )
    states = {}
    for place, of in enumerate(asked):
        of_leader, of_isr, of_replicas = found[3 * place : 3 * place + 3]
        leader = decoded(of_leader, PartitionLeader.decode)
        isr = decoded(of_isr, PartitionIsr.decode)
        replicas = decoded(of_replicas, ReplicaList.decode)
        if isr is None or not isinstance(of_isr, zk.Data):
            continue
        states[of] = PartitionState(
            replicas=(
                assignments.get(of.topic, {}).get(of.partition, isr.isr)
                if replicas is None
                else replicas.replicas
            ),
            isr=isr.isr,
            leader=NO_LEADER if leader is None else leader.leader,
            leader_epoch=max(isr.leader_epoch, 0),
            partition_epoch=of_isr.stat.version,
        )
    return states


def read_configs(
    design: Design, kind: ResourceType, names: Iterable[str]
) -> Procedure[dict[tuple[int, str], Mapping[str, str]]]:
    """The configs of the resources of a kind among `names`, where there are any."""
    nodes = {
        (int(kind), name): paths.config(ENTITIES[kind], name or DEFAULT_ENTITY) for name in names
    }
    found = yield from read_all(design, nodes, EntityConfig.decode)
    return {resource: entity.config for resource, (entity, _) in found.items()}


# --- the image ------------------------------------------------------------------------------


def topic_id_of(name: str) -> UUID:
    return UUID(bytes=blake2b(name.encode(), digest_size=16, person=b"quorumlab zk").digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUpdate:
    """News of the cluster, from ZooKeeper or a controller. What is not named stays as it is."""

    brokers: Mapping[int, LiveBroker] | None = None  # all that live; None: no news
    partitions: States = field(default_factory=dict)
    topics: Collection[str] | None = None  # all that exist; None: no news
    deleted_topics: Collection[str] = ()
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)


def updated(image: MetadataImage, news: ClusterUpdate) -> tuple[MetadataImage, MetadataDelta]:
    """The image with the news in it, and the delta."""
    changes = tuple(_changes(image, news))
    offset = image.at.offset
    batch = CommittedBatch(
        changes=changes,
        base_offset=offset,
        next_offset=offset + max(record_count(changes), 1),
        epoch=0,
        timestamp_ms=0,
    )
    return apply_with_delta(image, batch)


def _changes(image: MetadataImage, news: ClusterUpdate) -> Iterator[Change]:
    """Only what differs from the image."""
    if news.brokers is not None:
        yield from _broker_changes(image, news.brokers)
    yield from _topic_changes(image, news)
    for resource, config in news.configs.items():
        yield from _config_changes(image, resource, config)


def _broker_changes(image: MetadataImage, live: Mapping[int, LiveBroker]) -> Iterator[Change]:
    for broker_id, known in sorted(image.brokers.items()):
        if broker_id not in live:
            yield records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=known.epoch)
    for broker_id, broker in sorted(live.items()):
        if not _is_known(image.brokers.get(broker_id), broker):
            yield records.RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=UUID(int=max(broker.generation, 0)),
                broker_epoch=broker.generation,
                end_points=_end_points(broker),
                features=(),
                rack=broker.rack,
                fenced=False,
            )


def _is_known(known: BrokerImage | None, broker: LiveBroker) -> bool:
    return (
        known is not None
        and known.epoch == broker.generation
        and known.end_points == _end_points(broker)
        and known.rack == broker.rack
    )


def _end_points(broker: LiveBroker) -> tuple[records.BrokerEndpoint, ...]:
    return tuple(
        records.BrokerEndpoint(
            name=each.listener, host=each.host, port=each.port, security_protocol=0
        )
        for each in broker.listeners
    )


def _topic_changes(image: MetadataImage, news: ClusterUpdate) -> Iterator[Change]:
    gone = set(news.deleted_topics)
    if news.topics is not None:
        gone |= image.topics.by_name.keys() - set(news.topics)
    known = set(image.topics.by_name)
    for name in sorted(gone & known):
        yield records.RemoveTopicRecord(topic_id=topic_id_of(name))
    known -= gone
    for of, state in sorted(news.partitions.items(), key=lambda item: item[0]):
        if of.topic in gone:
            continue
        topic_id = topic_id_of(of.topic)
        if of.topic not in known:
            known.add(of.topic)
            yield records.TopicRecord(name=of.topic, topic_id=topic_id)
        before = image.partition(topic_id, of.partition)
        if before != state:
            yield record_of(topic_id, of.partition, state)


def _config_changes(
    image: MetadataImage, resource: tuple[int, str], config: Mapping[str, str]
) -> Iterator[Change]:
    kind, name = resource
    assert kind in (ResourceType.TOPIC, ResourceType.BROKER), resource
    before = image.config(kind, name)
    for key in sorted(before.keys() | config.keys()):
        if before.get(key) != config.get(key):
            yield records.ConfigRecord(
                resource_type=kind, resource_name=name, name=key, value=config.get(key)
            )
