"""Replicas that elect, replicate, fail and come back."""

from random import Random

import pytest

from quorum.core.application import State
from quorum.core.effects import (
    Append,
    Event,
    Failure,
    LogState,
    ReadDone,
    Reply,
    Request,
    RequestFailed,
    Response,
    SaveElection,
    Send,
    SnapshotRead,
    Stop,
    StorageFailed,
    Stored,
    Token,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import EPOCH_MAX, ElectionState, Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.raft.messages import (
    begin_request,
    end_request,
    fetch_response,
    vote_request,
)
from quorum.raft.raft_node import RaftNode
from quorum.raft.raft_outbox import OWNER
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Follower, Leader, Prospective, Resigned, Unattached, name_of
from tests.quorum.disks import Written
from tests.quorum.raft.test_membership import addition, removal, update
from tests.quorum.replicas import Replicas, config, endpoint
from wire.batch import data_batch, headers
from wire.errors import ErrorCode
from wire.messages.fetching import FetchRequest, FetchResponse
from wire.messages.quorum_epochs import EndQuorumEpochRequest, VoteRequest
from wire.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)
from wire.primitives import METADATA_TOPIC


def batch(text: str) -> bytes:
    return data_batch([text.encode()], timestamp_ms=0)


def have_converged(cluster: Replicas) -> bool:
    ends = {node.end_offset for node in cluster.nodes.values()}
    known = {node.high_watermark for node in cluster.nodes.values()}
    return len(ends) == 1 and ends == known


def converge(cluster: Replicas) -> None:
    assert cluster.run_until(lambda: have_converged(cluster)), cluster.describe()
    assert len({cluster.records(node_id) for node_id in cluster.nodes}) == 1


def others(cluster: Replicas, node: RaftNode) -> list[RaftNode]:
    return [other for other in cluster.nodes.values() if other is not node]


def last_fetch(cluster: Replicas, node: RaftNode) -> Token:
    return next(
        send.token
        for node_id, send in reversed(cluster.sent)
        if node_id == node.node_id and isinstance(send.body, FetchRequest)
    )


# --- election and replication ----------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_voters_elect_one_leader_and_replicate(count: int) -> None:
    cluster = Replicas(range(1, count + 1))
    leader = cluster.elect()
    last_offset = cluster.append(leader, batch("a"))
    converge(cluster)
    assert leader.high_watermark == last_offset + 1
    assert [name_of(node.role) for node in others(cluster, leader)] == ["follower"] * (count - 1)


def test_sole_voter_leads_once_its_vote_is_durable_and_commits_after_its_next_sync() -> None:
    """Not before: after a crash it could vote for another in the epoch that it led."""
    cluster = Replicas([1])
    cluster.disks[1].is_held = True
    cluster.run(5000)
    assert not isinstance(cluster.nodes[1].role, Leader)
    cluster.sync(1)
    assert cluster.run_until(lambda: isinstance(cluster.nodes[1].role, Leader), 10)
    cluster.disks[1].is_held = True
    cluster.run(100)
    assert cluster.nodes[1].high_watermark is None
    cluster.sync(1)
    cluster.run(3)
    assert cluster.nodes[1].high_watermark == 1


def test_leader_does_not_count_itself_before_its_sync() -> None:
    cluster = Replicas([1, 2])
    leader = cluster.elect()
    cluster.disks[leader.node_id].is_held = True
    cluster.append(leader, batch("a"))
    cluster.run(900)
    assert leader.high_watermark == leader.end_offset - 1, "the follower alone is no majority"
    cluster.sync(leader.node_id)
    cluster.run(3)
    assert leader.high_watermark == leader.end_offset


def test_follower_reads_what_the_leader_has_not_synced() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.disks[leader.node_id].is_held = True
    last_offset = cluster.append(leader, batch("a"))
    cluster.run(20)
    assert leader.high_watermark == last_offset + 1, "both followers are a majority"


