"""Heartbeats: who gets what, who waits for whom, and who is fenced."""

from dataclasses import replace as with_changes
from typing import Any

import pytest

from broker.groups.consumer.beating import Beaten, follow_patterns
from broker.groups.consumer.consumer_group import ConsumerGroupState
from broker.groups.consumer.consumer_values import (
    MemberState,
    PatternChange,
    Resolved,
    SubscriptionChange,
)
from broker.groups.consumer.heartbeat_checks import Refusal, request_refusal
from broker.groups.consumer.member_sessions import Sessions
from broker.groups.consumer.topic_patterns import SLICE_MS
from tests.broker.groups.consumer.consumer_scenes import CONFIG, Scene, Topics, places, request
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest

ASSIGNORS = ("uniform", "range")


def refused(out: Beaten | Refusal) -> ErrorCode:
    assert isinstance(out, Refusal), out
    return out.error


def test_first_member_gets_everything_at_once() -> None:
    scene = Scene()
    scene.beat("a")
    assert scene.owned["a"] == places("t", 0, 1, 2, 3)
    assert (scene.group.epoch, scene.group.assignment_epoch, scene.epochs["a"]) == (1, 1, 1)
    assert scene.group.state is ConsumerGroupState.STABLE


def test_second_member_waits_until_the_first_has_given_back() -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat("b")
    assert (scene.owned["b"], scene.epochs["b"]) == (frozenset(), 2)
    assert scene.group.members["b"].current.state is MemberState.UNRELEASED_PARTITIONS
    scene.beat("a")  # it is told to give back, and stays in its epoch
    assert (len(scene.owned["a"]), scene.epochs["a"]) == (2, 1)
    scene.beat("b")
    assert scene.owned["b"] == frozenset()
    scene.beat("a")  # it has given back
    assert scene.epochs["a"] == 2
    scene.beat("b")
    assert scene.owned["a"] | scene.owned["b"] == places("t", 0, 1, 2, 3)
    assert scene.group.state is ConsumerGroupState.STABLE


def test_heartbeat_that_changes_nothing_writes_nothing_and_tells_nothing() -> None:
    scene = Scene()
    scene.beat("a")
    out = scene.beat("a")
    assert isinstance(out, Beaten)
    assert (out.draft.changes, out.tells_assignment) == ([], False)


def test_member_that_has_not_heard_its_epoch_is_told_again() -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat("b")
    scene.settle()
    scene.leave("b")
    scene.beat("a", is_lost=True)  # it has all of them, and does not know it
    assert scene.epochs["a"] == 2
    out = scene.beat("a")
    assert isinstance(out, Beaten)
    assert scene.epochs["a"] == 3


@pytest.mark.parametrize(
    ("epoch", "owned"),
    [(9, ()), (0x7FFFFFFF, ()), (1, places("t", 0, 1, 2, 3))],
    ids=["later", "latest", "earlier, with what is not its own"],
)
def test_member_of_another_epoch_is_fenced(epoch: int, owned: Any) -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat("b")
    scene.settle()
    assert refused(scene.send("a", epoch, owned)) is ErrorCode.FENCED_MEMBER_EPOCH


