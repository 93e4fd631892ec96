"""One test a rule of the Raft thesis (Ongaro 2014), in its order; the names begin with the section.

Where the rules here go beyond or differ (votes by pull, epochs for terms), it is KIP-595's way.
Two or three real replicas on the small network and disk of `tests.quorum.replicas`.
"""

from collections.abc import Callable

import pytest

from quorum.core.effects import Append, Reply, Request, SaveElection, Stored, Truncate
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.raft import leading, vote, voters
from quorum.raft.messages import begin_request, vote_request
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import ALLOWED, Candidate, Follower, Leader, Prospective, Unattached
from quorum.raft.voters import VoteResult
from tests.quorum.replicas import Replicas, config, endpoint
from wire.batch import data_batch
from wire.errors import ErrorCode
from wire.messages.quorum_epochs import VoteRequest, VoteResponse


def batch(text: str) -> bytes:
    return data_batch([text.encode()], timestamp_ms=0)


def ask_vote(cluster: Replicas, voter: int, candidate: int, **ask: object) -> VoteResponse:
    request: dict[str, object] = {
        "epoch": 50,
        "last": OffsetAndEpoch(offset=1000, epoch=40),
        "pre_vote": False,
    }
    request |= ask
    body = vote_request(config(candidate), ReplicaKey(voter), **request)  # type: ignore[arg-type]
    answer = cluster.ask(voter, body)
    assert isinstance(answer, VoteResponse)
    return answer


def granted(answer: VoteResponse) -> bool:
    return answer.topics[0].partitions[0].vote_granted


def elected() -> tuple[Replicas, RaftNode, list[RaftNode]]:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.run(50)
    return cluster, leader, [node for node in cluster.nodes.values() if node is not leader]


# --- 3.3 epochs -----------------------------------------------------------------------------


def test_3_3_a_replica_that_hears_of_a_later_epoch_adopts_it() -> None:
    cluster, _, (follower, _) = elected()
    ask_vote(cluster, follower.node_id, 9, epoch=50)
    assert follower.role.epoch >= 50


def test_3_3_a_leader_whose_epoch_is_past_steps_down_at_once() -> None:
    cluster, leader, _ = elected()
    body = vote_request(
        config(9),
        ReplicaKey(leader.node_id),
        epoch=50,
        last=OffsetAndEpoch(offset=0, epoch=0),
        pre_vote=False,
    )
    leader.receive(Request(token=1, body=body), cluster.now_ms)
    assert isinstance(leader.role, Unattached)


def test_3_3_a_request_of_an_earlier_epoch_is_refused() -> None:
    cluster, _, (follower, _) = elected()
    answer = ask_vote(
        cluster, follower.node_id, 9, epoch=0, last=OffsetAndEpoch(offset=0, epoch=-1)
    )
    assert answer.topics[0].partitions[0].error_code is ErrorCode.INVALID_REQUEST
    stale = begin_request(config(9), ReplicaKey(follower.node_id), epoch=0, leader=endpoint(9))
    refused = cluster.ask(follower.node_id, stale)
    assert refused.topics[0].partitions[0].error_code is ErrorCode.FENCED_LEADER_EPOCH  # type: ignore[attr-defined] # BeginQuorumEpochResponse


# --- 3.4 election ---------------------------------------------------------------------------


def test_3_4_a_follower_that_hears_nothing_begins_an_election() -> None:
    cluster, leader, followers = elected()
    cluster.crash(leader.node_id)
    epoch = leader.role.epoch
    assert cluster.run_until(lambda: any(node.role.epoch > epoch for node in followers))


def test_3_4_a_candidate_begins_an_epoch_votes_for_itself_and_asks_all_others() -> None:
    cluster = Replicas()
    assert cluster.run_until(
        lambda: any(isinstance(node.role, Candidate) for node in cluster.nodes.values())
    )
    (node,) = (n for n in cluster.nodes.values() if isinstance(n.role, Candidate))
    assert node.role.voted == node.replica.key
    assert node.role.epoch == 1
    cluster.run(2)
    asked = {
        send.to.node_id
        for source, send in cluster.sent
        if source == node.node_id
        and isinstance(send.body, VoteRequest)
        and not send.body.topics[0].partitions[0].pre_vote
    }
    assert asked == {1, 2, 3} - {node.node_id}


def test_3_4_each_replica_votes_for_one_candidate_an_epoch_first_come_first_served() -> None:
    cluster = Replicas()
    assert granted(ask_vote(cluster, 1, 2))
    assert not granted(ask_vote(cluster, 1, 3))
    assert granted(ask_vote(cluster, 1, 2)), "the answer may have been lost"


def test_3_4_a_majority_of_votes_wins() -> None:
    assert voters.vote_result({1: True, 2: True, 3: None}) is VoteResult.WON
    assert voters.vote_result({1: True, 2: None, 3: False}) is VoteResult.PENDING
    assert voters.vote_result({1: True, 2: False, 3: False}) is VoteResult.LOST


