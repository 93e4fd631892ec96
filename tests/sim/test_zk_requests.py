"""Requests of administrators in ZooKeeper mode: reassignments and elections."""

from functools import partial
from uuid import UUID

import pytest

from jepsen_like.clients.admin_client import reassignment
from quorum.zookeeper import zk_procedures
from tests.sim.zookeeper import Administrator, Producer, Scene, T, begin, fetches_of, nothing, of
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
)
from wire.messages.producing import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.messages.voters import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest
from wire.zk import paths
from wire.zk.control_rpc import StopReplicaRequest
from wire.zk.designs import DESIGNS, ZK_KIP497, ZK_REDESIGN, ZK_V3, Design
from wire.zk.session import Create, Delete, SetData
from wire.zk.znodes import Reassignments, TopicAssignment

KAFKA_PATHS = pytest.mark.parametrize(
    "design", [ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name
)


class Client:
    """Asks the active controller."""

    def __init__(self, cluster: Scene) -> None:
        self._cluster = cluster
        self._client = Producer(cluster)

    def ask(self, body: object) -> object:
        controller = self._cluster.active_controller
        assert controller is not None
        answers = self._client.ask(controller, body)
        self._cluster.run_until(lambda: bool(answers))
        return answers[0]

    def reassign(self, replicas: tuple[int, ...] | None) -> ErrorCode:
        """None cancels."""
        answer = self.ask(reassignment("t-0", replicas))
        assert isinstance(answer, AlterPartitionReassignmentsResponse)
        (result,) = answer.responses
        return result.partitions[0].error_code

    def under_way(self) -> list[OngoingPartitionReassignment]:
        answer = self.ask(ListPartitionReassignmentsRequest())
        assert isinstance(answer, ListPartitionReassignmentsResponse)
        return [each for topic in answer.topics for each in topic.partitions]


def with_topic(design: Design, replicas: tuple[int, ...]) -> Scene:
    cluster = begin(design)
    Administrator(cluster).create_topic("t", {0: replicas})
    cluster.run_until(lambda: cluster.leaders() == [replicas[0]])
    cluster.run(300)
    return cluster


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name)
def test_reassignment_is_listed_until_it_is_done(design: Design) -> None:
    cluster = with_topic(design, (1, 2))
    client = Client(cluster)
    cluster.network.takes = fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run(300)
    assert client.under_way() == [
        OngoingPartitionReassignment(
            partition_index=0, replicas=(2, 3, 1), adding_replicas=(3,), removing_replicas=(1,)
        )
    ]
    cluster.network.takes = nothing
    cluster.run_until(lambda: cluster.leaders() == [2] and cluster.replica(1) is None)
    cluster.run(300)
    assert client.under_way() == []


