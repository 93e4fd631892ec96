"""Leader and ISR of partitions in ZooKeeper: chosen by the rules, written conditionally, read
again.

The rules are those of `controller.metadata.election`, as the designs ask them. Every change that
the controller writes raises the leader epoch, also a change of the ISR alone: brokers follow a
command only if its epoch is newer (seed 000, potential optimization 1).

A write holds only at the version that was read: if the leader has changed its ISR in between, the
decision is made again on what it wrote. The design says whether partitions are written one after
another or all together, alone or many in a transaction, with or without the guard of the
controller's epoch.

A transaction is done whole or not at all. When one of its writes fails, each is tried by itself:
partitions do not fail together.

Where only the controller writes these nodes it decides on what it knows, and reads only after a
write that failed (KAFKA-8585).

A write whose answer was lost may have been done. The next attempt finds what was wanted, has
nothing to decide, and would tell nobody. So a state that is found as it was last tried counts as
written.

Source: seed 000, A.3 and B.1.1; seed 001, the leader selectors and "use async zookeeper apis
everywhere"; seed 004, failover; KIP-497 (seed 003).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from controller.metadata.election import Desired, Election, ElectionPolicy, decide_change
from controller.metadata.metadata_version import OLDEST
from controller.metadata.partition_records import changed
from controller.metadata.partitions import PartitionState
from controller.zk.controller_election import Controllership
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.zk_metadata import Assignments, States, calls, read_states, state_path
from quorum.zookeeper.zk_procedures import Procedure
from wire.primitives import ZERO_UUID
from wire.zk import paths, znodes
from wire.zk import session as zk
from wire.zk.accounting import batches
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design, IsrWriter

__all__ = ["Decide", "StateStore", "elected", "initial", "reassigned"]


def elected(
    state: PartitionState, live: Collection[int], how: Election = Election.ONLINE
) -> PartitionState | None:
    """What becomes of a partition when only `live` brokers are there; None: nothing changes.

    The new ISR is what lives of the old one. Where nothing of it does, `how` decides whether
    another replica may lead; if none may, there is no leader and the ISR stays as it was.
    """
    policy = ElectionPolicy(
        acceptable=lambda broker_id, _directory: broker_id in live,
        metadata_version=OLDEST,  # at which every ISR change raises the leader epoch
    )
    desired = Desired(election=how, isr=tuple(member for member in state.isr if member in live))
    record = decide_change(ZERO_UUID, 0, state, desired=desired, policy=policy)
    if record is None:
        return None
    after = changed(state, record)
    return replace(after, partition_epoch=state.partition_epoch)


def initial(replicas: tuple[int, ...], live: Collection[int]) -> PartitionState | None:
    """The state of a new partition: all live replicas are in sync. None: no replica lives."""
    isr = tuple(replica for replica in replicas if replica in live)
    return PartitionState(replicas=replicas, isr=isr, leader=isr[0]) if isr else None


def reassigned(
    state: PartitionState, target: tuple[int, ...], live: Collection[int]
) -> PartitionState:
    """The state on the new replicas, all in sync; the leader stays if it is one of them."""
    isr = tuple(replica for replica in target if replica in state.isr)
    eligible = [replica for replica in isr if replica in live]
    leader = state.leader if state.leader in eligible else next(iter(eligible), -1)
    return replace(
        state,
        replicas=target,
        directories=(),
        isr=isr,
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
    )


Decide = Callable[[TopicPartition, PartitionState | None], PartitionState | None]
_CHANGED = (zk.Error.BAD_VERSION, zk.Error.NODE_EXISTS)
_MULTI_MAX = 100  # writes of a transaction: beyond, seed 001's appendix gains little
_ROUNDS_MAX = 100  # a leader that changes its ISR between every read and write has gone mad


class StateStore:
    """The writes of one controller in its `controllership`."""

    def __init__(
        self, design: Design, controllership: Controllership, milestones: ProcedureMilestones
    ) -> None:
        self._design = design
        self._controllership = controllership
        self._milestones = milestones
        self._tried: dict[TopicPartition, PartitionState] = {}  # and not known to be written

    def change(
        self,
        partitions: Iterable[TopicPartition],
        assignments: Assignments,
        decide: Decide,
        known: States | None = None,
    ) -> Procedure[dict[TopicPartition, PartitionState]]:
        """Write what `decide` makes of each partition's state; returns the states as written.

        `decide` gets None for a partition without a state, and returns None to leave one alone.
        `known` holds the states that the controller last read or wrote.
        """
        written: dict[TopicPartition, PartitionState] = {}
        decided: dict[TopicPartition, None] = {}
        asked = list(partitions)
        for group in self._groups(asked):
            missing = list(group)
            for is_again in range(_ROUNDS_MAX):
                if not missing or self._controllership.is_lost:
                    break
                if known is None or is_again or not self._knows(missing):
                    found = yield from read_states(self._design, assignments, missing)
                else:
                    found = _as_assigned(known, assignments, missing)
                wanted: dict[TopicPartition, PartitionState] = {}
                for of in missing:
                    state = decide(of, found.get(of))
                    if state is not None:
                        wanted[of] = state
                    elif of in found and _is_same(found[of], self._tried.get(of)):
                        written[of] = found[of]
                if wanted and not decided:
                    self._milestones.deciding()
                decided |= dict.fromkeys(wanted)
                self._tried |= wanted
                done, missing = yield from self._write(wanted, found)
                written |= done
        for of in asked:
            self._tried.pop(of, None)
        self._milestones.written(decided=len(decided), persisted=len(written))
        return written

    def _knows(self, partitions: Iterable[TopicPartition]) -> bool:
        """May we rely on the states that were last read or written?"""
        writes_alone = self._design.isr_writer is IsrWriter.CONTROLLER
        return writes_alone and self._tried.keys().isdisjoint(partitions)

    def _groups(self, asked: list[TopicPartition]) -> Iterator[list[TopicPartition]]:
        """All partitions together, or each by itself."""
        if self._design.pipelines_writes:
            yield asked
        else:
            yield from ([of] for of in asked)

    def _write(
        self,
        wanted: Mapping[TopicPartition, PartitionState],
        found: Mapping[TopicPartition, PartitionState],
    ) -> Procedure[tuple[dict[TopicPartition, PartitionState], list[TopicPartition]]]:
        """The states that were written, and the partitions that have changed since they were read.
        A partition that is gone is in neither."""
        new = [of for of in wanted if of not in found]
        yield from self._all_done(self._parents(new))
        order = list(wanted)
        results = yield from self._all_done(
            [self._operation(of, wanted[of], of in found) for of in order]
        )
        done, changed = {}, []
        for of, result in zip(order, results, strict=True):
            if isinstance(result, zk.Written):
                done[of] = replace(wanted[of], partition_epoch=result.stat.version)
            elif isinstance(result, zk.Created):
                done[of] = replace(wanted[of], partition_epoch=0)
            elif isinstance(result, zk.Failed) and result.error in _CHANGED:
                changed.append(of)
        return done, changed

    def _parents(self, partitions: Iterable[TopicPartition]) -> list[zk.Write]:
        """The nodes between new state nodes and those of their topics. They may exist."""
        missing = dict.fromkeys(
            path
            for of in partitions
            for path in paths.parents(state_path(self._design, of))
            if path.startswith(paths.topic(of.topic) + "/")
        )
        return [zk.Create(path=path) for path in missing]

    def _operation(
        self, of: TopicPartition, state: PartitionState, exists: bool
    ) -> zk.SetData | zk.Create:
        path = state_path(self._design, of)
        data = znodes.PartitionState(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            controller_epoch=self._controllership.epoch,
        ).encode()
        if exists:
            return zk.SetData(path=path, data=data, version=state.partition_epoch)
        return zk.Create(path=path, data=data)

    # --- how they are made --------------------------------------------------------------------

    def _all_done(self, writes: Sequence[zk.Write]) -> Procedure[list[zk.Result]]:
        """One result for each write."""
        count_max = _MULTI_MAX if self._design.writes_in_batches else 1
        groups = list(batches(writes, count_max=count_max))
        results: list[zk.Result] = []
        for group, result in zip(groups, (yield from self._committed(groups)), strict=True):
            if isinstance(result, zk.Committed):
                results += result.results[-len(group) :]
            elif len(group) == 1 or self._controllership.is_lost:
                results += [result] * len(group)
            else:
                for alone in (yield from self._committed([(write,) for write in group])):
                    results += alone.results[-1:] if isinstance(alone, zk.Committed) else [alone]
        return results

    def _committed(self, groups: Iterable[tuple[zk.Write, ...]]) -> Procedure[list[zk.Result]]:
        """With the guard, the writes hold only while nobody else has become the controller."""
        guards = self._design.guards_writes
        guard = zk.Check(path=paths.CONTROLLER_EPOCH, version=self._controllership.epoch_zk_version)
        results = yield from calls(
            self._design,
            (
                _alone(*group)
                if len(group) == 1 and not guards
                else zk.Multi(writes=(guard, *group) if guards else group)
                for group in groups
            ),
        )
        for result in results:
            if guards and isinstance(result, zk.Failed) and result.index == 0:
                self._controllership.is_lost |= result.error is zk.Error.BAD_VERSION
        return results


def _alone(write: zk.Write) -> zk.Operation:
    assert not isinstance(write, zk.Check), "it writes nothing"
    return write


def _is_same(found: PartitionState, tried: PartitionState | None) -> bool:
    return tried is not None and (found.leader, found.leader_epoch, found.isr) == (
        tried.leader,
        tried.leader_epoch,
        tried.isr,
    )


def _as_assigned(
    known: States, assignments: Assignments, asked: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionState]:
    """The known states with the present replicas, which a reassignment may have changed."""
    return {
        of: replace(
            known[of],
            replicas=assignments.get(of.topic, {}).get(of.partition, known[of].replicas),
            directories=(),
        )
        for of in asked
        if of in known
    }