def test_3_4_a_candidate_follows_a_leader_of_its_own_epoch() -> None:
    cluster = Replicas()
    candidate = Candidate(epoch=7, voted=ReplicaKey(1), election_deadline_ms=9999, votes={1: True})
    node = cluster.nodes[1]
    node.role = candidate
    body = begin_request(config(2), ReplicaKey(1), epoch=7, leader=endpoint(2))
    node.receive(Request(token=1, body=body), cluster.now_ms)
    assert isinstance(node.role, Follower)
    assert node.role.leader_id == 2
    assert node.role.voted == ReplicaKey(1), "the epoch lasts, and so does the vote"


def test_3_4_time_outs_are_random_so_that_rivals_get_out_of_step() -> None:
    replica = Replicas([1]).nodes[1].replica
    drawn = {replica.election_timeout_ms() for _ in range(100)}
    assert len(drawn) > 50
    assert min(drawn) >= 1000
    assert max(drawn) < 2000


def test_3_4_nothing_leads_but_who_has_stood() -> None:
    assert [role for role, next_ones in ALLOWED.items() if Leader in next_ones] == [Candidate]


# --- 3.5 replication ------------------------------------------------------------------------


def test_3_5_a_record_is_committed_once_a_majority_holds_it() -> None:
    cluster, leader, (one, other) = elected()
    cluster.disks[one.node_id].is_held = True
    cluster.disks[other.node_id].is_held = True
    last_offset = cluster.append(leader, batch("a"))
    cluster.run(100)
    assert leader.high_watermark == last_offset
    cluster.sync(one.node_id)
    cluster.run(10)
    assert leader.high_watermark == last_offset + 1


def test_3_5_followers_learn_what_is_committed_from_the_leader() -> None:
    cluster, leader, followers = elected()
    cluster.append(leader, batch("a"))
    cluster.run(20)
    assert {node.high_watermark for node in followers} == {leader.high_watermark}


def test_3_5_a_leader_only_appends() -> None:
    cluster, leader, _ = elected()
    seen: list[object] = []
    for text in "abc":
        leader.append(batch(text), cluster.now_ms)
        seen += leader.take_effects()
    assert sum(isinstance(effect, Append) for effect in seen) == 3
    assert not any(isinstance(effect, Truncate) for effect in seen)


def test_3_5_a_log_that_is_no_prefix_of_the_leaders_is_cut_back_to_where_they_agree() -> None:
    cluster, first, _ = elected()
    cluster.isolate(first.node_id)
    for text in ("x", "y"):
        cluster.append(first, batch(text))
    cluster.run(8000)
    (second,) = (cluster.nodes[node_id] for node_id in cluster.leaders())
    cluster.append(second, batch("z"))
    cluster.heal()
    assert cluster.run_until(lambda: first.high_watermark == second.end_offset)
    assert cluster.records(first.node_id) == cluster.records(second.node_id)


# --- 3.6 safety -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "is_granted"),
    [
        (OffsetAndEpoch(offset=10, epoch=4), True),  # the same
        (OffsetAndEpoch(offset=11, epoch=4), True),  # longer
        (OffsetAndEpoch(offset=9, epoch=4), False),  # shorter
        (OffsetAndEpoch(offset=1, epoch=5), True),  # later epoch, however short
        (OffsetAndEpoch(offset=99, epoch=3), False),  # earlier epoch, however long
    ],
)
def test_3_6_1_a_vote_goes_only_to_a_log_at_least_as_up_to_date(
    last: OffsetAndEpoch, is_granted: bool
) -> None:
    role = Unattached(epoch=6, election_deadline_ms=0)
    ours = OffsetAndEpoch(offset=10, epoch=4)
    assert vote.grants_vote(role, ReplicaKey(2), last=last, ours=ours) is is_granted


def test_3_6_2_records_of_earlier_epochs_are_committed_only_with_one_of_the_leaders_own() -> None:
    assert not leading.may_commit(10, epoch_start_offset=10)
    assert leading.may_commit(11, epoch_start_offset=10)


def test_3_6_2_a_new_leader_does_not_know_what_is_committed_until_it_commits() -> None:
    cluster, first, _ = elected()
    cluster.append(first, batch("a"))
    cluster.run(50)
    for node_id in cluster.ids:
        cluster.disks[node_id].is_held = node_id != first.node_id
    cluster.crash(first.node_id)
    second = None
    for node_id in cluster.nodes:
        cluster.sync(node_id)
    assert cluster.run_until(lambda: bool(cluster.leaders()))
    second = cluster.nodes[cluster.leaders()[0]]
    assert second.high_watermark is None
    assert second.committed_through == 2, "what it knew as a follower stays committed"
    assert cluster.run_until(lambda: second.high_watermark is not None)


# --- 3.8 persistence ------------------------------------------------------------------------


