"""Static members: what they keep when their process is started again, and who is fenced."""

from typing import Any

import pytest

from broker.config import GroupConfig
from broker.groups import members as membership
from broker.groups import offsets, static, syncing
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
from wire.capabilities import NOTHING_LACKING
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.group_offsets import OffsetCommitRequest
from wire.messages.groups import HeartbeatRequest, MemberIdentity

STABLE = GroupState.STABLE
PREPARING = GroupState.PREPARING_REBALANCE
COMPLETING = GroupState.COMPLETING_REBALANCE
NONE, FENCED = ErrorCode.NONE, ErrorCode.FENCED_INSTANCE_ID
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def answers(out: Outcome) -> dict[int, Any]:
    assert len(dict(out.answers)) == len(out.answers), "each request has one answer"
    return dict(out.answers)


def returns(group: Group, instance_id: str, new_id: str, token: int = 7, **how: Any) -> Outcome:
    return join(group, joiner(token, new_id=new_id, instance_id=instance_id, needs_id=True, **how))


def concluded(group: Group, out: Outcome, error: ErrorCode = NONE) -> dict[int, Any]:
    """The write of the new member id is over."""
    assert out.replacement is not None
    return answers(static.replacement_stored(group, out.replacement, error, NOW))


def beat(group: Group, member_id: str, instance_id: str | None, now_ms: int = NOW) -> ErrorCode:
    request = HeartbeatRequest(
        group_id="g",
        generation_id=group.generation,
        member_id=member_id,
        group_instance_id=instance_id,
    )
    return membership.heartbeat(group, request, now_ms)


def leave(group: Group, *members: tuple[str, str | None]) -> tuple[Outcome, list[ErrorCode]]:
    leaving = tuple(MemberIdentity(member_id=id_, group_instance_id=inst) for id_, inst in members)
    out, results = membership.leave(group, leaving, CONFIG, NOW)
    return out, [result.error_code for result in results]


# --- joining


def test_a_static_member_joins_without_an_id_given_first() -> None:
    group = Group(id="g", state_since_ms=NOW)
    assert answers(returns(group, "A", "a")) == {}
    assert (list(group.members), group.pending) == (["a"], {})
    assert group.members["a"].instance_id == "A"


def test_the_leader_is_told_the_instance_ids() -> None:
    group = Group(id="g", state_since_ms=NOW)
    join(group, joiner(1, new_id="a", instance_id="A"))
    join(group, joiner(2, new_id="b"))
    tick(group, NOW + 3000)
    told = answers(tick(group, NOW + 6000))[1].members
    assert [(member.member_id, member.group_instance_id) for member in told] == [
        ("a", "A"),
        ("b", None),
    ]


def test_an_id_given_to_a_dynamic_member_is_no_static_member() -> None:
    group = group_in(STABLE, static=True)
    join(group, joiner(1, new_id="d", needs_id=True))
    for instance_id, error in (("A", FENCED), ("D", UNKNOWN)):
        out = answers(join(group, joiner(2, "d", instance_id=instance_id)))
        assert out[2].error_code is error
    assert (group.state, list(group.members)) == (STABLE, ["a", "b"])


def test_an_instance_id_that_is_not_known_belongs_to_nobody() -> None:
    group = group_in(STABLE, static=True)
    assert answers(join(group, joiner(1, "x", instance_id="X")))[1].error_code is UNKNOWN
    assert beat(group, "a", "X") is UNKNOWN


# --- a process that has been started again


def test_a_member_that_comes_back_keeps_its_place_without_a_rebalance() -> None:
    group = group_in(STABLE, "a", "b", "c", static=True)
    out = returns(group, "B", "b2")
    assert (group.state, group.generation) == (STABLE, 1)
    assert list(group.members) == ["a", "b2", "c"]
    assert out.stored is not None
    stored = [(member.id, member.instance_id, member.assignment) for member in out.stored.members]
    assert stored == [("a", "A", b"a"), ("b2", "B", b"b"), ("c", "C", b"c")]
    assert answers(out) == {}, "nobody hears of an id that the next coordinator may not know"

    told = concluded(group, out)[7]
    assert (told.error_code, told.member_id, told.generation_id) == (NONE, "b2", 1)
    assert (told.leader, told.members, told.skip_assignment) == ("a", (), False)
    assert beat(group, "a", "A") is NONE, "the others notice nothing"
    request = sync_request("b2", 1, instance_id="B")
    assert answers(sync(group, 8, request))[8].assignment == b"b"


@pytest.mark.parametrize(
    ("can_skip", "leader", "member_ids"), [(True, "a2", ["a2", "b"]), (False, "a", [])]
)
def test_a_leader_that_comes_back_does_not_assign(
    can_skip: bool, leader: str, member_ids: list[str]
) -> None:
    """Before JoinGroup 9 it takes itself for a follower, since another id is said to lead."""
    group = group_in(STABLE, static=True)
    told = concluded(group, returns(group, "A", "a2", can_skip=can_skip))[7]
    assert (told.member_id, told.leader, told.skip_assignment) == ("a2", leader, can_skip)
    assert [member.member_id for member in told.members] == member_ids
    assert group.leader == "a2"


