"""Requests of administrators in ZooKeeper mode: reassignments and elections."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

import pytest

from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster
from jepsen_like.sim.world.network import Message
from quorum.zookeeper import zk_procedures
from tests.sim.zookeeper import Administrator, Producer, begin, leaders, of, replica, state_of
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    ReassignablePartition,
    ReassignableTopic,
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

T = of("t")
KAFKA_PATHS = pytest.mark.parametrize(
    "design", [ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name
)


class Client:
    """Asks the active controller."""

    def __init__(self, cluster: ZkCluster) -> None:
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
        partition = ReassignablePartition(partition_index=0, replicas=replicas)
        topic = ReassignableTopic(name="t", partitions=(partition,))
        answer = self.ask(AlterPartitionReassignmentsRequest(topics=(topic,)))
        assert isinstance(answer, AlterPartitionReassignmentsResponse)
        (result,) = answer.responses
        return result.partitions[0].error_code

    def under_way(self) -> list[OngoingPartitionReassignment]:
        answer = self.ask(ListPartitionReassignmentsRequest())
        assert isinstance(answer, ListPartitionReassignmentsResponse)
        return [each for topic in answer.topics for each in topic.partitions]


def with_topic(design: Design, replicas: tuple[int, ...]) -> ZkCluster:
    cluster = begin(design)
    Administrator(cluster).create_topic("t", {0: replicas})
    cluster.run_until(lambda: leaders(cluster, T) == [replicas[0]])
    cluster.run(300)
    return cluster


def no_fetches_of(*brokers: int) -> Callable[[Message], bool]:
    return lambda message: message.channel == "replica-fetch" and message.source in brokers


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name)
def test_reassignment_is_listed_until_it_is_done(design: Design) -> None:
    cluster = with_topic(design, (1, 2))
    client = Client(cluster)
    cluster.network.takes = no_fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run(300)
    assert client.under_way() == [
        OngoingPartitionReassignment(
            partition_index=0, replicas=(2, 3, 1), adding_replicas=(3,), removing_replicas=(1,)
        )
    ]
    cluster.network.takes = no_fetches_of()
    cluster.run_until(lambda: leaders(cluster, T) == [2] and replica(cluster, 1, T) is None)
    cluster.run(300)
    assert client.under_way() == []


@KAFKA_PATHS
def test_topics_that_a_request_does_not_name_count_too(design: Design) -> None:
    """Their names do: metrics cannot tell a_b from a.b. One without partitions is none yet."""
    cluster = begin(design)
    admin = Administrator(cluster)
    admin.create_topic("a.b", {0: (1, 2)})
    admin.create_topic("empty", {})
    cluster.run_until(lambda: leaders(cluster, of("a.b")) == [1])
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
    cluster.network.takes = no_fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run(500)
    before = sum(cluster.ensemble.traffic.values())
    cluster.run(1000)
    assert sum(cluster.ensemble.traffic.values()) - before < 50
    assert admin.data(paths.REASSIGN_PARTITIONS) is not None


def test_cancelled_reassignment_leaves_the_replicas_as_they_were() -> None:
    cluster = with_topic(ZK_KIP497, (1, 2))
    client, admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = no_fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run_until(lambda: replica(cluster, 3, T) is not None)
    assert client.reassign(None) is ErrorCode.NONE
    cluster.run_until(lambda: replica(cluster, 3, T) is None)
    cluster.run(300)
    state, written = state_of(cluster, admin, T), admin.data(paths.topic("t"))
    assert state is not None
    assert written is not None
    assert (state.leader, set(state.isr)) == (1, {1, 2})
    assert set(TopicAssignment.decode(written).partitions[0]) == {1, 2}
    assert admin.data(paths.REASSIGN_PARTITIONS) is None
    assert client.reassign(None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_redirected_reassignment_drops_what_was_added_for_the_earlier_target() -> None:
    cluster = with_topic(ZK_KIP497, (1,))
    client = Client(cluster)
    cluster.network.takes = no_fetches_of(2)
    assert client.reassign((2,)) is ErrorCode.NONE
    cluster.run_until(lambda: replica(cluster, 2, T) is not None)
    assert client.reassign((3,)) is ErrorCode.NONE
    cluster.run_until(lambda: leaders(cluster, T) == [3])
    cluster.run(300)
    assert [replica(cluster, each, T) is None for each in (1, 2, 3)] == [True, True, False]
    assert client.under_way() == []


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "redirected"])
def test_broker_that_was_away_when_a_move_to_it_was_given_up_keeps_nothing_of_it(
    is_cancelled: bool,
) -> None:
    cluster = begin(ZK_KIP497)
    owner = cluster.active_controller
    assert owner is not None
    client, admin = Client(cluster), Administrator(cluster)
    stays, away = (each for each in (1, 2, 3) if each != owner)
    admin.create_topic("t", {0: (owner,)})
    cluster.run_until(lambda: leaders(cluster, T) == [owner])
    cluster.network.takes = no_fetches_of(away)
    assert client.reassign((owner, away)) is ErrorCode.NONE
    cluster.run_until(lambda: replica(cluster, away, T) is not None)
    cluster.crash(away)
    cluster.run(2000)
    assert client.reassign(None if is_cancelled else (owner, stays)) is ErrorCode.NONE
    cluster.run_until(lambda: admin.data(paths.REASSIGN_PARTITIONS) is None)
    assert "t-0" in cluster.hosts[away].disk.logs
    cluster.restart(away)
    cluster.run_until(lambda: "t-0" not in cluster.hosts[away].disk.logs)
    assert leaders(cluster, T) == [owner]


@KAFKA_PATHS
def test_broker_that_was_away_when_a_partition_moved_from_it_keeps_nothing_of_it(
    design: Design,
) -> None:
    cluster = begin(design)
    owner = cluster.active_controller
    assert owner is not None
    client, admin = Client(cluster), Administrator(cluster)
    stays, away = (each for each in (1, 2, 3) if each != owner)
    admin.create_topic("t", {0: (owner, away)})
    cluster.run_until(lambda: leaders(cluster, T) == [owner])
    cluster.crash(away)
    cluster.run(2000)
    assert client.reassign((owner, stays)) is ErrorCode.NONE
    if design.has_kip_455:
        cluster.run_until(lambda: admin.data(paths.REASSIGN_PARTITIONS) is None)
    else:
        cluster.run(2000)
    cluster.restart(away)
    cluster.run_until(lambda: "t-0" not in cluster.hosts[away].disk.logs)
    cluster.run_until(lambda: admin.data(paths.REASSIGN_PARTITIONS) is None)


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "redirected"])
def test_only_replica_in_sync_stays_until_another_is(is_cancelled: bool) -> None:
    """The old replica has died, and the one that was added has all there is."""
    cluster = begin(ZK_KIP497)
    owner = cluster.active_controller
    assert owner is not None
    client, admin, producer = Client(cluster), Administrator(cluster), Producer(cluster)
    old, late = (each for each in (1, 2, 3) if each != owner)
    admin.create_topic("t", {0: (old,)})
    cluster.run_until(lambda: leaders(cluster, T) == [old])
    cluster.network.takes = no_fetches_of(late)
    assert client.reassign((owner, late)) is ErrorCode.NONE
    cluster.run_until(lambda: owner in isr_of(cluster, admin))
    cluster.crash(old)
    cluster.run_until(lambda: leaders(cluster, T) == [owner])
    answers = producer.send(owner, T, b"1")
    cluster.run_until(lambda: bool(answers))
    wanted = Reassignments(replicas={("t", 0): (old,) if is_cancelled else (late,)})
    admin.do(SetData(path=paths.REASSIGN_PARTITIONS, data=wanted.encode()))
    cluster.run(2000)
    assert leaders(cluster, T) == [owner]
    cluster.network.takes = no_fetches_of()
    cluster.restart(old)
    target = old if is_cancelled else late
    cluster.run_until(lambda: leaders(cluster, T) == [target])
    cluster.run_until(lambda: replica(cluster, owner, T) is None)
    led = replica(cluster, target, T)
    assert led is not None
    assert led.open_log.end_offset == 1


def isr_of(cluster: ZkCluster, admin: Administrator) -> tuple[int, ...]:
    state = state_of(cluster, admin, T)
    return () if state is None else state.isr


def test_partitions_move_together() -> None:
    """The commands of ten partitions are those of forty: one for each step and broker."""

    def commands(count: int) -> int:
        cluster = begin(ZK_KIP497)
        admin = Administrator(cluster)
        admin.create_topic("t", dict.fromkeys(range(count), (1, 2)))
        cluster.run_until(lambda: all(leaders(cluster, of("t", n)) for n in range(count)))
        cluster.run(1000)
        owner = cluster.active_controller
        assert owner is not None
        context = cluster.nodes[owner].controller.context
        assert context is not None
        before = context.commands.sent
        wanted = Reassignments(replicas=dict.fromkeys((("t", n) for n in range(count)), (1, 3)))
        admin.do(Create(path=paths.REASSIGN_PARTITIONS, data=wanted.encode()))
        cluster.run_until(lambda: admin.data(paths.REASSIGN_PARTITIONS) is None)
        return context.commands.sent - before

    assert commands(10) == commands(40)


def test_reassignment_that_is_asked_for_while_another_contracts_follows_it() -> None:
    cluster = with_topic(ZK_KIP497, (1,))
    client, admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = lambda message: (
        isinstance(message.body, StopReplicaRequest) and message.target == 1
    )
    assert client.reassign((2,)) is ErrorCode.NONE
    cluster.run_until(lambda: 2 in leaders(cluster, T))
    cluster.run(300)
    assert client.reassign((1, 3)) is ErrorCode.NONE
    cluster.run(1000)
    assert replica(cluster, 3, T) is None, "broker 1 has not answered"
    cluster.network.takes = no_fetches_of()
    cluster.run_until(lambda: set(isr_of(cluster, admin)) == {1, 3})
    cluster.run_until(lambda: replica(cluster, 2, T) is None)
    cluster.run(300)
    assert client.under_way() == []


def test_next_controller_knows_what_cancelling_goes_back_to() -> None:
    cluster = with_topic(ZK_KIP497, (1, 2))
    client = Client(cluster)
    cluster.network.takes = no_fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run_until(lambda: replica(cluster, 3, T) is not None)
    Administrator(cluster).do(Delete(path=paths.CONTROLLER))
    cluster.run(500)
    (moving,) = client.under_way()
    assert (moving.adding_replicas, moving.removing_replicas) == ((3,), (1,))
    assert client.reassign(None) is ErrorCode.NONE
    cluster.run_until(lambda: replica(cluster, 3, T) is None)


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN], ids=lambda each: each.name)
def test_early_documents_have_no_way_to_cancel(design: Design) -> None:
    cluster = with_topic(design, (1, 2))
    client = Client(cluster)
    cluster.network.takes = no_fetches_of(3)
    assert client.reassign((2, 3)) is ErrorCode.NONE
    cluster.run(300)
    assert client.reassign(None) is ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert client.reassign((1, 3)) is ErrorCode.REASSIGNMENT_IN_PROGRESS


def test_what_is_being_reassigned_is_not_reassigned_by_its_node_either() -> None:
    """The second criterion of seed 001."""
    cluster = with_topic(ZK_REDESIGN, (1,))
    client, admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = no_fetches_of(2)
    assert client.reassign((2,)) is ErrorCode.NONE
    cluster.run_until(lambda: replica(cluster, 2, T) is not None)
    other = Reassignments(replicas={("t", 0): (3,)}).encode()
    admin.do(SetData(path=paths.REASSIGN_PARTITIONS, data=other))
    cluster.run(500)
    assert replica(cluster, 3, T) is None
    written = admin.data(paths.REASSIGN_PARTITIONS)
    assert written is not None
    assert Reassignments.decode(written).replicas == {("t", 0): (2,)}, "what is done is written"
    cluster.network.takes = no_fetches_of()
    cluster.run_until(lambda: leaders(cluster, T) == [2] and replica(cluster, 1, T) is None)
    cluster.run(300)
    assert admin.data(paths.REASSIGN_PARTITIONS) is None


@KAFKA_PATHS
def test_expansion_waits_for_the_old_replicas_before_kip_455(design: Design) -> None:
    """One that will be removed is not in sync; all that stay are."""
    cluster = with_topic(design, (1, 2))
    client, admin = Client(cluster), Administrator(cluster)
    cluster.network.takes = no_fetches_of(2)
    Producer(cluster).send(1, T, b"1")
    cluster.run_until(lambda: isr_of(cluster, admin) == (1,))
    assert client.reassign((1, 3)) is ErrorCode.NONE
    cluster.run_until(lambda: set(isr_of(cluster, admin)) == {1, 3})
    cluster.run(8000)
    assert bool(client.under_way()) is not design.has_kip_455
    assert (replica(cluster, 2, T) is None) is design.has_kip_455
    cluster.network.takes = no_fetches_of()
    cluster.run_until(lambda: replica(cluster, 2, T) is None)
    cluster.run(300)
    assert client.under_way() == []


@KAFKA_PATHS
def test_preferred_leaders_are_elected_for_clients_by_the_znode(design: Design) -> None:
    cluster = begin(design)
    admin, client = Administrator(cluster), Client(cluster)
    preferred = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != preferred)
    admin.create_topic("t", {0: (preferred, *rest)})
    cluster.run_until(lambda: leaders(cluster, T) == [preferred])
    cluster.crash(preferred)
    cluster.run_until(lambda: leaders(cluster, T) == [rest[0]])
    assert elected(client) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    cluster.restart(preferred)
    cluster.run(3000)
    assert elected(client) == [ErrorCode.NONE]
    cluster.run_until(lambda: leaders(cluster, T) == [preferred])
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
    other = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    answers = Producer(cluster).ask(other, AllocateProducerIdsRequest(broker_id=2, broker_epoch=1))
    cluster.run_until(lambda: bool(answers))
    (answer,) = answers
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
