"""Three brokers, one partition of `__transaction_state`, and leaders that only take markers.

What is under test is the coordinator: the leaders' side of WriteTxnMarkers is played here, so that
each answer can be held back, refused, or counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from broker.config import TransactionConfig
from broker.transactions.transaction import places_by_topic
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from quorum.core.effects import Reply, Request
from tests.broker.brokers import Brokers
from wire import metadata_records as records
from wire.errors import ErrorCode
from wire.messages.producing import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribedTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    EndTxnResponse,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

ID = "pay"
PLACES = (("t", 0), ("t", 1))  # led by brokers 2 and 3
TIMEOUT_MS = 20_000


@dataclass
class Told:
    """A marker that a leader has taken."""

    node_id: int
    place: tuple[str, int]
    committed: bool
    producer: tuple[int, int]
    coordinator_epoch: int


@dataclass
class Scene:
    cluster: Brokers
    told: list[Told] = field(default_factory=list)
    errors: dict[tuple[str, int], ErrorCode] = field(default_factory=dict)
    holds: bool = False
    held: list[tuple[int, Request]] = field(default_factory=list)

    def listen(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.cluster.brokers):
            routes = dict(self.cluster.brokers[node_id]._router.routes)
            routes[WriteTxnMarkersRequest] = partial(self._take, node_id)
            self.cluster.brokers[node_id]._router.routes = routes

    def _take(self, node_id: int, request: Request, _now_ms: int) -> None:
        if self.holds:
            self.held.append((node_id, request))
        else:
            self._answer(node_id, request)

    def _answer(self, node_id: int, request: Request) -> None:
        body = request.body
        assert isinstance(body, WriteTxnMarkersRequest)
        markers = []
        for marker in body.markers:
            topics = []
            for topic in marker.topics:
                results = []
                for index in topic.partition_indexes:
                    place = (topic.name, index)
                    error = self.errors.get(place, ErrorCode.NONE)
                    if error is ErrorCode.NONE:
                        producer = (marker.producer_id, marker.producer_epoch)
                        told = Told(
                            node_id,
                            place,
                            marker.transaction_result,
                            producer,
                            marker.coordinator_epoch,
                        )
                        self.told.append(told)
                    results.append(
                        WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                    )
                topics.append(
                    WritableTxnMarkerTopicResult(name=topic.name, partitions=tuple(results))
                )
            markers.append(
                WritableTxnMarkerResult(producer_id=marker.producer_id, topics=tuple(topics))
            )
        broker = self.cluster.brokers.get(node_id)
        if broker is not None:
            body_ = WriteTxnMarkersResponse(markers=tuple(markers))
            broker.outbox.emit(Reply(token=request.token, body=body_))

    def release(self) -> None:
        self.holds = False
        held, self.held = self.held, []
        for node_id, request in held:
            self._answer(node_id, request)
        self.cluster.settle()

    # --- the producer

    @property
    def coordinator(self) -> int:
        topic_id = self.cluster.topics[TRANSACTIONS_TOPIC]
        return self.cluster.states[(topic_id, 0)].leader

    def call(self, body: object, *, api_version: int | None = None) -> Any:
        return self.cluster.call(self.coordinator, body, api_version=api_version)

    def init(self, **fields: Any) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS, **fields
        )
        response: InitProducerIdResponse = self.call(request)
        return response

    def add(
        self,
        producer: tuple[int, int],
        *places: tuple[str, int],
        api_version: int | None = None,
        **fields: Any,
    ) -> Mapping[tuple[str, int], ErrorCode]:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=ID,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes))
                for name, indexes in places_by_topic(places or PLACES).items()
            ),
            **fields,
        )
        body = AddPartitionsToTxnRequest(transactions=(transaction,))
        answer = self.call(body, api_version=api_version)
        (result,) = answer.results_by_transaction
        return {
            (topic.name, one.partition_index): one.partition_error_code
            for topic in result.topic_results
            for one in topic.results_by_partition
        }

    def begun(self) -> tuple[int, int]:
        """A producer with a transaction on both partitions."""
        answer = self.init()
        assert answer.error_code is ErrorCode.NONE, answer
        producer = (answer.producer_id, answer.producer_epoch)
        assert set(self.add(producer).values()) == {ErrorCode.NONE}
        return producer

    def end_request(self, producer: tuple[int, int], *, committed: bool = True) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=ID,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
        )

    def end(self, producer: tuple[int, int], *, committed: bool = True) -> EndTxnResponse:
        answer: EndTxnResponse = self.call(self.end_request(producer, committed=committed))
        return answer

    def described(self) -> DescribedTransaction:
        answer = self.call(DescribeTransactionsRequest(transactional_ids=(ID,)))
        (state,) = answer.transaction_states
        assert isinstance(state, DescribedTransaction)
        return state

    def elect(self, node_id: int) -> None:
        """Another coordinator."""
        self.cluster.change(TRANSACTIONS_TOPIC, 0, leader=node_id)
        self.cluster.run(1000)

    def refuse_writes(self) -> None:
        """Too few are in sync with the coordinator's partition, for now."""
        self.cluster.configure(TRANSACTIONS_TOPIC, "min.insync.replicas", "2")
        self.cluster.cut |= {(2, 1), (3, 1)}
        self.cluster.change(TRANSACTIONS_TOPIC, 0, isr=(1,))

    def take_writes(self) -> None:
        self.cluster.cut.clear()
        self.cluster.change(TRANSACTIONS_TOPIC, 0, isr=(1, 2, 3))
        self.cluster.run(600)

    def markers(self) -> set[tuple[tuple[str, int], bool]]:
        return {(told.place, told.committed) for told in self.told}


def scene(
    *, version: int = 2, config: TransactionConfig | None = None, has_groups: bool = True
) -> Scene:
    settings: dict[str, Any] = {"transactions": config} if config is not None else {}
    cluster = Brokers(3, replica_lag_time_max_ms=1000, **settings)
    level = records.FeatureLevelRecord(name="transaction.version", feature_level=version)
    cluster.write(level)
    cluster.start()
    cluster.create_topic("t", (2, 3, 1), (3, 1, 2))
    cluster.create_topic(TRANSACTIONS_TOPIC, (1, 2, 3))
    if has_groups:
        cluster.create_topic("__consumer_offsets", (2, 3, 1))
    found = Scene(cluster)
    found.listen()
    cluster.run(600)
    return found
