"""Brokers whose transactions have a scripted coordinator: what it is asked is kept until the test
answers."""

from collections.abc import Mapping
from typing import Any

from broker.requests.produced_transactions import PatientVerifier
from broker.verifying import Concluded, TransactionAsked
from tests.broker.brokers import Brokers, fetch_request, produce_request
from wire.batch import Record, build_batch
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.fetching import FetchedPartition
from wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

PLACE = ("t", 0)
READ_COMMITTED = 1


class Coordinator:
    def __init__(self) -> None:
        self.asked: list[TransactionAsked] = []
        self._waiting: list[Concluded] = []

    def verify(self, asked: TransactionAsked, concluded: Concluded, now_ms: int) -> None:
        self.asked.append(asked)
        self._waiting.append(concluded)

    def answer(self, cluster: Brokers, error: ErrorCode = ErrorCode.NONE, *, at: int = 0) -> None:
        errors: Mapping[tuple[str, int], ErrorCode] = dict.fromkeys(
            self.asked.pop(at).places, error
        )
        self._waiting.pop(at)(errors, cluster.now_ms)
        cluster.settle()


class Cluster(Brokers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.start()
        self.coordinator = Coordinator()
        for broker in self.brokers.values():
            producing = broker._router._producing
            producing._verifier = PatientVerifier(self.coordinator, producing._deadlines)
        self.create_topic("t", tuple(range(1, count + 1)))

    def send(self, batch: bytes, *, node_id: int = 1, api_version: int = 12) -> int:
        body = replace(produce_request("t", 0, batch), transactional_id="tx")
        return self.ask(node_id, body, api_version=api_version)

    def begin(self, producer: int = 7, *, node_id: int = 1) -> int:
        """A transaction of this producer, with one record, is going on."""
        token = self.send(transactional(producer), node_id=node_id)
        self.coordinator.answer(self)
        self.run(500)
        return token

    def end(self, producer: int = 7, *, node_id: int = 1, **fields: Any) -> ErrorCode:
        token = self.ask(node_id, marker(producer, **fields))
        self.run(500)
        return self.marked(token)

    def marked(self, token: int) -> ErrorCode:
        (result,) = self.answer(token).markers
        error: ErrorCode = result.topics[0].partitions[0].error_code
        return error

    def log(self, node_id: int = 1) -> Any:
        return self.partition(node_id, "t", 0).open_log

    def fetch(self, offset: int, *, level: int = READ_COMMITTED, **fields: Any) -> int:
        body = fetch_request("t", 0, offset, **fields)
        return self.ask(1, replace(body, isolation_level=level))

    def fetched(self, token: int) -> FetchedPartition:
        found: FetchedPartition = self.answer(token).responses[0].partitions[0]
        return found


def transactional(producer: int = 7, *, epoch: int = 0, sequence: int = 0) -> bytes:
    return build_batch(
        [Record(key=b"k", value=b"x")],
        timestamp_ms=1_000_000,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


def marker(
    producer: int = 7, *, epoch: int = 1, is_commit: bool = True, coordinator_epoch: int = 0
) -> WriteTxnMarkersRequest:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=(0,))
    return WriteTxnMarkersRequest(
        markers=(
            WritableTxnMarker(
                producer_id=producer,
                producer_epoch=epoch,
                transaction_result=is_commit,
                topics=(topic,),
                coordinator_epoch=coordinator_epoch,
                transaction_version=2,
            ),
        )
    )