def answers_after(node: RaftNode, body: object, now_ms: int) -> Callable[[], list[Reply]]:
    """Ask, return how to collect the answers after the election has been stored."""
    node.take_effects()
    node.receive(Request(token=99, body=body), now_ms)
    effects = node.take_effects()
    assert not any(isinstance(effect, Reply) for effect in effects), "said before it was durable"
    saved = [effect for effect in effects if isinstance(effect, SaveElection)][-1]

    def collect() -> list[Reply]:
        node.receive(Stored(log=METADATA_LOG, token=saved.token), now_ms)
        return [effect for effect in node.take_effects() if isinstance(effect, Reply)]

    return collect


def test_3_8_epoch_and_vote_are_durable_before_the_answer() -> None:
    cluster = Replicas()
    body = vote_request(
        config(2),
        ReplicaKey(1),
        epoch=5,
        last=OffsetAndEpoch(offset=0, epoch=0),
        pre_vote=False,
    )
    assert len(answers_after(cluster.nodes[1], body, cluster.now_ms)()) == 1


def test_3_8_the_vote_survives_a_crash() -> None:
    cluster = Replicas()
    assert granted(ask_vote(cluster, 1, 2))
    cluster.crash(1)
    cluster.start(1)
    assert not granted(ask_vote(cluster, 1, 3))
    assert granted(ask_vote(cluster, 1, 2))


def test_3_8_what_is_committed_need_not_be_stored() -> None:
    """It is learned again from the leader."""
    cluster, leader, (follower, _) = elected()
    cluster.append(leader, batch("a"))
    cluster.run(50)
    cluster.crash(follower.node_id)
    again = cluster.start(follower.node_id)
    assert again.high_watermark is None
    assert cluster.run_until(lambda: again.high_watermark == leader.high_watermark)


# --- 3.10 handing over ----------------------------------------------------------------------


def test_3_10_a_leader_that_leaves_lets_the_most_up_to_date_go_first() -> None:
    ends = {ReplicaKey(2): 5, ReplicaKey(3): 9, ReplicaKey(4): 9}
    assert leading.preferred_successors(ends) == (ReplicaKey(3), ReplicaKey(4), ReplicaKey(2))


# --- 6.2 leaders that nobody hears ------------------------------------------------------------


def test_6_2_a_leader_that_reaches_no_majority_steps_down() -> None:
    cluster, leader, _ = elected()
    cluster.isolate(leader.node_id)
    cluster.run(3000)
    assert not isinstance(leader.role, Leader)


def test_6_2_a_leader_that_reaches_a_majority_stays() -> None:
    cluster, leader, (gone, _) = elected()
    cluster.isolate(gone.node_id)
    cluster.run(20_000)
    assert isinstance(leader.role, Leader)


# --- 9.6 pre-vote ---------------------------------------------------------------------------


def test_9_6_a_new_epoch_begins_only_if_a_majority_would_vote() -> None:
    cluster, leader, (lonely, _) = elected()
    cluster.isolate(lonely.node_id)
    cluster.run(20_000)
    assert lonely.role.epoch == leader.role.epoch
    assert isinstance(lonely.role, Prospective | Follower | Unattached)


def test_9_6_who_hears_a_leader_refuses_a_pre_vote() -> None:
    cluster, leader, (follower, _) = elected()
    answer = ask_vote(
        cluster,
        follower.node_id,
        9,
        epoch=leader.role.epoch,
        last=leader.replica.log.end,
        pre_vote=True,
    )
    assert not granted(answer)


def test_9_6_a_pre_vote_binds_nobody() -> None:
    cluster = Replicas()
    start = OffsetAndEpoch(offset=0, epoch=0)
    assert granted(ask_vote(cluster, 1, 2, epoch=0, last=start, pre_vote=True))
    assert granted(ask_vote(cluster, 1, 3, epoch=0, last=start, pre_vote=True))
    assert cluster.nodes[1].role.voted is None


# --- 10.2.1 writing in parallel ---------------------------------------------------------------


def test_10_2_1_followers_may_have_a_record_before_the_leaders_own_disk() -> None:
    cluster, leader, followers = elected()
    cluster.disks[leader.node_id].is_held = True
    last_offset = cluster.append(leader, batch("a"))
    cluster.run(20)
    assert leader.high_watermark == last_offset + 1, "a majority without the leader"
    assert leader.replica.log.synced_offset == last_offset
    assert {node.replica.log.synced_offset for node in followers} == {last_offset + 1}


def test_10_2_1_the_leader_counts_itself_only_when_its_own_write_is_durable() -> None:
    cluster = Replicas([1])
    leader = cluster.elect()
    cluster.disks[1].is_held = True
    last_offset = cluster.append(leader, batch("a"))
    cluster.run(100)
    assert leader.high_watermark == last_offset
    cluster.sync(1)
    cluster.run(2)
    assert leader.high_watermark == last_offset + 1
