"""The nodes of one partition are read, and written by its leader or by a candidate.

In `zk-v2` every write holds only if the ISR's node is at the version that was read. That version
moves with each election and each change of the ISR, so that a replica that does not know of the
last one cannot write. `zk-v1` has neither epochs nor conditions, and the last writer wins.

Reconstructed: that the epoch lies with the ISR, and that an election is one `Multi` of epoch, ISR
and leader, so that a candidate that has read an outdated ISR does not win (A3 of the museum).
Source: seed 002, paths; docs/zookeeper-mode.md.
"""

from dataclasses import dataclass

from broker.zk.by_replicas.held import NO_NODE, Held
from controller.zk.zk_metadata import decoded
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk import session as zk
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.znodes import NO_EPOCH, PartitionIsr, PartitionLeader, ReplicaList, TopicAssignment

__all__ = ["FoundIsr", "FoundLeader", "PartitionNodes"]

_ROUNDS_MAX = 100  # of a node that comes and goes between two reads


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLeader:
    leader: int
    leader_epoch: int
    zxid: int  # of the node's creation
    session_id: int  # with which it goes


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIsr:
    """The ISR is empty at NO_NODE: nobody has ever led."""

    isr: tuple[int, ...] = ()
    leader_epoch: int = NO_EPOCH
    version: int = NO_NODE