def test_follower_acknowledges_only_after_its_sync() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    for follower in others(cluster, leader):
        cluster.disks[follower.node_id].is_held = True
    last_offset = cluster.append(leader, batch("a"))
    cluster.run(300)
    assert leader.high_watermark == last_offset
    assert {node.end_offset for node in others(cluster, leader)} == {last_offset + 1}


def test_followers_learn_of_a_commit_at_once() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.append(leader, batch("a"))
    cluster.run(10)
    assert have_converged(cluster), "not only when a parked fetch has waited 500 ms"


def test_appends_of_one_turn_reach_a_follower_in_one_answer() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.run(200)
    for text in "abc":
        leader.append(batch(text), cluster.now_ms)
    effects = leader.take_effects()
    assert sum(isinstance(effect, Append) for effect in effects) == 3
    bodies = [effect.body for effect in effects if isinstance(effect, Reply)]
    answers = [body for body in bodies if isinstance(body, FetchResponse)]
    assert len(answers) == 2, "one for each follower"
    for answer in answers:
        records = answer.responses[0].partitions[0].records
        assert records is not None
        assert [header.next_offset for _, header in headers(records)] == [2, 3, 4]


def test_observer_follows_and_does_not_count() -> None:
    cluster = Replicas([1, 2, 3, 10], voters=[1, 2, 3])
    leader = cluster.elect()
    cluster.append(leader, batch("a"))
    converge(cluster)
    for node_id in {1, 2, 3} - {leader.node_id}:
        cluster.crash(node_id)
    cluster.append(leader, batch("b"))
    cluster.run(100)
    assert cluster.nodes[10].end_offset == leader.end_offset
    assert leader.high_watermark == leader.end_offset - 1


def test_observer_of_a_dead_quorum_knows_that_it_is_in_none() -> None:
    cluster = Replicas([1, 2, 3, 10], voters=[1, 2, 3])
    cluster.elect()
    converge(cluster)
    assert all(node.is_in_quorum(cluster.now_ms) for node in cluster.nodes.values())
    for node_id in (1, 2, 3):
        cluster.crash(node_id)
    cluster.run(3000)
    observer = cluster.nodes[10]
    assert isinstance(observer.role, Follower)
    assert not observer.is_in_quorum(cluster.now_ms)
    last_ms = observer.role.fetch_deadline_ms
    assert [observer.is_in_quorum(last_ms - 1), observer.is_in_quorum(last_ms)] == [True, False]


def test_server_that_answers_without_a_leader_is_not_asked_at_once_again() -> None:
    cluster = Replicas([1, 2, 3])
    node = cluster.nodes[1]
    (fetch,) = (send for source, send in cluster.sent if source == 1)
    answer = fetch_response(KnownLeader(leader_id=-1, epoch=node.role.epoch))
    cluster.deliver(1, Response(token=fetch.token, body=answer))
    peers, backoff_ms = node.replica.peers, node.replica.config.discovery_backoff_ms
    free = [peers.is_free(fetch.to.node_id, at_ms) for at_ms in (backoff_ms - 1, backoff_ms)]
    assert free == [False, True]


def test_observer_finds_the_leader_through_bootstrap_servers_of_unknown_id() -> None:
    servers = tuple(Endpoint(-2 - n, f"node-{n + 1}", 9001 + n) for n in range(3))
    cluster = Replicas([1, 2, 3])
    cluster.elect()
    cluster.voters, cluster.settings = (), {"bootstrap_servers": servers, "syncs": False}
    cluster.ids += (10,)
    cluster.disks[10], cluster.lives[10] = type(cluster.disks[1])(), 0
    cluster.start(10)
    cluster.run(300)
    assert isinstance(cluster.nodes[10].role, Follower)
    assert cluster.nodes[10].end_offset == 1


# --- failures -------------------------------------------------------------------------------


