"""maybe_change_ISR of seed 000: the three limits, and the printed condition that is an erratum."""

import pytest

from broker.config import OWNER
from broker.partition.isr import Committed, FollowerProgress, PendingExpand, PendingShrink
from broker.partition.isr_rules import EligibleReplicas
from broker.partition.local_log import LocalLog
from broker.partition.partition import NOTHING, FollowerFetch, LeaderOf, Partition, Progress
from broker.zk.lag_limits import LagLimits, Limits, may_join
from controller.metadata.partitions import PartitionState
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from tests.broker.partitions import AnyPeers, partition_of
from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState

RULES = LagLimits(Limits(max_lag_records=10, max_lag_ms=100, min_lag_records=2))
LATER = EligibleReplicas(AnyPeers(), 100)


def led(ends: dict[int, int], *, end: int, isr: tuple[int, ...]) -> tuple[Partition, LeaderOf]:
    """Broker 1 leads; `ends` are where the logs of its followers end."""
    wanted = PartitionState(replicas=(1, *ends), isr=isr, leader=1)
    partition = partition_of("t", 0, wanted)
    partition.rules = RULES
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


def fetch(partition: Partition, broker_id: int, offset: int, now_ms: int) -> Progress:
    return partition.fetched(
        FollowerFetch(
            broker_id=broker_id, broker_epoch=-1, fetch_offset=offset, log_start_offset=0
        ),
        now_ms,
    )


def test_member_that_has_not_fetched_for_too_long_leaves() -> None:
    partition, role = led({2: 99}, end=100, isr=(1, 2))
    fetch(partition, 2, 99, 40)
    assert not RULES.shrunk(partition, role, now_ms=140)
    assert RULES.shrunk(partition, role, now_ms=141) == PendingShrink(members=(1, 2), leaving=(2,))


def test_member_that_goes_on_fetching_stays_though_it_never_catches_up() -> None:
    """A later Kafka drops who has not caught up for MAX_TIME_LAG; this one "hasn't updated leo"."""
    partition, role = led({2: 90}, end=100, isr=(1, 2))
    for step in range(7):
        assert fetch(partition, 2, 91 + step, 50 * step) == NOTHING
    assert not RULES.shrunk(partition, role, now_ms=301)
    assert not LATER.shrunk(partition, role, now_ms=100)
    assert LATER.shrunk(partition, role, now_ms=301), "the later rule"


def test_one_of_two_equally_slow_members_that_has_been_silent_longer_leaves_first() -> None:
    partition, role = led({2: 95, 3: 95}, end=100, isr=(1, 2, 3))
    role.followers[2].last_fetch_ms = 20
    wanted = RULES.shrunk(partition, role, now_ms=200)
    assert wanted == PendingShrink(members=(1, 2, 3), leaving=(3,))


@pytest.mark.parametrize(
    ("end", "now_ms"), [(85, 50), (95, 101)], ids=["MAX_BYTES_LAG", "MAX_TIME_LAG"]
)
def test_each_fetch_looks_for_members_that_lag(end: int, now_ms: int) -> None:
    """on_ReplicaFetchRequest calls all of maybe_change_ISR(), not its second half alone."""
    partition, _ = led({2: 100, 3: end}, end=100, isr=(1, 2, 3))
    wanted = fetch(partition, 2, 100, now_ms).isr_wanted
    assert wanted is not None
    assert wanted.asked == PendingShrink(members=(1, 2, 3), leaving=(3,))


def test_each_fetch_looks_at_every_replica_that_may_join() -> None:
    partition, role = led({2: 100, 3: -1}, end=100, isr=(1, 2))
    role.isr = PendingShrink(members=(1, 2), leaving=(2,))  # it could not join while this lasted
    assert fetch(partition, 3, 100, 10) == NOTHING
    role.isr = Committed(members=(1, 2))
    wanted = fetch(partition, 2, 100, 20).isr_wanted
    assert wanted is not None
    assert wanted.asked == PendingExpand(members=(1, 2), joining=3)


def test_replica_that_would_have_to_leave_at_once_does_not_join() -> None:
    """Nor one of which nothing is known: at an empty log it is hardly behind."""
    partition, role = led({2: 100, 3: 99}, end=100, isr=(1, 2))
    role.followers[3].last_fetch_ms = 0
    assert fetch(partition, 2, 100, 101) == NOTHING
    empty, _ = led({2: 0, 3: -1}, end=0, isr=(1, 2))
    assert fetch(empty, 2, 0, 1) == NOTHING


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
    partition, role = led({2: 95, 3: end}, end=100, isr=(1, 2))
    wanted = RULES.after_fetch(partition, role, role.followers[3], now_ms=0)
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
