"""The leader of a group's partition asks the coordinator of a transaction on another broker."""

from functools import partial

import pytest

from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from quorum.core.effects import Reply, Request, Send
from tests.broker.brokers import LISTENER, Brokers
from tests.broker.groups.led import transactional_request
from wire import metadata_records as records
from wire.errors import ErrorCode
from wire.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

GROUP_LEADER, COORDINATOR = 1, 2
commit = partial(transactional_request, 5)


class Noting(Brokers):
    """A message takes a while. The ports at which coordinators are asked are noted."""

    def __init__(self) -> None:
        super().__init__(2)
        self.ports: list[int] = []
        self.start()
        self.write(records.FeatureLevelRecord(name="transaction.version", feature_level=2))
        self.create_topic("t", (1, 2))
        self.create_topic(OFFSETS_TOPIC, (GROUP_LEADER, COORDINATOR))
        self.create_topic(TRANSACTIONS_TOPIC, (COORDINATOR, GROUP_LEADER))
        self.run(600)
        self.latency_ms = lambda: 10

    def _send(self, node_id: int, send: Send) -> None:
        if isinstance(send.body, AddPartitionsToTxnRequest):
            self.ports.append(send.to.port)
        super()._send(node_id, send)

    def move(self, port: int, *, fenced: bool = False) -> None:
        """The coordinator registers again."""
        registered = self.brokers[GROUP_LEADER].cluster.image.brokers[COORDINATOR]
        listener = records.BrokerEndpoint(name=LISTENER, host="b2", port=port, security_protocol=0)
        self.write(
            records.RegisterBrokerRecord(
                broker_id=COORDINATOR,
                incarnation_id=registered.incarnation_id,
                broker_epoch=registered.epoch,
                end_points=(listener,),
                features=(),
                rack=None,
                fenced=fenced,
            )
        )

    def told(self, token: int) -> ErrorCode:
        error: ErrorCode = self.answer(token).topics[0].partitions[0].error_code
        return error


def test_coordinator_that_is_back_on_another_port_is_asked_there() -> None:
    brokers = Noting()
    brokers.ask(GROUP_LEADER, commit(producer_id=1, transactional_id="first"))
    brokers.ask(GROUP_LEADER, commit(producer_id=2, transactional_id="waits for the first"))
    port = brokers.ports[0] + 1
    brokers.move(port)
    brokers.run(50)
    assert brokers.ports == [port - 1, port]


def test_what_waits_for_a_coordinator_that_is_gone_is_refused() -> None:
    brokers = Noting()
    brokers.ask(GROUP_LEADER, commit(producer_id=1, transactional_id="first"))
    waits = brokers.ask(GROUP_LEADER, commit(producer_id=2, transactional_id="second"))
    brokers.move(brokers.ports[0], fenced=True)
    brokers.run(50)
    late = brokers.ask(GROUP_LEADER, commit(producer_id=3))
    for token in (waits, late):
        assert brokers.told(token) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(brokers.ports) == 1


def test_coordinator_that_refuses_the_request_refuses_all_questions() -> None:
    brokers = Noting()
    router = brokers.brokers[COORDINATOR]._router

    def refuse(request: Request, _now_ms: int) -> None:
        refused = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        brokers.brokers[COORDINATOR].outbox.emit(Reply(token=request.token, body=refused))

    router.routes = {**router.routes, AddPartitionsToTxnRequest: refuse}
    token = brokers.ask(GROUP_LEADER, commit())
    brokers.run(100)
    assert brokers.told(token) is ErrorCode.INVALID_TXN_STATE


def test_without_verification_only_partitions_that_are_to_be_added_are_told() -> None:
    brokers = Noting()
    key = "transaction.partition.verification.enable"
    brokers.write(records.ConfigRecord(resource_type=4, resource_name="", name=key, value="false"))
    brokers.settle()
    old = brokers.ask(GROUP_LEADER, commit(), api_version=4)
    new = brokers.ask(GROUP_LEADER, commit(group_id="other", producer_id=2), api_version=5)
    brokers.run(100)
    assert brokers.told(old) is ErrorCode.NONE
    assert brokers.told(new) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert len(brokers.ports) == 1


def test_so_many_questions_wait_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.transactions.verification._WAITING_MAX", 1)
    brokers = Noting()
    tokens = [
        brokers.ask(GROUP_LEADER, commit(producer_id=number, transactional_id=f"x{number}"))
        for number in range(3)
    ]
    assert brokers.told(tokens[2]) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    brokers.run(100)
    assert [brokers.told(token) for token in tokens[:2]] == [
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    ] * 2
    assert len(brokers.ports) == 2