def test_followers_elect_another_when_the_leader_dies() -> None:
    cluster = Replicas()
    first = cluster.elect()
    cluster.append(first, batch("a"))
    cluster.run(100)
    cluster.crash(first.node_id)
    second = cluster.elect()
    assert second.role.epoch > first.role.epoch
    cluster.append(second, batch("b"))
    cluster.start(first.node_id)
    converge(cluster)


@pytest.mark.parametrize("seed", range(10))
def test_failover_takes_no_longer_than_its_time_outs_allow(seed: int) -> None:
    cluster = Replicas(seed=seed)
    first = cluster.elect()
    cluster.run(1000)
    cluster.crash(first.node_id)
    died_ms = cluster.now_ms
    cluster.elect()
    settings = first.replica.config
    bound_ms = (
        settings.fetch_timeout_ms * 6 // 5
        + 2 * settings.election_timeout_ms
        + settings.election_backoff_max_ms
    )
    assert cluster.now_ms - died_ms <= bound_ms


def test_uncommitted_tail_of_a_deposed_leader_is_truncated() -> None:
    cluster = Replicas()
    first = cluster.elect()
    converge(cluster)
    cluster.isolate(first.node_id)
    cluster.append(first, batch("lost"))
    cluster.run(6000)
    assert not isinstance(first.role, Leader)
    (second_id,) = cluster.leaders()
    second = cluster.nodes[second_id]
    cluster.append(second, batch("kept"))
    cluster.run(100)
    cluster.heal()
    converge(cluster)
    assert b"lost" not in cluster.records(first.node_id)
    assert b"kept" in cluster.records(first.node_id)


def test_leader_that_hears_no_majority_resigns() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.isolate(leader.node_id)
    cluster.run(leader.replica.config.check_quorum_timeout_ms + 1000)
    assert not isinstance(leader.role, Leader)


def test_voter_that_was_cut_off_does_not_depose_the_leader() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    epoch = leader.role.epoch
    cut_off = others(cluster, leader)[0]
    cluster.isolate(cut_off.node_id)
    cluster.run(20_000)
    assert isinstance(cut_off.role, Prospective | Follower | Unattached)
    cluster.heal()
    cluster.run(10_000)
    assert leader.leader == cut_off.leader
    assert leader.role.epoch == epoch


def test_minority_commits_nothing_and_majority_goes_on() -> None:
    cluster = Replicas(range(1, 6))
    old = cluster.elect()
    minority = {old.node_id, *(n.node_id for n in others(cluster, old)[:1])}
    majority = set(cluster.ids) - minority
    for left in minority:
        for right in majority:
            cluster.cut |= {(left, right), (right, left)}
    cluster.append(old, batch("lost"))
    committed = old.high_watermark
    cluster.run(10_000)
    (new_id,) = cluster.leaders()
    assert new_id in majority
    assert {cluster.nodes[node_id].high_watermark for node_id in minority} == {committed}
    cluster.append(cluster.nodes[new_id], batch("kept"))
    cluster.heal()
    converge(cluster)
    assert b"lost" not in cluster.records(old.node_id)


def test_majority_of_a_restarted_quorum_goes_on() -> None:
    cluster = Replicas()
    first = cluster.elect()
    cluster.append(first, batch("a"))
    converge(cluster)
    for node_id in cluster.ids:
        cluster.crash(node_id)
    for node_id in (2, 3):
        cluster.start(node_id)
    second = cluster.elect()
    assert second.role.epoch > first.role.epoch
    assert b"a" in cluster.records(second.node_id)


def test_restarted_leader_never_resumes_its_epoch() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    epoch = leader.role.epoch
    cluster.crash(leader.node_id)
    again = cluster.start(leader.node_id)
    assert isinstance(again.role, Resigned)
    assert again.leader.leader_id is None
    cluster.elect()
    assert {node.role.epoch for node in cluster.nodes.values()} != {epoch}


