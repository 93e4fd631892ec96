"""What a leader asks for while a request for its ISR has no answer and may still arrive.

The same script for both ways to ask: AlterPartition, and AlterIsr of `zk-kip497`.
"""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.cluster import Cluster, Incarnation
from broker.config import OWNER, BrokerConfig
from broker.membership.alterations import Alterations
from broker.membership.controller_channel import ControllerChannel
from broker.partition.isr import Committed, IsrState, PendingExpand, PendingStay
from broker.zk.isr_requests import IsrRequests
from quorum.core.effects import Failure, RequestFailed, Response, Send
from quorum.core.outbox import Outbox
from quorum.core.types import Endpoint, LeaderAndEpoch
from tests.broker.test_progress import END, LAG_MS, STATE, fetch, leader
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrPartitionResult,
    IsrTopicResult,
)
from wire.zk.control_rpc import AlterIsrRequest, AlterIsrResponse, TopicPartition

TIMEOUT_MS = 1000
STAY = PendingStay(members=(1, 2), joining=3)


class Whereabouts:
    leader = LeaderAndEpoch(9, 1)
    kraft_version = 1

    def endpoint_of(self, node_id: int) -> Endpoint:
        return Endpoint(node_id, "controller", 9093)


class Asking:
    """A leader that wants broker 3 in its ISR, and what it asks its controller for."""

    def __init__(self, *, with_zookeeper: bool) -> None:
        self.outbox = Outbox(OWNER)
        config = BrokerConfig(node_id=1, cluster_id="c", listeners=(), log_dirs=())
        incarnation = Incarnation(Cluster(config), UUID(int=7))
        channel = ControllerChannel(Whereabouts(), self.outbox)
        self.keeper: Alterations | IsrRequests
        if with_zookeeper:
            self.keeper = IsrRequests(incarnation, channel, timeout_ms=TIMEOUT_MS)
        else:
            self.keeper = Alterations(
                incarnation, channel, retry_backoff_ms=50, timeout_ms=TIMEOUT_MS
            )
        self.partition = leader()
        wanted = self.partition.fetched(fetch(3), 5).isr_wanted
        assert wanted is not None
        self.now_ms = 10
        self.keeper.want(wanted, self.now_ms)
        self.keeper.tick(self.now_ms)

    def asked(self) -> Send:
        """The request that is on its way, after a pause if there must be one."""
        if not self.outbox.effects:
            self.now_ms += TIMEOUT_MS
            self.keeper.tick(self.now_ms)
        (sent,) = self.outbox.take()
        assert isinstance(sent, Send)
        return sent

    def isr_asked(self) -> tuple[int, ...]:
        (sent,) = self.outbox.effects
        assert isinstance(sent, Send)
        if isinstance(sent.body, AlterIsrRequest):
            (wanted,) = sent.body.wanted.values()
            return tuple(wanted.isr)
        assert isinstance(sent.body, AlterPartitionRequest)
        (member,) = sent.body.topics[0].partitions
        return tuple(each.broker_id for each in member.new_isr_with_epochs)

    def lose(self) -> None:
        sent = self.asked()
        failed = RequestFailed(token=sent.token, failure=Failure.TIMED_OUT)
        self.outbox.deliver(sent.token, failed, self.now_ms)

    def answer(self, error: ErrorCode, *, as_a_whole: bool = False) -> None:
        sent = self.asked()
        body: AlterIsrResponse | AlterPartitionResponse
        if isinstance(self.keeper, IsrRequests):
            body = AlterIsrResponse.of({TopicPartition("t", 0): error})
        elif as_a_whole:
            body = AlterPartitionResponse(error_code=error)
        else:
            result = IsrPartitionResult(
                partition_index=0,
                error_code=error,
                leader_epoch=STATE.leader_epoch,
                partition_epoch=STATE.partition_epoch + 1,
                isr=STATE.isr,
            )
            topic = IsrTopicResult(topic_id=self.partition.topic_id, partitions=(result,))
            body = AlterPartitionResponse(topics=(topic,))
        response = Response(token=sent.token, body=body)
        self.outbox.deliver(sent.token, response, self.now_ms)


@pytest.fixture(params=[False, True], ids=["alter-partition", "alter-isr"])
def asking(request: pytest.FixtureRequest) -> Asking:
    return Asking(with_zookeeper=request.param)


def isr_of(asking: Asking) -> IsrState:
    return asking.partition.led.isr


def refusal(asking: Asking) -> ErrorCode:
    """Of a replica that is not up."""
    is_zk = isinstance(asking.keeper, IsrRequests)
    return ErrorCode.INVALID_REQUEST if is_zk else ErrorCode.INELIGIBLE_REPLICA


def test_refusal_without_a_lost_request_takes_the_change_back(asking: Asking) -> None:
    asking.answer(refusal(asking))
    assert asking.partition.led.isr == Committed(members=(1, 2))


def test_refusal_after_a_lost_request_has_the_isr_confirmed(asking: Asking) -> None:
    asking.lose()
    assert isinstance(asking.partition.led.isr, PendingExpand), "and it counts on the replica"
    asking.answer(refusal(asking))
    assert isr_of(asking) == STAY


@pytest.mark.parametrize("error", [ErrorCode.INVALID_REQUEST, ErrorCode.INELIGIBLE_REPLICA])
def test_confirmation_that_is_refused_is_asked_for_again(asking: Asking, error: ErrorCode) -> None:
    asking.lose()
    asking.answer(refusal(asking))
    for _ in range(3):
        asking.answer(error)
        assert isr_of(asking) == STAY
    asking.now_ms += TIMEOUT_MS
    asking.keeper.tick(asking.now_ms)
    assert asking.isr_asked() == (1, 2)


def test_change_that_the_metadata_has_overtaken_is_not_confirmed(asking: Asking) -> None:
    asking.lose()
    change = asking.partition.isr_wanted
    assert change is not None
    change.is_in_doubt = True
    asking.partition.apply(replace(STATE, isr=(1,), partition_epoch=9), 20)
    assert change.stay() is None
    assert asking.partition.led.isr == Committed(members=(1,))


def test_confirmation_holds_from_its_place_in_the_metadata_log() -> None:
    asking = Asking(with_zookeeper=False)
    asking.lose()
    asking.answer(refusal(asking))
    asking.answer(ErrorCode.NONE)
    assert isr_of(asking) == STAY
    asking.partition.apply(replace(STATE, partition_epoch=STATE.partition_epoch + 1), 20)
    assert isr_of(asking) == Committed(members=(1, 2))


def test_request_that_the_controller_gave_up_as_a_whole_may_be_carried_out() -> None:
    asking = Asking(with_zookeeper=False)
    asking.answer(ErrorCode.REQUEST_TIMED_OUT, as_a_whole=True)
    asking.answer(refusal(asking))
    assert isr_of(asking) == STAY


def test_request_that_was_received_may_not_be_written_yet() -> None:
    asking = Asking(with_zookeeper=True)
    asking.answer(ErrorCode.NONE)
    asking.answer(refusal(asking))
    assert isr_of(asking) == STAY


def test_member_that_lags_meanwhile_is_asked_out_once(asking: Asking) -> None:
    asking.lose()
    asking.answer(refusal(asking))
    wanted = asking.partition.time_passed(LAG_MS + 1).isr_wanted
    assert wanted is not None
    assert wanted.asked == replace(STAY, leaving=(2,))
    assert asking.partition.time_passed(LAG_MS + 2).isr_wanted is None
    assert asking.partition.open_log.end_offset == END
