"""Requests of administrators and clients in ZooKeeper mode, decided by the rules of both modes.

A rule (`controller.decisions`) looks at an image of what ZooKeeper holds and returns changes. These
become writes to the paths that administrators of the design would write to themselves
(`controller.zk.admin_nodes`). The controller then hears of them as of anything in ZooKeeper: by its
watches.

The answer leaves once the writes are done: the topic is created then, but may not have leaders yet.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from controller.config import ControllerConfig
from controller.decisions import config_changes, existing_topics, new_topics, reassignments
from controller.decisions.decision import Decision
from controller.metadata.apply import apply
from controller.metadata.changes import Change, record_count
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.refusals import refuse
from controller.requests import WRITES
from controller.zk.admin_nodes import AdminNodes, allocate_producer_ids, elect_leaders
from controller.zk.admin_requests import (
    config_operations,
    configs_for,
    placed_partitions,
    placed_topics,
    topics_of,
)
from controller.zk.controller_context import Move
from controller.zk.zk_metadata import (
    Assignments,
    ClusterUpdate,
    States,
    assigned,
    calls,
    read_states,
    topic_id_of,
    updated,
)
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from quorum.core.types import OffsetAndEpoch
from quorum.zookeeper.zk_procedures import Procedure
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages import voters as messages
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from wire.messages.producing import AllocateProducerIdsRequest
from wire.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
)
from wire.metadata_records import TopicRecord
from wire.zk import paths
from wire.zk.control_rpc import LiveBroker, TopicPartition
from wire.zk.designs import Design, IsrWriter
from wire.zk.session import Create, Delete, Error, Failed, Operation, Result

__all__ = ["Admin", "ClusterView"]


class ClusterView(Protocol):
    """The cluster, as the server of a request has read it."""

    @property
    def design(self) -> Design: ...

    @property
    def live(self) -> Mapping[int, LiveBroker]: ...

    @property
    def assignments(self) -> Assignments: ...

    @property
    def states(self) -> States: ...

    @property
    def moves(self) -> Mapping[TopicPartition, Move]: ...


_DECIDED = (
    CreateTopicsRequest
    | DeleteTopicsRequest
    | CreatePartitionsRequest
    | IncrementalAlterConfigsRequest
    | AlterConfigsRequest
    | AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
)

# Brokers forward these, too. What only a quorum's engine can answer is refused.
_BESIDE_WRITES: Mapping[type, Callable[..., object]] = {
    messages.AddRaftVoterRequest: messages.AddRaftVoterResponse,
    messages.DescribeQuorumRequest: messages.DescribeQuorumResponse,
    ListPartitionReassignmentsRequest: ListPartitionReassignmentsResponse,
    messages.RemoveRaftVoterRequest: messages.RemoveRaftVoterResponse,
}


class Admin:
    def __init__(
        self, rules: ControllerConfig, outbox: Outbox, random: Random, design: Design
    ) -> None:
        self._rules = rules
        self._random = random
        self._outbox = outbox
        self._nodes = AdminNodes(design.layout)

    def serves(self, body: object) -> bool:
        return type(body) in WRITES or type(body) in _BESIDE_WRITES

    def refuse(self, request: Request, error: ErrorCode, message: str = "") -> None:
        body = request.body
        refused = (
            _BESIDE_WRITES[type(body)](error_code=error, error_message=message or None)
            if type(body) in _BESIDE_WRITES
            else refuse(body, error, message)
        )
        self._outbox.emit(Reply(token=request.token, body=refused))

    def serve(self, known: ClusterView, request: Request) -> Procedure[None]:
        body = request.body
        if isinstance(body, AllocateProducerIdsRequest):
            answer = yield from allocate_producer_ids(body)
            self._outbox.emit(Reply(token=request.token, body=answer))
        elif isinstance(body, ElectLeadersRequest) and known.design.has_preferred_leaders:
            image = yield from self._image(known, body)
            elected = yield from elect_leaders(known.design, image, body, self._rules)
            self._outbox.emit(Reply(token=request.token, body=elected))
        elif isinstance(body, AlterPartitionReassignmentsRequest) and _is_too_soon(known, body):
            name = known.design.name
            message = f"{name} has no way to redirect or to cancel what is under way."
            self.refuse(request, ErrorCode.REASSIGNMENT_IN_PROGRESS, message)
        elif isinstance(body, _DECIDED):
            yield from self._decide(known, request)
        else:
            message = f"{known.design.name} has no such request."
            self.refuse(request, ErrorCode.UNSUPPORTED_VERSION, message)

    def _decide(self, known: ClusterView, request: Request) -> Procedure[None]:
        image = yield from self._image(known, request.body)
        decision = self._rule(image, request.body)
        operations = list(self._operations(image, decision, request.body))
        results = yield from calls(known.design, operations)
        failure = _failure(operations, results, request.body)
        if failure is None and not (yield from self._write_over(image, decision, request.body)):
            failure = ErrorCode.UNKNOWN_SERVER_ERROR, "ZooKeeper: others were always faster."
        if failure is None:
            self._outbox.emit(Reply(token=request.token, body=_named_by_us(decision.response)))
        else:
            self.refuse(request, *failure)

    def _rule(self, image: MetadataImage, body: object) -> Decision[Any]:
        config = self._rules
        match body:
            case CreateTopicsRequest():
                placed = placed_topics(image, body, config)
                return new_topics.decide_create_topics(image, placed, config, self._random)
            case DeleteTopicsRequest():
                return existing_topics.decide_delete_topics(image, body, config)
            case CreatePartitionsRequest():
                grown = placed_partitions(image, body)
                return existing_topics.decide_create_partitions(image, grown, self._random)
            case IncrementalAlterConfigsRequest():
                return config_changes.decide_incremental_alter_configs(image, body, config)
            case AlterConfigsRequest():
                return config_changes.decide_alter_configs(image, body)
            case AlterPartitionReassignmentsRequest():
                return reassignments.decide_alter_reassignments(image, body, config)
            case ListPartitionReassignmentsRequest():
                return Decision(response=reassignments.list_reassignments(image, body))
            case other:
                raise AssertionError(f"not decided here: {other}")

    def _image(self, known: ClusterView, body: object) -> Procedure[MetadataImage]:
        """The image for a rule: all topics, the partitions of those that the request is about, and
        the configs that it may change."""
        moving = {of.topic for of in known.moves}
        names = topics_of(body, known.assignments, moving)
        assignments = {name: known.assignments[name] for name in names}
        read = yield from _states_for(known, body, assignments)
        states = {of: read.get(of) or _unled(assignments, of) for of in assigned(assignments)}
        states |= {
            of: move.shown_in(states[of]) for of, move in known.moves.items() if of in states
        }
        found = yield from configs_for(known.design, body)
        news = ClusterUpdate(brokers=known.live, partitions=states, configs=found)
        return updated(_topics_alone(known.assignments), news)[0]

    def _operations(
        self, image: MetadataImage, decision: Decision[Any], body: object
    ) -> Iterator[Operation]:
        """The operations of the changes. Configs come first: a topic is created with them."""
        then = _applied(image, decision.changes)
        yield from config_operations(then, decision.changes)
        match body:
            case CreateTopicsRequest():
                new = then.topics.by_name.keys() - image.topics.by_name.keys()
                yield from self._nodes.create_topics(
                    {name: _replicas(then, name) for name in sorted(new)}
                )
            case DeleteTopicsRequest():
                gone = image.topics.by_name.keys() - then.topics.by_name.keys()
                yield from self._nodes.delete_topics(sorted(gone), image)
            case _:
                pass

    def _write_over(
        self, image: MetadataImage, decision: Decision[Any], body: object
    ) -> Procedure[bool]:
        """Write the changes that go into nodes which others may be writing as well."""
        then, is_done = _applied(image, decision.changes), True
        match body:
            case DeleteTopicsRequest():
                gone = image.topics.by_name.keys() - then.topics.by_name.keys()
                removed = self._nodes.removed(sorted(gone), image)
                is_done = yield from self._nodes.reassign(dict.fromkeys(removed, ()))
            case CreatePartitionsRequest():
                for name in sorted(topic.name for topic in body.topics):
                    before = _replicas(image, name)
                    every = _replicas(then, name).items()
                    new = {index: each for index, each in every if index not in before}
                    is_done &= yield from self._nodes.add_partitions(name, new)
            case AlterPartitionReassignmentsRequest() if decision.changes:
                is_done = yield from self._nodes.reassign(_targets(image, then))
            case _:
                pass
        return is_done


def _is_too_soon(known: ClusterView, request: AlterPartitionReassignmentsRequest) -> bool:
    """Seeds 000 and 001 only know reassignments that begin and end."""
    if known.design.has_kip_455 or not known.design.has_controller:
        return False
    return any(
        TopicPartition(topic.name, each.partition_index) in known.moves
        for topic in request.topics
        for each in topic.partitions
    )


# --- images ---------------------------------------------------------------------------------


def _states_for(
    known: ClusterView, body: object, assignments: Assignments
) -> Procedure[Mapping[TopicPartition, PartitionState]]:
    """Leaders that write ISRs tell of them late: a decision on an ISR reads it first."""
    is_known = known.design.isr_writer is IsrWriter.CONTROLLER
    if is_known or not isinstance(body, ElectLeadersRequest | AlterPartitionReassignmentsRequest):
        return known.states
    return (yield from read_states(known.design, assignments))


def _topics_alone(assignments: Assignments) -> MetadataImage:
    """The topics without partitions. A topic that has none is being deleted, and left out."""
    names = sorted(name for name, partitions in assignments.items() if partitions)
    changes = [TopicRecord(name=name, topic_id=topic_id_of(name)) for name in names]
    return _applied(MetadataImage(), changes)


def _unled(assignments: Assignments, of: TopicPartition) -> PartitionState:
    replicas = assignments[of.topic][of.partition]
    return PartitionState(replicas=replicas, isr=replicas, leader=NO_LEADER)


def _applied(image: MetadataImage, changes: Sequence[Change]) -> MetadataImage:
    end = image.at.offset + record_count(changes)
    return apply(image, changes, OffsetAndEpoch(end, 0))


def _replicas(image: MetadataImage, name: str) -> dict[int, tuple[int, ...]]:
    topic = image.topic(name)
    if topic is None:
        return {}
    return {index: state.replicas for index, state in image.partitions_of(topic.id)}


def _targets(image: MetadataImage, then: MetadataImage) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of all partitions that begin to move, are moving, or move back."""
    targets = {}
    for name, topic in sorted(then.topics.by_name.items()):
        for index, state in then.partitions_of(topic.id):
            is_moving = state.adding_replicas or state.removing_replicas
            if is_moving or state != image.partition(topic.id, index):
                staying = (each for each in state.replicas if each not in state.removing_replicas)
                targets[TopicPartition(name, index)] = tuple(staying)
    return targets


def _named_by_us(response: object) -> object:
    """Ids of new topics are made from their names, as everywhere."""
    if not isinstance(response, CreateTopicsResponse):
        return response
    return replace(
        response,
        topics=tuple(
            replace(topic, topic_id=topic_id_of(topic.name))
            if topic.error_code is ErrorCode.NONE
            else topic
            for topic in response.topics
        ),
    )


def _failure(
    operations: Sequence[Operation], results: Sequence[Result], body: object
) -> tuple[ErrorCode, str] | None:
    """A node to create may exist, unless it is a new topic; a node to delete may be gone."""
    for operation, result in zip(operations, results, strict=True):
        match operation, result:
            case Create(), Failed(error=Error.NODE_EXISTS):
                is_topic = paths.parent(operation.path) == paths.TOPICS
                if is_topic and isinstance(body, CreateTopicsRequest):
                    return ErrorCode.TOPIC_ALREADY_EXISTS, "Another client has just created it."
            case Delete(), Failed(error=Error.NO_NODE):
                pass
            case _, Failed(error=error):
                return ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper: {error.value}."
            case _:
                pass
    return None