def test_leader_that_comes_back_as_no_voter_waits_for_its_timer_and_for_nobody() -> None:
    """A deadline in the past that nothing moves on would keep its driver turning."""
    state = LogState(log=METADATA_LOG)
    node = RaftNode(config(9), state, ElectionState(epoch=4, leader_id=9), Random(1), 1000)
    assert isinstance(node.role, Resigned)
    assert node.deadline_ms() == node.role.election_deadline_ms > 1000


def test_sole_voter_restarts_in_the_next_epoch() -> None:
    cluster = Replicas([1])
    first = cluster.elect()
    cluster.crash(1)
    cluster.start(1)
    assert cluster.elect().role.epoch == first.role.epoch + 1


def test_voter_whose_epochs_are_used_up_stops_and_says_so() -> None:
    election = ElectionState(epoch=EPOCH_MAX, leader_id=None, voted=None)
    state = LogState(log=METADATA_LOG)
    node = RaftNode(config(1, [1]), state, election, Random(1), 0)
    node.settle(5000)
    (stop,) = [effect for effect in node.take_effects() if isinstance(effect, Stop)]
    assert f"no epoch can follow {EPOCH_MAX}" in stop.reason
    assert stop.exit_code == 1


def test_unsynced_records_of_a_leader_that_loses_power_were_not_committed() -> None:
    cluster = Replicas([1, 2])
    leader = cluster.elect()
    cluster.disks[leader.node_id].is_held = True
    last_offset = cluster.append(leader, batch("a"))
    cluster.run(50)
    assert leader.high_watermark == last_offset
    cluster.disks[leader.node_id].is_held = False
    cluster.crash(leader.node_id)
    cluster.start(leader.node_id)
    cluster.elect()
    converge(cluster)


def test_candidate_asks_only_when_its_log_is_durable() -> None:
    """Else it could lose records after a power failure that it has been elected for."""
    cluster = Replicas()
    leader = cluster.elect()
    converge(cluster)
    follower = others(cluster, leader)[0]
    cluster.disks[follower.node_id].is_held = True
    cluster.append(leader, batch("a"))
    cluster.run(10)
    assert follower.end_offset == leader.end_offset
    cluster.crash(leader.node_id)
    cluster.sent.clear()
    cluster.run(15_000)
    asked = [
        send.body.topics[0].partitions[0]
        for source, send in cluster.sent
        if source == follower.node_id and isinstance(send.body, VoteRequest)
    ]
    assert asked, "it asks for pre-votes, which bind nobody"
    assert all(partition.pre_vote for partition in asked)


# --- resigning ------------------------------------------------------------------------------


def test_resigned_leader_hands_over_without_a_time_out() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    converge(cluster)
    lagging = others(cluster, leader)[0].node_id
    cluster.isolate(lagging)
    cluster.append(leader, batch("a"))
    cluster.run(50)
    cluster.heal()
    resigned_ms = cluster.now_ms
    leader.resign(cluster.now_ms)
    cluster.settle(leader.node_id)
    assert cluster.run_until(lambda: bool(cluster.leaders()))
    assert cluster.leaders() == [6 - leader.node_id - lagging], "the most up to date one"
    assert cluster.now_ms - resigned_ms < 100


def test_shut_down_of_a_leader_tells_the_others_before_it_stops() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    converge(cluster)
    leader.shut_down(cluster.now_ms)
    cluster.settle(leader.node_id)
    assert cluster.run_until(lambda: leader.node_id in cluster.stopped, within_ms=100)
    assert cluster.stopped[leader.node_id].exit_code == 0
    told = {
        send.to.node_id for _, send in cluster.sent if isinstance(send.body, EndQuorumEpochRequest)
    }
    assert told == set(cluster.ids) - {leader.node_id}
    assert cluster.run_until(lambda: cluster.leader() is not None, within_ms=1500)


