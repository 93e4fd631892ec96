"""A replica that is told something returns what follows: another role, or a change of the ISR."""

from dataclasses import replace

from broker.config import OWNER
from broker.partition.isr import UNKNOWN_OFFSET, Committed, PendingExpand, PendingShrink
from broker.partition.local_log import LocalLog, Moves
from broker.partition.partition import NOTHING, Change, FollowerFetch, Partition
from controller.metadata.partitions import PartitionState
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from tests.broker.partitions import partition_of
from wire.errors import ErrorCode

END = 10
LAG_MS = 10_000
STATE = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=4, partition_epoch=7)


def leader(state: PartitionState = STATE) -> Partition:
    partition = partition_of("t", 0, state)
    log = LocalLog(LogState(log="t-0", end_offset=END), Outbox(OWNER), partition.moves)
    progress = partition.opened(log, 0)
    assert progress.change is Change.ELECTED
    return partition


def fetch(broker_id: int, offset: int = END) -> FollowerFetch:
    return FollowerFetch(
        broker_id=broker_id, broker_epoch=-1, fetch_offset=offset, log_start_offset=0
    )


def test_follower_that_catches_up_is_wanted_in_the_isr_once() -> None:
    partition = leader()
    wanted = partition.fetched(fetch(3), 5).isr_wanted
    assert wanted is not None
    assert wanted.asked == PendingExpand(members=(1, 2), joining=3)
    assert partition.led.isr is wanted.asked
    assert partition.fetched(fetch(3), 6) == NOTHING, "one change at a time is wanted"


def test_high_watermark_waits_for_whoever_may_have_joined() -> None:
    partition = leader()
    partition.fetched(fetch(3, 4), 5)
    partition.fetched(fetch(2), 5)
    assert partition.open_log.high_watermark == 4, "3 could be added at any moment"
    partition.fetched(fetch(3), 6)
    assert partition.open_log.high_watermark == END


def test_member_that_lags_is_wanted_out_when_time_has_passed() -> None:
    partition = leader()
    assert partition.time_passed(LAG_MS) == NOTHING
    wanted = partition.time_passed(LAG_MS + 1).isr_wanted
    assert wanted is not None
    assert wanted.asked == PendingShrink(members=(1, 2), leaving=(2,))


def test_change_that_the_metadata_has_overtaken_is_not_wanted_any_more() -> None:
    partition = leader()
    wanted = partition.fetched(fetch(3), 5).isr_wanted
    assert wanted is not None
    later = replace(STATE, isr=(1,), partition_epoch=9)
    assert partition.apply(later, 6).change is Change.UPDATED
    assert not wanted.is_wanted
    assert not wanted.revert()
    assert partition.led.isr == Committed(members=(1,))


def test_change_that_is_refused_leaves_the_isr_as_it_was() -> None:
    partition = leader()
    wanted = partition.fetched(fetch(3), 5).isr_wanted
    assert wanted is not None
    assert wanted.revert()
    assert partition.led.isr == Committed(members=(1, 2))
    assert partition.isr_wanted is None


def test_replica_that_is_closed_is_gone_and_has_moved() -> None:
    partition = leader()
    partition.moves.take()
    assert partition.close(ErrorCode.KAFKA_STORAGE_ERROR).change is Change.GONE
    assert partition.moves.take() == {"t-0": True}
    assert partition.apply(replace(STATE, partition_epoch=9), 6) == NOTHING


def test_replica_that_has_moved_and_was_updated_has_moved() -> None:
    moves = Moves()
    for note in (moves.note_update, moves.note, moves.note_update):
        note("t-0")
    moves.note_update("t-1")
    assert moves.take() == {"t-0": True, "t-1": False}
    assert not moves.take()


def test_other_isr_moves_a_replica_only_as_far_as_it_commits() -> None:
    partition = leader()
    partition.moves.take()
    partition.apply(replace(STATE, isr=(1, 2, 3), partition_epoch=8), 6)
    assert partition.moves.take() == {"t-0": False}
    partition.apply(replace(STATE, isr=(1,), partition_epoch=9), LAG_MS + 1)
    assert partition.open_log.high_watermark == END
    assert partition.moves.take() == {"t-0": True}
    partition.apply(replace(STATE, replicas=(1, 3, 2), partition_epoch=10), LAG_MS + 1)
    assert partition.moves.take() == {"t-0": True}, (
        "other replicas: whoever follows no longer has to hear of it"
    )


def test_what_followers_have_is_remembered_when_another_replica_is_added() -> None:
    partition = leader()
    partition.fetched(fetch(2, 4), 5)
    partition.apply(replace(STATE, replicas=(1, 2, 3, 4), directories=(), partition_epoch=8), 6)
    assert partition.led.followers[2].log_end_offset == 4
    assert partition.led.followers[4].log_end_offset == UNKNOWN_OFFSET


def test_smaller_min_insync_replicas_commits_at_once() -> None:
    partition = leader(replace(STATE, isr=(1,)))
    before = partition.settings
    partition.reconfigure(replace(before, min_insync_replicas=2), 0)
    partition.fetched(fetch(2, 6), LAG_MS + 1)  # it lags, and may not join
    assert partition.open_log.high_watermark == 0
    assert partition.reconfigure(before, LAG_MS + 1).change is Change.UPDATED
    assert partition.open_log.high_watermark == END
