"""One replica's role: what a change of the metadata makes of it, and what it asks its leader."""

from dataclasses import replace
from typing import Any

import pytest

from broker.config import OWNER
from broker.partition.isr import Committed, PendingExpand, PendingShrink
from broker.partition.local_log import LocalLog
from broker.partition.partition import (
    NOTHING,
    Change,
    FollowerOf,
    IsrChange,
    LeaderOf,
    Partition,
)
from broker.replication import following
from broker.replication.following import FetchOn, Mismatch, fetch_partition
from controller.metadata.partitions import PartitionState
from quorum.core.effects import (
    EpochStart,
    ResetLog,
    StorageFailed,
    Stored,
    Token,
    Truncate,
)
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from quorum.core.types import NO_EPOCH
from tests.broker.partitions import partition_of
from wire.batch import assign, data_batch, headers
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.fetching import EpochEndOffset, FetchedPartition
from wire.messages.partitions import IsrPartitionResult
from wire.primitives import ZERO_UUID

STATE = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=2, leader_epoch=4)


def opened(state: PartitionState, *, start_offset: int = 0) -> Partition:
    """Broker 1 has ten records of epoch 3."""
    partition = partition_of("t", 0, state)
    assert partition.directory_id == ZERO_UUID
    epochs = (EpochStart(3, start_offset),)
    state_of_log = LogState(log="t-0", start_offset=start_offset, end_offset=10, epochs=epochs)
    partition.opened(LocalLog(state_of_log, Outbox(OWNER)), 100)
    return partition


@pytest.mark.parametrize(
    ("leader", "leader_epoch", "change"),
    [(2, 4, Change.UPDATED), (2, 5, Change.FOLLOWS), (3, 4, Change.FOLLOWS)],
)
def test_follower_begins_again_with_another_leader_or_epoch(
    leader: int, leader_epoch: int, change: Change
) -> None:
    partition = opened(STATE)
    later = replace(STATE, leader=leader, leader_epoch=leader_epoch, partition_epoch=1)
    assert partition.apply(later, 200).change is change


def test_leader_that_is_elected_again_forgets_what_its_followers_had() -> None:
    state = replace(STATE, leader=1)
    partition = opened(state)
    assert isinstance(partition.role, LeaderOf)
    followers = partition.role.followers
    assert [each.last_caught_up_ms for each in followers.values()] == [100, 0]
    followers[2].log_end_offset = 10
    partition.apply(replace(state, partition_epoch=1), 200)
    assert followers[2].log_end_offset == 10
    partition.apply(replace(state, leader_epoch=5, partition_epoch=2), 300)
    assert followers[2].log_end_offset < 0


@pytest.mark.parametrize(("by_epoch", "epochs"), [(True, (4, 3)), (False, (NO_EPOCH, NO_EPOCH))])
def test_follower_tells_epochs_where_there_are_any(by_epoch: bool, epochs: tuple[int, int]) -> None:
    partition = opened(STATE)
    assert isinstance(partition.role, FollowerOf)
    asked = fetch_partition(partition, partition.role, bytes_max=1, by_epoch=by_epoch)
    assert (asked.current_leader_epoch, asked.last_fetched_epoch) == epochs


def test_follower_whose_records_are_all_deleted_tells_the_epoch_of_the_last() -> None:
    """Found by cluster seed 191001688 of the simulator: its leader, elected uncleanly, had other
    records there and before, and took it into the ISR without those."""
    log = opened(STATE).open_log
    log.high_watermark = 10
    log.trim(10)
    assert (log.start_offset, following.last_fetched_epoch(log)) == (10, 3)
    recovered = opened(STATE, start_offset=10).open_log
    assert following.last_fetched_epoch(recovered) == 3


@pytest.mark.parametrize("end_offset", [2, 7, 12])
def test_follower_with_an_empty_log_that_parted_begins_anew_with_its_leader(
    end_offset: int,
) -> None:
    """However far the leader has an epoch before ours: to cut back to there may be no step."""
    partition = opened(STATE, start_offset=10)
    parted = EpochEndOffset(epoch=2, end_offset=end_offset)
    data = FetchedPartition(
        partition_index=0, log_start_offset=2, diverging_epoch=parted, records=b""
    )
    assert following.follow(partition, data) == FetchOn()
    log = partition.open_log
    assert (log.start_offset, log.end_offset) == (2, 2)
    assert following.last_fetched_epoch(log) == NO_EPOCH


def test_follower_tells_the_epoch_of_its_last_record_whatever_was_after_it() -> None:
    log = opened(STATE).open_log
    log.append(_data(10, 4), tuple(header for _, header in headers(_data(10, 4))))
    assert following.last_fetched_epoch(log) == 4
    log.truncate(10)
    assert following.last_fetched_epoch(log) == 3


def test_epoch_that_has_written_nothing_is_not_that_of_the_last_record() -> None:
    epochs = (EpochStart(3, 0), EpochStart(5, 10))  # as a leader notes at its election
    log = LocalLog(LogState(log="t-0", end_offset=10, epochs=epochs), Outbox(OWNER))
    assert following.last_fetched_epoch(log) == 3


def test_follower_with_nothing_behind_it_tells_no_last_epoch() -> None:
    log = opened(STATE).open_log
    log.truncate(0)
    assert following.last_fetched_epoch(log) == NO_EPOCH
    log = opened(STATE).open_log
    log.reset(10)
    assert following.last_fetched_epoch(log) == NO_EPOCH


def _data(base_offset: int, leader_epoch: int) -> bytes:
    batch = data_batch([b"a"], timestamp_ms=0)
    return assign(batch, base_offset=base_offset, leader_epoch=leader_epoch)


