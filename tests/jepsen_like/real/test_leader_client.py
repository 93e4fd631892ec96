"""Speaking for a leader: which ISR is asked for, and what an answer says."""

from dataclasses import replace

import pytest

from jepsen_like.histories.history import Kind
from jepsen_like.real.clients.leader import LeaderClient, PartitionState, done
from jepsen_like.real.clients.target import Target
from jepsen_like.workloads.workload import Wish
from wire.errors import ErrorCode
from wire.messages.partitions import AlterPartitionResponse, IsrPartitionResult, IsrTopicResult
from wire.primitives import ZERO_UUID

STATE = PartitionState(
    topic_id=ZERO_UUID,
    partition=0,
    leader=2,
    leader_epoch=5,
    partition_epoch=9,
    replicas=(1, 2, 3),
    isr=(1, 2, 3),
    broker_epochs={1: 11, 2: 12, 3: 13},
)


@pytest.mark.parametrize(
    ("isr", "fenced", "wanted"),
    [
        ((1, 2, 3), (), {1, 2}),  # one follower less
        ((1, 2), (), {1, 2, 3}),  # all
        ((2,), (), {1, 2, 3}),
        ((1, 2), (3,), {2}),  # all that may be are in it
        ((2,), (1, 3), {2}),  # nothing to change
    ],
)
def test_another_isr_is_asked_for_and_the_leader_stays(
    isr: tuple[int, ...], fenced: tuple[int, ...], wanted: set[int]
) -> None:
    epochs = {each: epoch for each, epoch in STATE.broker_epochs.items() if each not in fenced}
    assert set(replace(STATE, isr=isr, broker_epochs=epochs).other_isr) == wanted


def answered(code: ErrorCode, version: int = -1) -> AlterPartitionResponse:
    partition = IsrPartitionResult(partition_index=0, error_code=code, partition_epoch=version)
    return AlterPartitionResponse(
        topics=(IsrTopicResult(topic_id=ZERO_UUID, partitions=(partition,)),)
    )


def test_a_change_tells_the_epoch_that_it_made() -> None:
    told = done(answered(ErrorCode.NONE, 10), STATE, "isr-0", 77)
    assert (told.kind, told.value) == (Kind.OK, ["isr-0", 77])
    assert told.extra == {"version": 10, "expected": 9}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INVALID_UPDATE_VERSION, Kind.FAIL),
        (ErrorCode.FENCED_LEADER_EPOCH, Kind.FAIL),
        (ErrorCode.NEW_LEADER_ELECTED, Kind.INFO),  # done, and more than that
        (ErrorCode.UNKNOWN_SERVER_ERROR, Kind.INFO),
    ],
)
def test_a_refusal_by_comparison_is_a_failure(code: ErrorCode, kind: Kind) -> None:
    assert done(answered(code), STATE, "isr-0", 77).kind is kind


def test_a_controller_that_no_longer_leads_may_have_decided() -> None:
    lost = AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    assert done(lost, STATE, "isr-0", 77).kind is Kind.INFO


def test_without_a_controller_nothing_is_asked() -> None:
    client = LeaderClient(Target(brokers={}), timeout_seconds=1.0)
    assert client.invoke(Wish(f="write", value=["isr-0", 1])).kind is Kind.FAIL
    client.close()
