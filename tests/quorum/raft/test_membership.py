"""Voters that change while the quorum runs: KIP-853."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from quorum.core.types import ReplicaKey
from quorum.raft import membership
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Follower, Leader, name_of
from tests.quorum.replicas import (
    CLUSTER_ID,
    LATENCY_MS,
    Replicas,
    dynamic_voter,
    listeners,
    replica_key,
)
from wire.batch import data_batch, read_header, records_of
from wire.control_records import KRaftVersion, LeaderChange, VoterEndpoint, Voters, decode_control
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    CurrentLeader,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    KRaftVersionFeature,
    QuorumPartition,
    QuorumTopic,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from wire.primitives import METADATA_TOPIC

NOBODY = UUID(int=7)
ANSWERS: dict[type, type] = {
    AddRaftVoterRequest: AddRaftVoterResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
    UpdateRaftVoterRequest: UpdateRaftVoterResponse,
}


def batch(text: str) -> bytes:
    return data_batch([text.encode()], timestamp_ms=0)


def addition(node_id: int, *, disk: int = 0, **fields: object) -> AddRaftVoterRequest:
    said = {
        "timeout_ms": 1000,
        "voter_id": node_id,
        "voter_directory_id": replica_key(node_id, disk).directory_id,
        "listeners": wire_listeners(node_id),
    }
    return AddRaftVoterRequest(**(said | fields))  # type: ignore[arg-type] # named by the test


def removal(node_id: int, **fields: object) -> RemoveRaftVoterRequest:
    said = {"voter_id": node_id, "voter_directory_id": replica_key(node_id).directory_id}
    return RemoveRaftVoterRequest(**(said | fields))  # type: ignore[arg-type] # named by the test


def update(node_id: int, epoch: int, **fields: object) -> UpdateRaftVoterRequest:
    said = {
        "current_leader_epoch": epoch,
        "voter_id": node_id,
        "voter_directory_id": replica_key(node_id).directory_id,
        "listeners": wire_listeners(node_id),
        "k_raft_version_feature": versions(0, 1),
    }
    return UpdateRaftVoterRequest(**(said | fields))  # type: ignore[arg-type] # named by the test


def versions(lowest: int, highest: int) -> KRaftVersionFeature:
    return KRaftVersionFeature(min_supported_version=lowest, max_supported_version=highest)


def wire_listeners(node_id: int, name: str = "CONTROLLER") -> tuple[Listener, ...]:
    return tuple(Listener(name=name, host=e.host, port=e.port) for e in listeners(node_id))


def error_of(answer: object) -> ErrorCode:
    assert isinstance(
        answer, AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse
    )
    return answer.error_code


def ask(cluster: Replicas, node: RaftNode, body: object) -> ErrorCode:
    answer = cluster.ask(node.node_id, body)
    assert isinstance(answer, ANSWERS[type(body)])
    return error_of(answer)


def led(
    ids: tuple[int, ...] = (1, 2, 3), initial: tuple[int, ...] = (1,), **settings: Any
) -> tuple[Replicas, RaftNode]:
    """A quorum whose observers have caught up."""
    cluster = Replicas(ids, initial=initial, **settings)
    leader = cluster.elect()
    catch_up(cluster, leader)
    return cluster, leader


def catch_up(cluster: Replicas, leader: RaftNode) -> None:
    def have_all() -> bool:
        ends = {node.end_offset for node in cluster.nodes.values()}
        return ends == {leader.end_offset} and leader.high_watermark == leader.end_offset

    assert cluster.run_until(have_all), cluster.describe()
    cluster.run(600)  # the next Fetch of each says so


def move(node: RaftNode) -> tuple[VoterEndpoint, ...]:
    """As if it were started with another listener; the port stays, by which tests find it."""
    moved = (VoterEndpoint(name="CONTROLLER", host="elsewhere", port=9000 + node.node_id),)
    node.replica.config = replace(node.replica.config, listeners=moved)
    return moved


def described(cluster: Replicas, leader: RaftNode) -> tuple[list[int], list[int]]:
    """The voters and observers that DescribeQuorum tells."""
    partition = QuorumPartition(partition_index=0)
    topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
    answer = cluster.ask(leader.node_id, DescribeQuorumRequest(topics=(topic,)))
    assert isinstance(answer, DescribeQuorumResponse), answer
    told = answer.topics[0].partitions[0]
    return (
        [state.replica_id for state in told.current_voters],
        [state.replica_id for state in told.observers],
    )


def voter_ids(cluster: Replicas) -> set[tuple[int, ...]]:
    """The voters as every replica knows them."""
    return {node.replica.voters.ids for node in cluster.nodes.values()}


def agree_on(cluster: Replicas, *ids: int) -> None:
    assert cluster.run_until(lambda: voter_ids(cluster) == {ids}), cluster.describe()


# --- the beginning ---------------------------------------------------------------------------


def test_first_leader_writes_the_voters_that_it_was_formatted_with() -> None:
    cluster, leader = led()
    first = cluster.disks[leader.node_id].batches[0]
    records = [decode_control(record) for record in records_of(first)]
    change, version, voters = records
    assert isinstance(change, LeaderChange)
    assert (change.version, change.voters[0].voter_id) == (0, 1)
    assert version == KRaftVersion(kraft_version=1)
    assert isinstance(voters, Voters)
    assert [voter.voter_directory_id for voter in voters.voters] == [replica_key(1).directory_id]
    assert voter_ids(cluster) == {(1,)}
    assert {node.kraft_version for node in cluster.nodes.values()} == {1}


def test_next_leader_repeats_the_voters_only_if_they_are_not_in_the_log() -> None:
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    cluster.crash(leader.node_id)
    second = cluster.elect()
    begins = [b for b in cluster.disks[second.node_id].batches if read_header(b).is_control]
    assert [len(list(records_of(b))) for b in begins] == [3, 1]


def test_leader_that_has_moved_says_so_with_its_first_records() -> None:
    cluster, leader = led((1,))
    moved = move(leader)
    end_offset = leader.end_offset
    leader.resign(cluster.now_ms)  # a sole voter leads again, in a new epoch
    cluster.settle(1)
    cluster.run(3)
    assert leader.replica.history.latest.voters_offset > end_offset
    assert leader.replica.voters.voters[0].listeners == moved


# --- AddRaftVoter ----------------------------------------------------------------------------


def test_observer_that_has_caught_up_becomes_a_voter() -> None:
    cluster, leader = led()
    assert ask(cluster, leader, addition(2)) is ErrorCode.NONE
    assert leader.replica.voters.keys == (replica_key(1), replica_key(2))
    agree_on(cluster, 1, 2)
    assert ask(cluster, leader, addition(3)) is ErrorCode.NONE
    agree_on(cluster, 1, 2, 3)
    cluster.crash(leader.node_id)
    second = cluster.elect()
    assert second.node_id in (2, 3)


def test_new_voter_counts_from_the_moment_that_it_is_written() -> None:
    cluster, leader = led((1, 2))
    cluster.disks[2].is_held = True  # what it fetches, it cannot confirm
    answers: list[object] = []
    cluster.later_ask(1, addition(2), answers.append)
    assert cluster.run_until(lambda: len(leader.replica.voters) == 2)
    offset = cluster.append(leader, batch("a"))
    cluster.run(100)
    assert not answers
    assert (leader.high_watermark or 0) <= offset
    cluster.sync(2)
    assert cluster.run_until(lambda: bool(answers))
    assert error_of(answers[0]) is ErrorCode.NONE
    assert cluster.run_until(lambda: (leader.high_watermark or 0) > offset)


def test_answer_may_come_before_the_commit_if_that_is_asked_for() -> None:
    cluster, leader = led((1, 2))
    cluster.disks[2].is_held = True
    assert ask(cluster, leader, addition(2, ack_when_committed=False)) is ErrorCode.NONE
    assert leader.replica.history.latest.voters_offset >= (leader.high_watermark or 0)
    refused = ask(cluster, leader, removal(2))
    assert refused is ErrorCode.REQUEST_TIMED_OUT, "it is still under way"
    cluster.sync(2)
    cluster.run(1000)
    assert ask(cluster, leader, removal(2)) is ErrorCode.NONE


def test_change_that_is_not_committed_in_time_is_answered_and_may_still_happen() -> None:
    cluster, leader = led((1, 2))
    cluster.disks[2].is_held = True
    assert ask(cluster, leader, addition(2)) is ErrorCode.REQUEST_TIMED_OUT
    assert leader.replica.voters.ids == (1, 2)
    assert ask(cluster, leader, removal(2)) is ErrorCode.REQUEST_TIMED_OUT
    cluster.sync(2)
    cluster.run(1000)
    assert ask(cluster, leader, removal(2)) is ErrorCode.NONE


def test_replica_that_does_not_answer_is_not_added() -> None:
    cluster, leader = led()
    cluster.crash(3)
    assert ask(cluster, leader, addition(3)) is ErrorCode.REQUEST_TIMED_OUT
    assert leader.replica.voters.ids == (1,)
    assert ask(cluster, leader, addition(2)) is ErrorCode.NONE, "nothing is left of it"


def test_other_request_that_fails_meanwhile_says_nothing_of_the_new_voter() -> None:
    cluster, leader = led((1, 2))
    answers: list[object] = []
    cluster.later_ask(1, addition(2), answers.append)
    cluster.run(LATENCY_MS)
    assert isinstance(leader.role, Leader)
    assert leader.role.change is not None
    membership.versions_told(leader.replica, leader.role, -1, None, cluster.now_ms)
    assert cluster.run_until(lambda: bool(answers))
    assert error_of(answers[0]) is ErrorCode.NONE


def test_replica_that_has_never_fetched_is_not_added() -> None:
    cluster, leader = led()
    stranger = addition(3, voter_directory_id=NOBODY)
    assert ask(cluster, leader, stranger) is ErrorCode.REQUEST_TIMED_OUT
    assert leader.replica.voters.ids == (1,)


@pytest.mark.parametrize(
    ("ago_ms", "error", "voters"),
    [(1000, ErrorCode.REQUEST_TIMED_OUT, (1,)), (999, ErrorCode.NONE, (1, 2))],
)
def test_replica_that_was_not_heard_of_for_long_is_not_added(
    ago_ms: int, error: ErrorCode, voters: tuple[int, ...]
) -> None:
    cluster, leader = led(caught_up_within_ms=1000)
    assert isinstance(leader.role, Leader)
    told_ms = cluster.now_ms + 2 * LATENCY_MS  # its versions, by which the leader decides
    leader.role.observers[replica_key(2)].last_fetch_ms = told_ms - ago_ms
    assert ask(cluster, leader, addition(2)) is error
    assert leader.replica.voters.ids == voters


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (addition(2, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (addition(2, cluster_id=CLUSTER_ID, voter_id=-1), ErrorCode.INVALID_REQUEST),
        (addition(2, voter_directory_id=UUID(int=0)), ErrorCode.INVALID_REQUEST),
        (addition(2, listeners=()), ErrorCode.INVALID_REQUEST),
        (addition(2, listeners=wire_listeners(2, "OTHER")), ErrorCode.INVALID_REQUEST),
        (
            addition(2, voter_id=0),
            ErrorCode.REQUEST_TIMED_OUT,
        ),  # as good as any
        (addition(1), ErrorCode.DUPLICATE_VOTER),
        (addition(1, disk=1), ErrorCode.DUPLICATE_VOTER),
        (removal(1, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (removal(1, voter_directory_id=UUID(int=0)), ErrorCode.INVALID_REQUEST),
        (removal(2), ErrorCode.VOTER_NOT_FOUND),
        (removal(1, voter_directory_id=NOBODY), ErrorCode.VOTER_NOT_FOUND),
        (removal(1), ErrorCode.VOTER_NOT_FOUND),  # the last one
        (update(1, 1, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (update(1, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (update(2, -1), ErrorCode.FENCED_LEADER_EPOCH),
        (update(1, 2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (update(1, 1, listeners=()), ErrorCode.INVALID_REQUEST),
        (update(1, 1, k_raft_version_feature=versions(1, 0)), ErrorCode.INVALID_REQUEST),
        (update(1, 1, k_raft_version_feature=versions(0, 0)), ErrorCode.INVALID_REQUEST),
        (update(2, 1), ErrorCode.VOTER_NOT_FOUND),
        (update(1, 1), ErrorCode.NONE),
    ],
)
def test_leader_refuses_what_cannot_be(body: object, error: ErrorCode) -> None:
    cluster, leader = led()
    end_offset = leader.end_offset
    assert ask(cluster, leader, body) is error
    assert leader.end_offset == end_offset


@pytest.mark.parametrize("body", [addition(3), removal(1), update(2, 1)])
def test_only_the_leader_changes_voters(body: object) -> None:
    cluster, _ = led()
    assert ask(cluster, cluster.nodes[2], body) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("body", [addition(4), removal(1)])
def test_static_voters_cannot_be_changed(body: object) -> None:
    cluster = Replicas([1, 2, 3, 4], voters=[1, 2, 3])
    leader = cluster.elect()
    assert ask(cluster, leader, body) is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("body", [addition(4), removal(1), removal(2)])
def test_no_change_before_a_commit_in_the_own_epoch(body: object) -> None:
    """R7: the voters of an earlier leader that we do not know of may not be those that we know."""
    cluster, leader = led((1, 2, 3, 4), initial=(1, 2, 3))
    assert isinstance(leader.role, Leader)
    leader.role.high_watermark = None
    cluster.isolate(leader.node_id)
    end_offset = leader.end_offset
    assert ask(cluster, leader, body) is ErrorCode.REQUEST_TIMED_OUT
    assert leader.end_offset == end_offset


def test_static_voter_may_come_with_another_disk() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    cluster.run(100)
    follower = next(each for each in cluster.ids if each != leader.node_id)
    for disk in (UUID(int=8), NOBODY):
        told = update(follower, leader.role.epoch, voter_directory_id=disk)
        assert ask(cluster, leader, told) is ErrorCode.NONE


def test_voter_of_a_replica_without_a_leader_is_told_the_epoch() -> None:
    cluster = Replicas()
    answer = cluster.ask(1, update(1, 0))
    assert isinstance(answer, UpdateRaftVoterResponse)
    assert answer.current_leader == CurrentLeader(leader_id=-1, leader_epoch=0)


def test_replica_that_was_asked_just_before_is_not_asked_again() -> None:
    cluster, leader = led((1, 2, 3, 4), initial=(1, 2, 3))
    leader.replica.peers.back_off(4, cluster.now_ms + 10)
    sent = len(cluster.sent)
    assert ask(cluster, leader, addition(4)) is ErrorCode.REQUEST_TIMED_OUT
    assert len(cluster.sent) == sent


# --- RemoveRaftVoter -------------------------------------------------------------------------


def test_removed_follower_follows_on_as_an_observer() -> None:
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    gone = next(node_id for node_id in cluster.ids if node_id != leader.node_id)
    assert ask(cluster, leader, removal(gone)) is ErrorCode.NONE
    assert cluster.run_until(lambda: not cluster.nodes[gone].replica.is_voter)
    cluster.run(10_000)
    assert isinstance(cluster.nodes[gone].role, Follower)
    assert cluster.elect() is leader, "and deposes nobody"
    assert isinstance(leader.role, Leader)
    assert replica_key(gone) in leader.role.observers


def test_voter_is_not_removed_in_the_name_of_another_disk() -> None:
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    cluster.run(100)
    body = removal(2, voter_directory_id=NOBODY)
    assert ask(cluster, leader, body) is ErrorCode.VOTER_NOT_FOUND


def test_dead_voter_can_be_removed_by_those_that_are_left() -> None:
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    dead = next(node_id for node_id in cluster.ids if node_id != leader.node_id)
    cluster.crash(dead)
    assert ask(cluster, leader, removal(dead)) is ErrorCode.NONE
    agree_on(cluster, *(node_id for node_id in (1, 2, 3) if node_id != dead))


def test_leader_that_is_removed_leads_until_that_is_committed_and_then_resigns() -> None:
    """R8, and thesis 4.2.2: it does not count itself meanwhile."""
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    left = leader.node_id
    others = [node_id for node_id in cluster.ids if node_id != left]
    for node_id in others:
        cluster.disks[node_id].is_held = True
    answers: list[object] = []
    cluster.later_ask(left, removal(left), answers.append)
    cluster.run(200)
    assert isinstance(leader.role, Leader)
    assert not leader.replica.is_voter
    assert not answers
    voters, observers = described(cluster, leader)
    assert (voters, left in observers) == (others, True), "it leads, and is no voter any more"
    cluster.sync(others[0])
    cluster.run(200)
    assert not answers, "one of the two others is no majority of them"
    cluster.sync(others[1])
    assert cluster.run_until(lambda: bool(answers))
    assert error_of(answers[0]) is ErrorCode.NONE
    assert not isinstance(leader.role, Leader)
    second = cluster.elect()
    assert second.node_id in others
    assert voter_ids(cluster) == {tuple(others)}
    assert name_of(cluster.nodes[left].role) == "follower"
    cluster.append(second, batch("a"))
    catch_up(cluster, second)


def test_removed_leader_leaves_two_and_then_one() -> None:
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    for count in (2, 1):
        assert ask(cluster, leader, removal(leader.node_id)) is ErrorCode.NONE
        leader = cluster.elect()
        assert len(leader.replica.voters) == count
        catch_up(cluster, leader)
    assert leader.replica.is_sole_voter


def test_leader_that_loses_its_office_says_so_to_who_waits_for_a_change() -> None:
    cluster, leader = led((1, 2, 3, 4), initial=(1, 2, 3), request_timeout_ms=60_000)
    cluster.cut |= {(a, b) for a in (1, 2, 3, 4) for b in (1, 2, 3, 4) if a != b}
    answers: list[object] = []
    cluster.later_ask(leader.node_id, removal(leader.node_id), answers.append)
    assert cluster.run_until(lambda: bool(answers))
    assert error_of(answers[0]) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not isinstance(leader.role, Leader)


# --- the histories that break single-server changes --------------------------------------------


def test_uncommitted_voters_are_taken_back_with_the_log() -> None:
    cluster, leader = led((1, 2, 3, 4), initial=(1, 2, 3))
    old = leader.node_id
    answers: list[object] = []
    cluster.cut |= {(old, other) for other in cluster.ids} | {(other, old) for other in (1, 2, 3)}
    others = [node_id for node_id in (1, 2, 3) if node_id != old]
    cluster.later_ask(old, removal(others[0]), answers.append)
    cluster.run(100)
    assert leader.replica.voters.ids == tuple(sorted({old, others[1]}))
    assert cluster.run_until(
        lambda: any(isinstance(cluster.nodes[node_id].role, Leader) for node_id in others)
    )
    cluster.run(3000)
    cluster.heal()
    agree_on(cluster, 1, 2, 3)
    second = cluster.elect()
    cluster.append(second, batch("a"))
    catch_up(cluster, second)
    assert cluster.nodes[old].replica.voters == second.replica.voters


def test_two_leaders_with_changes_of_their_own_never_have_majorities_apart() -> None:
    """R7: of voters 1 to 4, leader 1 removes 2 unheard, leader 2 would add 5 at once."""
    cluster, leader = led((1, 2, 3, 4, 5), initial=(1, 2, 3, 4))
    first = leader.node_id
    cluster.cut |= {(first, other) for other in cluster.ids}
    cluster.cut |= {(other, first) for other in cluster.ids}
    removed = next(node_id for node_id in (1, 2, 3, 4) if node_id != first)
    cluster.later_ask(first, removal(removed), lambda answer: None)
    cluster.run(50)
    assert len(leader.replica.voters) == 3
    assert cluster.run_until(lambda: set(cluster.leaders()) - {first} != set())
    second = cluster.nodes[(set(cluster.leaders()) - {first}).pop()]
    if second.high_watermark is None:
        assert ask(cluster, second, addition(5)) is ErrorCode.REQUEST_TIMED_OUT
    assert cluster.run_until(lambda: second.high_watermark is not None)
    cluster.run(5000)  # the observer finds the new leader
    assert ask(cluster, second, addition(5)) is ErrorCode.NONE
    cluster.heal()
    agree_on(cluster, 1, 2, 3, 4, 5)
    by_epoch: dict[int, int] = {}
    for node_id, trace in cluster.traces:
        fields = dict(trace.fields)
        if trace.event == "role" and fields["role"] == "leader":
            epoch = fields["epoch"]
            assert isinstance(epoch, int)
            assert by_epoch.setdefault(epoch, node_id) == node_id, "two leaders of an epoch"


def test_wiped_voter_is_an_observer_until_it_is_added_again() -> None:
    """R2: it has forgotten its vote, so that it may not vote under its old name."""
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    wiped = next(node_id for node_id in cluster.ids if node_id != leader.node_id)
    cluster.wipe(wiped)
    catch_up(cluster, leader)
    assert not cluster.nodes[wiped].replica.is_voter
    assert cluster.nodes[wiped].replica.voters.ids == (1, 2, 3)
    assert isinstance(leader.role, Leader)
    assert leader.role.progress[wiped].key == replica_key(wiped)
    assert replica_key(wiped, 1) in leader.role.observers
    again = addition(wiped, disk=1)
    assert ask(cluster, leader, again) is ErrorCode.DUPLICATE_VOTER
    assert ask(cluster, leader, removal(wiped)) is ErrorCode.NONE
    assert ask(cluster, leader, again) is ErrorCode.NONE
    assert cluster.run_until(lambda: cluster.nodes[wiped].replica.is_voter)
    assert leader.replica.voters.get(wiped) is not None
    assert leader.replica.voters.contains(replica_key(wiped, 1))


def test_wiped_voter_neither_votes_nor_counts() -> None:
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3))
    others = [node_id for node_id in cluster.ids if node_id != leader.node_id]
    cluster.wipe(others[0])
    catch_up(cluster, leader)
    cluster.crash(others[1])
    cluster.crash(leader.node_id)
    cluster.run(6000)
    assert cluster.leaders() == []
    cluster.start(others[1])
    cluster.run(6000)
    assert cluster.leaders() == [], "one of the old voters is no majority, and it asks in vain"
    cluster.start(leader.node_id)
    assert cluster.elect().node_id != others[0]


# --- what voters tell by themselves ------------------------------------------------------------


def test_voter_that_has_moved_has_the_record_corrected() -> None:
    cluster, leader = led((1, 2, 3), initial=(1, 2, 3), fetch_timeout_ms=500)
    voter = next(node for node in cluster.nodes.values() if node is not leader)
    moved = move(voter)

    def is_known() -> bool:
        known = leader.replica.voters.get(voter.node_id)
        return known is not None and known.listeners == moved

    assert cluster.run_until(is_known)
    end_offset = leader.end_offset
    cluster.run(5000)
    assert leader.end_offset == end_offset, "once is enough"


def test_static_voters_move_to_the_log_once_all_have_told_that_they_can() -> None:
    cluster = Replicas([1, 2, 3], fetch_timeout_ms=500)
    for node_id, node in cluster.nodes.items():
        node.replica.config = replace(node.replica.config, listeners=listeners(node_id))
    leader = cluster.elect()
    why = leader.raise_kraft_version(1, cluster.now_ms)
    assert why is not None
    assert "have not said" in why
    cluster.run(3000)
    assert leader.raise_kraft_version(1, cluster.now_ms) is None
    cluster.settle(leader.node_id)
    agree_on(cluster, 1, 2, 3)
    assert cluster.run_until(lambda: {node.kraft_version for node in cluster.nodes.values()} == {1})
    assert leader.replica.voters.voters == tuple(map(dynamic_voter, (1, 2, 3)))
    assert leader.raise_kraft_version(1, cluster.now_ms) is None
    assert leader.raise_kraft_version(0, cluster.now_ms) is not None
    cluster.run(1000)
    assert ask(cluster, leader, removal(leader.node_id)) is ErrorCode.NONE


def test_old_voter_keeps_the_voters_static() -> None:
    cluster = Replicas([1, 2, 3], fetch_timeout_ms=500)
    leader = cluster.elect()
    cluster.run(3000)
    why = leader.raise_kraft_version(1, cluster.now_ms)
    assert why is not None
    follower = next(node for node in cluster.nodes.values() if node is not leader)
    assert follower.raise_kraft_version(1, cluster.now_ms) == "this node does not lead the quorum"


def test_observer_may_join_by_itself_also_in_the_place_of_its_former_disk() -> None:
    """KIP-1186."""
    cluster, leader = led((1, 2, 3), initial=(1, 2), auto_join=True, fetch_timeout_ms=500)
    agree_on(cluster, 1, 2, 3)
    wiped = next(node_id for node_id in cluster.ids if node_id != leader.node_id)
    cluster.wipe(wiped)
    assert cluster.run_until(lambda: leader.replica.voters.contains(replica_key(wiped, 1)))
    agree_on(cluster, 1, 2, 3)


# --- restarts --------------------------------------------------------------------------------


def test_voters_of_the_log_are_those_after_a_restart() -> None:
    cluster, leader = led()
    assert ask(cluster, leader, addition(2)) is ErrorCode.NONE
    agree_on(cluster, 1, 2)
    for node_id in cluster.ids:
        cluster.crash(node_id)
    for node_id in cluster.ids:
        cluster.start(node_id)
    assert voter_ids(cluster) == {(1, 2)}
    assert cluster.elect().node_id in (1, 2)
    assert not cluster.nodes[3].replica.is_voter


def test_key_without_a_directory_is_none_of_the_voters_of_the_log() -> None:
    _, leader = led((1, 2, 3), initial=(1, 2, 3))
    assert not leader.replica.voters.contains(ReplicaKey(2))
    assert leader.replica.voters.contains(replica_key(2))
