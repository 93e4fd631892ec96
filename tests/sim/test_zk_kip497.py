"""zk-kip497 on an ensemble in memory: the controller alone writes ISRs, asked by AlterIsr."""

from dataclasses import replace

import pytest

from broker.partition.isr import Committed, PendingExpand, PendingShrink
from broker.partition.partition import LeaderOf, Partition
from controller.zk.zk_controller_config import Authorizer
from controller.zk.zk_metadata import state_path
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster
from jepsen_like.sim.world.network import Message
from tests.sim.zookeeper import (
    Administrator,
    Producer,
    begin,
    leaders,
    of,
    replica,
    state_of,
    write_to,
)
from wire.errors import ErrorCode
from wire.zk import paths
from wire.zk.control_rpc import (
    AlterIsrRequest,
    AlterIsrResponse,
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
)
from wire.zk.designs import ZK_KIP497
from wire.zk.session import SetData
from wire.zk.znodes import PartitionState, encode_epoch

ORDERS = of("orders")
ALONE = PartitionState(leader=-1, leader_epoch=0, isr=(), controller_epoch=0)


@pytest.fixture
def cluster() -> ZkCluster:
    return begin(ZK_KIP497)


def slow_down(cluster: ZkCluster, slow: int) -> None:
    cluster.network.takes = lambda message: (
        message.channel == "replica-fetch" and message.source == slow
    )


def test_controller_writes_what_the_leader_asks_for_and_tells_everybody_at_once(
    cluster: ZkCluster,
) -> None:
    write_to(cluster, partitions=1)
    cluster.run(1500)
    admin = Administrator(cluster)
    (leader,) = leaders(cluster, ORDERS)
    slow = next(each for each in (1, 2, 3) if each != leader)
    slow_down(cluster, slow)

    def is_written() -> bool:
        state = state_of(cluster, admin, ORDERS)
        return state is not None and slow not in state.isr

    cluster.run_until(is_written)
    state = state_of(cluster, admin, ORDERS)
    assert state is not None
    assert state.leader_epoch == 0, "the same leader in the same epoch"
    cluster.run(50)
    for node in cluster.up:
        topic = node.broker.cluster.image.topic("orders")
        assert topic is not None
        ((_, told),) = node.broker.cluster.image.partitions_of(topic.id)
        assert slow not in told.isr
    assert admin.children(paths.ISR_CHANGES) == (), "the notification znode is gone"
    cluster.network.takes = lambda _message: False
    cluster.run(2000)
    back = state_of(cluster, admin, ORDERS)
    assert back is not None
    assert slow in back.isr


def test_shrink_does_not_count_before_the_command_that_confirms_it(cluster: ZkCluster) -> None:
    write_to(cluster, partitions=1)
    cluster.run(1500)
    (leader,) = leaders(cluster, ORDERS)
    slow = next(each for each in (1, 2, 3) if each != leader)
    cluster.network.takes = lambda message: (
        (message.channel == "replica-fetch" and message.source == slow)
        or isinstance(message.body, LeaderAndIsrRequest)
    )
    cluster.run(3000)
    led = replica(cluster, leader, ORDERS)
    assert led is not None
    assert isinstance(led.role, LeaderOf)
    assert isinstance(led.role.isr, PendingShrink)
    stuck = led.open_log.high_watermark
    assert stuck < led.open_log.end_offset
    cluster.run(1000)
    assert led.open_log.high_watermark == stuck, "it waits for whom it cannot leave out yet"


def waiting_to_join(cluster: ZkCluster) -> tuple[int, int, Partition]:
    """A leader, a replica that has come back, and the leader's partition: it wants that one in the
    ISR, and the controller hears nothing of it."""
    admin = Administrator(cluster)
    controller = cluster.active_controller
    assert controller is not None
    leader, back = (each for each in (1, 2, 3) if each != controller)
    admin.create_topic("t", {0: (leader, back)})
    cluster.run_until(lambda: leaders(cluster, of("t")) == [leader])
    cluster.crash(back)
    cluster.run_until(lambda: (state_of(cluster, admin, of("t")) or ALONE).isr == (leader,))
    cluster.run(500)
    led = replica(cluster, leader, of("t"))
    assert led is not None
    cluster.network.takes = lambda message: isinstance(message.body, AlterIsrRequest)
    cluster.restart(back)
    cluster.run_until(lambda: isinstance(led.led.isr, PendingExpand))
    return leader, back, led


