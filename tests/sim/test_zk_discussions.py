"""What seed 000 discusses of its own design: topics that come again, and the routing window."""

from functools import partial

import pytest

from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster
from jepsen_like.sim.world.host import Host
from quorum.core.effects import Effect
from quorum.zookeeper.zk_effects import ZkRequest
from tests.sim.watching import looking
from tests.sim.zookeeper import Administrator, Producer, begin, leaders, of, replica, state_of
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from wire.zk import paths
from wire.zk.designs import ZK_V2, ZK_V3, Design
from wire.zk.session import Delete, GetData

T = of("t")


@pytest.fixture
def cluster() -> ZkCluster:
    return begin(ZK_V3)


def away(cluster: ZkCluster) -> int:
    return next(each for each in (1, 2, 3) if each != cluster.active_controller)


def ask(cluster: ZkCluster, client: Producer, body: object) -> object:
    controller = cluster.active_controller
    assert controller is not None
    answers = client.ask(controller, body)
    cluster.run_until(lambda: bool(answers))
    return answers[0]


def create(cluster: ZkCluster, client: Producer, replication_factor: int) -> ErrorCode:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=replication_factor)
    answer = ask(cluster, client, CreateTopicsRequest(topics=(topic,), timeout_ms=1000))
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code


def write(cluster: ZkCluster, client: Producer, count: int) -> None:
    (leader,) = leaders(cluster, T)
    for number in range(count):
        answers = client.send(leader, T, b"%d" % number)
        cluster.run_until(partial(bool, answers))


def test_topic_that_came_again_while_a_broker_was_away_leaves_it_nothing_of_the_old_one(
    cluster: ZkCluster,
) -> None:
    """Only live brokers are given replicas, so that it need not tell the two topics apart."""
    client = Producer(cluster)
    assert create(cluster, client, 3) is ErrorCode.NONE
    cluster.run_until(lambda: len(leaders(cluster, T)) == 1)
    write(cluster, client, 20)
    gone = away(cluster)
    cluster.crash(gone)
    cluster.run(3000)
    assert "t-0" in cluster.hosts[gone].disk.logs
    named = DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=1000)
    ask(cluster, client, named)
    cluster.run_until(lambda: leaders(cluster, T) == [])
    assert create(cluster, client, 3) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert create(cluster, client, 2) is ErrorCode.NONE
    cluster.run_until(lambda: len(leaders(cluster, T)) == 1)
    write(cluster, client, 5)
    cluster.restart(gone)
    cluster.run_until(lambda: "t-0" not in cluster.hosts[gone].disk.logs)
    cluster.run(1000)
    assert replica(cluster, gone, T) is None
    for node_id in (1, 2, 3):
        held = replica(cluster, node_id, T)
        if node_id != gone:
            assert held is not None
            assert held.open_log.end_offset == 5


def test_topic_that_came_again_between_two_looks_is_taken_for_the_old_one_until_a_failover(
    cluster: ZkCluster,
) -> None:
    """The controller compares names. Only who writes to ZooKeeper gets there: a client is told that
    the topic exists, until the controller has looked."""
    admin, client = Administrator(cluster), Producer(cluster)
    owner = cluster.active_controller
    assert owner is not None
    admin.create_topic("t", {0: (1, 2, 3)})
    cluster.run_until(lambda: leaders(cluster, T) == [1])
    write(cluster, client, 5)
    cluster.cut_session(owner)
    state = paths.partition_leader_and_isr("t", 0)
    for path in (state, paths.parent(state), paths.topic("t")):
        admin.do(Delete(path=path))
    admin.create_topic("t", {0: (2, 3)})
    cluster.heal_session(owner)
    cluster.run(2000)
    assert cluster.active_controller == owner
    assert state_of(cluster, admin, T) is None, "nobody has begun it"
    assert leaders(cluster, T) == [1], "of the old topic"
    admin.do(Delete(path=paths.CONTROLLER))
    cluster.run_until(lambda: leaders(cluster, T) == [2])
    assert "t-0" not in cluster.hosts[1].disk.logs
    led = replica(cluster, 2, T)
    assert led is not None
    assert led.open_log.end_offset == 0


def routing_window_ms(partitions: int) -> tuple[int, ErrorCode]:
    """From when ZooKeeper sends clients to the new leader until it leads, of the first of so many
    partitions that lose theirs together; and what the new leader says to a client meanwhile."""
    cluster = begin(ZK_V3)
    admin, client = Administrator(cluster), Producer(cluster)
    dead = away(cluster)
    (new, last) = (each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", dict.fromkeys(range(partitions), (dead, new, last)))
    cluster.run_until(lambda: leaders(cluster, of("t", partitions - 1)) == [dead])
    cluster.run(300)
    cluster.crash(dead)

    def is_routed() -> bool:
        state = state_of(cluster, admin, T)
        return state is not None and state.leader == new

    cluster.run_until(is_routed)
    routed_ms = cluster.world.now_ms
    answers = client.send(new, T, b"early")
    cluster.run_until(lambda: leaders(cluster, T) == [new])
    window_ms = cluster.world.now_ms - routed_ms
    cluster.run_until(lambda: bool(answers))
    return window_ms, getattr(answers[0], "error_code", ErrorCode.UNKNOWN_SERVER_ERROR)


def test_routing_window_is_as_long_as_the_writes_of_all_partitions_that_fail_over() -> None:
    """Leaders are published one by one, and told when the last of them is."""
    few_ms, _ = routing_window_ms(5)
    many_ms, error = routing_window_ms(50)
    assert few_ms < 20
    assert 80 <= many_ms <= 150, "about 2 ms a partition on this ensemble"
    assert error is ErrorCode.NOT_LEADER_OR_FOLLOWER, "the client is sent where nobody leads yet"


@pytest.mark.parametrize("design", [ZK_V2, ZK_V3])
def test_client_that_asks_for_one_topic_has_the_broker_read_that_one(design: Design) -> None:
    cluster = begin(design)
    admin, client = Administrator(cluster), Producer(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    admin.create_topic("large", dict.fromkeys(range(20), (1, 2, 3)))
    cluster.run_until(lambda: leaders(cluster, of("large", 19)) != [])
    cluster.run(3000)

    def reads(*names: str) -> tuple[int, MetadataResponse]:
        """How many nodes of partitions a broker reads for the answer, and the answer."""
        read: list[str] = []

        def look(_host: Host, effect: Effect) -> None:
            if isinstance(effect, ZkRequest) and isinstance(effect.operation, GetData):
                read.append(effect.operation.path)

        observer = looking(performing=look)
        cluster.world.observe(observer)
        topics = tuple(MetadataRequestTopic(name=name) for name in names)
        answers = client.ask(1, MetadataRequest(topics=topics or None))
        cluster.run_until(lambda: bool(answers))
        cluster.world.ignore(observer)
        answer = answers[0]
        assert isinstance(answer, MetadataResponse)
        of_partitions = [path for path in read if paths.partition_of(path) is not None]
        return len(of_partitions), answer

    nodes = 3 if design is ZK_V2 else 1  # of a partition
    few, answer = reads("t")
    assert few == nodes
    assert [len(each.partitions) for each in answer.topics] == [1]
    many, answer = reads()
    assert many == 21 * nodes
    assert [len(each.partitions) for each in answer.topics] == [20, 1]