@pytest.mark.parametrize("shutdown_timeout_ms", [300, 5000])
def test_shut_down_of_a_leader_does_not_wait_for_the_dead(shutdown_timeout_ms: int) -> None:
    cluster = Replicas(shutdown_timeout_ms=shutdown_timeout_ms)
    leader = cluster.elect()
    for other in others(cluster, leader):
        cluster.crash(other.node_id)
    leader.shut_down(cluster.now_ms)
    cluster.settle(leader.node_id)
    within_ms = min(shutdown_timeout_ms, 2 * leader.replica.config.election_timeout_ms) + 10
    assert cluster.run_until(lambda: leader.node_id in cluster.stopped, within_ms=within_ms)


def test_shut_down_of_a_follower_stops_at_once() -> None:
    cluster = Replicas()
    follower = others(cluster, cluster.elect())[0]
    follower.shut_down(cluster.now_ms)
    cluster.settle(follower.node_id)
    assert cluster.stopped[follower.node_id].exit_code == 0


# --- stopping -------------------------------------------------------------------------------


def test_two_leaders_of_one_epoch_stop_whoever_hears_of_it() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    follower, other = others(cluster, leader)
    body = begin_request(
        config(other.node_id),
        ReplicaKey(follower.node_id),
        epoch=leader.role.epoch,
        leader=endpoint(other.node_id),
    )
    (stop,) = cluster.deliver(follower.node_id, Request(token=1, body=body))
    assert isinstance(stop, Stop)
    assert "has two leaders" in stop.reason


def test_refusal_that_is_not_ordinary_is_traced() -> None:
    cluster = Replicas([1, 2])
    cluster.nodes[2].replica.config = config(2, (1, 2), cluster_id="another")
    cluster.run(3000)
    refused = {
        dict(trace.fields)["error"] for _, trace in cluster.traces if trace.event == "refused"
    }
    assert refused == {"INCONSISTENT_CLUSTER_ID"}
    assert cluster.leaders() == []


def test_replica_stops_when_the_voters_are_of_another_cluster() -> None:
    cluster = Replicas([1, 2, 3])
    cluster.nodes[3].replica.config = config(3, (1, 2, 3), cluster_id="another")
    cluster.run(3000)
    assert list(cluster.stopped) == [3]
    assert cluster.stopped[3].exit_code == 1
    assert "of cluster another" in cluster.stopped[3].reason
    assert len(cluster.leaders()) == 1


def test_failed_storage_stops_the_replica_with_the_reason() -> None:
    cluster = Replicas([1])
    leader = cluster.elect()
    failed = StorageFailed(log=METADATA_LOG, token=Token("raft", 9), reason="fsync: I/O error")
    leader.receive(failed, cluster.now_ms)
    cluster.settle(1)
    assert cluster.stopped[1].exit_code == 1
    assert "fsync: I/O error" in cluster.stopped[1].reason
    assert leader.deadline_ms() is None
    leader.receive(Stored(log=METADATA_LOG, token=Token("raft", 99)), cluster.now_ms)
    assert leader.take_effects() == []


def test_stopped_replica_counts_and_says_nothing_more() -> None:
    cluster = Replicas([1])
    leader = cluster.elect()
    cluster.run(100)
    committed = leader.high_watermark
    leader.append(batch("a"), cluster.now_ms)
    (append,) = (each for each in leader.take_effects() if isinstance(each, Append))
    assert append.token is not None
    leader.receive(Stored(log=METADATA_LOG, token=append.token), cluster.now_ms)
    failed = StorageFailed(log=METADATA_LOG, token=Token("raft", 99), reason="fsync: I/O error")
    leader.receive(failed, cluster.now_ms)
    leader.settle(cluster.now_ms)
    assert leader.high_watermark == committed
    leader.take_effects()
    leader.receive(failed, cluster.now_ms)
    leader.save_snapshot(
        State(end_offset=1, batches=iter(())), last_timestamp_ms=0, now_ms=cluster.now_ms
    )
    assert leader.take_effects() == []


