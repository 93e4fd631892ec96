"""Nodes in which administrators say what they want, each written by several of them.

Written at the version that was read, and read again if somebody else was faster: nobody's wish is
overwritten unseen. Whoever takes such a node away names the version that it has read, too.

Where administrators of `zk-redesign` and `zk-kip497` write what they want: Kafka's own paths.

Source: seed 001, "Protocols".

Where administrators of `zk-v1` and `zk-v2` write what they want: topics into their nodes, and
what is to move under `/brokers/partitions_reassigned`. What is to go is moved to nobody.

Source: seed 002, "if (p.RAR is empty)"; that topics are created and grow by their nodes is
reconstructed.

Where administrators of `zk-v3` write what they want: the paths that seed 000 has "created by
admin". A topic is deleted by deleting its node, with what lies below it.

The seed has no path for elections: none can be asked for.

ElectLeaders in ZooKeeper mode: written to /admin/preferred_replica_election, or left to leaders.

The rules of both modes say which partitions need an election and could have one. A controller hears
of these by its watch, as of an administrator's own; where there is none, the leader of each sees by
itself that its preferred replica is in sync, and gives way. So the answer leaves before the leaders
have moved. The documents have no way to ask for an unclean election.

Source: seed 001, "preferred replica leader election"; seed 002, checkLoadBalancing.

Blocks of producer ids: the last one given out lies in a node of its own.

Source: KIP-98; Kafka's ZkProducerIdManager.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from controller.config import ControllerConfig
from controller.decisions.elections import decide_elect_leaders
from controller.metadata.image import MetadataImage
from controller.metadata.znode_reading import decoded
from controller.refusals import refuse
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.partitions import ElectLeadersRequest, ElectLeadersResponse
from wire.messages.producing import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Create, Created, Data, Delete, GetData, Operation, SetData, Written
from wire.zk.znodes import (
    InvalidZnode,
    PartitionList,
    ProducerIdBlock,
    Reassignments,
    ReplicaList,
    TopicAssignment,
)

__all__ = [
    "KafkaWrites",
    "V2Writes",
    "V3Writes",
    "allocate_producer_ids",
    "elect_leaders",
    "grown",
    "list_replicas",
    "readable",
    "write_over",
]


_T = TypeVar("_T")
_ROUNDS_MAX = 100  # of others that are always faster


def write_over(path: str, decide: Callable[[bytes | None], bytes | None]) -> Procedure[bool]:
    """What is there, or None, becomes what `decide` makes of it; of None, it is left as it is.

    False: it was not written.
    """
    for _ in range(_ROUNDS_MAX):
        found = yield from one(GetData(path=path))
        data = decide(found.data if isinstance(found, Data) else None)
        if data is None:
            return False
        if isinstance(found, Data):
            result = yield from one(SetData(path=path, data=data, version=found.stat.version))
        else:
            yield from one(Create(path=paths.parent(path)))  # it goes with its last child
            result = yield from one(Create(path=path, data=data))
        if isinstance(result, Written | Created):
            return True
    return False


def readable(data: bytes | None, decode: Callable[[bytes], _T]) -> _T | None:
    """None if there is nothing, or a person has written what nobody understands."""
    try:
        return None if data is None else decode(data)
    except InvalidZnode:
        return None


def list_replicas(root: str, replicas: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
    """A node for each partition, below one for its topic."""
    for of, each in replicas.items():
        data = ReplicaList(replicas=each).encode()
        path = paths.partition_under(root, of.topic, of.partition)
        if not (yield from write_over(path, partial(_always, data))):
            return False
    return True


def _always(data: bytes, _before: bytes | None) -> bytes:
    return data


def grown(topic: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
    """The topic's node, with `new` partitions beside those that it has by then."""

    def after(data: bytes | None) -> bytes | None:
        assignment = readable(data, TopicAssignment.decode)
        if assignment is None:
            return None
        partitions = {**new, **assignment.partitions}
        return replace(assignment, partitions=dict(sorted(partitions.items()))).encode()

    return (yield from write_over(paths.topic(topic), after))


