"""Leader and ISR of partitions in ZooKeeper: read, decided, written conditionally, read again.

A write holds only at the version that was read: if the leader has changed its ISR in between, the
decision is made anew on what it wrote. One partition after the other or all together, with or
without the guard of the controller's epoch: that is the design's.

Source: seed 000, A.3; seed 001, "use async zookeeper apis everywhere".
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from controller.metadata.partitions import PartitionState
from controller.metadata.znode_reading import Assignments, calls, read_states, state_path
from controller.zk.office import Office
from quorum.zk_procedures import Procedure
from wire.zk import paths, znodes
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import (
    Check,
    Committed,
    Create,
    Created,
    Error,
    Failed,
    Multi,
    Operation,
    Result,
    SetData,
    Write,
    Written,
)

__all__ = ["Decide", "StateStore"]

Decide = Callable[[TopicPartition, PartitionState | None], PartitionState | None]
_CHANGED = (Error.BAD_VERSION, Error.NODE_EXISTS)
_ROUNDS_MAX = 100  # a leader that changes its ISR between every read and write has gone mad


class StateStore:
    """What one controller writes, while it is in `office`."""

    def __init__(self, design: Design, office: Office) -> None:
        self._design = design
        self._office = office

    def change(
        self, partitions: Iterable[TopicPartition], assignments: Assignments, decide: Decide
    ) -> Procedure[dict[TopicPartition, PartitionState]]:
        """Write what `decide` makes of each partition's state; what was written, as it stands.

        It is given None for a partition that has no state yet, and gives None to leave one alone.
        """
        written: dict[TopicPartition, PartitionState] = {}
        for group in self._groups(partitions):
            missing = list(group)
            for _ in range(_ROUNDS_MAX):
                if not missing or self._office.is_lost:
                    break
                found = yield from read_states(self._design, assignments, missing)
                wanted = {
                    of: state for of in missing if (state := decide(of, found.get(of))) is not None
                }
                done, missing = yield from self._write(wanted, found)
                written |= done
        return written

    def _groups(self, partitions: Iterable[TopicPartition]) -> Iterator[list[TopicPartition]]:
        """All of them together, or each by itself."""
        asked = list(partitions)
        if self._design.pipelines_writes:
            yield asked
        else:
            yield from ([of] for of in asked)

    def _write(
        self,
        wanted: Mapping[TopicPartition, PartitionState],
        found: Mapping[TopicPartition, PartitionState],
    ) -> Procedure[tuple[dict[TopicPartition, PartitionState], list[TopicPartition]]]:
        """What succeeded, and what has changed since it was read. What has gone is neither."""
        new = [of for of in wanted if of not in found]
        yield from calls(self._design, self._parents(new))
        order = list(wanted)
        results = yield from calls(
            self._design, (self._operation(of, wanted[of], of in found) for of in order)
        )
        done, changed = {}, []
        for of, result in zip(order, results, strict=True):
            version = self._version_after(result)
            if version is not None:
                done[of] = replace(wanted[of], partition_epoch=version)
            elif isinstance(result, Failed) and result.error in _CHANGED:
                changed.append(of)
        return done, changed

    def _parents(self, partitions: Iterable[TopicPartition]) -> list[Operation]:
        """Above the new state nodes, below their topics'. They may be there already."""
        missing = dict.fromkeys(
            path
            for of in partitions
            for path in paths.parents(state_path(self._design, of))
            if path.startswith(paths.topic(of.topic) + "/")
        )
        return [self._guarded(Create(path=path)) for path in missing]

    def _operation(self, of: TopicPartition, state: PartitionState, exists: bool) -> Operation:
        path = state_path(self._design, of)
        data = znodes.PartitionState(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            controller_epoch=self._office.epoch,
        ).encode()
        if exists:
            return self._guarded(SetData(path=path, data=data, version=state.partition_epoch))
        return self._guarded(Create(path=path, data=data))

    def _guarded(self, write: SetData | Create) -> Operation:
        """With the guard, it is done only as long as nobody else has become the controller."""
        if not self._design.guards_writes:
            return write
        guard = Check(path=paths.CONTROLLER_EPOCH, version=self._office.epoch_zk_version)
        guarded: tuple[Write, ...] = (guard, write)
        return Multi(writes=guarded)

    def _version_after(self, result: Result) -> int | None:
        match result:
            case Written(stat=stat):
                return stat.version
            case Created():
                return 0
            case Committed(results=(_, Written(stat=stat))):
                return stat.version
            case Committed():
                return 0
            case Failed(error=Error.BAD_VERSION, index=0) if self._design.guards_writes:
                self._office.is_lost = True
            case _:
                pass
        return None