def test_answer_that_names_another_leader_of_the_epoch_is_the_last_that_is_heard() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.run(100)
    follower, other = others(cluster, leader)
    known = KnownLeader(
        leader_id=other.node_id, epoch=leader.role.epoch, endpoint=endpoint(other.node_id)
    )
    answer = fetch_response(known, high_watermark=1)
    asked = last_fetch(cluster, follower)
    follower.receive(Response(token=asked, body=answer), cluster.now_ms)
    assert [type(each) for each in follower.take_effects()] == [Stop]
    assert follower.replica.peers.is_free(leader.node_id, cluster.now_ms)


def test_report_without_an_answer_is_made_again() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.run(100)
    follower = others(cluster, leader)[0]
    assert isinstance(follower.role, Follower)
    asked = last_fetch(cluster, follower)
    follower.role.reporting = asked.number
    follower.receive(RequestFailed(token=asked, failure=Failure.TIMED_OUT), cluster.now_ms)
    assert follower.role.reporting is None


def test_leader_of_unknown_address_is_where_the_voters_say() -> None:
    node = Replicas().nodes[1]
    node.role = Prospective(epoch=1, leader_id=2, election_deadline_ms=0, votes={})
    assert node.endpoint_of(2) == endpoint(2)


def test_what_is_committed_is_not_truncated_on_a_leaders_word() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.append(leader, batch("a"))
    converge(cluster)
    victim = others(cluster, leader)[0]
    cluster.isolate(victim.node_id)
    for node_id in sorted(set(cluster.ids) - {victim.node_id}):
        cluster.crash(node_id)
        disk = cluster.disks[node_id]
        disk.batches, disk.durable = [], Written(election=disk.election)  # both lose logs
        cluster.start(node_id)
    assert cluster.run_until(lambda: bool(cluster.leaders()))
    cluster.heal()
    assert cluster.run_until(lambda: victim.node_id in cluster.stopped), cluster.describe()
    assert "refusing to truncate" in cluster.stopped[victim.node_id].reason


# --- durability before words -----------------------------------------------------------------


def test_vote_is_stored_before_the_answer_leaves() -> None:
    cluster = Replicas()
    voter = cluster.nodes[1]
    voter.take_effects()
    ask = vote_for(2, epoch=5)
    voter.receive(Request(token=77, body=ask), cluster.now_ms)
    effects = voter.take_effects()
    saved = [effect for effect in effects if isinstance(effect, SaveElection)]
    assert saved[-1].election.voted == ReplicaKey(2)
    assert not any(isinstance(effect, Reply) for effect in effects)
    voter.receive(Stored(log=METADATA_LOG, token=saved[-1].token), cluster.now_ms)
    (reply,) = (effect for effect in voter.take_effects() if isinstance(effect, Reply))
    assert reply.token == 77


def test_candidate_votes_for_itself_durably_before_it_asks() -> None:
    cluster = Replicas()
    for disk in cluster.disks.values():
        disk.is_held = True
    cluster.run(10_000)
    asked = [send.body for _, send in cluster.sent if isinstance(send.body, VoteRequest)]
    assert asked
    assert all(request.topics[0].partitions[0].pre_vote for request in asked)


def vote_for(candidate_id: int, *, epoch: int, cluster_id: str | None = None) -> VoteRequest:
    from wire.messages.quorum_epochs import VotePartition, VoteTopic

    partition = VotePartition(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=candidate_id,
        last_offset_epoch=0,
        last_offset=0,
    )
    topic = VoteTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
    return VoteRequest(cluster_id=cluster_id, voter_id=1, topics=(topic,))


# --- corruption -----------------------------------------------------------------------------