@KAFKA_PATHS
def test_topics_that_a_request_does_not_name_count_too(design: Design) -> None:
    """Their names do: metrics cannot tell a_b from a.b. One without partitions is none yet."""
    cluster = begin(design)
    admin = Administrator(cluster)
    admin.create_topic("a.b", {0: (1, 2)})
    admin.create_topic("empty", {})
    cluster.run_until(lambda: cluster.leaders(of("a.b")) == [1])
    cluster.run(300)
    client = Client(cluster)
    topic = CreatableTopic(name="a_b", num_partitions=1, replication_factor=1)
    created = client.ask(CreateTopicsRequest(topics=(topic,)))
    assert isinstance(created, CreateTopicsResponse)
    assert created.topics[0].error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    more = CreatePartitionsTopic(name="empty", count=2)
    extended = client.ask(CreatePartitionsRequest(topics=(more,)))
    assert isinstance(extended, CreatePartitionsResponse)
    assert extended.results[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@KAFKA_PATHS
def test_controller_does_not_answer_what_it_has_written_itself(design: Design) -> None:
    """While a partition waits to be in sync, ZooKeeper has nothing to do but to keep sessions."""
    cluster = with_topic(design, (1, 2))
    client, admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run(500)
    before = sum(cluster.ensemble.traffic.values())
    cluster.run(1000)
    assert sum(cluster.ensemble.traffic.values()) - before < 50
    assert not admin.has_moved()


def test_cancelled_reassignment_leaves_the_replicas_as_they_were() -> None:
    cluster = with_topic(ZK_KIP497, (1, 2))
    client, admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.replica(3) is not None)
    assert client.reassign(None) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.replica(3) is None)
    cluster.run(300)
    state, written = cluster.state(), admin.data(paths.topic("t"))
    assert written is not None
    assert (state.leader, set(state.isr)) == (1, {1, 2})
    assert set(TopicAssignment.decode(written).partitions[0]) == {1, 2}
    assert admin.has_moved()
    assert client.reassign(None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_redirected_reassignment_drops_what_was_added_for_the_earlier_target() -> None:
    cluster = with_topic(ZK_KIP497, (1,))
    client = Client(cluster)
    cluster.network.takes = fetches_of(2)
    assert client.reassign((2,)) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.replica(2) is not None)
    assert client.reassign((3,)) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.leaders() == [3])
    cluster.run(300)
    assert [cluster.replica(each) is None for each in (1, 2, 3)] == [True, True, False]
    assert client.under_way() == []


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "redirected"])
def test_broker_that_was_away_when_a_move_to_it_was_given_up_keeps_nothing_of_it(
    is_cancelled: bool,
) -> None:
    cluster = begin(ZK_KIP497)
    owner = cluster.controller
    client, admin = Client(cluster), Administrator(cluster)
    stays, away = cluster.others
    admin.create_topic("t", {0: (owner,)})
    cluster.run_until(lambda: cluster.leaders() == [owner])
    cluster.network.takes = fetches_of(away)
    assert client.reassign((owner, away)) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.replica(away) is not None)
    cluster.crash(away)
    cluster.run(2000)
    assert client.reassign(None if is_cancelled else (owner, stays)) is ErrorCode.NONE
    cluster.run_until(admin.has_moved)
    assert cluster.has_log(away)
    cluster.restart(away)
    cluster.run_until(lambda: not cluster.has_log(away))
    assert cluster.leaders() == [owner]


@KAFKA_PATHS
def test_broker_that_was_away_when_a_partition_moved_from_it_keeps_nothing_of_it(
    design: Design,
) -> None:
    cluster = begin(design)
    owner = cluster.controller
    client, admin = Client(cluster), Administrator(cluster)
    stays, away = cluster.others
    admin.create_topic("t", {0: (owner, away)})
    cluster.run_until(lambda: cluster.leaders() == [owner])
    cluster.crash(away)
    cluster.run(2000)
    assert client.reassign((owner, stays)) is ErrorCode.NONE
    if design.has_kip_455:
        cluster.run_until(admin.has_moved)
    else:
        cluster.run(2000)
    cluster.restart(away)
    cluster.run_until(lambda: not cluster.has_log(away))
    cluster.run_until(admin.has_moved)


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "redirected"])
def test_only_replica_in_sync_stays_until_another_is(is_cancelled: bool) -> None:
    """The old replica has died, and the one that was added has all there is."""
    cluster = begin(ZK_KIP497)
    owner = cluster.controller
    client, admin, producer = Client(cluster), Administrator(cluster), Producer(cluster)
    old, late = cluster.others
    admin.create_topic("t", {0: (old,)})
    cluster.run_until(lambda: cluster.leaders() == [old])
    cluster.network.takes = fetches_of(late)
    assert client.reassign((owner, late)) is ErrorCode.NONE
    cluster.run_until(lambda: owner in cluster.state().isr)
    cluster.crash(old)
    cluster.run_until(lambda: cluster.leaders() == [owner])
    answers = producer.send(owner, T, b"1")
    cluster.run_until(lambda: bool(answers))
    wanted = Reassignments(replicas={("t", 0): (old,) if is_cancelled else (late,)})
    admin.do(SetData(path=paths.REASSIGN_PARTITIONS, data=wanted.encode()))
    cluster.run(2000)
    assert cluster.leaders() == [owner]
    cluster.network.takes = nothing
    cluster.restart(old)
    target = old if is_cancelled else late
    cluster.run_until(lambda: cluster.leaders() == [target])
    cluster.run_until(lambda: cluster.replica(owner) is None)
    led = cluster.held(target)
    assert led.open_log.end_offset == 1