def test_request_that_is_held_comes_too_late_once_its_repetition_was_refused(
    cluster: ZkCluster,
) -> None:
    leader, back, led = waiting_to_join(cluster)
    named = led.led.partition_epoch
    cluster.crash(back)
    controller = cluster.active_controller
    assert controller is not None
    context = cluster.nodes[controller].controller.context
    assert context is not None
    cluster.run_until(lambda: back not in context.live)
    cluster.network.takes = lambda message: False
    cluster.run_until(lambda: led.led.isr == Committed(members=(leader,)))
    assert led.led.partition_epoch > named, "a request that names the former version is refused"


def test_expansion_counts_at_once_though_no_command_confirms_it(cluster: ZkCluster) -> None:
    client = Producer(cluster)
    leader, back, led = waiting_to_join(cluster)
    cluster.network.takes = lambda message: (
        isinstance(message.body, AlterIsrRequest) or message.source == back
    )
    answers = client.send(leader, of("t"), b"waits for the replica that may be in sync")
    cluster.run(3000)  # longer than it counts for having been caught up
    assert isinstance(led.led.isr, PendingExpand)
    assert (led.led.isr.members, led.open_log.end_offset) == ((leader,), 1)
    assert (led.open_log.high_watermark, answers) == (0, [])


def test_partitions_that_come_into_sync_together_are_one_request(cluster: ZkCluster) -> None:
    """One fetch shows that the follower has all of them: "the leader will send the AlterIsr for all
    of these partitions"."""
    admin = Administrator(cluster)
    controller = cluster.active_controller
    assert controller is not None
    back, third = (each for each in (1, 2, 3) if each != controller)
    admin.create_topic("t", dict.fromkeys(range(20), (controller, back)))
    cluster.run_until(lambda: leaders(cluster, of("t", 19)) == [controller])
    cluster.crash(back)
    cluster.run(3000)
    asked: list[set[int]] = []
    is_held = True

    def note(message: Message) -> bool:
        if isinstance(message.body, AlterIsrRequest):
            asked.append({each.partition for each in message.body.wanted})
        return is_held and message.channel == "replica-fetch" and message.source == back

    cluster.network.takes = note
    cluster.restart(back)
    cluster.run(2000)  # it has opened all its logs
    is_held = False
    cluster.run(3000)
    assert asked == [set(range(20))]
    states = [state_of(cluster, admin, of("t", number)) for number in range(20)]
    assert all(each is not None and set(each.isr) == {controller, back} for each in states)
    assert third not in {each for state in states if state is not None for each in state.isr}


def test_leader_that_may_not_act_for_the_cluster_keeps_its_isr(cluster: ZkCluster) -> None:
    """CLUSTER_AUTHORIZATION_FAILED: `super.users` does not name who the brokers are."""
    admin, client = Administrator(cluster), Producer(cluster)
    controller = cluster.active_controller
    assert controller is not None
    leader, slow = (each for each in (1, 2, 3) if each != controller)
    admin.create_topic("t", {0: (leader, slow)})
    cluster.run_until(lambda: leaders(cluster, of("t")) == [leader])
    cluster.run(500)
    controller = cluster.active_controller
    assert controller is not None
    context = cluster.nodes[controller].controller.context
    assert context is not None
    context.config = replace(
        context.config, authorizer=Authorizer.of("some.Authorizer", "User:admin")
    )
    refused: list[AlterIsrResponse] = []

    def note(message: Message) -> bool:
        if isinstance(message.body, AlterIsrResponse):
            refused.append(message.body)
        return message.channel == "replica-fetch" and message.source == slow

    cluster.network.takes = note
    client.send(leader, of("t"), b"waits for who cannot be left out")
    cluster.run(3000)
    assert {each.error_code for each in refused} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    state = state_of(cluster, admin, of("t"))
    assert state is not None
    assert state.isr == (leader, slow)
    led = replica(cluster, leader, of("t"))
    assert led is not None
    assert led.open_log.high_watermark < led.open_log.end_offset, "what it cannot shrink, it awaits"


