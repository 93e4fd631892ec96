"""ElectLeaders: which elections are held, and what is said where none can be."""

import pytest

from controller.decisions.elections import decide_elect_leaders
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from tests.controller.clusters import (
    CONFIG,
    OTHER_TOPIC,
    TOPIC,
    cluster,
    config,
    partition,
    registered,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.messages.partitions import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionElectionResult,
    TopicPartitions,
)

PREFERRED, UNCLEAN = 0, 1


def image() -> MetadataImage:
    """Broker 3 is down. Each partition of the topic is in another situation."""
    return with_topic(
        cluster(1, 2, registered(3, fenced=True)),
        partition(0, (1, 2)),  # as it should be
        partition(1, (1, 2), leader=2),  # drifted
        partition(2, (3, 2), isr=(2,), leader=2),  # the first replica is down
        partition(3, (3, 2), isr=(3,), leader=NO_LEADER),  # nobody leads, 2 may lack records
        partition(4, (3,), isr=(3,), leader=NO_LEADER),  # nobody leads, nobody can
    )


def elected(
    now: MetadataImage, election_type: int, *indexes: int
) -> tuple[list[PartitionElectionResult], MetadataImage]:
    topic = TopicPartitions(topic="t", partitions=indexes)
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=(topic,))
    decision = decide_elect_leaders(now, request, CONFIG)
    assert decision.response.error_code is ErrorCode.NONE
    (result,) = decision.response.replica_election_results
    return list(result.partition_result), step(now, *decision.changes)


def state(now: MetadataImage, index: int) -> PartitionState:
    found = now.partition(TOPIC, index)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("election_type", "index", "error", "leader"),
    [
        (PREFERRED, 0, ErrorCode.ELECTION_NOT_NEEDED, 1),
        (PREFERRED, 1, ErrorCode.NONE, 1),
        (PREFERRED, 2, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 2),
        (PREFERRED, 3, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, NO_LEADER),
        (UNCLEAN, 0, ErrorCode.ELECTION_NOT_NEEDED, 1),
        (UNCLEAN, 1, ErrorCode.ELECTION_NOT_NEEDED, 2),
        (UNCLEAN, 3, ErrorCode.NONE, 2),
        (UNCLEAN, 4, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, NO_LEADER),
    ],
)
def test_outcome_is_kafkas(election_type: int, index: int, error: ErrorCode, leader: int) -> None:
    (result,), after = elected(image(), election_type, index)
    assert result.error_code is error
    assert (result.error_message is None) == (error is ErrorCode.NONE)
    assert state(after, index).leader == leader


def test_clean_election_keeps_the_isr_and_raises_the_epoch() -> None:
    _, after = elected(image(), PREFERRED, 1)
    now = state(after, 1)
    assert (now.isr, now.leader_epoch, now.leader_recovery_state) == ((1, 2), 6, 0)


def test_unclean_election_begins_a_recovery() -> None:
    """It is asked for by hand: the topic need not allow it."""
    _, after = elected(image(), UNCLEAN, 3)
    now = state(after, 3)
    assert (now.isr, now.leader, now.leader_recovery_state) == ((2,), 2, 1)


def test_partition_is_elected_for_once_in_a_request() -> None:
    (first, second), after = elected(image(), PREFERRED, 1, 1)
    assert (first.error_code, second.error_code) == (
        ErrorCode.NONE,
        ErrorCode.ELECTION_NOT_NEEDED,
    )
    assert state(after, 1).leader_epoch == 6


def everywhere(now: MetadataImage, election_type: int) -> ElectLeadersResponse:
    request = ElectLeadersRequest(election_type=election_type)
    return decide_elect_leaders(now, request, CONFIG).response


def test_partitions_without_need_are_left_out_where_all_are_asked_for() -> None:
    now = with_topic(image(), partition(0, (2, 1)), name="u", topic_id=OTHER_TOPIC)
    (preferred,) = everywhere(now, PREFERRED).replica_election_results
    assert preferred.topic == "t"
    assert [(item.partition_id, item.error_code.name) for item in preferred.partition_result] == [
        (1, "NONE"),
        (2, "PREFERRED_LEADER_NOT_AVAILABLE"),
        (3, "PREFERRED_LEADER_NOT_AVAILABLE"),
        (4, "PREFERRED_LEADER_NOT_AVAILABLE"),
    ]
    (unclean,) = everywhere(now, UNCLEAN).replica_election_results
    assert [(item.partition_id, item.error_code.name) for item in unclean.partition_result] == [
        (3, "NONE"),
        (4, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
    ]


def test_preferred_election_is_clean_whatever_the_topic_allows() -> None:
    now = step(image(), config("unclean.leader.election.enable", "true"))
    (result,), _ = elected(now, PREFERRED, 3)
    assert result.error_code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def test_unknown_election_type_is_refused_as_a_whole() -> None:
    topic = TopicPartitions(topic="t", partitions=(0, 1))
    request = ElectLeadersRequest(election_type=7, topic_partitions=(topic,))
    decision = decide_elect_leaders(image(), request, CONFIG)
    assert decision.response.error_code is ErrorCode.INVALID_REQUEST
    (result,) = decision.response.replica_election_results
    assert {item.error_code for item in result.partition_result} == {ErrorCode.INVALID_REQUEST}


def test_too_many_elections_are_refused_as_a_whole() -> None:
    topic = TopicPartitions(topic="t", partitions=(1,) * 10_001)
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=(topic,))
    decision = decide_elect_leaders(image(), request, CONFIG)
    assert decision.response.error_code is ErrorCode.POLICY_VIOLATION
    assert decision.changes == ()
