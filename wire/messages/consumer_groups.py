"""Consumer groups of the protocol in which brokers assign partitions (KIP-848)."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Throttled, ThrottledExplanation
from wire.primitives import OPERATIONS_OMITTED


class OwnedPartitions(Message):
    topic_id: UUID
    partitions: tuple[int, ...] = ()


class ConsumerGroupHeartbeatRequest(Message):
    """None, and -1 of the time-out: as it was."""

    group_id: str
    member_id: str
    member_epoch: int  # 0: it joins; -1: it leaves; -2: it leaves, and comes back (static)
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[OwnedPartitions, ...] | None = None  # owned


class AssignedPartitions(Message):
    topic_id: UUID
    partitions: tuple[int, ...] = ()


class MemberAssignment(Message):
    topic_partitions: tuple[AssignedPartitions, ...] = ()


class ConsumerGroupHeartbeatResponse(ThrottledExplanation):
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: MemberAssignment | None = None  # None: as it was


class ConsumerGroupDescribeRequest(Message):
    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False


class DescribedPartitions(Message):
    topic_id: UUID
    topic_name: str
    partitions: tuple[int, ...] = ()


class DescribedAssignment(Message):
    topic_partitions: tuple[DescribedPartitions, ...] = ()


class DescribedMember(Message):
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    member_type: int = -1  # 0: of the classic protocol, 1: of this one


class DescribedConsumerGroup(ExplainedOutcome):
    group_id: str
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: int = OPERATIONS_OMITTED


class ConsumerGroupDescribeResponse(Throttled):
    groups: tuple[DescribedConsumerGroup, ...] = ()
