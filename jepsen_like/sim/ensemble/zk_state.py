"""The leader and ISR of a partition in ZooKeeper, from whichever znode the design keeps them in."""

from collections.abc import Callable
from functools import lru_cache

from controller.zk.zk_metadata import state_path
from jepsen_like.sim.ensemble.zk_tree import Tree
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Children, Data, GetChildren, GetData
from wire.zk.znodes import NO_EPOCH, PartitionIsr, PartitionLeader, PartitionState, TopicAssignment

__all__ = ["Read", "ZkPartition", "partition_state", "topics_in"]

Read = Callable[[str], bytes | None]  # the data of a node; None if there is none

# A stage looks at each millisecond, and nearly always the bytes are those of the last time.
_state = lru_cache(maxsize=16)(PartitionState.decode)
_isr = lru_cache(maxsize=16)(PartitionIsr.decode)
_leader = lru_cache(maxsize=16)(PartitionLeader.decode)


class ZkPartition:
    """One partition, read anew whenever it is asked for."""

    def __init__(self, design: Design, of: TopicPartition, read: Read) -> None:
        self._design = design
        self._of = of
        self._read = read

    @property
    def state(self) -> PartitionState | None:
        """None while the partition has not been begun."""
        return partition_state(self._design, self._of, self._read)

    @property
    def leader(self) -> int:
        """-1: nobody."""
        state = self.state
        return -1 if state is None else state.leader

    @property
    def isr(self) -> set[int]:
        state = self.state
        return set() if state is None else set(state.isr)

    @property
    def replicas(self) -> tuple[int, ...]:
        data = self._read(paths.topic(self._of.topic))
        return () if data is None else TopicAssignment.decode(data).partitions[self._of.partition]

    @property
    def is_whole(self) -> bool:
        """Are all replicas in sync?"""
        return self.isr == set(self.replicas)


def topics_in(tree: Tree) -> dict[str, Data]:
    """The nodes of all topics, by name."""
    listed = tree.read(GetChildren(path=paths.TOPICS))
    names = listed.names if isinstance(listed, Children) else ()
    read = {name: tree.read(GetData(path=paths.topic(name))) for name in names}
    return {name: each for name, each in read.items() if isinstance(each, Data)}


def partition_state(design: Design, of: TopicPartition, read: Read) -> PartitionState | None:
    """None while the partition has not been begun."""
    if not design.has_controller:
        return _of_replicas(of, read)
    data = read(state_path(design, of))
    return None if data is None else _state(data)


def _of_replicas(of: TopicPartition, read: Read) -> PartitionState | None:
    """Leader and ISR are two nodes, and nobody leads while the first is not there."""
    leads = read(paths.partition_leader(of.topic, of.partition))
    isr = read(paths.partition_isr(of.topic, of.partition))
    if isr is None:
        return None
    leader = None if leads is None else _leader(leads)
    return PartitionState(
        leader=-1 if leader is None else leader.leader,
        leader_epoch=NO_EPOCH if leader is None else leader.leader_epoch,
        isr=_isr(isr).isr,
        controller_epoch=0,
    )
