"""Groups of KIP-848 in simulated clusters, and what the judge says of what members are told."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.groups.coordinator import Coordinator
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.assemblies.cluster.invariants.consumer_invariants import ConsumerInvariants
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import Watched
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from quorum.core.effects import Request
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    AssignedPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberAssignment,
    OwnedPartitions,
)
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_ID = UUID(int=1)
GROUP = "g"
PLACE = ("orders", 0)


class Serving(Coordinator):
    offsets: Any = None  # a property of a whole coordinator

    def __init__(self, consumers: Any, offsets: Any) -> None:
        self.leader_epoch = 1
        self.consumers = consumers
        self.offsets = offsets


class Stage:
    """A judge, and a coordinator that serves one group with these members."""

    def __init__(self, *members: str) -> None:
        group = SimpleNamespace(members=dict.fromkeys(members))
        consumers = SimpleNamespace(groups={GROUP: group})
        self.committed: dict[str, dict[tuple[str, int], Any]] = {GROUP: {}}
        self.coordinator = Serving(consumers, SimpleNamespace(committed=self.committed))
        self.members = group.members
        self.moment = 0
        partitions = PartitionInvariants(
            moment=lambda: 0,
            hosts={},
            broker_of=lambda _node: None,
            metadata=MetadataInvariants(lambda: 0),
        )
        state = cast(Any, SimpleNamespace(leader_epoch=1))
        partitions.watched[TOPIC_ID, 0] = Watched("__consumer_offsets-0", state)
        broker = SimpleNamespace(coordinators=SimpleNamespace(find=lambda _group: self.coordinator))
        self.judge = ConsumerInvariants(
            lambda _host: cast(Any, broker), partitions, lambda: self.moment, lambda _kind: None
        )
        self.host = cast(Host, SimpleNamespace(node_id=1))
        self.judge._serving_before[1] = (self.coordinator,)

    def beats(self, member: str, owned: list[int] | None, given: list[int] | None) -> None:
        """A heartbeat comes, and is answered."""
        request = self.says(member, owned)
        assignment = None
        if given is not None:
            place = AssignedPartitions(topic_id=TOPIC_ID, partitions=tuple(given))
            assignment = MemberAssignment(topic_partitions=(place,))
        answer = ConsumerGroupHeartbeatResponse(member_epoch=1, assignment=assignment)
        self.judge.replying(self.host, 1, request, answer)

    def says(self, member: str, owned: list[int] | None) -> ConsumerGroupHeartbeatRequest:
        places = OwnedPartitions(topic_id=TOPIC_ID, partitions=tuple(owned or ()))
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=1,
            topic_partitions=None if owned is None else (places,),
        )
        self.judge.received(self.host, Request(token=1, body=request))
        return request


def test_partition_goes_on_once_it_is_given_back() -> None:
    stage = Stage("a", "b")
    stage.beats("a", [], [0, 1])
    stage.beats("a", [0, 1], [1])
    with pytest.raises(Violation, match=r"G-OWN.*\[0\] is given to b, and a has \[0, 1\]"):
        stage.beats("b", [], [0])
    stage.says("a", [1])
    stage.beats("b", [], [0])


def test_what_a_member_had_is_free_when_it_is_none_any_more() -> None:
    stage = Stage("a", "b")
    stage.beats("a", [], [0])
    del stage.members["a"]
    stage.beats("b", [], [0])


def test_member_has_what_it_was_given_though_it_has_not_said_so() -> None:
    stage = Stage("a", "b")
    stage.beats("a", [], [0])
    stage.beats("a", None, None)
    with pytest.raises(Violation, match="G-OWN"):
        stage.beats("b", [], [0])


@pytest.mark.parametrize(("member", "error"), [("a", "NONE"), ("x", "UNKNOWN_MEMBER_ID")])
def test_commit_of_a_member_or_refused(member: str, error: str) -> None:
    commits(Stage("a"), member, ErrorCode[error])


def test_commit_of_who_is_no_member() -> None:
    with pytest.raises(Violation, match="G-MEM"):
        commits(Stage("a"), "x", ErrorCode.NONE)


def commits(stage: Stage, member: str, error: ErrorCode) -> None:
    request = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=1, member_id=member, topics=()
    )
    stage.judge.received(stage.host, Request(token=2, body=request))
    place = OffsetCommitResponsePartition(partition_index=0, error_code=error)
    topic = OffsetCommitResponseTopic(name="orders", partitions=(place,))
    stage.judge.replying(stage.host, 2, request, OffsetCommitResponse(topics=(topic,)))


@pytest.mark.parametrize(
    ("known", "is_right"), [(None, False), (1, False), (2, True), (3, True), (4, True), (5, False)]
)
def test_later_coordinator_has_the_last_acknowledged_commit_or_one_that_may_be_later(
    known: int | None, is_right: bool
) -> None:
    """1 was over when 2 was sent; 3 was sent before 2 was answered; 4 was never answered."""
    stage = Stage("a")
    one = stage.judge.sends(GROUP, PLACE, 1)
    stage.moment = 1
    stage.judge.is_answered(one, ErrorCode.NONE)
    stage.moment = 2
    two = stage.judge.sends(GROUP, PLACE, 2)
    three = stage.judge.sends(GROUP, PLACE, 3)
    stage.judge.sends(GROUP, PLACE, 4)
    stage.moment = 3
    for each in (two, three):
        stage.judge.is_answered(each, ErrorCode.NONE)
    stage.coordinator.leader_epoch = 2
    if known is not None:
        stage.committed[GROUP][PLACE] = SimpleNamespace(offset=known)
    if is_right:
        stage.judge._has_loaded(stage.host, stage.coordinator)
        return
    with pytest.raises(Violation, match="D-GRP"):
        stage.judge._has_loaded(stage.host, stage.coordinator)


@pytest.mark.parametrize(
    "seed", [5, *(pytest.param(each, marks=pytest.mark.extra) for each in (3, 36))]
)
def test_shipped_rules_hold_on_seeds(seed: int) -> None:
    """Two were judged wrongly. 3: a coordinator lost its leadership before it had answered what it
    had written; 36: a client whose heartbeat had no answer did not ask for everything again."""
    outcome = run_cluster(seed, wants=frozenset({"consumers"}))
    assert outcome.kind == "ok", outcome
    assert outcome.faults["partitions_assigned"] > 0
    assert outcome.faults["consumer_committed"] > 0