def test_corrupt_records_are_fetched_again() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    converge(cluster)
    last_offset = cluster.append(leader, batch("a"))
    leader.replica.log.tail.clear()
    disk = cluster.disks[leader.node_id]
    intact = disk.batches[-1]
    disk.batches[-1] = intact[:-1] + bytes([intact[-1] ^ 1])
    cluster.run(100)
    assert "corrupt_fetch" in {trace.event for _, trace in cluster.traces}
    assert {node.end_offset for node in others(cluster, leader)} == {last_offset}
    disk.batches[-1] = intact
    converge(cluster)


# --- describing -----------------------------------------------------------------------------


def describe_request(topic: str = METADATA_TOPIC) -> DescribeQuorumRequest:
    partition = QuorumPartition(partition_index=0)
    return DescribeQuorumRequest(topics=(QuorumTopic(topic_name=topic, partitions=(partition,)),))


def test_leader_describes_voters_and_observers() -> None:
    cluster = Replicas([1, 2, 3, 10], voters=[1, 2, 3])
    leader = cluster.elect()
    cluster.append(leader, batch("a"))
    converge(cluster)
    answer = cluster.ask(leader.node_id, describe_request())
    assert isinstance(answer, DescribeQuorumResponse)
    partition = answer.topics[0].partitions[0]
    assert (partition.leader_id, partition.high_watermark) == (leader.node_id, 2)
    assert [voter.replica_id for voter in partition.current_voters] == [1, 2, 3]
    assert {voter.log_end_offset for voter in partition.current_voters} == {2}
    assert [observer.replica_id for observer in partition.observers] == [10]
    assert partition.observers[0].last_caught_up_timestamp > 0
    assert [node.node_id for node in answer.nodes] == [1, 2, 3]
    assert answer.nodes[0].listeners[0].name == "CONTROLLER"


def test_silent_observer_is_forgotten() -> None:
    cluster = Replicas([1, 2, 3, 10], voters=[1, 2, 3], observer_session_ms=5000)
    leader = cluster.elect()
    cluster.run(100)
    cluster.crash(10)
    cluster.run(6000)
    answer = cluster.ask(leader.node_id, describe_request())
    assert isinstance(answer, DescribeQuorumResponse)
    assert answer.topics[0].partitions[0].observers == ()


def test_dead_voter_stays_described_at_its_last_fetch() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.run(100)
    dead = others(cluster, leader)[0].node_id
    cluster.crash(dead)
    cluster.append(leader, batch("a"))
    cluster.run(1000)
    answer = cluster.ask(leader.node_id, describe_request())
    assert isinstance(answer, DescribeQuorumResponse)
    voters = {v.replica_id: v for v in answer.topics[0].partitions[0].current_voters}
    assert voters[dead].log_end_offset == 1
    assert voters[dead].last_fetch_timestamp < cluster.now_ms - 900
    assert voters[leader.node_id].last_fetch_timestamp == cluster.now_ms


