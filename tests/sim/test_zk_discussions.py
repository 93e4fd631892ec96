"""What seed 000 discusses of its own design: topics that come again, and the routing window."""

from functools import partial

import pytest

from jepsen_like.clients.admin_client import deletion
from jepsen_like.sim.world.host import Host
from quorum.core.effects import Effect
from quorum.zookeeper.zk_effects import ZkRequest
from tests.sim.watching import looking
from tests.sim.zookeeper import NO_STATE, Administrator, Producer, Scene, T, begin, of
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.zk import paths
from wire.zk.designs import ZK_V2, ZK_V3, Design
from wire.zk.session import Delete, GetData


@pytest.fixture
def cluster() -> Scene:
    return begin(ZK_V3)


def away(cluster: Scene) -> int:
    return cluster.others[0]


def ask(cluster: Scene, client: Producer, body: object) -> object:
    controller = cluster.controller
    answers = client.ask(controller, body)
    cluster.run_until(lambda: bool(answers))
    return answers[0]


def create(cluster: Scene, client: Producer, replication_factor: int) -> ErrorCode:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=replication_factor)
    answer = ask(cluster, client, CreateTopicsRequest(topics=(topic,), timeout_ms=1000))
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code


def write(cluster: Scene, client: Producer, count: int) -> None:
    (leader,) = cluster.leaders()
    for number in range(count):
        answers = client.send(leader, T, b"%d" % number)
        cluster.run_until(partial(bool, answers))


def test_topic_that_came_again_while_a_broker_was_away_leaves_it_nothing_of_the_old_one(
    cluster: Scene,
) -> None:
    """Only live brokers are given replicas, so that it need not tell the two topics apart."""
    client = Producer(cluster)
    assert create(cluster, client, 3) is ErrorCode.NONE
    cluster.run_until(lambda: len(cluster.leaders()) == 1)
    write(cluster, client, 20)
    gone = away(cluster)
    cluster.crash(gone)
    cluster.run(3000)
    assert cluster.has_log(gone)
    named = deletion("t", 1000)
    ask(cluster, client, named)
    cluster.run_until(lambda: cluster.leaders() == [])
    assert create(cluster, client, 3) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert create(cluster, client, 2) is ErrorCode.NONE
    cluster.run_until(lambda: len(cluster.leaders()) == 1)
    write(cluster, client, 5)
    cluster.restart(gone)
    cluster.run_until(lambda: not cluster.has_log(gone))
    cluster.run(1000)
    assert cluster.replica(gone) is None
    for node_id in (1, 2, 3):
        if node_id != gone:
            assert cluster.held(node_id).open_log.end_offset == 5


def test_topic_that_came_again_between_two_looks_is_taken_for_the_old_one_until_a_failover(
    cluster: Scene,
) -> None:
    """The controller compares names. Only who writes to ZooKeeper gets there: a client is told that
    the topic exists, until the controller has looked."""
    admin, client = Administrator(cluster), Producer(cluster)
    owner = cluster.controller
    admin.create_topic("t", {0: (1, 2, 3)})
    cluster.run_until(lambda: cluster.leaders() == [1])
    write(cluster, client, 5)
    cluster.cut_session(owner)
    state = paths.partition_leader_and_isr("t", 0)
    for path in (state, paths.parent(state), paths.topic("t")):
        admin.do(Delete(path=path))
    admin.create_topic("t", {0: (2, 3)})
    cluster.heal_session(owner)
    cluster.run(2000)
    assert cluster.active_controller == owner
    assert cluster.state() == NO_STATE, "nobody has begun it"
    assert cluster.leaders() == [1], "of the old topic"
    admin.do(Delete(path=paths.CONTROLLER))
    cluster.run_until(lambda: cluster.leaders() == [2])
    assert not cluster.has_log(1)
    led = cluster.held(2)
    assert led.open_log.end_offset == 0


def routing_window_ms(partitions: int) -> tuple[int, ErrorCode]:
    """From when ZooKeeper sends clients to the new leader until it leads, of the first of so many
    partitions that lose theirs together; and what the new leader says to a client meanwhile."""
    cluster = begin(ZK_V3)
    admin, client = Administrator(cluster), Producer(cluster)
    dead = away(cluster)
    (new, last) = (each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", dict.fromkeys(range(partitions), (dead, new, last)))
    cluster.run_until(lambda: cluster.leaders(of("t", partitions - 1)) == [dead])
    cluster.run(300)
    cluster.crash(dead)

    def is_routed() -> bool:
        state = cluster.state()
        return state.leader == new

    cluster.run_until(is_routed)
    routed_ms = cluster.world.now_ms
    answers = client.send(new, T, b"early")
    cluster.run_until(lambda: cluster.leaders() == [new])
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
    cluster.run_until(lambda: cluster.leaders(of("large", 19)) != [])
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
