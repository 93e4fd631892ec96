"""States and stories of a cluster, from the znode changes that one node saw.

Pure. A node sees the znodes that it reads and writes, and no others. So, after change N,

    - a znode has the value of the last change up to N that showed one;
    - a znode that the node never saw change is as it is now;
    - a znode whose first change comes later did not exist yet, if that change made it. Else nobody
      knows what it was: partitions of such znodes are left out, and counted.

Paths and payloads are those of `wire.zk`. A value that was cut off says nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from controller.metadata.apply import apply
from controller.metadata.image import MetadataImage
from controller.metadata.partition_records import record_of
from controller.metadata.partitions import NO_LEADER, PartitionState
from quorum.core.types import NO_EPOCH, OffsetAndEpoch
from quorum.zookeeper.znode_changes import ZnodeChange
from quorumlab.inspection.entries import time_text
from quorumlab.inspection.stories import Event
from quorumlab.output import one_line
from quorumlab.top.cluster_view import LogEntry
from wire import metadata_records as records
from wire.messages.metadata import MetadataResponse
from wire.primitives import ZERO_UUID
from wire.zk import paths, znodes
from wire.zk.designs import Layout

__all__ = [
    "Past",
    "Sight",
    "broker_story",
    "entry",
    "epoch_after",
    "image_of",
    "partition_story",
    "sight_after",
    "sight_now",
]

Address = tuple[str, int]
Fields = Mapping[str, Any]  # of a PartitionState, as far as one znode has them
_NAMELESS: Address = ("", 0)


class Sight(NamedTuple):
    brokers: Mapping[int, Address]
    topics: Mapping[str, Mapping[int, PartitionState]]


class Past(NamedTuple):
    sight: Sight
    left_out: int  # partitions that nobody knows how they were
    as_now: int  # partitions that the node never saw change


class Node(NamedTuple):
    """A znode of a partition: where it lies, what it says, and what is true while there is none."""

    path: Callable[[str, int], str]
    decode: Callable[[bytes], Any]
    absent: Fields


_NO_STATE: Fields = {"leader": NO_LEADER, "isr": ()}
_NODES: Mapping[Layout, Sequence[Node]] = {
    Layout.KAFKA: (Node(paths.partition_state, znodes.PartitionState.decode, _NO_STATE),),
    Layout.V3: (Node(paths.partition_leader_and_isr, znodes.PartitionState.decode, _NO_STATE),),
    Layout.V2: (
        Node(paths.partition_leader, znodes.PartitionLeader.decode, {"leader": NO_LEADER}),
        Node(paths.partition_isr, znodes.PartitionIsr.decode, {"isr": ()}),
        Node(paths.partition_replicas, znodes.ReplicaList.decode, {}),
    ),
}
_TOLD = ("leader", "isr", "replicas", "leader_epoch")


# --- the newest state -------------------------------------------------------------------------


def sight_now(told: MetadataResponse) -> Sight:
    """As a broker answers clients."""
    topics: dict[str, dict[int, PartitionState]] = {}
    for topic in told.topics:
        for each in topic.partitions:
            replicas = each.replica_nodes or each.isr_nodes
            if replicas:
                topics.setdefault(topic.name or "", {})[each.partition_index] = PartitionState(
                    replicas=replicas,
                    isr=each.isr_nodes,
                    leader=each.leader_id,
                    leader_epoch=max(0, each.leader_epoch),
                )
    return Sight({each.node_id: (each.host, each.port) for each in told.brokers}, topics)


def image_of(
    sight: Sight, at: OffsetAndEpoch, before: tuple[Sight, MetadataImage] | None = None
) -> MetadataImage:
    """Shares with the image `before` what did not change. A replica on a broker that is not
    registered makes that broker known, as a fenced one."""
    old, image = before or (Sight({}, {}), MetadataImage())
    topics = _topic_records(old.topics, sight.topics, image, at.offset)
    changes = (*_broker_records(sight, image), *topics)
    # The records were never in a log: the offset only has to leave room for them.
    applied = apply(image, changes, OffsetAndEpoch(len(changes), at.epoch))
    return applied._replace(at=at)


def _broker_records(sight: Sight, image: MetadataImage) -> Iterator[records.MetadataRecord]:
    wanted = {broker: (*address, False) for broker, address in sight.brokers.items()}
    for partitions in sight.topics.values():
        for state in partitions.values():
            for broker in state.replicas:
                wanted.setdefault(broker, (*_NAMELESS, True))
    for broker in image.brokers.keys() - wanted.keys():
        yield records.UnregisterBrokerRecord(broker_id=broker, broker_epoch=0)
    for broker, (host, port, is_fenced) in wanted.items():
        known = image.brokers.get(broker)
        end_point = records.BrokerEndpoint(name="", host=host, port=port, security_protocol=0)
        if known is None or (known.end_points, known.fenced) != ((end_point,), is_fenced):
            yield records.RegisterBrokerRecord(
                broker_id=broker,
                incarnation_id=ZERO_UUID,
                broker_epoch=0,
                end_points=(end_point,),
                features=(),
                rack=None,
                fenced=is_fenced,
            )


def _topic_records(
    old: Mapping[str, Mapping[int, PartitionState]],
    new: Mapping[str, Mapping[int, PartitionState]],
    image: MetadataImage,
    offset: int,
) -> Iterator[records.MetadataRecord]:
    """A topic that has lost partitions is another one with its name. Ids are not the cluster's,
    which has none in most ZooKeeper designs."""
    ids = {name: topic.id for name, topic in image.topics.by_name.items()}
    for name, before in old.items():
        if before.keys() - new.get(name, {}).keys():
            yield records.RemoveTopicRecord(topic_id=ids.pop(name))
    for name, partitions in new.items():
        before = old.get(name, {}) if name in ids else {}
        if name not in ids:
            ids[name] = uuid5(NAMESPACE_OID, f"{offset} {name}")
            yield records.TopicRecord(name=name, topic_id=ids[name])
        for index, state in sorted(partitions.items()):
            if before.get(index) != state:
                yield record_of(ids[name], index, state)


# --- the past ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Znodes:
    """Changes up to a number, and the first change of each znode that changed only later."""

    last: dict[str, ZnodeChange] = field(default_factory=dict)
    later: dict[str, ZnodeChange] = field(default_factory=dict)

    def is_absent(self, path: str) -> bool:
        if path in self.last:
            return self.last[path].version is None
        return path in self.later and self.later[path].version == 0

    def is_unknown(self, path: str) -> bool:
        return path in self.later and path not in self.last and not self.is_absent(path)


def _znodes(changes: Iterable[ZnodeChange], number: int) -> _Znodes:
    found = _Znodes()
    for change in changes:
        if change.version is not None and change.value is None:
            continue  # a value that the node has not read yet
        if change.number <= number:
            found.last[change.path] = change
        else:
            found.later.setdefault(change.path, change)
    return found


def sight_after(changes: Iterable[ZnodeChange], number: int, layout: Layout, now: Sight) -> Past:
    """The cluster after change `number`."""
    then = _znodes(changes, number)
    topics: dict[str, dict[int, PartitionState]] = {}
    left_out = as_now = 0
    for name, indexes in sorted(_partitions(then, now).items()):
        if then.is_absent(paths.topic(name)):
            continue
        assigned = _assigned(then, name)
        for index in sorted(indexes | assigned.keys()):
            own = [each.path(name, index) for each in _NODES[layout]]
            if any(then.is_unknown(path) for path in own):
                left_out += 1
                continue
            known = now.topics.get(name, {}).get(index)
            state = _partition(then, name, index, (layout, assigned.get(index), known))
            if state is not None:
                topics.setdefault(name, {})[index] = state
                as_now += not any(path in then.last or path in then.later for path in own)
    return Past(Sight(_brokers(then, now), topics), left_out, as_now)


def _partitions(then: _Znodes, now: Sight) -> dict[str, set[int]]:
    found = {name: set(partitions) for name, partitions in now.topics.items()}
    for path in (*then.last, *then.later):
        of = paths.partition_of(path)
        if path.startswith(f"{paths.TOPICS}/"):
            name, index = of or (_topic_of(path), None)
            found.setdefault(name, set()).update(() if index is None else (index,))
    return found


def _topic_of(path: str) -> str:
    return path.removeprefix(f"{paths.TOPICS}/").partition("/")[0]


def _assigned(then: _Znodes, name: str) -> znodes.Replicas:
    change = then.last.get(paths.topic(name))
    told = None if change is None else _decoded(change, znodes.TopicAssignment.decode)
    return {} if told is None else told.partitions


def _partition(
    then: _Znodes,
    name: str,
    index: int,
    known: tuple[Layout, tuple[int, ...] | None, PartitionState | None],
) -> PartitionState | None:
    """`known`: the replicas that its topic assigns, and how the partition is now. None: it did not
    exist."""
    layout, assigned, now = known
    nodes = _NODES[layout]
    if assigned is None and all(then.is_absent(each.path(name, index)) for each in nodes):
        return None
    found: dict[str, Any] = {}
    for each in nodes:
        path = each.path(name, index)
        if path in then.last or then.is_absent(path):
            found |= _fields(then.last.get(path), each)
    if assigned is not None:
        found.setdefault("replicas", assigned)
    if now is None:
        replicas = found.get("replicas") or found.get("isr")
        if not replicas:
            return None
        now = PartitionState(replicas=replicas, isr=(), leader=NO_LEADER)
    return replace(now, **found, directories=())


def _fields(change: ZnodeChange | None, node: Node) -> Fields:
    if change is None or change.version is None:
        return node.absent
    told = _decoded(change, node.decode)
    found = {name: getattr(told, name) for name in _TOLD if hasattr(told, name)}
    if found.get("leader_epoch") == znodes.NO_EPOCH:
        del found["leader_epoch"]  # the design has none
    return found


def _brokers(then: _Znodes, now: Sight) -> dict[int, Address]:
    ids = set(now.brokers)
    for path in (*then.last, *then.later):
        name = paths.last_name(path)
        if paths.parent(path) == paths.BROKER_IDS and name.isdecimal():
            ids.add(int(name))
    found = {}
    for broker in sorted(ids):
        path = paths.broker(broker)
        if path in then.last:
            told = _decoded(then.last[path], znodes.BrokerRegistration.decode)
            if then.last[path].version is not None:
                found[broker] = _NAMELESS if told is None else (told.host, told.port)
        elif broker in now.brokers and not then.is_absent(path):
            found[broker] = now.brokers[broker]
    return found


def epoch_after(changes: Iterable[ZnodeChange], number: int) -> int:
    """The newest epoch of a controller that is told; NO_EPOCH if none is."""
    told = (_controller_epoch(each) for each in changes if each.number <= number)
    return max(told, default=NO_EPOCH)


def _controller_epoch(change: ZnodeChange) -> int:
    if change.path != paths.CONTROLLER_EPOCH:
        return NO_EPOCH
    told = _decoded(change, znodes.decode_epoch)
    return NO_EPOCH if told is None else int(told)


def _decoded(change: ZnodeChange, decode: Callable[[bytes], Any]) -> Any:
    if change.value is None:
        return None
    try:
        return decode(change.value.encode())
    except znodes.InvalidZnode:  # or cut off
        return None


# --- entries and stories ----------------------------------------------------------------------


def entry(change: ZnodeChange) -> LogEntry:
    at = time_text(change.at_ms)[11:19]
    what = "deleted" if change.version is None else f"v{change.version}"
    text = f"{change.number} {at} {one_line(change.path)} {what} {one_line(change.value or '')}"
    return LogEntry(change.number, text.rstrip(), _subject(change.path))


def _subject(path: str) -> str:
    of = paths.partition_of(path)
    if of is not None:
        return f"{of[0]}-{of[1]}"
    is_broker = paths.parent(path) == paths.BROKER_IDS and paths.last_name(path).isdecimal()
    return f"broker {paths.last_name(path)}" if is_broker else ""


def partition_story(
    changes: Iterable[ZnodeChange], layout: Layout, name: str, index: int
) -> Iterator[Event]:
    nodes = {each.path(name, index): each for each in _NODES[layout]}
    state: dict[str, Any] = {}
    versions: dict[str, int] = {}
    for change in changes:
        if change.path == paths.topic(name):
            told = _of_topic(change, index)
        elif change.path in nodes:
            told = _fields(change, nodes[change.path])
        elif paths.partition_of(change.path) == (name, index) and change.value:
            yield _event(change, state, f"{change.path}: {one_line(change.value)}")
            continue
        else:
            continue
        is_topic = change.path == paths.topic(name)
        if change.version is not None and (change.value is None or (is_topic and not told)):
            continue  # a value that is not read yet, or other partitions'
        before, state = state, {**state, **told}
        parts = [*_words(before, state)]
        if change.version is None:
            parts.insert(0, "the topic was deleted" if is_topic else f"{change.path} was deleted")
            state = {} if is_topic else state
        parts += _unseen(versions.pop(change.path, -1), change)
        if change.version is not None:
            versions[change.path] = change.version
        yield _event(change, state, "; ".join(parts) or f"{change.path} written, with nothing new")


def _of_topic(change: ZnodeChange, index: int) -> Fields:
    told = _decoded(change, znodes.TopicAssignment.decode)
    replicas = None if told is None else told.partitions.get(index)
    return {} if replicas is None else {"replicas": replicas}


def _words(before: Fields, after: Fields) -> Iterator[str]:
    for name, title in (
        ("leader", "leader"),
        ("isr", "ISR"),
        ("replicas", "replicas"),
        ("leader_epoch", "leader epoch"),
    ):
        if name in after and before.get(name) != after[name]:
            old = f"{_shown(before[name])} → " if name in before else ""
            yield f"{title} {old}{_shown(after[name])}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ",".join(map(str, value)) + "]"
    return "none" if value == NO_LEADER else str(value)


def _unseen(before: int, change: ZnodeChange) -> Sequence[str]:
    """A version that was skipped is a change that this node did not see."""
    count = (change.version or 0) - before - 1
    if count <= 0 or change.version is None:
        return ()
    what = "1 change" if count == 1 else f"{count} changes"
    return (f"{what} before this one {'was' if count == 1 else 'were'} not seen",)


def _event(change: ZnodeChange, state: Fields, text: str) -> Event:
    epoch = state.get("leader_epoch", 0)
    return Event(offset=change.number, epoch=epoch, timestamp_ms=change.at_ms, text=text)


def broker_story(changes: Iterable[ZnodeChange], broker: int) -> Iterator[Event]:
    for change in changes:
        if change.path != paths.broker(broker):
            continue
        told = _decoded(change, znodes.BrokerRegistration.decode)
        if change.version is None:
            yield _event(change, {}, "its registration is gone: it stopped, or lost its session")
        elif told is not None:
            yield _event(change, {}, f"registered, at {one_line(told.host)}:{told.port}")
