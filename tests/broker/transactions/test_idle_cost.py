"""Open transactions and partitions cost a broker nothing while nothing happens to them."""

import sys
from types import FrameType

from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from tests.broker.brokers import Brokers
from wire.errors import ErrorCode
from wire.messages.producing import InitProducerIdRequest
from wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)


def calls_while_idle(*, partitions: int, transactions: int) -> int:
    """Python calls of one broker that is looked at ten times in a second."""
    cluster = Brokers(1).start()
    cluster.create_topic("t", *[(1,)] * partitions)
    cluster.create_topic(TRANSACTIONS_TOPIC, *[(1,)] * 4)
    cluster.run(1000)
    for number in range(transactions):
        begin(cluster, f"id-{number}")
    cluster.run(1000)
    broker, count = cluster.brokers[1], 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    for _ in range(10):
        cluster.now_ms += 100
        broker.tick(cluster.now_ms)
        broker.deadline_ms()
    sys.setprofile(None)
    return count


def begin(cluster: Brokers, transactional_id: str) -> None:
    asked = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    producer = cluster.call(1, asked)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=(AddPartitionsToTxnTopic(name="t", partitions=(0, 1)),),
    )
    answer = cluster.call(1, AddPartitionsToTxnRequest(transactions=(transaction,)))
    (result,) = answer.results_by_transaction
    errors = {each.partition_error_code for each in result.topic_results[0].results_by_partition}
    assert errors == {ErrorCode.NONE}, transactional_id


def test_an_idle_broker_looks_at_no_partition_and_no_transaction() -> None:
    few = calls_while_idle(partitions=2, transactions=1)
    assert few > 0
    assert calls_while_idle(partitions=40, transactions=20) == few