def test_partitions_move_together() -> None:
    """The commands of ten partitions are those of forty: one for each step and broker."""

    def commands(count: int) -> int:
        cluster = begin(ZK_KIP497)
        admin = Administrator(cluster)
        admin.create_topic("t", dict.fromkeys(range(count), (1, 2)))
        cluster.run_until(lambda: all(cluster.leaders(of("t", n)) for n in range(count)))
        cluster.run(1000)
        owner = cluster.controller
        context = cluster.nodes[owner].controller.context
        assert context is not None
        before = context.commands.sent
        wanted = Reassignments(replicas=dict.fromkeys((("t", n) for n in range(count)), (1, 3)))
        admin.do(Create(path=paths.REASSIGN_PARTITIONS, data=wanted.encode()))
        cluster.run_until(admin.has_moved)
        return context.commands.sent - before

    assert commands(10) == commands(40)


def test_reassignment_that_is_asked_for_while_another_contracts_follows_it() -> None:
    cluster = with_topic(ZK_KIP497, (1,))
    client, _admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = lambda message: (
        isinstance(message.body, StopReplicaRequest) and message.target == 1
    )
    assert client.reassign((2,)) is ErrorCode.NONE
    cluster.run_until(lambda: 2 in cluster.leaders())
    cluster.run(300)
    assert client.reassign((1, 3)) is ErrorCode.NONE
    cluster.run(1000)
    assert cluster.replica(3) is None, "broker 1 has not answered"
    cluster.network.takes = nothing
    cluster.run_until(lambda: set(cluster.state().isr) == {1, 3})
    cluster.run_until(lambda: cluster.replica(2) is None)
    cluster.run(300)
    assert client.under_way() == []


def test_next_controller_knows_what_cancelling_goes_back_to() -> None:
    cluster = with_topic(ZK_KIP497, (1, 2))
    client = Client(cluster)
    cluster.network.takes = fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.replica(3) is not None)
    Administrator(cluster).do(Delete(path=paths.CONTROLLER))
    cluster.run(500)
    (moving,) = client.under_way()
    assert (moving.adding_replicas, moving.removing_replicas) == ((3,), (1,))
    assert client.reassign(None) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.replica(3) is None)


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN], ids=lambda each: each.name)
def test_early_documents_have_no_way_to_cancel(design: Design) -> None:
    cluster = with_topic(design, (1, 2))
    client = Client(cluster)
    cluster.network.takes = fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run(300)
    assert client.reassign(None) is ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert client.reassign((1, 3)) is ErrorCode.REASSIGNMENT_IN_PROGRESS


def test_what_is_being_reassigned_is_not_reassigned_by_its_node_either() -> None:
    """The second criterion of seed 001."""
    cluster = with_topic(ZK_REDESIGN, (1,))
    client, admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = fetches_of(2)
    assert client.reassign((2,)) is ErrorCode.NONE
    cluster.run_until(lambda: cluster.replica(2) is not None)
    other = Reassignments(replicas={("t", 0): (3,)}).encode()
    admin.do(SetData(path=paths.REASSIGN_PARTITIONS, data=other))
    cluster.run(500)
    assert cluster.replica(3) is None
    written = admin.data(paths.REASSIGN_PARTITIONS)
    assert written is not None
    assert Reassignments.decode(written).replicas == {("t", 0): (2,)}, "what is done is written"
    cluster.network.takes = nothing
    cluster.run_until(lambda: cluster.leaders() == [2] and cluster.replica(1) is None)
    cluster.run(300)
    assert admin.has_moved()