def test_stranger_is_unknown() -> None:
    scene = Scene()
    scene.beat("a")
    assert refused(scene.send("b", 1, ())) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(scene.send("b", 1, (), instance_id="i")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_full_group_takes_nobody_but_its_members() -> None:
    scene = Scene(config=with_changes(CONFIG, consumer_max_size=1))
    scene.beat("a")
    assert refused(scene.beat("b")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert isinstance(scene.beat("a"), Beaten)


def test_static_member_gets_back_what_it_had_without_a_new_epoch() -> None:
    scene = Scene()
    scene.beat("a", instance_id="i")
    scene.beat("b")
    scene.settle()
    before, epoch = scene.owned["a"], scene.group.epoch
    assert refused(scene.send("c", 0, (), instance_id="i")) is ErrorCode.UNRELEASED_INSTANCE_ID
    scene.leave("a", -2, "i")
    assert scene.group.members["a"].epoch == -2
    scene.beat("c", instance_id="i")
    assert (scene.owned["c"], scene.group.epoch) == (before, epoch)
    assert list(scene.group.members) == ["b", "c"]
    assert refused(scene.send("a", 2, (), instance_id="i")) is ErrorCode.FENCED_INSTANCE_ID


def test_those_who_stay_get_what_a_member_had() -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat("b")
    scene.settle()
    scene.expire("b")
    assert (scene.group.epoch, scene.group.state) == (3, ConsumerGroupState.ASSIGNING)
    scene.beat("a")
    assert scene.owned["a"] == places("t", 0, 1, 2, 3)


def test_topics_that_come_grow_and_go_raise_the_epoch() -> None:
    scene = Scene(Topics(t=1, other=1))
    scene.beat("a", subscribed_topic_names=("t", "later"))
    scene.topics.counts["unrelated"] = 1
    scene.beat("a")
    assert scene.group.epoch == 1
    scene.topics.counts["t"] = 2
    scene.beat("a")
    assert (scene.group.epoch, scene.owned["a"]) == (2, places("t", 0, 1))
    scene.topics.counts["later"] = 1
    scene.beat("a")
    assert scene.owned["a"] == places("t", 0, 1) | places("later", 0)
    del scene.topics.counts["t"]
    scene.settle()
    assert scene.owned["a"] == places("later", 0)


def test_pattern_matches_whole_names_as_topics_come_and_goes_with_its_last_member() -> None:
    scene = Scene(Topics(ab=1, abc=1, b=1))
    scene.beat("a", subscribed_topic_names=None, subscribed_topic_regex="a.")
    assert scene.owned["a"] == places("ab", 0)
    scene.topics.counts["ax"] = 1
    scene.beat("a")
    assert scene.owned["a"] == places("ab", 0) | places("ax", 0)
    assert scene.group.patterns["a."].topics == ("ab", "ax")
    scene.leave("a")
    assert scene.group.patterns == {}


def test_members_are_answered_while_many_topics_are_still_being_matched() -> None:
    scene = Scene(Topics(ab=1, **{f"t{number}": 1 for number in range(8000)}))
    out = scene.beat("a", subscribed_topic_names=None, subscribed_topic_regex="a.")
    assert isinstance(out, Beaten)
    assert out.draft.is_matching
    assert (scene.group.epoch, scene.owned["a"]) == (1, frozenset())
    later = with_changes(scene.given, is_stale=True, now_ms=scene.given.now_ms + SLICE_MS)
    draft = follow_patterns(scene.group, later)
    assert (draft.is_matching, draft.group.epoch) == (False, 2)
    assert draft.group.patterns["a."].topics == ("ab",)


def test_those_who_join_soon_after_an_assignment_wait_for_the_next() -> None:
    scene = Scene(assignment_interval_ms=1000)
    scene.beat("a")
    scene.now_ms += 999
    scene.beat("b")
    assert (scene.group.epoch, scene.group.assignment_epoch, scene.epochs["b"]) == (2, 1, 1)
    assert scene.owned == {"a": places("t", 0, 1, 2, 3), "b": frozenset()}
    scene.now_ms += 1
    scene.beat("a")
    assert scene.group.assignment_epoch == 2
    assert len(scene.owned["a"]) == 2


def test_what_a_member_does_not_want_any_more_it_gives_back_before_the_next_assignment() -> None:
    scene = Scene(Topics(t=2, u=2), assignment_interval_ms=1000)
    both, left = ("t", "u"), ("t",)
    scene.beat("a", subscribed_topic_names=both)
    out = scene.beat("a", subscribed_topic_names=left)
    assert isinstance(out, Beaten)
    assert (scene.group.epoch, scene.group.assignment_epoch) == (2, 1)
    assert scene.owned["a"] == places("t", 0, 1)
    current = scene.group.members["a"].current
    assert (current.state, current.epoch) == (MemberState.UNREVOKED_PARTITIONS, 1)
    assert current.revoking.keys() == places("u", 0, 1)
    everything = places("t", 0, 1) | places("u", 0, 1)
    scene.send("a", 1, everything, subscribed_topic_names=())  # before it has given back the other
    assert scene.group.members["a"].current.revoking.keys() == everything
    scene.beat("a")  # it has given back all
    assert (scene.owned["a"], scene.epochs["a"]) == (frozenset(), 1)
    assert scene.group.members["a"].current.state is MemberState.STABLE


def test_who_gives_back_and_leaves_a_topic_gives_back_that_as_well() -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat("b")
    scene.beat("a")  # it is told to give back two
    assert len(scene.group.members["a"].current.revoking) == 2
    scene.send("a", 1, places("t", 0, 1, 2, 3), subscribed_topic_names=())
    assert scene.group.epoch == scene.group.assignment_epoch
    assert scene.group.members["a"].current.revoking.keys() == places("t", 0, 1, 2, 3)


def test_what_a_member_has_left_and_given_back_is_free_at_once() -> None:
    scene = Scene(Topics(t=1, u=1), assignment_interval_ms=1000)
    scene.beat("a", subscribed_topic_names=("t", "u"))
    scene.send("a", 1, places("t", 0), subscribed_topic_names=("t",))
    current = scene.group.members["a"].current
    assert (current.state, current.epoch) == (MemberState.STABLE, 1)
    assert current.assigned.keys() == scene.group.owners.keys() == places("t", 0)


@pytest.mark.parametrize("by_heartbeat", [False, True])
def test_who_gets_its_pattern_matched_late_is_assigned_what_others_had_alone(
    by_heartbeat: bool,
) -> None:
    """The group had these topics before: nothing but who wants them has changed."""
    scene = Scene(Topics(ab=2, **{f"t{number}": 1 for number in range(8000)}))
    scene.beat("a", subscribed_topic_names=("ab",))
    scene.beat("b", subscribed_topic_names=None, subscribed_topic_regex="a.")
    before = scene.group
    later = with_changes(scene.given, is_stale=True, now_ms=scene.given.now_ms + SLICE_MS)
    if by_heartbeat:
        scene.now_ms, scene._seen = later.now_ms, None
        scene.beat("a")
        group = scene.group
    else:
        group = follow_patterns(before, later).group
    assert (group.epoch, group.metadata_hash) == (before.epoch + 1, before.metadata_hash)


def test_nobody_waits_for_the_time_of_an_assignment_that_lies_ahead() -> None:
    scene = Scene(assignment_interval_ms=1000)
    scene.beat("a")
    scene.now_ms -= 3_600_000
    scene.beat("b")
    assert scene.group.assignment_epoch == 2


def test_members_vote_for_an_assignor() -> None:
    scene = Scene(Topics(t=2, u=2))
    for member_id in "ba":
        scene.beat(member_id, server_assignor="range", subscribed_topic_names=("t", "u"))
    scene.settle()
    assert scene.owned["a"] == places("t", 0) | places("u", 0)


def test_instance_id_that_its_member_gave_up_is_free() -> None:
    scene = Scene()
    scene.beat("a", instance_id="i")
    scene.send("a", 0, (), instance_id="j")
    scene.leave("a", -1, "j")
    scene.beat("b", instance_id="i")
    assert scene.group.static_ids == {"i": "b"}


def test_assignor_and_pattern_that_only_kafka_knows_stop_nobody() -> None:
    """A coordinator of Kafka may have taken them, and written them down."""
    scene = Scene()
    scene.beat("a")
    said = scene.group.members["a"].subscription
    strange = replace(said, assignor="org.example.Own", topic_pattern=r"(?i)\bT")
    scene.group.apply(SubscriptionChange(group_id="g", member_id="a", subscription=strange))
    found = Resolved(topics=("T",))
    scene.group.apply(PatternChange(group_id="g", pattern=r"(?i)\bT", resolved=found))
    scene.topics.counts.update(t=5, T=1)
    scene.beat("a")
    assert scene.owned["a"] == places("t", 0, 1, 2, 3, 4) | places("T", 0)


def test_member_has_its_whole_time_for_each_thing_that_it_gives_back() -> None:
    scene, sessions = Scene(), Sessions()
    scene.beat("a")

    def touch(now_ms: int) -> None:
        sessions.touch(scene.group.members["a"], timeout_ms=60_000, now_ms=now_ms)

    scene.beat("b")
    scene.beat("a")  # it is to give back two
    touch(0)
    scene.beat("c")
    scene.beat("d")
    scene.beat("a")  # it has, and is to give back another
    touch(4000)
    assert scene.group.members["a"].current.state is MemberState.UNREVOKED_PARTITIONS
    touch(8000)
    assert (sessions.overdue(8999), sessions.overdue(9000)) == ([], ["a"])


FIRST = request("m", 0, ())


@pytest.mark.parametrize(
    ("body", "version", "error"),
    [
        (FIRST, 1, None),
        (request("", 0, ()), 0, None),
        (request("", 0, ()), 1, ErrorCode.INVALID_REQUEST),
        (request("", 3, ()), 0, ErrorCode.INVALID_REQUEST),
        (request("m", 0, ("x",)[:0], rebalance_timeout_ms=-1), 1, ErrorCode.INVALID_REQUEST),
        (request("m", 0, None), 1, ErrorCode.INVALID_REQUEST),
        (request("m", 0, places("t", 0)), 1, ErrorCode.INVALID_REQUEST),
        (request("m", 0, (), subscribed_topic_names=None), 1, ErrorCode.INVALID_REQUEST),
        (request("m", 0, (), instance_id=""), 1, ErrorCode.INVALID_REQUEST),
        (request("m", -2, None), 1, ErrorCode.INVALID_REQUEST),
        (request("m", -3, None), 1, ErrorCode.INVALID_REQUEST),
        (request("m", 0, (), server_assignor="sticky"), 1, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (request("m", 0, (), subscribed_topic_regex="("), 1, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_heartbeats_that_are_wrong_in_themselves(
    body: ConsumerGroupHeartbeatRequest, version: int, error: ErrorCode | None
) -> None:
    refusal = request_refusal(body, lacking(type(body), version), ASSIGNORS)
    assert (None if refusal is None else refusal.error) is error