class KafkaWrites:
    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            yield Create(path=f"{paths.DELETE_TOPICS}/{name}")

    def removed(self, names: Sequence[str], image: MetadataImage) -> Sequence[TopicPartition]:
        return ()

    def add_partitions(self, name: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from grown(name, new))

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
        """Beside what others ask for, and the controller has not seen yet."""
        wanted = {(of.topic, of.partition): each for of, each in targets.items()}

        def after(data: bytes | None) -> bytes:
            before = readable(data, Reassignments.decode)
            listed = {} if before is None else before.replicas
            return Reassignments(replicas={**listed, **wanted}).encode()

        return (yield from write_over(paths.REASSIGN_PARTITIONS, after))


class V2Writes:
    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            yield Delete(path=paths.config("topics", name))

    def removed(self, names: Sequence[str], image: MetadataImage) -> Iterator[TopicPartition]:
        for name in names:
            for index, _ in image.topics.by_name[name].partitions():
                yield TopicPartition(name, index)

    def add_partitions(self, name: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from grown(name, new))

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from list_replicas(paths.V2_PARTITIONS_REASSIGNED, targets))


class V3Writes:
    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            topic = image.topics.by_name[name]
            for index, _ in topic.partitions():
                state = paths.partition_leader_and_isr(name, index)
                yield Delete(path=state)
                yield Delete(path=paths.parent(state))
            yield Delete(path=paths.topic(name))
            yield Delete(path=paths.config("topics", name))

    def removed(self, names: Sequence[str], image: MetadataImage) -> Sequence[TopicPartition]:
        return ()

    def add_partitions(self, name: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
        added = {TopicPartition(name, index): each for index, each in new.items()}
        return (yield from list_replicas(paths.PARTITIONS_ADD, added))

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from list_replicas(paths.PARTITIONS_REASSIGNED, targets))


_PREFERRED = 0


def elect_leaders(
    design: Design, image: MetadataImage, request: ElectLeadersRequest, config: ControllerConfig
) -> Procedure[ElectLeadersResponse]:
    if request.election_type != _PREFERRED:
        message = "Only the preferred leader can be asked for in ZooKeeper mode."
        refused: ElectLeadersResponse = refuse(request, ErrorCode.INVALID_REQUEST, message)
        return refused
    response = decide_elect_leaders(image, request, config).response
    wanted = [
        (result.topic, each.partition_id)
        for result in response.replica_election_results
        for each in result.partition_result
        if each.error_code is ErrorCode.NONE
    ]
    if wanted and design.has_controller:
        yield from _ask(wanted)
    return response


def _ask(wanted: list[tuple[str, int]]) -> Procedure[bool]:
    """Beside those that were asked for before and that the controller has not seen yet."""

    def after(data: bytes | None) -> bytes:
        listed = readable(data, PartitionList.decode)
        before = () if listed is None else listed.partitions
        return PartitionList(partitions=tuple(dict.fromkeys((*before, *wanted)))).encode()

    return (yield from write_over(paths.PREFERRED_REPLICA_ELECTION, after))


_BLOCK = 1000
_ROUNDS_MAX_2 = 100


def allocate_producer_ids(
    request: AllocateProducerIdsRequest,
) -> Procedure[AllocateProducerIdsResponse]:
    """The next block, written before it is given out. Another controller may be at it too."""
    path = paths.LATEST_PRODUCER_ID_BLOCK
    for _ in range(_ROUNDS_MAX_2):
        found = yield from one(GetData(path=path))
        last = decoded(found, ProducerIdBlock.decode)
        first = 0 if last is None else last.last + 1
        block = ProducerIdBlock(
            broker_id=request.broker_id, first=first, last=first + _BLOCK - 1
        ).encode()
        if isinstance(found, Data):
            written = yield from one(SetData(path=path, data=block, version=found.stat.version))
        else:
            written = yield from one(Create(path=path, data=block))
        if isinstance(written, Written | Created):
            return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=_BLOCK)
    return AllocateProducerIdsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
