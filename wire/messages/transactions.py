"""Transactions: what their coordinator is asked, and the markers that it has written."""

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Outcome, Throttled, ThrottledOutcome


class AddPartitionsToTxnTopic(Message):
    name: str
    partitions: tuple[int, ...] = ()


class AddPartitionsToTxnTransaction(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool = False  # asked by a leader: is the transaction going on there? (KIP-890)
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()


class AddPartitionsToTxnRequest(Message):
    """A client asks for one transaction, in versions 0 to 3; a broker for several."""

    transactions: tuple[AddPartitionsToTxnTransaction, ...]


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int
    partition_error_code: ErrorCode = ErrorCode.NONE


class AddPartitionsToTxnTopicResult(Message):
    name: str
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...]


class AddPartitionsToTxnResult(Message):
    transactional_id: str = ""  # absent before version 4
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = ()


class AddPartitionsToTxnResponse(ThrottledOutcome):
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = ()


class AddOffsetsToTxnRequest(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


class AddOffsetsToTxnResponse(ThrottledOutcome):
    pass


class EndTxnRequest(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool  # or aborted


class EndTxnResponse(ThrottledOutcome):
    producer_id: int = -1  # of the next transaction, from version 5 on (KIP-890)
    producer_epoch: int = -1


class WritableTxnMarkerTopic(Message):
    name: str
    partition_indexes: tuple[int, ...] = ()


class WritableTxnMarker(Message):
    producer_id: int
    producer_epoch: int
    transaction_result: bool  # committed, or aborted
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: int
    transaction_version: int = 0  # with which the transaction was made


class WriteTxnMarkersRequest(Message):
    markers: tuple[WritableTxnMarker, ...]


class WritableTxnMarkerPartitionResult(Outcome):
    partition_index: int


class WritableTxnMarkerTopicResult(Message):
    name: str
    partitions: tuple[WritableTxnMarkerPartitionResult, ...]


class WritableTxnMarkerResult(Message):
    producer_id: int
    topics: tuple[WritableTxnMarkerTopicResult, ...]


class WriteTxnMarkersResponse(Message):
    markers: tuple[WritableTxnMarkerResult, ...] = ()


class TxnOffsetCommitRequestPartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


class TxnOffsetCommitRequestTopic(Message):
    name: str
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


class TxnOffsetCommitRequest(Message):
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


class TxnOffsetCommitResponsePartition(Outcome):
    partition_index: int


class TxnOffsetCommitResponseTopic(Message):
    name: str
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


class TxnOffsetCommitResponse(Throttled):
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()


class DescribeProducersTopic(Message):
    name: str
    partition_indexes: tuple[int, ...] = ()


class DescribeProducersRequest(Message):
    topics: tuple[DescribeProducersTopic, ...]


class ActiveProducer(Message):
    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    current_txn_start_offset: int = -1


class DescribedProducers(ExplainedOutcome):
    partition_index: int
    active_producers: tuple[ActiveProducer, ...] = ()


class DescribedProducersTopic(Message):
    name: str
    partitions: tuple[DescribedProducers, ...]


class DescribeProducersResponse(Throttled):
    topics: tuple[DescribedProducersTopic, ...] = ()


class DescribeTransactionsRequest(Message):
    transactional_ids: tuple[str, ...] = ()


class TransactionTopic(Message):
    topic: str
    partitions: tuple[int, ...] = ()


class DescribedTransaction(Outcome):
    transactional_id: str
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TransactionTopic, ...] = ()


class DescribeTransactionsResponse(Throttled):
    transaction_states: tuple[DescribedTransaction, ...] = ()


class ListTransactionsRequest(Message):
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1  # milliseconds: those that have been going on for longer
    transactional_id_pattern: str | None = None


class ListedTransaction(Message):
    transactional_id: str
    producer_id: int
    transaction_state: str


class ListTransactionsResponse(ThrottledOutcome):
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[ListedTransaction, ...] = ()
