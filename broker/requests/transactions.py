"""Requests about transactions are answered by the coordinator of each transactional id.

Each request goes to the coordinator of its id (broker/transactions/) or is refused.

Source: Kafka's KafkaApis and TransactionCoordinator.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from broker.cluster import Cluster
from broker.coordination.coordinators import partition_of
from broker.coordination.patterns import Pattern, compile_pattern
from broker.groups.group_coordinators import GroupCoordinators
from broker.requests.producer_ids import ProducerIds, refused_producer
from broker.transactions.decisions import Refused, Settled
from broker.transactions.listing import STATE_NAMES, describe, list_transactions
from broker.transactions.transaction import EPOCH_BUMPS
from broker.transactions.transaction_coordinator import Coordinator, TransactionCoordinators
from broker.transactions.verification import ask
from broker.verifying import Concluded, Place, Producer, TransactionAsked
from broker.waiting import Answers
from controller.metadata.topics import INTERNAL_TOPICS
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.producing import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

__all__ = ["Transactions"]

_NONE = -1  # no id, no epoch
_WITHOUT_EPOCH_BUMPS = 0  # the transaction.version of clients that add partitions themselves


class Transactions:
    def __init__(
        self,
        *,
        cluster: Cluster,
        coordinators: TransactionCoordinators,
        group_coordinators: GroupCoordinators,
        producer_ids: ProducerIds,
        outbox: Outbox,
    ) -> None:
        self._cluster = cluster
        self._config = cluster.config.transactions
        self._coordinators = coordinators
        self._group_coordinators = group_coordinators
        self._producer_ids = producer_ids
        self._outbox = outbox
        self.routes: dict[type, Callable[[Request, int], None]] = {
            InitProducerIdRequest: self._initialize,
            AddPartitionsToTxnRequest: self._add_partitions,
            AddOffsetsToTxnRequest: self._add_offsets,
            EndTxnRequest: self._end,
            DescribeTransactionsRequest: self._describe,
            ListTransactionsRequest: self._list,
        }

    def _find(self, transactional_id: str) -> Coordinator | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return self._coordinators.find(transactional_id)

    # --- InitProducerId ---------------------------------------------------------------------

    def _initialize(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, InitProducerIdRequest), body
        if body.transactional_id is None:
            self._producer_ids.handle(request, now_ms)
            return
        found = self._initialized_by(body)
        if isinstance(found, ErrorCode):
            self._reply(request, refused_producer(found))
            return

        def answer(decided: Refused | Settled, _now_ms: int) -> None:
            if isinstance(decided, Refused):
                error = told(decided.error, request.lacking)
                self._reply(request, refused_producer(error))
                return
            identity = InitProducerIdResponse(
                producer_id=decided.producer_id, producer_epoch=decided.producer_epoch
            )
            self._reply(request, identity)

        expected = None
        if body.producer_id != _NONE:
            expected = Producer(body.producer_id, body.producer_epoch)
        timeout_ms = body.transaction_timeout_ms
        found.initialize(body.transactional_id, expected, timeout_ms, answer, now_ms)

    def _initialized_by(self, body: InitProducerIdRequest) -> Coordinator | ErrorCode:
        assert body.transactional_id is not None
        if (body.producer_id == _NONE) != (body.producer_epoch == _NONE):
            return ErrorCode.INVALID_REQUEST
        if not body.transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not 0 < body.transaction_timeout_ms <= self._config.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return self._find(body.transactional_id)

    # --- adding -----------------------------------------------------------------------------

    def _add_partitions(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, AddPartitionsToTxnRequest), body
        answers: Answers[AddPartitionsToTxnResult] = Answers(len(body.transactions))

        def concluded(slot: int, errors: Mapping[Place, ErrorCode], _now_ms: int) -> None:
            result = results_of(body.transactions[slot], errors, request.lacking)
            if answers.put(slot, result):
                results = tuple(answers.take())
                self._reply(request, AddPartitionsToTxnResponse(results_by_transaction=results))

        if not body.transactions:
            self._reply(request, AddPartitionsToTxnResponse())
        for slot, transaction in enumerate(body.transactions):
            self._add(transaction, request.lacking, partial(concluded, slot), now_ms)

    def _add(
        self,
        transaction: AddPartitionsToTxnTransaction,
        lacking: Lacking,
        concluded: Concluded,
        now_ms: int,
    ) -> None:
        asked = TransactionAsked(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            places=places_of(transaction),
            adds=not transaction.verify_only,
        )
        impossible = self._not_addable(asked.places, lacking)
        found = self._find(asked.transactional_id)
        if impossible:
            errors = dict.fromkeys(asked.places, ErrorCode.OPERATION_NOT_ATTEMPTED)
            concluded(errors | impossible, now_ms)
        elif isinstance(found, ErrorCode):
            concluded(dict.fromkeys(asked.places, found), now_ms)
        else:
            is_client = Capability.ASKS_AS_BROKER in lacking
            version = _WITHOUT_EPOCH_BUMPS if is_client else EPOCH_BUMPS
            ask(found, asked, concluded, now_ms, client_version=version)

    def _not_addable(self, places: Iterable[Place], lacking: Lacking) -> dict[Place, ErrorCode]:
        """A client, whoever it is, adds no internal topic; brokers add `__consumer_offsets`."""
        errors = {}
        for place in places:
            topic, index = place
            if Capability.ASKS_AS_BROKER in lacking and topic in INTERNAL_TOPICS:
                errors[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif self._cluster.topic_with(topic, index) is None:
                errors[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return errors

    def _add_offsets(self, request: Request, now_ms: int) -> None:
        """The group's partition of `__consumer_offsets` takes part in the transaction."""
        body = request.body
        assert isinstance(body, AddOffsetsToTxnRequest), body
        found = self._find(body.transactional_id)
        if isinstance(found, ErrorCode):
            self._reply(request, AddOffsetsToTxnResponse(error_code=found))
            return
        place = self._place_of_offsets(body.group_id)

        def concluded(errors: Mapping[Place, ErrorCode], _now_ms: int) -> None:
            error = told(errors[place], request.lacking)
            self._reply(request, AddOffsetsToTxnResponse(error_code=error))

        asked = TransactionAsked(
            transactional_id=body.transactional_id,
            producer_id=body.producer_id,
            producer_epoch=body.producer_epoch,
            places=(place,),
            adds=True,
        )
        ask(found, asked, concluded, now_ms, client_version=_WITHOUT_EPOCH_BUMPS)

    def _place_of_offsets(self, group_id: str) -> Place:
        """Before the topic is there, too: a producer looks for the group's coordinator, which
        creates it, only once the group has been added (GroupCoordinatorService.partitionFor)."""
        index = self._group_coordinators.partition_of(group_id)
        if index is None:
            index = partition_of(group_id, self._cluster.config.groups.topic_num_partitions)
        return self._group_coordinators.topic, index

    # --- EndTxn -----------------------------------------------------------------------------

    def _end(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, EndTxnRequest), body
        found = self._find(body.transactional_id)
        if isinstance(found, ErrorCode):
            self._reply(request, EndTxnResponse(error_code=found))
            return

        def answer(decided: Refused | Settled, _now_ms: int) -> None:
            if isinstance(decided, Refused):
                error = told(decided.error, request.lacking)
                self._reply(request, EndTxnResponse(error_code=error))
                return
            identity = EndTxnResponse(
                producer_id=decided.producer_id, producer_epoch=decided.producer_epoch
            )
            self._reply(request, identity)

        raises_epoch = Capability.TAKES_NEXT_EPOCH not in request.lacking
        found.end(body, answer, now_ms, raises_epoch=raises_epoch)

    # --- tools ------------------------------------------------------------------------------

    def _describe(self, request: Request, _now_ms: int) -> None:
        body = request.body
        assert isinstance(body, DescribeTransactionsRequest), body
        described = tuple(map(self._described, body.transactional_ids))
        self._reply(request, DescribeTransactionsResponse(transaction_states=described))

    def _described(self, transactional_id: str) -> DescribedTransaction:
        found = self._find(transactional_id)
        if isinstance(found, ErrorCode):
            return DescribedTransaction(transactional_id=transactional_id, error_code=found)
        return describe(transactional_id, found.transactions.get(transactional_id))

    def _list(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, ListTransactionsRequest), body
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        pattern = compile_pattern(body.transactional_id_pattern)
        if any(coordinator.error is loading for coordinator in self._coordinators):
            self._reply(request, ListTransactionsResponse(error_code=loading))
        elif pattern is None:
            error = ErrorCode.INVALID_REGULAR_EXPRESSION
            self._reply(request, ListTransactionsResponse(error_code=error))
        else:
            self._reply(request, self._listed(body, pattern, now_ms))

    def _listed(
        self, body: ListTransactionsRequest, pattern: Pattern, now_ms: int
    ) -> ListTransactionsResponse:
        known = (one for each in self._coordinators for one in each.transactions.values())
        return ListTransactionsResponse(
            unknown_state_filters=tuple(
                name for name in body.state_filters if name not in STATE_NAMES
            ),
            transaction_states=tuple(list_transactions(known, body, pattern, now_ms)),
        )

    def _reply(self, request: Request, body: object) -> None:
        self._outbox.emit(Reply(token=request.token, body=body))


def told(error: ErrorCode, lacking: Lacking) -> ErrorCode:
    """In the words of older clients."""
    is_old = Capability.KNOWS_PRODUCER_FENCED in lacking
    if error is ErrorCode.PRODUCER_FENCED and is_old:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def places_of(transaction: AddPartitionsToTxnTransaction) -> tuple[Place, ...]:
    return tuple((topic.name, index) for topic in transaction.topics for index in topic.partitions)


def results_of(
    transaction: AddPartitionsToTxnTransaction,
    errors: Mapping[Place, ErrorCode],
    lacking: Lacking,
) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=told(errors[topic.name, index], lacking),
                    )
                    for index in topic.partitions
                ),
            )
            for topic in transaction.topics
            if topic.partitions
        ),
    )
