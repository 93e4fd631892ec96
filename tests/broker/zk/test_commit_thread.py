"""The commit thread of seed 002: who is dropped, who joins, and what is committed."""

from dataclasses import replace

import pytest

from broker.config import OWNER
from broker.partition.isr import PendingExpand, PendingShrink
from broker.partition.local_log import LocalLog
from broker.partition.partition import LeaderOf, Partition
from broker.zk.by_replicas.held import Held
from broker.zk.by_replicas.leader_isr import CommitThread
from controller.metadata.partitions import PartitionState
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from tests.broker.partitions import partition_of
from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState
from wire.zk.control_rpc import TopicPartition

KEEP_MS = 100  # KeepInSyncTime


def thread(*leaving: int) -> CommitThread:
    """The rules of a leader that has told those replicas of its partition to close."""
    of = TopicPartition("t", 0)
    held = Held(of=of, replicas=leaving, target=(), close_sent_ms=0)
    return CommitThread(KEEP_MS, {of: held})


def led(
    ends: dict[int, int], *, end: int, isr: tuple[int, ...], high_watermark: int = 0
) -> tuple[Partition, LeaderOf]:
    """Broker 1 leads since its log ended at 10; `ends` are where its followers' logs end."""
    wanted = PartitionState(replicas=(1, *ends), isr=isr, leader=1)
    partition = partition_of("t", 0, wanted)
    log = LocalLog(LogState(log="t-0", end_offset=end), Outbox(OWNER))
    partition.opened(log, 0)
    role = partition.role
    assert isinstance(role, LeaderOf)
    role.epoch_start_offset = 10
    log.high_watermark = high_watermark
    for broker_id, offset in ends.items():
        role.followers[broker_id].log_end_offset = offset
    return partition, role


def test_what_every_member_of_the_isr_has_is_committed() -> None:
    partition, role = led({2: 80, 3: 70, 4: 5}, end=100, isr=(1, 2, 3))
    assert thread().high_watermark(partition, role, now_ms=0) == 70


def test_member_without_the_first_request_that_waits_is_dropped_after_keep_in_sync_time() -> None:
    rules = thread()
    partition, role = led({2: 80, 3: 70}, end=100, isr=(1, 2, 3))
    partition.open_log.high_watermark = rules.high_watermark(partition, role, now_ms=0)
    assert not rules.shrunk(partition, role, now_ms=KEEP_MS)
    wanted = rules.shrunk(partition, role, now_ms=KEEP_MS + 1)
    assert wanted == PendingShrink(members=(1, 2, 3), leaving=(3,)), "2 has reached its offset"


def test_each_commit_gives_the_members_their_time_anew() -> None:
    rules = thread()
    partition, role = led({2: 70}, end=100, isr=(1, 2))
    partition.open_log.high_watermark = rules.high_watermark(partition, role, now_ms=0)
    role.followers[2].log_end_offset = 80
    partition.open_log.high_watermark = rules.high_watermark(partition, role, now_ms=90)
    assert not rules.shrunk(partition, role, now_ms=150)
    assert rules.shrunk(partition, role, now_ms=191)


def test_member_is_not_dropped_while_nothing_waits_however_long_it_is_silent() -> None:
    rules = thread()
    partition, role = led({2: 100}, end=100, isr=(1, 2))
    partition.open_log.high_watermark = rules.high_watermark(partition, role, now_ms=0)
    assert not rules.shrunk(partition, role, now_ms=1_000_000)


def test_next_reign_of_a_leader_gives_the_members_their_time_anew() -> None:
    rules = thread()
    partition, role = led({2: 70}, end=100, isr=(1, 2))
    partition.open_log.high_watermark = rules.high_watermark(partition, role, now_ms=0)
    partition, role = led({2: 70}, end=100, isr=(1, 2), high_watermark=70)
    partition.open_log.high_watermark = rules.high_watermark(partition, role, now_ms=1000)
    assert not rules.shrunk(partition, role, now_ms=1050)


@pytest.mark.parametrize(("end", "joins"), [(79, False), (80, True)])
def test_replica_that_catches_up_joins_when_it_has_what_is_committed(end: int, joins: bool) -> None:
    partition, role = led({2: 80, 3: end}, end=100, isr=(1, 2), high_watermark=80)
    wanted = thread().after_fetch(partition, role, role.followers[3], now_ms=0)
    assert wanted == (PendingExpand(members=(1, 2), joining=3) if joins else None)


def test_nobody_joins_without_what_the_leader_began_with() -> None:
    """Its high watermark lags behind what its predecessor committed (KAFKA-7128)."""
    partition, role = led({3: 5}, end=10, isr=(1,), high_watermark=5)
    assert not thread().after_fetch(partition, role, role.followers[3], now_ms=0)


def test_replica_that_was_told_to_close_neither_fetches_nor_joins() -> None:
    rules = thread(2)
    partition, role = led({2: 100, 3: 100}, end=100, isr=(1, 3), high_watermark=100)
    refused = rules.check_follower(partition, role, ReplicaState(replica_id=2), now_ms=0)
    assert refused is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (
        rules.check_follower(partition, role, ReplicaState(replica_id=3), now_ms=0)
        is ErrorCode.NONE
    )
    assert not rules.after_fetch(partition, role, role.followers[2], now_ms=0)


def test_replica_that_was_told_to_close_leaves_when_it_is_silent() -> None:
    rules = thread(2)
    partition, role = led({2: 100, 3: 100}, end=100, isr=(1, 2, 3), high_watermark=100)
    role.followers[2].last_fetch_ms = 50
    assert not rules.shrunk(partition, role, now_ms=50 + KEEP_MS)
    wanted = rules.shrunk(partition, role, now_ms=51 + KEEP_MS)
    assert wanted == PendingShrink(members=(1, 2, 3), leaving=(2,))


def test_what_waited_for_an_earlier_leadership_gives_the_next_one_its_own_time() -> None:
    rules = thread()
    partition, role = led({2: 70}, end=100, isr=(1, 2))
    partition.open_log.high_watermark = rules.high_watermark(partition, role, now_ms=0)
    again = replace(role, leader_epoch=role.leader_epoch + 1)
    partition.role = again
    assert not rules.shrunk(partition, again, now_ms=KEEP_MS + 1)
    partition.open_log.high_watermark = rules.high_watermark(partition, again, now_ms=KEEP_MS + 1)
    assert not rules.shrunk(partition, again, now_ms=2 * KEEP_MS + 1)
    assert rules.shrunk(partition, again, now_ms=2 * KEEP_MS + 2)


@pytest.mark.parametrize(("end", "leaves"), [(90, False), (89, True)])
def test_member_that_is_too_many_messages_behind_leaves_at_once_where_that_is_limited(
    end: int, leaves: bool
) -> None:
    """replica.lag.max.messages, of seed 004 alone."""
    partition, role = led({2: end}, end=100, isr=(1, 2))
    assert not thread().shrunk(partition, role, now_ms=0)
    limited = CommitThread(KEEP_MS, {}, max_lag_records=10)
    wanted = limited.shrunk(partition, role, now_ms=0)
    assert wanted == (PendingShrink(members=(1, 2), leaving=(2,)) if leaves else None)
