"""What each request meets in each state of a group: the table of Kafka's classic protocol."""

import pytest

from broker.groups import members as membership
from broker.groups import offsets
from broker.groups.describing import describe
from broker.groups.group import Group, GroupState
from tests.broker.groups.scenes import (
    CONFIG,
    NOW,
    group_in,
    join,
    joiner,
    sync,
    sync_request,
)
from wire.capabilities import NOTHING_LACKING, lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetCommitRequest
from wire.messages.groups import DescribeGroupsRequest, HeartbeatRequest, MemberIdentity

EMPTY, STABLE = GroupState.EMPTY, GroupState.STABLE
PREPARING = GroupState.PREPARING_REBALANCE
COMPLETING = GroupState.COMPLETING_REBALANCE
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID
ILLEGAL, REBALANCE = ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS
WAITS = None

# Member "a" leads, "b" follows; "x" was never there. In PREPARING, "a" has joined again.
TABLE: list[tuple[str, GroupState, str, ErrorCode | None, GroupState]] = [
    # A member joins with what it said before.
    ("join", EMPTY, "a", UNKNOWN, EMPTY),
    ("join", EMPTY, "", WAITS, PREPARING),
    ("join", PREPARING, "b", NONE, COMPLETING),
    ("join", PREPARING, "", WAITS, PREPARING),
    ("join", PREPARING, "x", UNKNOWN, PREPARING),
    ("join", COMPLETING, "a", NONE, COMPLETING),
    ("join", COMPLETING, "b", NONE, COMPLETING),
    ("join", COMPLETING, "", WAITS, PREPARING),
    ("join", COMPLETING, "x", UNKNOWN, COMPLETING),
    ("join", STABLE, "a", WAITS, PREPARING),
    ("join", STABLE, "b", NONE, STABLE),
    ("join", STABLE, "", WAITS, PREPARING),
    ("join", STABLE, "x", UNKNOWN, STABLE),
    # It joins with other protocols.
    ("join otherwise", PREPARING, "b", NONE, COMPLETING),
    ("join otherwise", COMPLETING, "b", WAITS, PREPARING),
    ("join otherwise", STABLE, "b", WAITS, PREPARING),
    # It speaks none that the others do.
    ("join foreign", EMPTY, "", WAITS, PREPARING),
    ("join foreign", PREPARING, "b", ErrorCode.INCONSISTENT_GROUP_PROTOCOL, PREPARING),
    ("join foreign", STABLE, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL, STABLE),
    # It asks for its assignment.
    ("sync", EMPTY, "a", UNKNOWN, EMPTY),
    ("sync", PREPARING, "a", REBALANCE, PREPARING),
    ("sync", COMPLETING, "a", WAITS, COMPLETING),
    ("sync", COMPLETING, "b", WAITS, COMPLETING),
    ("sync", COMPLETING, "x", UNKNOWN, COMPLETING),
    ("sync", STABLE, "b", NONE, STABLE),
    ("sync old", COMPLETING, "b", ILLEGAL, COMPLETING),
    ("sync old", STABLE, "b", ILLEGAL, STABLE),
    ("sync foreign", STABLE, "b", ErrorCode.INCONSISTENT_GROUP_PROTOCOL, STABLE),
    # It lives.
    ("heartbeat", EMPTY, "a", UNKNOWN, EMPTY),
    ("heartbeat", PREPARING, "b", REBALANCE, PREPARING),
    ("heartbeat", COMPLETING, "b", NONE, COMPLETING),
    ("heartbeat", STABLE, "b", NONE, STABLE),
    ("heartbeat", STABLE, "x", UNKNOWN, STABLE),
    ("heartbeat old", PREPARING, "b", ILLEGAL, PREPARING),
    ("heartbeat old", STABLE, "b", ILLEGAL, STABLE),
    # It leaves.
    ("leave", EMPTY, "a", UNKNOWN, EMPTY),
    ("leave", PREPARING, "b", NONE, COMPLETING),
    ("leave", PREPARING, "a", NONE, PREPARING),
    ("leave", COMPLETING, "b", NONE, PREPARING),
    ("leave", STABLE, "b", NONE, PREPARING),
    ("leave", STABLE, "x", UNKNOWN, STABLE),
    # It commits.
    ("commit", EMPTY, "a", UNKNOWN, EMPTY),
    ("commit", PREPARING, "b", NONE, PREPARING),
    ("commit", COMPLETING, "b", REBALANCE, COMPLETING),
    ("commit", STABLE, "b", NONE, STABLE),
    ("commit", STABLE, "x", UNKNOWN, STABLE),
    ("commit old", STABLE, "b", ILLEGAL, STABLE),
    ("commit alone", EMPTY, "", NONE, EMPTY),
    ("commit alone", PREPARING, "", UNKNOWN, PREPARING),
    ("commit alone", COMPLETING, "", UNKNOWN, COMPLETING),
    ("commit alone", STABLE, "", UNKNOWN, STABLE),
]