def test_follower_does_not_describe_the_quorum() -> None:
    cluster = Replicas()
    follower = others(cluster, cluster.elect())[0]
    answer = cluster.ask(follower.node_id, describe_request())
    assert isinstance(answer, DescribeQuorumResponse)
    assert answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_only_the_metadata_log_has_a_quorum() -> None:
    """As in Kafka, each partition has the error and the answer has none."""
    cluster = Replicas()
    leader = cluster.elect()
    answer = cluster.ask(leader.node_id, describe_request("other"))
    assert isinstance(answer, DescribeQuorumResponse)
    (topic,) = answer.topics
    assert topic.partitions[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_code is ErrorCode.NONE
    nothing = cluster.ask(leader.node_id, DescribeQuorumRequest(topics=()))
    assert isinstance(nothing, DescribeQuorumResponse)
    assert (nothing.error_code, nothing.topics) == (ErrorCode.NONE, ())


def test_describe_shows_how_far_each_voter_is() -> None:
    cluster = Replicas([1, 2, 3, 10], voters=[1, 2, 3])
    leader = cluster.elect()
    cluster.run(50)
    assert "observer 10 at 1" in leader.describe()
    assert f"node {leader.node_id} leader epoch=1" in leader.describe()
    assert "majority" in leader.describe()
    assert leader.facts()["role"] == "leader"


# --- cost -----------------------------------------------------------------------------------


def test_idle_quorum_is_quiet() -> None:
    cluster = Replicas()
    cluster.elect()
    cluster.run(1000)
    cluster.sent.clear()
    cluster.run(10_000)
    fetches = [send for _, send in cluster.sent if isinstance(send.body, FetchRequest)]
    assert len(fetches) <= 2 * 20 + 4, "two followers, a parked fetch each every 500 ms"
    assert len(cluster.sent) - len(fetches) <= 2 * 10 + 2, "and one announcement a second"


def test_lonely_voter_asks_at_a_bounded_rate() -> None:
    cluster = Replicas()
    for node_id in (2, 3):
        cluster.crash(node_id)
    cluster.sent.clear()
    cluster.run(10_000)
    assert len(cluster.sent) <= 10_000 // 20 * 2 + 10


def test_fetch_at_a_follower_names_the_leader_and_where_it_is() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    follower = others(cluster, leader)[0]
    fetches = [send.body for _, send in cluster.sent if isinstance(send.body, FetchRequest)]
    answer = cluster.ask(follower.node_id, fetches[-1])
    assert isinstance(answer, FetchResponse)
    partition = answer.responses[0].partitions[0]
    assert partition.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.current_leader.leader_id == leader.node_id
    assert [(node.node_id, node.port) for node in answer.node_endpoints] == [
        (leader.node_id, 9000 + leader.node_id)
    ]


def test_one_request_at_a_time_is_in_flight_to_a_node() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.run(50)
    follower = others(cluster, leader)[0]
    sends = [effect for effect in follower.take_effects() if isinstance(effect, Send)]
    follower.settle(cluster.now_ms)
    assert [effect for effect in follower.take_effects() if isinstance(effect, Send)] == sends == []


# --- turns -----------------------------------------------------------------------------------


NOBODY = Endpoint(9, "nobody", 9)
DECISIVE: dict[str, Event] = {
    "vote": Request(
        token=1,
        body=vote_request(
            config(2), ReplicaKey(1), epoch=2, last=OffsetAndEpoch(0, 0), pre_vote=False
        ),
    ),
    "begin": Request(token=1, body=begin_request(config(2), ReplicaKey(1), epoch=2, leader=NOBODY)),
    "end": Request(token=1, body=end_request(config(2), epoch=2, preferred=(), leader=NOBODY)),
    "add": Request(token=1, body=addition(4)),
    "remove": Request(token=1, body=removal(2)),
    "update": Request(token=1, body=update(2, 1)),
    "response": Response(token=Token(OWNER, 1), body=FetchResponse(responses=())),
    "no response": RequestFailed(token=Token(OWNER, 1), failure=Failure.TIMED_OUT),
    "failure": StorageFailed(token=Token(OWNER, 1), log=METADATA_LOG, reason="gone"),
    "snapshot": SnapshotRead(token=Token(OWNER, 1), log=METADATA_LOG, size_bytes=-1, records=b""),
}


@pytest.mark.parametrize("event", DECISIVE.values(), ids=DECISIVE)
def test_what_may_change_role_epoch_or_voters_has_those_before_it_settled(event: Event) -> None:
    assert Replicas([1]).nodes[1].ends_batch(event)


@pytest.mark.parametrize("owner", [OWNER, "controller"])
def test_what_the_disk_and_other_owners_are_told_ends_no_batch(owner: str) -> None:
    node = Replicas([1]).nodes[1]
    assert not node.ends_batch(Stored(token=Token(owner, 1), log=METADATA_LOG))
    assert not node.ends_batch(ReadDone(token=Token(owner, 1), log=METADATA_LOG, records=b""))
    assert not node.ends_batch(Response(token=Token("controller", 1), body="x"))