def test_batch_that_begins_within_the_log_is_not_taken() -> None:
    partition = opened(STATE)
    batch = assign(data_batch([b"a"] * 4, timestamp_ms=0), base_offset=8, leader_epoch=4)
    data = FetchedPartition(partition_index=0, high_watermark=10, records=batch)
    assert isinstance(following.follow(partition, data), Mismatch)
    assert (partition.open_log.start_offset, partition.open_log.end_offset) == (0, 10)


def test_batches_with_a_gap_between_them_are_taken() -> None:
    """Compaction leaves gaps."""
    partition = opened(STATE)
    one, other = (
        assign(data_batch([b"a"], timestamp_ms=0), base_offset=offset, leader_epoch=4)
        for offset in (10, 15)
    )
    data = FetchedPartition(partition_index=0, high_watermark=10, records=one + other)
    assert following.follow(partition, data) == FetchOn()
    assert partition.open_log.end_offset == 16


# --- changes of the ISR -------------------------------------------------------------------------


def wanted_by(partition: Partition, asked: PendingExpand | PendingShrink) -> IsrChange:
    partition.led.isr = asked
    return IsrChange(partition, partition.led, asked)


def result_of(partition: Partition, **fields: Any) -> IsrPartitionResult:
    role = partition.led
    return replace_message(
        IsrPartitionResult(
            partition_index=0,
            error_code=ErrorCode.NONE,
            leader_id=1,
            leader_epoch=role.leader_epoch,
            isr=(1, 2, 3),
            partition_epoch=role.partition_epoch + 1,
        ),
        **fields,
    )


def test_answer_counts_if_the_leader_still_asks_for_the_same() -> None:
    partition = opened(replace(STATE, leader=1, partition_epoch=6))
    change = wanted_by(partition, PendingExpand(members=(1, 2), joining=3))
    assert change.accept(result_of(partition))
    assert partition.led.isr == Committed(members=(1, 2, 3))
    assert partition.led.partition_epoch == 7
    assert not change.accept(result_of(partition)), "it is answered by now"


@pytest.mark.parametrize(
    "late", [{"partition_epoch": 5}, {"leader_epoch": 3}], ids=["partition epoch", "leader epoch"]
)
def test_answer_that_the_metadata_has_overtaken_counts_for_nothing(late: dict[str, int]) -> None:
    partition = opened(replace(STATE, leader=1, partition_epoch=6))
    change = wanted_by(partition, PendingExpand(members=(1, 2), joining=3))
    assert not change.accept(result_of(partition, **late))
    assert partition.led.isr == PendingExpand(members=(1, 2), joining=3)


def test_answer_to_an_earlier_change_counts_for_nothing() -> None:
    partition = opened(replace(STATE, leader=1))
    first = wanted_by(partition, PendingExpand(members=(1, 2), joining=3))
    second = wanted_by(partition, PendingExpand(members=(1, 2), joining=3))
    assert not first.accept(result_of(partition))
    assert not first.revert()
    assert second.is_wanted


def test_change_that_an_earlier_leadership_wanted_is_wanted_no_more() -> None:
    state = replace(STATE, leader=1)
    partition = opened(state)
    change = wanted_by(partition, PendingShrink(members=(1, 2), leaving=(2,)))
    partition.apply(replace(state, leader=2, leader_epoch=5, partition_epoch=1), 200)
    assert not change.is_wanted
    assert not change.revert()


# --- a log that is being rewritten ------------------------------------------------------------


def rewriting(partition: Partition, outbox: Outbox, *, reset: bool) -> Token:
    """Its log is being cut, and maybe begun anew; returns the token of the last effect."""
    log = LocalLog(LogState(log="t-0", end_offset=10, epochs=(EpochStart(3, 0),)), outbox)
    partition.opened(log, 100)
    log.truncate(6)
    if reset:
        log.reset(7)
    *_, last = (each for each in outbox.take() if isinstance(each, Truncate | ResetLog))
    return last.token


@pytest.mark.parametrize("reset", [False, True])
def test_nobody_leads_with_a_log_that_is_being_rewritten(reset: bool) -> None:
    partition, outbox = partition_of("t", 0, STATE), Outbox(OWNER)
    token = rewriting(partition, outbox, reset=reset)
    elected = replace(STATE, leader=1, leader_epoch=5, partition_epoch=1)
    assert partition.apply(elected, 200) == NOTHING
    assert partition.rewritten(300) == NOTHING
    assert partition.check_epoch(5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    outbox.deliver(token, Stored(log="t-0", token=token), 400)
    assert partition.rewritten(400).change is Change.ELECTED
    assert partition.led.epoch_start_offset == (7 if reset else 6)


def test_only_the_last_of_several_rewrites_ends_the_waiting() -> None:
    partition, outbox = partition_of("t", 0, STATE), Outbox(OWNER)
    token = rewriting(partition, outbox, reset=True)
    earlier = Token(token.owner, token.number - 1)
    outbox.deliver(earlier, Stored(log="t-0", token=earlier), 400)
    assert partition.open_log.is_rewriting
    failed = StorageFailed(log="t-0", token=token, reason="pulled out")
    outbox.deliver(token, failed, 400)
    assert partition.open_log.is_rewriting, "its directory has failed: nothing more is told of it"


def test_who_is_not_elected_after_all_follows_once_the_log_is_rewritten() -> None:
    partition, outbox = partition_of("t", 0, STATE), Outbox(OWNER)
    token = rewriting(partition, outbox, reset=False)
    partition.apply(replace(STATE, leader=1, leader_epoch=5, partition_epoch=1), 200)
    partition.apply(replace(STATE, leader=3, leader_epoch=6, partition_epoch=2), 200)
    outbox.deliver(token, Stored(log="t-0", token=token), 400)
    assert partition.rewritten(400).change is Change.FOLLOWS
    assert partition.leader_id == 3
