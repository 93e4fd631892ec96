"""AlterPartition: may the leader of a partition change its ISR as it asks to?

The checks stand in Kafka's order, since the first that fails names the error, and leaders act on
it: NOT_CONTROLLER makes one look for a newer controller, FENCED_LEADER_EPOCH and
INVALID_UPDATE_VERSION make it wait for newer metadata, INELIGIBLE_REPLICA makes it try again.

The ISR is recorded in replica order, whatever the order of the request: it is a set.

Source: KIP-497, KIP-704, KIP-841, KIP-903; Kafka's ReplicationControlManager.
"""

from controller.metadata.image import MetadataImage
from controller.metadata.partitions import RECOVERED, RECOVERING, PartitionState
from wire.errors import ErrorCode
from wire.messages.partitions import BrokerState, IsrPartition

__all__ = [
    "has_ineligible_member",
    "has_stale_broker_epoch",
    "is_invalid_isr",
    "is_invalid_recovery",
    "is_unknown_future",
    "refusal",
    "requested_isr",
]


def has_stale_broker_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> bool:
    """Does the request come from an earlier life of the broker, or from none that we know?"""
    broker = image.brokers.get(broker_id)
    return broker is None or broker.epoch != broker_epoch


def refusal(
    image: MetadataImage, state: PartitionState, asked: IsrPartition, *, broker_id: int
) -> ErrorCode:
    """The error for this partition of the request; NONE if the change may be made."""
    if is_unknown_future(state, asked):
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if is_invalid_isr(state, asked) or is_invalid_recovery(state, asked):
        return ErrorCode.INVALID_REQUEST
    if has_ineligible_member(image, asked.new_isr_with_epochs):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def is_unknown_future(state: PartitionState, asked: IsrPartition) -> bool:
    """Does the leader know epochs that we do not? Then a newer controller has made them."""
    return asked.leader_epoch > state.leader_epoch or asked.partition_epoch > state.partition_epoch


def is_invalid_isr(state: PartitionState, asked: IsrPartition) -> bool:
    members = [member.broker_id for member in asked.new_isr_with_epochs]
    if not members or len(set(members)) < len(members):
        return True
    if any(member not in state.replicas for member in members):
        return True
    return state.leader not in members


def is_invalid_recovery(state: PartitionState, asked: IsrPartition) -> bool:
    """A recovering leader is alone in its ISR, and a recovered one does not go back (KIP-704)."""
    wanted = asked.leader_recovery_state
    if wanted not in (RECOVERED, RECOVERING):
        return True
    has_others = len(asked.new_isr_with_epochs) > 1
    return wanted == RECOVERING and (has_others or state.leader_recovery_state == RECOVERED)


def has_ineligible_member(image: MetadataImage, members: tuple[BrokerState, ...]) -> bool:
    """Is a member down, on its way down, or restarted since the leader last saw it fetch?

    Without the last: the leader adds broker 2, which crashes, loses its disk and registers anew
    before the request arrives; the ISR would hold a replica without records (KIP-903).
    """
    for member in members:
        broker = image.brokers.get(member.broker_id)
        if broker is None or not broker.is_active:
            return True
        if member.broker_epoch not in (-1, broker.epoch):
            return True
    return False


def requested_isr(state: PartitionState, asked: IsrPartition) -> tuple[int, ...]:
    members = {member.broker_id for member in asked.new_isr_with_epochs}
    return tuple(replica for replica in state.replicas if replica in members)
