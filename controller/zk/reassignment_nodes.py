"""The nodes of a reassignment: what administrators ask for, and the replicas in topics' nodes.

Source: seed 001, "partition reassignment"; Apache Kafka since 2.4 for `adding` and `removing`.
"""

from collections.abc import Iterable, Mapping

from controller.milestones import Cause, Occasion
from controller.zk.controller_context import Context, Move
from controller.zk.zk_metadata import calls, decoded, readable, write_over
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Data, Delete, Exists, GetData, SetData, Written
from wire.zk.znodes import Reassignments, TopicAssignment

__all__ = ["ReassignmentNodes"]

_NO_NODE = -2  # the version of none; -1 would be that of any
Targets = Mapping[TopicPartition, tuple[int, ...]]


class ReassignmentNodes:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._listed: Targets = {}  # as last read or written
        self._version = _NO_NODE

    def read(self) -> Procedure[Targets | None]:
        """What is asked for; None: no node. The next change of it is an event."""
        yield from one(Exists(path=paths.REASSIGN_PARTITIONS, watch=True))
        found = yield from one(GetData(path=paths.REASSIGN_PARTITIONS))
        read = decoded(found, Reassignments.decode)
        if read is None or not isinstance(found, Data):
            self._version = _NO_NODE
            return None
        self._listed = {TopicPartition(*key): target for key, target in read.replicas.items()}
        self._version = found.stat.version
        for of in list(self._listed)[:1]:
            self._context.milestones.begin(
                Cause(Occasion.REASSIGNMENT, of.topic), heard=paths.REASSIGN_PARTITIONS
            )
        return self._listed

    def write(self, left: Targets) -> Procedure[None]:
        """What is left, at the version that was read: a later write by others is the next event."""
        if self._version == _NO_NODE or left == self._listed:
            return
        data = Reassignments(replicas={(of.topic, of.partition): left[of] for of in left}).encode()
        path, version = paths.REASSIGN_PARTITIONS, self._version
        write = SetData(path=path, data=data, version=version)
        result = yield from one(write if left else Delete(path=path, version=version))
        self._version = result.stat.version if isinstance(result, Written) else _NO_NODE
        self._listed = left

    def originals(
        self, partitions: Iterable[TopicPartition]
    ) -> Procedure[dict[TopicPartition, tuple[int, ...]]]:
        """The replicas before the moves, which an earlier controller may have begun."""
        asked = list(partitions)
        topics = sorted({of.topic for of in asked})
        found = yield from calls(
            self._context.design, (GetData(path=paths.topic(each)) for each in topics)
        )
        assignments = {
            topic: decoded(each, TopicAssignment.decode)
            for topic, each in zip(topics, found, strict=True)
        }
        originals: dict[TopicPartition, tuple[int, ...]] = {}
        for of in asked:
            assignment = assignments[of.topic]
            adding = () if assignment is None else assignment.adding.get(of.partition, ())
            replicas = self._context.replicas(of)
            originals[of] = tuple(each for each in replicas if each not in adding)
        return originals

    def assign(self, replicas: Targets, moves: Mapping[TopicPartition, Move]) -> Procedure[None]:
        """Write the replicas into the nodes of their topics, and which partitions move."""
        for topic in sorted({of.topic for of in replicas}):
            mine = {of.partition: each for of, each in replicas.items() if of.topic == topic}
            shown = {of.partition: each for of, each in moves.items() if of.topic == topic}
            yield from self._assign(topic, mine, shown)

    def _assign(
        self, topic: str, replicas: Mapping[int, tuple[int, ...]], moves: Mapping[int, Move]
    ) -> Procedure[None]:
        known: Mapping[int, tuple[int, ...]] = self._context.assignments[topic]

        def after(data: bytes | None) -> bytes | None:
            listed = readable(data, TopicAssignment.decode)  # it may have grown
            if listed is None:
                return None
            assignment = TopicAssignment(
                partitions={**listed.partitions, **known, **replicas},
                version=2 if moves else 1,
                adding={partition: move.adding for partition, move in moves.items()},
                removing={partition: move.removing for partition, move in moves.items()},
            )
            return assignment.encode()

        yield from write_over(paths.topic(topic), after)