def test_the_old_member_id_is_fenced() -> None:
    group = group_in(STABLE, static=True)
    concluded(group, returns(group, "A", "a2"))
    assert beat(group, "a", "A") is FENCED
    assert beat(group, "a", None) is UNKNOWN
    assert answers(join(group, joiner(1, "a", instance_id="A")))[1].error_code is FENCED
    assert answers(sync(group, 2, sync_request("a", 1, instance_id="A")))[2].error_code is FENCED
    commit = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=1,
        member_id="a",
        group_instance_id="A",
        topics=(),
    )
    assert offsets.check_commit(group, commit, NOTHING_LACKING) is FENCED
    assert offsets.check_commit(group, replace(commit, member_id="a2"), NOTHING_LACKING) is NONE
    assert leave(group, ("a", "A"))[1] == [FENCED]
    assert (group.state, list(group.members)) == (STABLE, ["a2", "b"])


def test_the_old_process_waits_no_longer() -> None:
    group = group_in(PREPARING, static=True)
    told = answers(returns(group, "A", "a2"))
    assert (told[100].error_code, told[100].member_id) == (FENCED, "a")

    group = group_in(COMPLETING, static=True)
    sync(group, 5, sync_request("b", 1, instance_id="B"))
    assert answers(returns(group, "B", "b2"))[5].error_code is FENCED


def test_a_member_that_comes_back_during_a_rebalance_takes_part_in_it() -> None:
    group = group_in(PREPARING, static=True)  # "a" has joined again
    told = answers(returns(group, "B", "b2"))
    assert (group.state, group.generation) == (COMPLETING, 2)
    assert (told[7].member_id, told[7].generation_id) == ("b2", 2)
    assert [member.member_id for member in told[100].members] == ["a", "b2"]


def test_a_member_that_comes_back_while_the_leader_assigns_begins_a_rebalance() -> None:
    """The leader assigns to the old member id: the new one would get nothing."""
    group = group_in(COMPLETING, static=True)
    leaders = sync(group, 5, sync_request("a", 1, "a", "b", instance_id="A"))
    out = returns(group, "B", "b2")
    assert answers(out)[5].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert (group.state, out.stored) == (PREPARING, None)
    assert leaders.stored is not None
    assert answers(syncing.assigned(group, leaders.stored, NOW)) == {}, "of an earlier generation"


def test_a_change_of_the_common_protocol_begins_a_rebalance() -> None:
    group = group_in(STABLE, static=True)
    both = ("range", "sticky")
    for id_, out in (("a2", returns(group, "A", "a2", names=both)), ("b2", None)):
        concluded(group, out or returns(group, "B", id_, names=both))
    assert (group.state, group.protocol) == (STABLE, "range")
    out = returns(group, "A", "a3", names=("sticky",))
    assert (group.state, out.stored, answers(out)) == (PREPARING, None, {})
    assert beat(group, "b2", "B") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_full_group_has_room_for_a_member_that_comes_back() -> None:
    group = group_in(STABLE, static=True)
    full = GroupConfig(max_size=2)
    out = join(group, joiner(7, new_id="b2", instance_id="B"), config=full)
    assert concluded(group, out)[7].error_code is NONE
    out = join(group, joiner(8, new_id="c", instance_id="C"), config=full)
    assert answers(out)[8].error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


# --- the new id in the log


