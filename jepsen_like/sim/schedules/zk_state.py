"""Who leads a partition and who is in sync, as ZooKeeper has it, wherever the design keeps that."""

from collections.abc import Callable

from controller.metadata.znode_reading import state_path
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.replica_znodes import NO_EPOCH, PartitionIsr, PartitionLeader
from wire.zk.znodes import PartitionState

__all__ = ["partition_state"]

Read = Callable[[str], bytes | None]  # the data of a node; None if there is none


def partition_state(design: Design, of: TopicPartition, read: Read) -> PartitionState | None:
    """None while the partition has not been begun."""
    if not design.has_controller:
        return _of_replicas(of, read)
    data = read(state_path(design, of))
    return None if data is None else PartitionState.decode(data)


def _of_replicas(of: TopicPartition, read: Read) -> PartitionState | None:
    """Leader and ISR are two nodes, and nobody leads while the first is not there."""
    leads = read(paths.partition_leader(of.topic, of.partition))
    isr = read(paths.partition_isr(of.topic, of.partition))
    if isr is None:
        return None
    leader = None if leads is None else PartitionLeader.decode(leads)
    return PartitionState(
        leader=-1 if leader is None else leader.leader,
        leader_epoch=NO_EPOCH if leader is None else leader.leader_epoch,
        isr=PartitionIsr.decode(isr).isr,
        controller_epoch=0,
    )
