"""A leader knows that it leads when a majority says so in answer to a question."""

import pytest

from quorum.core.effects import Request
from quorum.node.confirmed_leadership import ConfirmingRaftNode
from quorum.raft.messages import fetch_request
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader
from tests.quorum.replicas import Replicas
from wire.batch import data_batch
from wire.messages.quorum_epochs import BeginQuorumEpochRequest


def ask(cluster: Replicas, leader: ConfirmingRaftNode) -> int:
    question = leader.confirm_leadership(cluster.now_ms)
    cluster.settle(leader.node_id)
    return question


def is_confirmed(cluster: Replicas, leader: ConfirmingRaftNode, within_ms: int = 1_000) -> bool:
    question = ask(cluster, leader)
    return cluster.run_until(lambda: leader.confirmed_through >= question, within_ms)


def quiet(count: int = 3) -> tuple[Replicas, ConfirmingRaftNode, list[int]]:
    """A quorum with a leader, nothing of which is on its way; and the others."""
    cluster = Replicas(range(1, count + 1), engine=ConfirmingRaftNode)
    leader = cluster.elect()
    assert isinstance(leader, ConfirmingRaftNode)
    cluster.run(50)
    return cluster, leader, [node_id for node_id in cluster.ids if node_id != leader.node_id]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_leader_of_a_healthy_quorum_is_confirmed_within_a_round_trip(count: int) -> None:
    cluster, leader, _ = quiet(count)
    asked_ms = cluster.now_ms
    assert is_confirmed(cluster, leader)
    assert cluster.now_ms - asked_ms <= 2


@pytest.mark.parametrize(("count", "silent", "expected"), [(3, 1, True), (3, 2, False)])
@pytest.mark.parametrize("back", [False, True])
def test_majority_must_answer(count: int, silent: int, *, expected: bool, back: bool) -> None:
    """A question that is lost counts as little as an answer that is."""
    cluster, leader, others = quiet(count)
    for node_id in others[:silent]:
        cluster.cut.add((node_id, leader.node_id) if back else (leader.node_id, node_id))
    assert is_confirmed(cluster, leader) is expected


def test_who_is_replaced_without_knowing_is_never_confirmed() -> None:
    cluster, old, others = quiet()
    for node_id in others:  # it can be asked still, and cannot ask
        cluster.cut.add((old.node_id, node_id))
    question = ask(cluster, old)
    other_leads = cluster.run_until(
        lambda: any(isinstance(cluster.nodes[each].role, Leader) for each in others), 10_000
    )
    assert other_leads, cluster.describe()
    assert old.confirmed_through < question


def test_fetch_that_was_under_way_when_the_question_came_confirms_nothing() -> None:
    cluster, leader, others = quiet()
    cluster.isolate(leader.node_id)
    question = ask(cluster, leader)
    for number, node_id in enumerate(others):
        other = cluster.nodes[node_id]
        body = fetch_request(
            other.replica.config,
            epoch=leader.role.epoch,
            end=other.replica.log.end,
            high_watermark=0,
        )
        cluster.deliver(leader.node_id, Request(token=-1 - number, body=body))
    assert leader.confirmed_through < question


def test_question_during_a_round_waits_for_the_next() -> None:
    cluster, leader, _ = quiet()
    first = ask(cluster, leader)
    second = ask(cluster, leader)
    assert cluster.run_until(lambda: leader.confirmed_through >= first, 10)
    assert leader.confirmed_through < second
    assert cluster.run_until(lambda: leader.confirmed_through >= second, 10)


def test_many_questions_share_a_round() -> None:
    cluster, leader, others = quiet()
    ask(cluster, leader)
    before = len(cluster.sent)
    last = [ask(cluster, leader) for _ in range(100)][-1]
    assert cluster.run_until(lambda: leader.confirmed_through >= last, 100)
    asked = [
        send
        for source, send in cluster.sent[before:]
        if source == leader.node_id and isinstance(send.body, BeginQuorumEpochRequest)
    ]
    assert len(asked) <= len(others)


def test_voter_that_was_away_is_asked_again_while_the_round_lasts() -> None:
    cluster, leader, _ = quiet()
    cluster.isolate(leader.node_id)
    question = ask(cluster, leader)
    cluster.run(100)
    cluster.heal()
    assert cluster.run_until(lambda: leader.confirmed_through >= question, 2_500)


def test_epoch_begins_without_questions() -> None:
    cluster, leader, _ = quiet()
    assert is_confirmed(cluster, leader)
    leader.resign(cluster.now_ms)
    cluster.settle(leader.node_id)
    assert leader.confirmed_through == 0
    with pytest.raises(AssertionError, match="asked as resigned"):
        leader.confirm_leadership(cluster.now_ms)


def test_who_is_not_asked_does_as_a_plain_replica() -> None:
    said = []
    for engine in (RaftNode, ConfirmingRaftNode):
        cluster = Replicas(engine=engine)
        cluster.append(cluster.elect(), data_batch([b"x"], timestamp_ms=0))
        cluster.crash(cluster.elect().node_id)
        cluster.elect()
        cluster.run(2_000)
        said.append((cluster.sent, cluster.traces))
    assert said[0] == said[1]
    assert len(said[0][0]) > 20