class PartitionNodes:
    def __init__(self, design: Design) -> None:
        self._design = design

    # --- reading ------------------------------------------------------------------------------

    def leader(self, of: TopicPartition) -> Procedure[FoundLeader | None]:
        """Read the leader's node, and watch it, whether it exists or not."""
        path = paths.partition_leader(of.topic, of.partition)
        for _ in range(_ROUNDS_MAX):
            found = yield from one(zk.GetData(path=path, watch=True))
            named = decoded(found, PartitionLeader.decode)
            if named is not None and isinstance(found, zk.Data):
                return FoundLeader(
                    leader=named.leader,
                    leader_epoch=named.leader_epoch,
                    zxid=found.stat.czxid,
                    session_id=found.stat.ephemeral_owner,
                )
            missing = yield from one(zk.Exists(path=path, watch=True))
            if not isinstance(missing, zk.Found):
                return None
            if isinstance(found, zk.Data):  # a person has written it: whose it is nobody can know
                return FoundLeader(
                    leader=-1, leader_epoch=NO_EPOCH, zxid=missing.stat.czxid, session_id=0
                )
        return None

    def isr(self, of: TopicPartition, *, watch: bool = False) -> Procedure[FoundIsr]:
        path = paths.partition_isr(of.topic, of.partition)
        found = yield from one(zk.GetData(path=path, watch=watch))
        listed = decoded(found, PartitionIsr.decode)
        if not isinstance(found, zk.Data):
            return FoundIsr()
        if listed is None:
            return FoundIsr(version=found.stat.version)
        return FoundIsr(
            isr=listed.isr, leader_epoch=listed.leader_epoch, version=found.stat.version
        )

    def replicas(self, of: TopicPartition) -> Procedure[tuple[int, ...]]:
        """AR. The first who looks makes the nodes of a partition that the topic's node has; there
        are none, and no AR, if it has it not."""
        path = paths.partition_replicas(of.topic, of.partition)
        found = decoded((yield from one(zk.GetData(path=path))), ReplicaList.decode)
        if found is not None:
            return found.replicas
        topic = yield from one(zk.GetData(path=paths.topic(of.topic)))
        assignment = decoded(topic, TopicAssignment.decode)
        replicas = () if assignment is None else assignment.partitions.get(of.partition, ())
        if replicas:
            yield from one(zk.Create(path=paths.parent(path)))
            yield from one(zk.Create(path=path, data=ReplicaList(replicas=replicas).encode()))
        return replicas

    def watch_all(self, of: TopicPartition) -> Procedure[tuple[tuple[int, ...], tuple[int, ...]]]:
        """`zk-v1`: every replica watches all that there is of its partition, beside the ISR and the
        leader's node. AR and RAR; empty where there are none."""
        at_replicas = paths.partition_replicas(of.topic, of.partition)
        under = paths.V2_PARTITIONS_REASSIGNED
        at_target = paths.partition_under(under, of.topic, of.partition)
        yield from one(zk.GetChildren(path=paths.parent(at_replicas), watch=True))
        yield from one(zk.Exists(path=at_target, watch=True))
        found = yield from one(zk.GetData(path=at_replicas, watch=True))
        target = yield from one(zk.GetData(path=at_target))
        lists = (decoded(each, ReplicaList.decode) for each in (found, target))
        replicas, wanted = (() if each is None else each.replicas for each in lists)
        return replicas, wanted

    # --- writing ------------------------------------------------------------------------------

    def elect(
        self, held: Held, node_id: int, isr: tuple[int, ...], found: FoundIsr
    ) -> Procedure[bool]:
        """Become the leader in the next epoch, if nobody else does."""
        of = held.of
        epoch = found.leader_epoch + 1 if self._design.has_leader_epochs else NO_EPOCH
        leader = zk.Create(
            path=paths.partition_leader(of.topic, of.partition),
            data=PartitionLeader(leader=node_id, leader_epoch=epoch).encode(),
            is_ephemeral=True,
        )
        state = self._isr_write(of, PartitionIsr(isr=isr, leader_epoch=epoch), found.version)
        if self._design.has_leader_epochs:
            result = yield from one(zk.Multi(writes=(state, leader)))
            return isinstance(result, zk.Committed)
        created = yield from one(leader)
        if not isinstance(created, zk.Created):
            return False
        yield from one(state)
        return True

    def _isr_write(
        self, of: TopicPartition, isr: PartitionIsr, version: int
    ) -> zk.SetData | zk.Create:
        path = paths.partition_isr(of.topic, of.partition)
        if version == NO_NODE:
            return zk.Create(path=path, data=isr.encode())
        known = version if self._design.has_leader_epochs else zk.ANY_VERSION
        return zk.SetData(path=path, data=isr.encode(), version=known)

    def write_isr(self, held: Held, isr: tuple[int, ...]) -> Procedure[bool]:
        """Write the ISR and note it in `held`. False: another leads. If an answer was lost, the
        node has it."""
        of, listed = held.of, PartitionIsr(isr=isr, leader_epoch=held.leader_epoch)
        result: zk.Result = yield from one(self._isr_write(of, listed, held.isr_version))
        if not isinstance(result, zk.Written):
            path = paths.partition_isr(of.topic, of.partition)
            result = yield from one(zk.GetData(path=path))
            if not isinstance(result, zk.Data) or result.data != listed.encode():
                return False
        held.isr, held.isr_version = isr, result.stat.version
        return True

    def write_replicas(self, held: Held, replicas: tuple[int, ...]) -> Procedure[bool]:
        path = paths.partition_replicas(held.of.topic, held.of.partition)
        write = zk.SetData(path=path, data=ReplicaList(replicas=replicas).encode())
        result = yield from one(self._as_leader(held, write))
        return isinstance(result, zk.Written | zk.Committed)

    def resign(self, held: Held) -> Procedure[bool]:
        """Delete the leader's node, which triggers an election; not that of another leader."""
        path = paths.partition_leader(held.of.topic, held.of.partition)
        result = yield from one(self._as_leader(held, zk.Delete(path=path)))
        return not isinstance(result, zk.Failed)

    def remove(self, held: Held) -> Procedure[bool]:
        """Delete the partition, with all that is below its node."""
        topic, partition = held.of.topic, held.of.partition
        leader = paths.partition_leader(topic, partition)
        writes: tuple[zk.Write, ...] = (
            *self._guard(held),
            zk.Delete(path=leader),
            zk.Delete(path=paths.partition_isr(topic, partition)),
            zk.Delete(path=paths.partition_replicas(topic, partition)),
            zk.Delete(path=paths.parent(leader)),
        )
        result = yield from one(zk.Multi(writes=writes))
        return isinstance(result, zk.Committed)

    def _as_leader(
        self, held: Held, write: zk.SetData | zk.Delete
    ) -> zk.SetData | zk.Delete | zk.Multi:
        guard = self._guard(held)
        return zk.Multi(writes=(*guard, write)) if guard else write

    def _guard(self, held: Held) -> tuple[zk.Check, ...]:
        """Holds only in the epoch of this leader."""
        if not self._design.has_leader_epochs:
            return ()
        path = paths.partition_isr(held.of.topic, held.of.partition)
        return (zk.Check(path=path, version=held.isr_version),)