def news_of_two_leaders(*, delay_ms: int) -> tuple[int, int]:
    """A broker comes back into the ISRs of both: the requests that tell another of it, and when the
    first of them left, in ms since the first change was written."""
    cluster = begin(ZK_KIP497, propagation_delay_ms=delay_ms)
    admin = Administrator(cluster)
    back = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    one, two = (each for each in (1, 2, 3) if each != back)
    replicas: dict[int, tuple[int, ...]] = {
        number: (one, two, back) if number % 2 else (two, one, back) for number in range(10)
    }
    admin.create_topic("t", replicas)
    cluster.run_until(lambda: leaders(cluster, of("t", 9)) == [one])
    cluster.crash(back)
    cluster.run(3000)
    sent_ms: list[int] = []

    def note(message: Message) -> bool:
        body = message.body
        if isinstance(body, UpdateMetadataRequest) and body.partitions and message.target == one:
            sent_ms.append(cluster.world.now_ms)
        return False

    def is_written() -> bool:
        states = [state_of(cluster, admin, of("t", number)) for number in (0, 1)]
        return any(state is not None and back in state.isr for state in states)

    cluster.network.takes = note
    cluster.restart(back)
    cluster.run_until(is_written)
    written_ms = cluster.world.now_ms
    cluster.run(1500)
    return len(sent_ms), sent_ms[0] - written_ms


def test_delayed_propagation_tells_of_both_leaders_in_one_request_and_later() -> None:
    at_once, _ = news_of_two_leaders(delay_ms=0)
    delayed, later_ms = news_of_two_leaders(delay_ms=500)
    assert (at_once, delayed) == (2, 1)
    assert 400 <= later_ms <= 500


def test_leader_whose_version_was_passed_is_told_and_asks_again(cluster: ZkCluster) -> None:
    write_to(cluster, partitions=1)
    cluster.run(1500)
    admin = Administrator(cluster)
    path = state_path(ZK_KIP497, ORDERS)
    written = admin.data(path)
    assert written is not None
    admin.do(SetData(path=path, data=written))
    (leader,) = leaders(cluster, ORDERS)
    slow = next(each for each in (1, 2, 3) if each != leader)
    slow_down(cluster, slow)

    def is_out() -> bool:
        state = state_of(cluster, admin, ORDERS)
        return state is not None and slow not in state.isr

    cluster.run_until(is_out)


def test_broker_that_is_no_controller_refuses_alter_isr(cluster: ZkCluster) -> None:
    other = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    answers = Producer(cluster).ask(other, AlterIsrRequest(broker_id=other, broker_epoch=1))
    cluster.run_until(lambda: bool(answers))
    assert answers == [AlterIsrResponse(error_code=ErrorCode.NOT_CONTROLLER)]


def test_leader_asks_again_what_a_controller_has_heard_and_not_written_before_it_died(
    cluster: ZkCluster,
) -> None:
    admin, client = Administrator(cluster), Producer(cluster)
    controller = cluster.active_controller
    assert controller is not None
    leader, slow = (each for each in (1, 2, 3) if each != controller)
    admin.create_topic("t", {0: (leader, slow)})
    cluster.run_until(lambda: leaders(cluster, of("t")) == [leader])
    cluster.run(500)
    has_died: list[int] = []

    def take(message: Message) -> bool:
        if isinstance(message.body, AlterIsrResponse) and not has_died:
            has_died.append(controller)
            cluster.world.after(0, lambda: cluster.crash(controller))
        return message.channel == "replica-fetch" and message.source == slow

    cluster.network.takes = take
    answers = client.send(leader, of("t"), b"waits for the ISR to shrink")
    cluster.run_until(lambda: bool(answers))
    assert has_died
    state = state_of(cluster, admin, of("t"))
    assert state is not None
    assert state.isr == (leader,)


def test_controller_whose_epoch_was_passed_writes_nothing_and_resigns(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    dead = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", {0: (dead, *rest)})
    cluster.run_until(lambda: leaders(cluster, of("t")) == [dead])
    admin.do(SetData(path=paths.CONTROLLER_EPOCH, data=encode_epoch(7)))
    cluster.crash(dead)
    cluster.run_until(lambda: leaders(cluster, of("t")) == [rest[0]])
    state = state_of(cluster, admin, of("t"))
    assert state is not None
    assert state.controller_epoch > 7, "written by a controller that was elected after it"


def test_clients_lose_nothing_while_leader_and_controller_die(cluster: ZkCluster) -> None:
    told = write_to(cluster)
    cluster.run(1500)
    controller = cluster.active_controller
    assert controller is not None
    leader = next(each for each in (1, 2, 3) if each != controller)
    cluster.crash(leader)
    cluster.run(3000)
    cluster.restart(leader)
    cluster.run(2000)
    cluster.crash(controller)
    cluster.run(4000)
    cluster.restart(controller)
    cluster.run(3000)
    assert len(told.acknowledged) > 300
    cluster.run_until(lambda: len(told.unread) < 10)
