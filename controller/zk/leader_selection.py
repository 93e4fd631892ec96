"""Who leads a partition: the rules of `controller.metadata.election`, as the ZooKeeper designs ask
them.

Every change that the controller writes raises the leader epoch, also a change of the ISR alone:
brokers follow a command only if its epoch is newer (seed 000, potential optimization 1).

Source: seed 000, A.3.2 and B.1.1; seed 001, the leader selectors; seed 004, failover.
"""

from collections.abc import Collection
from dataclasses import replace

from controller.metadata.election import Desired, Election, ElectionPolicy, decide_change
from controller.metadata.metadata_version import OLDEST
from controller.metadata.partition_records import changed
from controller.metadata.partitions import PartitionState
from wire.primitives import ZERO_UUID

__all__ = ["elected", "initial", "reassigned"]


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
