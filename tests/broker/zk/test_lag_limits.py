"""maybe_change_ISR of seed 000: the three limits, and the printed condition that is an erratum."""

import pytest

from broker.config import OWNER
from broker.partition.isr import FollowerProgress, PendingExpand, PendingShrink
from broker.partition.local_log import LocalLog
from broker.partition.partition import LeaderOf, Partition
from broker.zk.lag_limits import LagLimits, Limits, may_join
from controller.metadata.partitions import PartitionState
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from tests.broker.partitions import partition_of
from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState

RULES = LagLimits(Limits(max_lag_records=10, max_lag_ms=100, min_lag_records=2))


def led(ends: dict[int, int], *, end: int, isr: tuple[int, ...]) -> tuple[Partition, LeaderOf]:
    """Broker 1 leads; `ends` are where the logs of its followers end."""
    wanted = PartitionState(replicas=(1, *ends), isr=isr, leader=1)
    partition = partition_of("t", 0, wanted)
    partition.opened(LocalLog(LogState(log="t-0", end_offset=end), Outbox(OWNER)), 0)
    role = partition.role
    assert isinstance(role, LeaderOf)
    for broker_id, offset in ends.items():
        role.followers[broker_id].log_end_offset = offset
    return partition, role


def test_member_that_is_too_many_records_behind_leaves_the_slowest_first() -> None:
    partition, role = led({2: 80, 3: 70}, end=100, isr=(1, 2, 3))
    wanted = RULES.shrunk(partition, role, now_ms=0)
    assert wanted == PendingShrink(members=(1, 2, 3), leaving=(3,))


def test_member_that_is_just_as_many_records_behind_as_it_may_be_stays() -> None:
    partition, role = led({2: 90}, end=100, isr=(1, 2))
    assert not RULES.shrunk(partition, role, now_ms=0)


def test_member_that_has_not_caught_up_for_too_long_leaves() -> None:
    partition, role = led({2: 99}, end=100, isr=(1, 2))
    assert not RULES.shrunk(partition, role, now_ms=100)
    assert RULES.shrunk(partition, role, now_ms=101)


def test_member_with_all_there_is_stays_however_long_nothing_came() -> None:
    partition, role = led({2: 100}, end=100, isr=(1, 2))
    assert not RULES.shrunk(partition, role, now_ms=10_000)


def test_member_that_has_not_fetched_in_this_epoch_gets_its_time() -> None:
    partition, role = led({2: -1}, end=100, isr=(1, 2))
    assert not RULES.shrunk(partition, role, now_ms=50)


@pytest.mark.parametrize(("end", "joins"), [(98, False), (99, True), (100, True)])
def test_replica_joins_when_it_is_less_than_the_limit_behind_the_leader(
    end: int, joins: bool
) -> None:
    partition, role = led({2: 50, 3: end}, end=100, isr=(1, 2))
    wanted = RULES.expanded(partition, role, role.followers[3])
    assert wanted == (PendingExpand(members=(1, 2), joining=3) if joins else None)


def test_printed_condition_would_let_anybody_join_who_is_behind_the_slowest_member() -> None:
    """Erratum: `r.leo - leo_min < MIN_BYTES_LAG` asks how far a replica is ahead of the last."""
    lagging = {"leader_end": 1000, "slowest_end": 900, "replica_end": 0}
    assert may_join(Limits(is_printed=True), **lagging)
    assert not may_join(Limits(), **lagging)
    caught_up = {"leader_end": 1000, "slowest_end": 900, "replica_end": 1000}
    assert not may_join(Limits(is_printed=True), **caught_up), "and keep out who has everything"


def test_who_fetches_is_a_follower_from_then_on() -> None:
    """F.2.1: new replicas are told to fetch before anybody has them in an assignment."""
    partition, role = led({2: 100}, end=100, isr=(1, 2))
    assert RULES.check_follower(partition, role, ReplicaState(replica_id=7), 5) is ErrorCode.NONE
    assert isinstance(role.followers[7], FollowerProgress)


def test_high_watermark_is_the_smallest_end_in_the_isr() -> None:
    partition, role = led({2: 90, 3: 10}, end=100, isr=(1, 2))
    assert RULES.high_watermark(partition, role, now_ms=0) == 90


def test_high_watermark_stays_where_it_is_when_a_member_is_behind_it() -> None:
    partition, role = led({2: 90}, end=100, isr=(1, 2))
    partition.open_log.high_watermark = 95
    assert RULES.high_watermark(partition, role, now_ms=0) == 95