TOKEN = 1000


def send(request: str, group: Group, member_id: str) -> ErrorCode | None:
    """The error of the answer; None if there is no answer yet."""
    kind, _, how = request.partition(" ")
    generation = {"old": 0, "alone": -1}.get(how, 1)
    match kind:
        case "join":
            names = {"otherwise": ("range", "sticky"), "foreign": ("alien",)}.get(how, ("range",))
            who = joiner(TOKEN, member_id, new_id="" if member_id else "new", names=names)
            out = join(group, who)
        case "sync":
            protocol = "alien" if how == "foreign" else None
            out = sync(group, TOKEN, sync_request(member_id, generation, protocol=protocol))
        case "heartbeat":
            beat = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
            return membership.heartbeat(group, beat, NOW)
        case "leave":
            leaving = (MemberIdentity(member_id=member_id),)
            _, results = membership.leave(group, leaving, CONFIG, NOW)
            return results[0].error_code
        case _:
            commit = OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=generation,
                member_id=member_id,
                topics=(),
            )
            return offsets.check_commit(group, commit, NOTHING_LACKING)
    answers = dict(out.answers)
    if TOKEN not in answers:
        return WAITS
    body = answers[TOKEN]
    error = getattr(body, "error_code")  # noqa: B009  # of one of two answers
    assert isinstance(error, ErrorCode)
    return error


@pytest.mark.parametrize(("request_", "state", "member_id", "error", "after"), TABLE)
def test_request_meets_state(
    request_: str,
    state: GroupState,
    member_id: str,
    error: ErrorCode | None,
    after: GroupState,
) -> None:
    group = group_in(state)
    assert send(request_, group, member_id) is error
    assert group.state is after


@pytest.mark.parametrize("state", [EMPTY, PREPARING, COMPLETING, STABLE])
def test_nobody_waits_at_a_coordinator_that_is_gone(state: GroupState) -> None:
    group = group_in(state)
    waiting = [
        token
        for member in group.members.values()
        for token in (member.join_token, member.sync_token)
        if token is not None
    ]
    out = membership.close(group, ErrorCode.NOT_COORDINATOR, NOW)
    assert group.state is GroupState.DEAD
    assert sorted(token for token, _ in out.answers) == sorted(waiting)


def test_a_group_that_does_not_exist_is_no_group_of_members() -> None:
    def check(generation: int, api_version: int) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=generation, member_id="", topics=()
        )
        return offsets.check_commit(None, request, lacking(OffsetCommitRequest, api_version))

    assert check(-1, 9) is NONE
    assert check(3, 9) is ErrorCode.GROUP_ID_NOT_FOUND
    assert check(3, 8) is ILLEGAL


def test_tools_see_assignments_during_a_rebalance_and_subscriptions_after_it() -> None:
    for state, is_settled in ((STABLE, True), (PREPARING, False)):
        request = DescribeGroupsRequest(groups=("g",))
        described = describe("g", group_in(state), request, NOTHING_LACKING)
        assert described.protocol_data == ("range" if is_settled else "")
        (first, _) = described.members
        assert (first.client_id, first.client_host) == ("client", "/127.0.0.1")
        assert (first.member_assignment, bool(first.member_metadata)) == (b"a", is_settled)