@KAFKA_PATHS
def test_expansion_waits_for_the_old_replicas_before_kip_455(design: Design) -> None:
    """One that will be removed is not in sync; all that stay are."""
    cluster = with_topic(design, (1, 2))
    client, _admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = fetches_of(2)
    Producer(cluster).send(1, T, b"1")
    cluster.run_until(lambda: cluster.state().isr == (1,))
    assert client.reassign((1, 3)) is ErrorCode.NONE
    cluster.run_until(lambda: set(cluster.state().isr) == {1, 3})
    cluster.run(8000)
    assert bool(client.under_way()) is not design.has_kip_455
    assert (cluster.replica(2) is None) is design.has_kip_455
    cluster.network.takes = nothing
    cluster.run_until(lambda: cluster.replica(2) is None)
    cluster.run(300)
    assert client.under_way() == []


@KAFKA_PATHS
def test_preferred_leaders_are_elected_for_clients_by_the_znode(design: Design) -> None:
    cluster = begin(design)
    admin, client = Administrator(cluster), Client(cluster)
    preferred, rest = cluster.one_and_rest()
    admin.create_topic("t", {0: (preferred, *rest)})
    cluster.run_until(lambda: cluster.leaders() == [preferred])
    cluster.crash(preferred)
    cluster.run_until(lambda: cluster.leaders() == [rest[0]])
    assert elected(client) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    cluster.restart(preferred)
    cluster.run(3000)
    assert elected(client) == [ErrorCode.NONE]
    cluster.run_until(lambda: cluster.leaders() == [preferred])
    assert elected(client) == [], "nobody else needs one"
    assert elected(client, unclean=True) == ErrorCode.INVALID_REQUEST


def test_request_that_finds_the_queue_full_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = with_topic(ZK_REDESIGN, (1, 2))
    client = Client(cluster)
    monkeypatch.setattr(zk_procedures, "_WAITING_MAX", 0)
    answer = client.ask(CreateTopicsRequest(topics=(CreatableTopic(name="u"),), timeout_ms=1000))
    assert isinstance(answer, CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [ErrorCode.NOT_CONTROLLER]


def elected(client: Client, *, unclean: bool = False) -> list[ErrorCode] | ErrorCode:
    answer = client.ask(ElectLeadersRequest(election_type=int(unclean)))
    assert isinstance(answer, ElectLeadersResponse)
    if answer.error_code is not ErrorCode.NONE:
        return answer.error_code
    return [
        each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    ]


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN], ids=lambda each: each.name)
def test_broker_that_is_taken_for_the_controller_says_that_it_is_not(design: Design) -> None:
    cluster = begin(design)
    cluster.run_until(lambda: cluster.active_controller is not None)
    other = cluster.others[0]
    answer = Producer(cluster).told(other, AllocateProducerIdsRequest(broker_id=2, broker_epoch=1))
    assert isinstance(answer, AllocateProducerIdsResponse)
    assert answer.error_code is ErrorCode.NOT_CONTROLLER


VOTER = UUID(int=7)


@pytest.mark.parametrize(
    "body",
    [
        DescribeQuorumRequest(topics=()),
        AddRaftVoterRequest(timeout_ms=1000, voter_id=9, voter_directory_id=VOTER, listeners=()),
        RemoveRaftVoterRequest(voter_id=9, voter_directory_id=VOTER),
    ],
    ids=lambda body: type(body).__name__,
)
@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda each: each.name)
def test_what_only_a_quorum_can_answer_is_refused_by_all(design: Design, body: object) -> None:
    cluster = begin(design)
    cluster.run_until(lambda: not design.has_controller or cluster.active_controller is not None)
    for broker in (1, 2, 3):
        answers = Producer(cluster).ask(broker, body)
        cluster.run_until(partial(bool, answers))
        (answer,) = answers
        assert getattr(answer, "error_code", None) is ErrorCode.UNSUPPORTED_VERSION