def test_a_new_id_that_cannot_be_stored_leaves_the_old_one() -> None:
    group = group_in(STABLE, static=True)
    out = returns(group, "A", "a2", names=("range", "sticky"))
    told = concluded(group, out, ErrorCode.COORDINATOR_NOT_AVAILABLE)[7]
    assert (told.error_code, told.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert (told.leader, told.generation_id) == ("a", 1)
    assert (group.leader, list(group.members)) == ("a", ["a", "b"])
    assert [protocol.name for protocol in group.members["a"].protocols] == ["range"]
    assert beat(group, "a", "A") is NONE
    assert beat(group, "a2", "A") is FENCED
    tick(group, NOW + SESSION_MS)
    assert "a" not in group.members, "its session goes on, and may end"


def test_the_session_is_not_counted_while_the_new_id_is_stored() -> None:
    group = group_in(STABLE, static=True)
    out = returns(group, "B", "b2")
    beat(group, "a", "A", NOW + SESSION_MS - 1)
    tick(group, NOW + SESSION_MS)
    assert concluded(group, out)[7].error_code is NONE


@pytest.mark.parametrize("error", [NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_rebalance_that_begins_meanwhile_answers_the_member(error: ErrorCode) -> None:
    group = group_in(STABLE, static=True)
    out = returns(group, "B", "b2")
    told = answers(join(group, joiner(9, "a", instance_id="A")))
    assert (told[7].member_id, told[7].generation_id) == ("b2", 2)
    assert concluded(group, out, error) == {}
    assert list(group.members) == ["a", "b2"]


def test_of_two_processes_that_come_back_the_later_one_stays() -> None:
    group = group_in(STABLE, static=True)
    first = returns(group, "B", "b2", 7)
    second = returns(group, "B", "b3", 8)
    assert answers(second)[7].error_code is FENCED
    assert concluded(group, first) == {}
    assert concluded(group, second)[8].member_id == "b3"
    assert beat(group, "b2", "B") is FENCED


def test_the_next_coordinator_knows_the_instance_ids() -> None:
    group = group_in(STABLE, static=True)
    out = returns(group, "A", "a2")
    assert out.stored is not None
    next_group = restore("g", out.stored, NOW)
    assert beat(next_group, "a", "A") is FENCED
    assert beat(next_group, "a2", "A") is NONE
    again = concluded(next_group, returns(next_group, "B", "b2"))
    assert (again[7].member_id, next_group.state) == ("b2", STABLE)


# --- members that are away


def test_a_rebalance_keeps_a_static_member_that_is_away() -> None:
    group = group_in(PREPARING, static=True)  # "a" has joined again, "b" is away
    group.members["b"].session_timeout_ms = 2 * REBALANCE_MS
    beat(group, "b", "B", NOW)
    told = answers(tick(group, NOW + REBALANCE_MS))[100]
    assert [member.member_id for member in told.members] == ["a", "b"]
    assert (group.state, group.generation) == (COMPLETING, 2)


def test_a_leader_that_is_away_does_not_lead() -> None:
    group = group_in(STABLE, static=True)
    group.members["a"].session_timeout_ms = 2 * REBALANCE_MS
    beat(group, "a", "A", NOW)
    join(group, joiner(9, "b", names=("range", "sticky"), instance_id="B"))
    told = answers(tick(group, NOW + REBALANCE_MS))[9]
    assert (told.leader, group.leader) == ("b", "b")
    assert [member.member_id for member in told.members] == ["a", "b"]


def test_a_rebalance_that_no_member_joins_goes_on_until_their_sessions_end() -> None:
    group = group_in(STABLE, static=True)
    for id_ in ("a", "b"):
        group.members[id_].session_timeout_ms = 3 * REBALANCE_MS
        beat(group, id_, id_.upper(), NOW)
    join(group, joiner(9, new_id="d"))
    leave(group, ("d", None))
    assert answers(tick(group, NOW + REBALANCE_MS)) == {}
    assert (group.state, list(group.members)) == (PREPARING, ["a", "b"])
    assert group.wake_ms == NOW + 2 * REBALANCE_MS
    tick(group, NOW + 2 * REBALANCE_MS)
    out = tick(group, NOW + 3 * REBALANCE_MS)
    assert (group.state, group.members) == (GroupState.EMPTY, {})
    assert out.stored is not None


def test_a_static_member_whose_session_ends_is_removed() -> None:
    group = group_in(STABLE, static=True)
    beat(group, "a", "A", NOW + 1)
    tick(group, NOW + SESSION_MS)
    assert (group.state, list(group.members)) == (PREPARING, ["a"])
    assert beat(group, "b", "B", NOW + SESSION_MS) is UNKNOWN


def test_a_member_that_comes_back_must_ask_for_its_assignment_as_the_old_one_had_to() -> None:
    group = group_in(STABLE, static=True)
    group.unsynced["b"] = None
    group.phase_deadline_ms = NOW + 10
    out = returns(group, "B", "b2")
    assert list(group.unsynced) == ["b2"]
    told = answers(tick(group, NOW + 10))
    assert told[7].error_code is UNKNOWN, "its time is over before the new id is stored"
    assert concluded(group, out) == {}


# --- leaving


def test_an_administrator_removes_members_by_their_instance_ids() -> None:
    group = group_in(STABLE, "a", "b", "c", static=True)
    _, errors = leave(group, ("", "A"), ("", "X"), ("x", "B"), ("", None), ("c", "C"), ("", "A"))
    assert errors == [NONE, UNKNOWN, FENCED, UNKNOWN, NONE, UNKNOWN]
    assert (group.state, list(group.members)) == (PREPARING, ["b"])
    assert list(group.static_ids) == ["B"]


def test_a_rebalance_that_goes_on_is_not_due_at_once() -> None:
    """Or the broker would do nothing else: members may give no time at all to join again."""
    group = group_in(STABLE, "a", "b", "c", static=True)
    for member in group.members.values():
        member.rebalance_timeout_ms = 0
    leave(group, ("c", "C"))
    tick(group, NOW)
    assert (group.state, list(group.members)) == (PREPARING, ["a", "b"])
    assert group.wake_ms is not None
    assert group.wake_ms > NOW
