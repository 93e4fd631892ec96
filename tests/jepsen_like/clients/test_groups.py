"""A member of groups: how it joins, and when it says that nothing was committed."""

from random import Random

import pytest

from jepsen_like.clients.groups import Groups
from jepsen_like.clients.steps import Ask, Leaders
from jepsen_like.histories.history import Kind
from jepsen_like.workloads.workload import Done
from tests.jepsen_like.clients.played import Played
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from wire.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)

GROUP = "readers"


class Script:
    """A coordinator, node 2, that answers in this order."""

    def __init__(self, *answers: object) -> None:
        self.left = list(answers)
        self.played = Played(self.answer)
        self.groups = Groups(
            leaders=Leaders((1, 2), Random(1), timeout_ms=100, backoff_ms=10),
            clock=self.played.clock,
            timeout_ms=900,
            request_timeout_ms=300,
        )

    def answer(self, asked: Ask) -> object:
        if isinstance(asked.body, FindCoordinatorRequest):
            return FindCoordinatorResponse(coordinators=(FoundCoordinator(key=GROUP, node_id=2),))
        assert asked.node == 2
        return self.left.pop(0)

    def join(self) -> Done:
        return self.played.play(self.groups.join(GROUP))

    def commit(self) -> Done:
        return self.played.play(self.groups.commit(GROUP, {"a-0": 7}))

    @property
    def asked(self) -> list[object]:
        bodies = [each.body for each in self.played.asked]
        return [each for each in bodies if not isinstance(each, FindCoordinatorRequest)]


def committed(code: ErrorCode = ErrorCode.NONE) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(
        topics=(OffsetCommitResponseTopic(name="a", partitions=(partition,)),)
    )


JOINED = (
    JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"),
    JoinGroupResponse(generation_id=4, member_id="m", leader="m"),
    SyncGroupResponse(),
)


def test_who_is_told_that_others_join_comes_back_as_the_member_it_was() -> None:
    script = Script(
        *JOINED[:2],
        SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
        JoinGroupResponse(generation_id=5, member_id="m", leader="m"),
        SyncGroupResponse(),
    )
    refused, joined = script.join(), script.join()
    assert (refused.kind, refused.error) == (Kind.FAIL, "REBALANCE_IN_PROGRESS")
    assert joined.extra == {"generation": 5}
    joins = [each.member_id for each in script.asked if isinstance(each, JoinGroupRequest)]
    assert joins == ["", "m", "m"]


def test_member_joins_with_the_id_that_it_is_given_and_commits_with_its_generation() -> None:
    script = Script(*JOINED, HeartbeatResponse(), committed())
    assert script.join().extra == {"generation": 4}
    done = script.commit()
    assert (done.kind, done.value, done.extra) == (Kind.OK, {"a-0": 7}, {"generation": 4})
    first, second, _, heartbeat, commit = script.asked
    assert isinstance(first, JoinGroupRequest)
    assert isinstance(second, JoinGroupRequest)
    assert (first.member_id, second.member_id) == ("", "m")
    assert isinstance(heartbeat, HeartbeatRequest)
    assert isinstance(commit, OffsetCommitRequest)
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("m", 4)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (committed(ErrorCode.ILLEGAL_GENERATION), Kind.FAIL),
        (committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), Kind.FAIL),
        (committed(ErrorCode.NOT_COORDINATOR), Kind.INFO),
        (committed(ErrorCode.COORDINATOR_NOT_AVAILABLE), Kind.INFO),
        (None, Kind.INFO),
    ],
)
def test_commit_has_failed_only_if_nothing_was_written_and_is_asked_once(
    answer: object, kind: Kind
) -> None:
    script = Script(answer)
    done = script.commit()
    assert done.kind is kind
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    "answer", [HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), None]
)
def test_who_is_no_member_any_more_does_not_commit(answer: object) -> None:
    script = Script(*JOINED, answer)
    script.join()
    assert script.commit().kind is Kind.FAIL
    assert not any(isinstance(each, OffsetCommitRequest) for each in script.asked)


def test_what_is_committed_is_told_with_who_told_it() -> None:
    rows = (
        OffsetFetchResponsePartitions(partition_index=0, committed_offset=7),
        OffsetFetchResponsePartitions(partition_index=1),
    )
    topics = (OffsetFetchResponseTopics(name="a", partitions=rows),)
    script = Script(OffsetFetchResponse(groups=(OffsetFetchResponseGroup(topics=topics),)))
    done = script.played.play(script.groups.committed(GROUP, ["a-0", "a-1"]))
    assert (done.value, done.extra) == ({"a-0": 7, "a-1": None}, {"node": 2})
