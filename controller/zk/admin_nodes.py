"""The nodes in which administrators say what they want, each of which several of them may write.

A node is written at the version that was read, and read again if somebody else was faster: no
request is overwritten unseen. Whoever deletes such a node names the version that it has read, too.

The paths differ by layout:

- V2 (`zk-v1`, `zk-v2`): topics in their nodes, moves under `/brokers/partitions_reassigned`. A
  topic is deleted by moving its partitions to nobody. Source: seed 002, "if (p.RAR is empty)"; that
  topics are created and grow by their nodes is reconstructed.
- V3 (`zk-v3`): the paths that seed 000 has "created by admin". A topic is deleted by deleting its
  node, with what lies below it. The seed has no path for elections.
- KAFKA (`zk-redesign`, `zk-kip497`): Kafka's own paths. Source: seed 001, "Protocols".
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from controller.config import ControllerConfig
from controller.decisions.elections import decide_elect_leaders
from controller.metadata.image import MetadataImage
from controller.refusals import refuse
from controller.zk.zk_metadata import readable, write_over
from quorum.zookeeper.zk_procedures import Procedure
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.partitions import ElectLeadersRequest, ElectLeadersResponse
from wire.messages.producing import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design, Layout
from wire.zk.session import Create, Delete, Operation
from wire.zk.znodes import (
    PartitionList,
    ProducerIdBlock,
    Reassignments,
    ReplicaList,
    TopicAssignment,
)

__all__ = [
    "AdminNodes",
    "allocate_producer_ids",
    "elect_leaders",
    "grown",
]

_PREFERRED = 0  # ElectLeaders' type of election
_PRODUCER_ID_BLOCK = 1000


def grown(topic: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
    """Add the `new` partitions to the topic's node, beside those that it has by then."""

    def after(data: bytes | None) -> bytes | None:
        assignment = readable(data, TopicAssignment.decode)
        if assignment is None:
            return None
        partitions = {**new, **assignment.partitions}
        return replace(assignment, partitions=dict(sorted(partitions.items()))).encode()

    return (yield from write_over(paths.topic(topic), after))


def _list_replicas(
    root: str, replicas: Mapping[TopicPartition, tuple[int, ...]]
) -> Procedure[bool]:
    """Write a node for each partition, below one for its topic."""
    for of, each in replicas.items():
        path = paths.partition_under(root, of.topic, of.partition)
        if not (yield from write_over(path, partial(_listing, each))):
            return False
    return True


def _listing(replicas: tuple[int, ...], _before: bytes | None) -> bytes:
    return ReplicaList(replicas=replicas).encode()


class AdminNodes:
    """Where administrators of a layout write what they want."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            if self._layout is Layout.KAFKA:
                yield Create(path=f"{paths.DELETE_TOPICS}/{name}")
                continue
            if self._layout is Layout.V3:
                for index, _ in image.topics.by_name[name].partitions():
                    state = paths.partition_leader_and_isr(name, index)
                    yield Delete(path=state)
                    yield Delete(path=paths.parent(state))
                yield Delete(path=paths.topic(name))
            yield Delete(path=paths.config("topics", name))

    def removed(self, names: Sequence[str], image: MetadataImage) -> Iterator[TopicPartition]:
        """The partitions that are deleted by moving them to nobody."""
        if self._layout is Layout.V2:
            for name in names:
                for index, _ in image.topics.by_name[name].partitions():
                    yield TopicPartition(name, index)

    def add_partitions(self, name: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
        if self._layout is not Layout.V3:
            return (yield from grown(name, new))
        added = {TopicPartition(name, index): each for index, each in new.items()}
        return (yield from _list_replicas(paths.PARTITIONS_ADD, added))

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
        """Ask for moves, beside those that others ask for and the controller has not seen yet."""
        if self._layout is Layout.V2:
            return (yield from _list_replicas(paths.V2_PARTITIONS_REASSIGNED, targets))
        if self._layout is Layout.V3:
            return (yield from _list_replicas(paths.PARTITIONS_REASSIGNED, targets))
        wanted = {(of.topic, of.partition): each for of, each in targets.items()}

        def after(data: bytes | None) -> bytes:
            before = readable(data, Reassignments.decode)
            listed = {} if before is None else before.replicas
            return Reassignments(replicas={**listed, **wanted}).encode()

        return (yield from write_over(paths.REASSIGN_PARTITIONS, after))


def elect_leaders(
    design: Design, image: MetadataImage, request: ElectLeadersRequest, config: ControllerConfig
) -> Procedure[ElectLeadersResponse]:
    """Ask for elections in /admin/preferred_replica_election, or leave them to the leaders.

    The rules of both modes say which partitions need an election and could have one. A controller
    hears of these by its watch, as of an administrator's own; without a controller each leader sees
    by itself that its preferred replica is in sync, and resigns. So the answer leaves before the
    leaders have moved. The documents have no way to ask for an unclean election.

    Source: seed 001, "preferred replica leader election"; seed 002, checkLoadBalancing.
    """
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

    def after(data: bytes | None) -> bytes:
        listed = readable(data, PartitionList.decode)
        before = () if listed is None else listed.partitions  # that the controller has not seen yet
        return PartitionList(partitions=tuple(dict.fromkeys((*before, *wanted)))).encode()

    if wanted and design.has_controller:
        yield from write_over(paths.PREFERRED_REPLICA_ELECTION, after)
    return response


def allocate_producer_ids(
    request: AllocateProducerIdsRequest,
) -> Procedure[AllocateProducerIdsResponse]:
    """The next block of producer ids, written before it is given out: another controller may be
    allocating, too.

    Source: KIP-98; Kafka's ZkProducerIdManager.
    """
    first = 0

    def next_block(data: bytes | None) -> bytes:
        nonlocal first
        last = readable(data, ProducerIdBlock.decode)
        first = 0 if last is None else last.last + 1
        end = first + _PRODUCER_ID_BLOCK - 1
        return ProducerIdBlock(broker_id=request.broker_id, first=first, last=end).encode()

    if (yield from write_over(paths.LATEST_PRODUCER_ID_BLOCK, next_block)):
        return AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=_PRODUCER_ID_BLOCK
        )
    return AllocateProducerIdsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
