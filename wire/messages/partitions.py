"""Leaders, ISR and replicas of partitions."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import (
    ExplainedOutcome,
    Outcome,
    ThrottledExplanation,
    ThrottledOutcome,
)


class BrokerState(Message):
    broker_id: int
    broker_epoch: int = -1


class IsrPartition(Message):
    partition_index: int
    leader_epoch: int
    new_isr_with_epochs: tuple[BrokerState, ...]
    leader_recovery_state: int = 0  # 1: recovering from an unclean election
    partition_epoch: int


class IsrTopic(Message):
    topic_id: UUID
    partitions: tuple[IsrPartition, ...]


class AlterPartitionRequest(Message):
    broker_id: int
    broker_epoch: int = -1
    topics: tuple[IsrTopic, ...]


class IsrPartitionResult(Outcome):
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = -1


class IsrTopicResult(Message):
    topic_id: UUID
    partitions: tuple[IsrPartitionResult, ...]


class AlterPartitionResponse(ThrottledOutcome):
    topics: tuple[IsrTopicResult, ...] = ()


class TopicPartitions(Message):
    topic: str
    partitions: tuple[int, ...] = ()


class ElectLeadersRequest(Message):
    election_type: int = 0  # 0: the preferred leader; 1: any leader, even from outside the ISR
    topic_partitions: tuple[TopicPartitions, ...] | None = None  # None: all
    timeout_ms: int = 60_000


class PartitionElectionResult(ExplainedOutcome):
    partition_id: int


class ReplicaElectionResult(Message):
    topic: str
    partition_result: tuple[PartitionElectionResult, ...]


class ElectLeadersResponse(ThrottledOutcome):
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()


class ReassignablePartition(Message):
    partition_index: int
    replicas: tuple[int, ...] | None = None  # None: cancel the reassignment


class ReassignableTopic(Message):
    name: str
    partitions: tuple[ReassignablePartition, ...]


class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60_000
    allow_replication_factor_change: bool = True
    topics: tuple[ReassignableTopic, ...]


class ReassignablePartitionResponse(ExplainedOutcome):
    partition_index: int


class ReassignableTopicResponse(Message):
    name: str
    partitions: tuple[ReassignablePartitionResponse, ...]


class AlterPartitionReassignmentsResponse(ThrottledExplanation):
    allow_replication_factor_change: bool = True
    responses: tuple[ReassignableTopicResponse, ...] = ()


class ListPartitionReassignmentsTopics(Message):
    name: str
    partition_indexes: tuple[int, ...] = ()


class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60_000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None  # None: all


class OngoingPartitionReassignment(Message):
    partition_index: int
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class OngoingTopicReassignment(Message):
    name: str
    partitions: tuple[OngoingPartitionReassignment, ...]


class ListPartitionReassignmentsResponse(ThrottledExplanation):
    topics: tuple[OngoingTopicReassignment, ...] = ()
