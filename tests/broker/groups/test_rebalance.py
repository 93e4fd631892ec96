"""Rebalances from beginning to end: who is waited for, who is thrown out, who is told what."""

from dataclasses import replace
from typing import Any

from broker.config import GroupConfig
from broker.groups import members as membership
from broker.groups import syncing
from broker.groups.group import Group, GroupState, Outcome, restore
from tests.broker.groups.scenes import (
    CONFIG,
    NOW,
    REBALANCE_MS,
    SESSION_MS,
    group_in,
    join,
    joiner,
    sync,
    sync_request,
    tick,
)
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.groups import HeartbeatRequest, JoinGroupResponse, MemberIdentity

STABLE = GroupState.STABLE
PREPARING = GroupState.PREPARING_REBALANCE
COMPLETING = GroupState.COMPLETING_REBALANCE


def answers(out: Outcome) -> dict[int, Any]:
    assert len(dict(out.answers)) == len(out.answers), "each request has one answer"
    return dict(out.answers)


def beat(group: Group, member_id: str, now_ms: int) -> ErrorCode:
    request = HeartbeatRequest(group_id="g", generation_id=group.generation, member_id=member_id)
    return membership.heartbeat(group, request, now_ms)


def new_group() -> Group:
    return Group(id="g", state_since_ms=NOW)


# --- joining


