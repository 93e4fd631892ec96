"""What controllers and brokers read from ZooKeeper, as procedures.

Controllers and brokers read the same nodes in the same way. A node that is gone by now, or that
cannot be read because a person wrote it, is left out: whoever needs it treats it as not there.

Whether calls are made one after another or are pipelined is the design's (`calls`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from controller.metadata.partitions import NO_LEADER, PartitionState
from quorum.zookeeper.zk_procedures import Procedure, all_at_once, one, one_by_one
from wire.zk import paths, znodes
from wire.zk.control_rpc import ListenerAddress, LiveBroker, TopicPartition
from wire.zk.designs import Design, Layout
from wire.zk.session import Children, Create, Data, GetChildren, GetData, Operation, Result
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
    "Assignments",
    "States",
    "calls",
    "children",
    "decoded",
    "ensure_roots",
    "partitions_under",
    "read_assignments",
    "read_brokers",
    "read_configs",
    "read_states",
    "state_path",
]

_T = TypeVar("_T")
Assignments = Mapping[str, Mapping[int, tuple[int, ...]]]  # replicas by topic and partition
States = Mapping[TopicPartition, PartitionState]  # partition_epoch is the version of the node


_ROOTS = {
    Layout.V2: paths.V2_ROOTS,
    Layout.V3: paths.V3_ROOTS,
    Layout.KAFKA: paths.KAFKA_ROOTS,
}


def calls(design: Design, operations: Iterable[Operation]) -> Procedure[list[Result]]:
    if design.pipelines_writes:
        return (yield from all_at_once(operations))
    return (yield from one_by_one(operations))


def decoded(result: Result, decode: Callable[[bytes], _T]) -> _T | None:
    """What a GetData found; None if it is not there, or not readable."""
    if not isinstance(result, Data):
        return None
    try:
        return decode(result.data)
    except InvalidZnode:
        return None


def ensure_roots(design: Design) -> Procedure[None]:
    """The nodes that everything else lies under; there they are most of the time."""
    ordered = sorted(_ROOTS[design.layout], key=lambda path: path.count("/"))
    yield from all_at_once(Create(path=path) for path in ordered)


def children(path: str, *, watch: bool = False) -> Procedure[tuple[str, ...]]:
    result = yield from one(GetChildren(path=path, watch=watch))
    return result.names if isinstance(result, Children) else ()


def partitions_under(root: str, *, watch: bool = True) -> Procedure[list[TopicPartition]]:
    """The partitions that an administrator has named below `root`; `watch` all of it."""
    found: list[TopicPartition] = []
    for topic in (yield from children(root, watch=watch)):
        names = yield from children(f"{root}/{topic}", watch=watch)
        found += (TopicPartition(topic, int(name)) for name in names if name.isdecimal())
    return found


def state_path(design: Design, of: TopicPartition) -> str:
    if design.layout is Layout.V3:
        return paths.partition_leader_and_isr(of.topic, of.partition)
    return paths.partition_state(of.topic, of.partition)


# --- brokers --------------------------------------------------------------------------------


def read_brokers(design: Design, *, watch: bool = False) -> Procedure[dict[int, LiveBroker]]:
    """The live brokers, by id. `watch` their list."""
    names = yield from children(paths.BROKER_IDS, watch=watch)
    ids = sorted(int(name) for name in names if name.isdecimal())
    found = yield from calls(design, (GetData(path=paths.broker(each)) for each in ids))
    return {
        broker_id: live
        for broker_id, result in zip(ids, found, strict=True)
        if (live := _live_broker(broker_id, result)) is not None
    }


def _live_broker(broker_id: int, result: Result) -> LiveBroker | None:
    registration = decoded(result, BrokerRegistration.decode)
    if registration is None or not isinstance(result, Data):
        return None
    return LiveBroker(
        id=broker_id,
        listeners=_listeners(registration),
        rack=registration.rack,
        generation=result.stat.czxid,
    )


def _listeners(registration: BrokerRegistration) -> tuple[ListenerAddress, ...]:
    """Of version 1, which has no endpoints, the one address is that of PLAINTEXT."""
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


def read_assignments(
    design: Design, names: Iterable[str], *, watch: bool = False
) -> Procedure[dict[str, Mapping[int, tuple[int, ...]]]]:
    """The replicas of the topics among `names` that there are. `watch` each topic's data."""
    asked = tuple(names)
    found = yield from calls(
        design, (GetData(path=paths.topic(name), watch=watch) for name in asked)
    )
    return {
        name: assignment.partitions
        for name, result in zip(asked, found, strict=True)
        if (assignment := decoded(result, TopicAssignment.decode)) is not None
    }


def read_states(
    design: Design, assignments: Assignments, only: Iterable[TopicPartition] | None = None
) -> Procedure[dict[TopicPartition, PartitionState]]:
    """Leader and ISR of each assigned partition, or of those in `only`, that has them."""
    asked = tuple(
        only
        if only is not None
        else (
            TopicPartition(topic, partition)
            for topic in sorted(assignments)
            for partition in sorted(assignments[topic])
        )
    )
    if design.layout is Layout.V2:
        return (yield from _read_replica_states(assignments, asked))
    found = yield from calls(design, (GetData(path=state_path(design, each)) for each in asked))
    states = {}
    for of, result in zip(asked, found, strict=True):
        state = decoded(result, znodes.PartitionState.decode)
        if state is None or not isinstance(result, Data):
            continue
        states[of] = PartitionState(
            replicas=assignments.get(of.topic, {}).get(of.partition, state.isr),
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=result.stat.version,
        )
    return states


def _read_replica_states(
    assignments: Assignments, asked: tuple[TopicPartition, ...]
) -> Procedure[dict[TopicPartition, PartitionState]]:
    """Where leader, ISR and replicas are nodes of their own; the assignment of a topic's node is
    that of its creation."""
    found = yield from all_at_once(
        GetData(path=path(of.topic, of.partition))
        for of in asked
        for path in (paths.partition_leader, paths.partition_isr, paths.partition_replicas)
    )
    states = {}
    for place, of in enumerate(asked):
        of_leader, of_isr, of_replicas = found[3 * place : 3 * place + 3]
        leader = decoded(of_leader, PartitionLeader.decode)
        isr = decoded(of_isr, PartitionIsr.decode)
        replicas = decoded(of_replicas, ReplicaList.decode)
        if isr is None or not isinstance(of_isr, Data):
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
    design: Design, entity_type: str, names: Iterable[str]
) -> Procedure[dict[str, Mapping[str, str]]]:
    """What was set for the entities among `names`, as far as anything was."""
    asked = tuple(names)
    found = yield from calls(
        design, (GetData(path=paths.config(entity_type, name)) for name in asked)
    )
    return {
        name: entity.config
        for name, result in zip(asked, found, strict=True)
        if (entity := decoded(result, EntityConfig.decode)) is not None
    }
