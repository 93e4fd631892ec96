"""The rules of the in-sync replicas and of the high watermark, as tables."""

import pytest

from broker.partition import isr
from broker.partition.isr import (
    UNKNOWN_OFFSET,
    Committed,
    FollowerProgress,
    IsrState,
    PendingExpand,
    PendingShrink,
    PendingStay,
    SessionClock,
)
from broker.partition.isr_rules import is_current
from tests.broker.partitions import AnyPeers
from wire.messages.fetching import ReplicaState

LAG = 1000


def follower(broker_id: int, end: int, caught_up_ms: int = 0) -> FollowerProgress:
    return FollowerProgress(broker_id=broker_id, log_end_offset=end, last_caught_up_ms=caught_up_ms)


@pytest.mark.parametrize(
    ("state", "maximal", "proposed"),
    [
        (Committed(members=(1, 2)), (1, 2), None),
        (PendingExpand(members=(1, 2), joining=3), (1, 2, 3), (1, 2, 3)),
        (PendingShrink(members=(1, 2, 3), leaving=(3,)), (1, 2, 3), (1, 2)),
        (PendingStay(members=(1, 2), joining=3), (1, 2, 3), (1, 2)),
    ],
)
def test_the_maximal_isr_is_the_largest_that_the_controller_may_have(
    state: IsrState, maximal: tuple[int, ...], proposed: tuple[int, ...] | None
) -> None:
    assert isr.maximal_isr(state) == maximal
    if not isinstance(state, Committed):
        assert isr.proposed_isr(state) == proposed


@pytest.mark.parametrize(
    ("ends", "maximal", "joining", "expected"),
    [
        ({2: 10, 3: 10}, (1, 2, 3), frozenset(), 10),
        ({2: 7, 3: 9}, (1, 2, 3), frozenset(), 7),
        ({2: 7, 3: 9}, (1, 3), frozenset(), 9),  # 2 is not in sync: it does not count
        ({2: 7, 3: 9}, (1, 3), frozenset({2}), 7),  # but it is about to be
        ({2: UNKNOWN_OFFSET, 3: 9}, (1, 2, 3), frozenset(), UNKNOWN_OFFSET),
        ({}, (1,), frozenset(), 10),
    ],
)
def test_the_high_watermark_is_what_every_replica_that_matters_has(
    ends: dict[int, int], maximal: tuple[int, ...], joining: frozenset[int], expected: int
) -> None:
    candidate = isr.high_watermark_candidate(
        leader_end_offset=10,
        followers=[follower(broker_id, end) for broker_id, end in ends.items()],
        maximal=maximal,
        joining=joining,
    )
    assert candidate == expected


@pytest.mark.parametrize(
    ("state", "end", "eligible", "expected"),
    [
        (Committed(members=(1, 2)), 8, True, True),
        (Committed(members=(1, 2)), 7, True, False),  # below the high watermark
        (Committed(members=(1, 2)), 8, False, False),
        (Committed(members=(1, 2, 3)), 8, True, False),  # it is a member
        (PendingExpand(members=(1,), joining=2), 8, True, False),  # one change at a time
        (PendingShrink(members=(1, 2), leaving=(2,)), 8, True, False),
    ],
)
def test_a_follower_joins_only_with_all_that_is_committed(
    state: IsrState, end: int, eligible: bool, expected: bool
) -> None:
    may = isr.may_expand(
        state,
        follower(3, end),
        start_offset=0,
        high_watermark=8,
        epoch_start_offset=5,
        is_eligible=eligible,
    )
    assert may is expected


def test_a_follower_joins_only_once_it_has_reached_the_start_of_the_epoch() -> None:
    state = Committed(members=(1, 2))
    for end, expected in ((8, False), (9, False), (10, True)):
        may = isr.may_expand(
            state,
            follower(3, end),
            start_offset=0,
            high_watermark=8,
            epoch_start_offset=10,
            is_eligible=True,
        )
        assert may is expected, end


@pytest.mark.parametrize(
    ("end", "reported_start", "expected"),
    [
        (10, 9, False),  # its record 9 may be another than the one that we have deleted
        (10, 0, False),
        (10, 10, True),  # it has dropped all
        (10, UNKNOWN_OFFSET, True),  # it does not tell
        (11, 9, True),  # the record 10 is common to both logs
    ],
)
def test_a_follower_that_ends_where_the_leader_starts_joins_only_with_an_empty_log(
    end: int, reported_start: int, expected: bool
) -> None:
    replica = follower(3, end)
    replica.log_start_offset = reported_start
    may = isr.may_expand(
        Committed(members=(1, 2)),
        replica,
        start_offset=10,
        high_watermark=10,
        epoch_start_offset=10,
        is_eligible=True,
    )
    assert may is expected