def test_a_member_without_an_id_gets_one_and_joins_with_it() -> None:
    group = new_group()
    first = answers(join(group, joiner(1, new_id="a", needs_id=True)))[1]
    assert (first.error_code, first.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    assert group.state is GroupState.EMPTY

    assert answers(join(group, joiner(2, "a", needs_id=True))) == {}
    assert (list(group.members), group.pending) == (["a"], {})


def test_an_id_that_nobody_uses_is_forgotten_after_a_session() -> None:
    group = new_group()
    join(group, joiner(1, new_id="a", needs_id=True))
    assert group.wake_ms == NOW + SESSION_MS
    tick(group, NOW + SESSION_MS)
    assert group.pending == {}
    late = answers(join(group, joiner(2, "a", needs_id=True)))[2]
    assert late.error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_rebalance_waits_for_the_others() -> None:
    """Three seconds after the last newcomer, though not longer than the rebalance time-out."""
    group = new_group()
    join(group, joiner(1, new_id="a"), NOW)
    join(group, joiner(2, new_id="b"), NOW + 2000)
    assert answers(tick(group, NOW + 3000)) == {}
    assert answers(tick(group, NOW + 5999)) == {}
    joined = answers(tick(group, NOW + 6000))

    assert sorted(joined) == [1, 2]
    assert group.state is COMPLETING
    assert [member.member_id for member in joined[1].members] == ["a", "b"]
    assert (joined[1].leader, joined[1].generation_id) == ("a", 1)
    assert joined[2].members == (), "only the leader is told who is there"


def test_a_member_that_comes_alone_waits_for_others_once() -> None:
    group = new_group()
    join(group, joiner(1, new_id="a"), NOW)
    assert sorted(answers(tick(group, NOW + 3000))) == [1]


def test_newcomers_do_not_put_the_first_rebalance_off_for_ever() -> None:
    group = new_group()
    now_ms = NOW
    for token in range(100):
        join(group, joiner(token, new_id=f"m{token}"), now_ms)
        if answers(tick(group, now_ms + 2999)):
            break
        now_ms += 2999
    assert NOW + REBALANCE_MS <= now_ms + 2999 <= NOW + REBALANCE_MS + 3000
    assert group.state is COMPLETING


def test_a_later_rebalance_ends_when_all_have_joined_again() -> None:
    group = group_in(STABLE)
    assert answers(join(group, joiner(7, new_id="c"))) == {}
    assert beat(group, "a", NOW) is ErrorCode.REBALANCE_IN_PROGRESS
    assert answers(join(group, joiner(8, "b"))) == {}
    joined = answers(join(group, joiner(9, "a")))
    assert sorted(joined) == [7, 8, 9]
    assert group.generation == 2


def test_who_does_not_join_again_in_time_is_out() -> None:
    group = group_in(PREPARING, "a", "b", "c")
    join(group, joiner(7, "c"))
    for now_ms in range(NOW, NOW + REBALANCE_MS, 5000):
        beat(group, "b", now_ms)
        assert answers(tick(group, now_ms)) == {}
    joined = answers(tick(group, NOW + REBALANCE_MS))
    assert sorted(joined) == [7, 100]
    assert list(group.members) == ["a", "c"]


def test_the_next_member_leads_when_the_leader_is_gone() -> None:
    group = group_in(STABLE, "a", "b", "c")
    membership.leave(group, (MemberIdentity(member_id="a"),), CONFIG, NOW)
    join(group, joiner(1, "c"))
    joined = answers(join(group, joiner(2, "b")))
    assert joined[2].leader == "b"
    assert [member.member_id for member in joined[2].members] == ["b", "c"]


def test_a_rebalance_is_not_held_up_by_an_id_that_was_given_back() -> None:
    group = group_in(STABLE)
    join(group, joiner(1, new_id="c", needs_id=True))
    join(group, joiner(2, "a"))
    assert answers(join(group, joiner(3, "b"))) == {}, "c may be about to come"
    out, _ = membership.leave(group, (MemberIdentity(member_id="c"),), CONFIG, NOW)
    assert sorted(answers(out)) == [2, 3]


def test_a_request_that_is_sent_again_takes_the_place_of_the_first() -> None:
    group = group_in(PREPARING)
    again = answers(join(group, joiner(101, "a")))
    assert again[100].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert sorted(answers(join(group, joiner(102, "b")))) == [101, 102]


def test_a_full_group_takes_nobody_in() -> None:
    full = GroupConfig(max_size=2)
    group = group_in(STABLE)
    refused = answers(join(group, joiner(1, new_id="c"), config=full))[1]
    assert refused.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answers(join(group, joiner(2, "a"), config=full)) == {}
    assert group.state is PREPARING


def test_the_last_to_come_to_a_rebalance_is_too_many() -> None:
    full = GroupConfig(max_size=2)
    group = group_in(PREPARING)
    assert answers(join(group, joiner(1, new_id="c"), config=full)) == {}
    refused = answers(join(group, joiner(2, "b"), config=full))[2]
    assert refused.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_that_joins_again_says_anew_how_it_is_to_be_treated() -> None:
    group = group_in(PREPARING)
    first = joiner(1, "b", names=("sticky", "range"))
    request = replace_message(first.request, session_timeout_ms=7000, rebalance_timeout_ms=9000)
    join(group, replace(first, request=request))
    (_, stored) = group.stored().members
    assert (stored.session_timeout_ms, stored.rebalance_timeout_ms) == (7000, 9000)
    assert group.members["b"].protocols == request.protocols


def test_the_protocol_is_one_that_all_speak_and_most_prefer() -> None:
    group = new_group()
    join(group, joiner(1, new_id="a", names=("sticky", "range")))
    join(group, joiner(2, new_id="b", names=("range", "sticky", "own")))
    join(group, joiner(3, new_id="c", names=("own", "range", "sticky")))
    tick(group, NOW + 3000)
    joined = answers(tick(group, NOW + 6000))
    assert {body.protocol_name for body in joined.values()} == {"range"}


def test_members_may_speak_thousands_of_protocols_that_no_other_speaks() -> None:
    """Each with each, that would be a thousand million comparisons."""
    group = group_in(GroupState.EMPTY)
    join(group, joiner(1, new_id="a", names=("mine",) * 30_000))
    out = join(group, joiner(2, new_id="b", names=("yours",) * 30_000))
    assert answers(out)[2].error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_newcomer_that_hears_nothing_for_minutes_is_forgotten() -> None:
    """Its connection may be long gone, and nobody tells us."""
    group = group_in(PREPARING)
    join(group, joiner(1, new_id="c"))
    group.phase_deadline_ms = None  # a rebalance time-out longer than that
    now_ms = NOW + CONFIG.new_member_join_timeout_ms
    beat(group, "b", now_ms - 1)
    refused = answers(tick(group, now_ms))
    assert list(refused) == [1]
    assert refused[1].error_code is ErrorCode.UNKNOWN_MEMBER_ID


# --- assignments


def test_nobody_hears_of_an_assignment_before_it_is_committed() -> None:
    group = group_in(COMPLETING)
    assert answers(sync(group, 1, sync_request("b", 1))) == {}
    out = sync(group, 2, sync_request("a", 1, "a", "b"))
    assert answers(out) == {}
    assert out.stored is not None
    assert [(member.id, member.assignment) for member in out.stored.members] == [
        ("a", b"a"),
        ("b", b"b"),
    ]

    told = answers(syncing.assigned(group, out.stored, NOW))
    assert {token: body.assignment for token, body in told.items()} == {1: b"b", 2: b"a"}
    assert group.state is STABLE


def test_who_asks_late_is_told_at_once() -> None:
    group = group_in(COMPLETING)
    out = sync(group, 1, sync_request("a", 1, "a", "b"))
    assert out.stored is not None
    syncing.assigned(group, out.stored, NOW)
    assert answers(sync(group, 2, sync_request("b", 1)))[2].assignment == b"b"


def test_a_leader_assigns_once_in_a_generation() -> None:
    """Else members know the first assignment, and the next coordinator the second."""
    group = group_in(COMPLETING)
    out = sync(group, 1, sync_request("a", 1, "a", "b"))
    assert answers(join(group, joiner(2, "a")))[2].leader == "a", "it has heard nothing"
    assert sync(group, 3, sync_request("a", 1, "b", "a")).stored is None

    assert out.stored is not None
    told = answers(syncing.assigned(group, out.stored, NOW))
    assert {token: body.assignment for token, body in told.items()} == {3: b"a"}
    join(group, joiner(4, "a"))
    join(group, joiner(5, "b"))
    assert sync(group, 6, sync_request("a", 2, "b", "a")).stored is not None


def test_an_assignment_that_comes_too_late_is_dropped() -> None:
    group = group_in(COMPLETING)
    out = sync(group, 1, sync_request("a", 1, "a", "b"))
    assert out.stored is not None
    cancelled = answers(join(group, joiner(2, new_id="c")))
    assert cancelled[1].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert answers(syncing.assigned(group, out.stored, NOW)) == {}
    assert group.state is PREPARING
    assert group.members["b"].assignment == b""


def test_an_assignment_that_cannot_be_written_begins_another_rebalance() -> None:
    group = group_in(COMPLETING)
    sync(group, 1, sync_request("b", 1))
    out = sync(group, 2, sync_request("a", 1, "a", "b"))
    assert out.stored is not None
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    told = answers(syncing.assignment_failed(group, out.stored, error, CONFIG, NOW))
    assert {body.error_code for body in told.values()} == {error}
    assert group.state is PREPARING


def test_who_never_asks_for_its_assignment_is_out() -> None:
    group = group_in(COMPLETING)
    out = sync(group, 1, sync_request("a", 1, "a", "b"))
    assert out.stored is not None
    syncing.assigned(group, out.stored, NOW)
    for now_ms in range(NOW, NOW + 6000 + REBALANCE_MS, 5000):
        beat(group, "a", now_ms)
        beat(group, "b", now_ms)
        tick(group, now_ms)
    tick(group, NOW + 6000 + REBALANCE_MS)
    assert list(group.members) == ["a"]
    assert group.state is PREPARING


# --- sessions


def test_a_member_that_is_silent_for_its_session_is_out() -> None:
    group = group_in(STABLE)
    beat(group, "a", NOW + SESSION_MS - 1)
    assert group.wake_ms is not None
    assert group.wake_ms <= NOW + SESSION_MS
    tick(group, NOW + SESSION_MS)
    assert list(group.members) == ["a"]
    assert group.state is PREPARING


def test_a_member_that_waits_for_an_answer_of_ours_is_not_silent() -> None:
    group = group_in(PREPARING)
    beat(group, "a", NOW)
    beat(group, "b", NOW + SESSION_MS)
    tick(group, NOW + SESSION_MS + 1)
    assert list(group.members) == ["a", "b"]


def test_the_last_one_to_leave_leaves_an_empty_group() -> None:
    group = group_in(STABLE, "a")
    out, _ = membership.leave(group, (MemberIdentity(member_id="a"),), CONFIG, NOW)
    assert group.state is GroupState.EMPTY
    assert (group.generation, group.leader, group.protocol) == (2, None, None)
    assert out.stored is not None
    assert (out.stored.members, out.stored.protocol_type) == ((), "consumer")


def test_a_group_comes_back_from_its_record() -> None:
    group = group_in(STABLE)
    stored = group.stored({"a": b"a", "b": b"b"})
    again = restore("g", stored, NOW + 50_000)
    assert (again.state, again.generation, again.leader) == (STABLE, 1, "a")
    assert beat(again, "b", NOW + 50_000) is ErrorCode.NONE
    assert answers(sync(again, 1, sync_request("b", 1)))[1].assignment == b"b"
    tick(again, NOW + 50_000 + SESSION_MS)
    assert again.members == {}, "who is not heard within a session is out"


def test_an_answer_for_a_leader_has_what_the_others_said() -> None:
    group = group_in(COMPLETING)
    lost = answers(join(group, joiner(5, "a")))[5]
    assert isinstance(lost, JoinGroupResponse)
    assert [member.member_id for member in lost.members] == ["a", "b"]
    assert lost.generation_id == 1
