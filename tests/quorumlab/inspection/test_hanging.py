"""Transactions that hang, as brokers that are made up tell of them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.facts import Level
from quorumlab.inspection.hanging import cluster_of, hanging, old_transactions
from quorumlab.inspection.target import Address
from wire.errors import ErrorCode
from wire.messages import configs, metadata, transactions

NOW_MS = 1_700_000_000_000
LIMIT_MS = 600_000
FIRST, SECOND = Address("h", 1), Address("h", 2)


@dataclass
class Brokers:
    """Broker 1 leads orders-0, and broker 2 orders-1; `told` is what each coordinator has."""

    producers: dict[int, transactions.ActiveProducer] = field(default_factory=dict)  # by leader
    told: dict[int, transactions.DescribedTransaction] = field(default_factory=dict)
    loads: bool = False
    asked: list[tuple[int, type]] = field(default_factory=list)

    def ask(self, address: Address, request: Any, expected: type) -> Any:
        answer = self._answer(address.port, request)
        assert isinstance(answer, expected)
        self.asked.append((address.port, type(request)))
        return answer

    def _answer(self, broker: int, request: Any) -> Any:
        match request:
            case metadata.MetadataRequest():
                return self._metadata()
            case transactions.DescribeProducersRequest(topics=(topic,)):
                assert topic.partition_indexes == (broker - 1,)
                return self._producers(broker)
            case configs.DescribeConfigsRequest():
                return self._limit()
            case transactions.ListTransactionsRequest():
                return self._listed(broker, request)
            case transactions.DescribeTransactionsRequest():
                known = (self.told[broker],)
                return transactions.DescribeTransactionsResponse(transaction_states=known)
        raise AssertionError(request)

    def _metadata(self) -> metadata.MetadataResponse:
        rows = tuple(
            metadata.MetadataResponsePartition(partition_index=index, leader_id=index + 1)
            for index in (0, 1)
        )
        lost = metadata.MetadataResponsePartition(partition_index=2, leader_id=-1)
        topic = metadata.MetadataResponseTopic(name="orders", partitions=(*rows, lost))
        brokers = tuple(
            metadata.MetadataResponseBroker(node_id=each.port, host=each.host, port=each.port)
            for each in (FIRST, SECOND)
        )
        return metadata.MetadataResponse(brokers=brokers, topics=(topic,))

    def _producers(self, broker: int) -> transactions.DescribeProducersResponse:
        found = (self.producers[broker],) if broker in self.producers else ()
        row = transactions.DescribedProducers(partition_index=broker - 1, active_producers=found)
        topic = transactions.DescribedProducersTopic(name="orders", partitions=(row,))
        return transactions.DescribeProducersResponse(topics=(topic,))

    def _limit(self) -> configs.DescribeConfigsResponse:
        row = configs.DescribeConfigsResourceResult(
            name="transaction.max.timeout.ms", value=str(LIMIT_MS)
        )
        result = configs.DescribeConfigsResult(resource_type=4, resource_name="1", configs=(row,))
        return configs.DescribeConfigsResponse(results=(result,))

    def _listed(
        self, broker: int, request: transactions.ListTransactionsRequest
    ) -> transactions.ListTransactionsResponse:
        if self.loads:
            return transactions.ListTransactionsResponse(
                error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            )
        found = self.told.get(broker)
        if found is None or found.producer_id not in request.producer_id_filters:
            return transactions.ListTransactionsResponse()
        listed = transactions.ListedTransaction(
            transactional_id=found.transactional_id,
            producer_id=found.producer_id,
            transaction_state=found.transaction_state,
        )
        return transactions.ListTransactionsResponse(transaction_states=(listed,))


def producer(*, open_since: int = 12, age_ms: int = LIMIT_MS + 1) -> transactions.ActiveProducer:
    return transactions.ActiveProducer(
        producer_id=4,
        producer_epoch=0,
        last_timestamp=NOW_MS - age_ms,
        current_txn_start_offset=open_since,
    )


def known(*partitions: int, age_ms: int = LIMIT_MS + 1) -> transactions.DescribedTransaction:
    topic = transactions.TransactionTopic(topic="orders", partitions=partitions)
    return transactions.DescribedTransaction(
        transactional_id="tx",
        transaction_state="PrepareAbort",
        transaction_start_time_ms=NOW_MS - age_ms,
        producer_id=4,
        topics=(topic,),
    )


def findings(brokers: Brokers) -> list[tuple[Level, str]]:
    cluster = cluster_of(FIRST, brokers.ask)
    limit_ms, found = old_transactions(cluster, brokers.ask, NOW_MS)
    return [
        (each.level, each.text + each.advice)
        for each in hanging(found, limit_ms=limit_ms, now_ms=NOW_MS)
    ]


@pytest.mark.parametrize(
    "found", [producer(age_ms=LIMIT_MS), producer(open_since=-1, age_ms=LIMIT_MS * 9)]
)
def test_coordinators_are_not_asked_where_nothing_is_old(
    found: transactions.ActiveProducer,
) -> None:
    brokers = Brokers({2: found})
    assert findings(brokers) == []
    asked = {kind for _, kind in brokers.asked}
    assert transactions.ListTransactionsRequest not in asked
    assert (2, transactions.DescribeProducersRequest) in brokers.asked


@pytest.mark.parametrize("told", [{}, {1: known(0)}])
def test_what_no_coordinator_knows_hangs(
    told: dict[int, transactions.DescribedTransaction],
) -> None:
    """Also what is known of another partition alone."""
    ((level, text),) = findings(Brokers({2: producer()}, told))
    assert level is Level.PROBLEM
    assert "producer 4 has a transaction open in orders-1, from offset 12 on" in text
    assert "--topic orders --partition 1 --start-offset 12" in text


def test_what_its_coordinator_has_not_ended_is_told_with_its_state() -> None:
    ((level, text),) = findings(Brokers({2: producer()}, {1: known(0, 1)}))
    assert level is Level.WARNING
    assert "knows it as tx, in state PrepareAbort, and should have ended it after 10 min" in text


def test_old_times_of_records_do_not_make_a_transaction_old() -> None:
    assert findings(Brokers({2: producer()}, {1: known(1, age_ms=LIMIT_MS)})) == []


def test_a_coordinator_that_loads_cannot_say() -> None:
    with pytest.raises(ClusterError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        findings(Brokers({2: producer()}, loads=True))