def test_only_members_that_lag_too_long_leave() -> None:
    followers = {
        2: follower(2, 10, caught_up_ms=0),  # has all, however long ago it asked
        3: follower(3, 9, caught_up_ms=5000),  # a little behind, not for long
        4: follower(4, 9, caught_up_ms=3999),
        5: follower(5, 0, caught_up_ms=0),  # not a member
    }
    leaving = isr.out_of_sync(
        Committed(members=(1, 2, 3, 4)),
        followers,
        leader_end_offset=10,
        now_ms=5000,
        lag_time_max_ms=LAG,
    )
    assert leaving == (4,)


def test_nobody_leaves_while_a_change_is_pending() -> None:
    leaving = isr.out_of_sync(
        PendingExpand(members=(1, 2), joining=3),
        {2: follower(2, 0)},
        leader_end_offset=10,
        now_ms=5000,
        lag_time_max_ms=LAG,
    )
    assert leaving == ()


def test_a_follower_that_has_all_is_caught_up_now() -> None:
    replica = follower(2, 0)
    replica.note_fetch(fetch_offset=10, leader_end_offset=10, now_ms=100)
    assert replica.last_caught_up_ms == 100


def test_a_follower_that_reaches_the_last_end_was_caught_up_at_the_last_fetch() -> None:
    replica = follower(2, 0)
    replica.note_fetch(fetch_offset=5, leader_end_offset=10, now_ms=100)
    assert replica.last_caught_up_ms == 0
    replica.note_fetch(fetch_offset=10, leader_end_offset=20, now_ms=200)
    assert replica.last_caught_up_ms == 100


def test_a_follower_that_falls_behind_is_not_caught_up() -> None:
    replica = follower(2, 0)
    replica.note_fetch(fetch_offset=10, leader_end_offset=10, now_ms=100)
    replica.note_fetch(fetch_offset=12, leader_end_offset=30, now_ms=200)
    replica.note_fetch(fetch_offset=14, leader_end_offset=60, now_ms=300)
    replica.note_fetch(fetch_offset=16, leader_end_offset=90, now_ms=1200)

    assert replica.last_caught_up_ms == 100
    for now_ms, expected in ((1100, True), (1101, False)):
        caught_up = isr.is_caught_up(
            replica, leader_end_offset=90, now_ms=now_ms, lag_time_max_ms=LAG
        )
        assert caught_up is expected


def test_a_new_epoch_gives_members_time_and_others_none() -> None:
    member, other = follower(2, 10), follower(3, 10)
    isr.rest_in_session(member, SessionClock(900))
    isr.start_epoch(member, in_isr=True, leader_end_offset=10, now_ms=700)
    isr.start_epoch(other, in_isr=False, leader_end_offset=10, now_ms=700)

    for replica, since_ms in ((member, 700), (other, 0)):
        assert replica.log_end_offset == UNKNOWN_OFFSET
        assert (replica.last_caught_up_ms, replica.last_fetch_ms) == (since_ms, since_ms)
        assert replica.clock is None, "no session of an earlier epoch speaks for it"


class Registered(AnyPeers):
    """Every broker is registered with epoch 5."""

    def registered_epoch(self, broker_id: int) -> int | None:
        return 5


@pytest.mark.parametrize(
    ("stated", "expected"), [(-1, True), (0, False), (4, False), (5, True), (6, True)]
)
def test_only_the_last_registration_that_the_leader_knows_fetches(
    stated: int, expected: bool
) -> None:
    """Brokers without epochs state -1; a later epoch is one that the leader has not heard of."""
    assert is_current(ReplicaState(replica_id=2, replica_epoch=stated), Registered()) is expected


@pytest.mark.parametrize(
    ("configured", "replicas", "expected"), [(1, 3, 1), (2, 3, 2), (3, 2, 2), (2, 1, 1)]
)
def test_min_isr_asks_for_no_more_than_there_are(
    configured: int, replicas: int, expected: int
) -> None:
    assert isr.effective_min_isr(configured, replicas) == expected
