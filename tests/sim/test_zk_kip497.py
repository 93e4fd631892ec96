"""zk-kip497 on an ensemble in memory: the controller alone writes ISRs, asked by AlterIsr."""

import pytest

from broker.partition.isr import Committed, PendingExpand, PendingShrink
from broker.partition.partition import LeaderOf, Partition
from controller.authorization.authorizer import UserRules
from controller.authorization.door import AclDoor, DoorRules
from controller.metadata.image import MetadataImage
from controller.zk.zk_metadata import state_path
from jepsen_like.sim.world.network import Message
from tests.sim.zookeeper import Administrator, Producer, Scene, begin, fetches_of, nothing, of
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.primitives import METADATA_TOPIC, METADATA_TOPIC_ID
from wire.zk import paths
from wire.zk.control_rpc import (
    AlterIsrRequest,
    AlterIsrResponse,
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
)
from wire.zk.designs import ZK_KIP497
from wire.zk.session import SetData
from wire.zk.znodes import encode_epoch

ORDERS = of("orders")


@pytest.fixture
def cluster() -> Scene:
    return begin(ZK_KIP497)


def slow_down(cluster: Scene, slow: int) -> None:
    cluster.network.takes = fetches_of(slow)


def test_controller_writes_what_the_leader_asks_for_and_tells_everybody_at_once(
    cluster: Scene,
) -> None:
    cluster.write(partitions=1)
    admin = Administrator(cluster)
    (leader,) = cluster.leaders(ORDERS)
    slow = next(each for each in (1, 2, 3) if each != leader)
    slow_down(cluster, slow)

    def is_written() -> bool:
        state = cluster.state(ORDERS)
        return slow not in state.isr

    cluster.run_until(is_written)
    state = cluster.state(ORDERS)
    assert state.leader_epoch == 0, "the same leader in the same epoch"
    cluster.run(50)
    for node in cluster.up:
        topic = node.broker.cluster.image.topic("orders")
        assert topic is not None
        ((_, told),) = node.broker.cluster.image.partitions_of(topic.id)
        assert slow not in told.isr
    assert admin.children(paths.ISR_CHANGES) == (), "the notification znode is gone"
    cluster.network.takes = nothing
    cluster.run(2000)
    back = cluster.state(ORDERS)
    assert slow in back.isr


def test_shrink_does_not_count_before_the_command_that_confirms_it(cluster: Scene) -> None:
    cluster.write(partitions=1)
    (leader,) = cluster.leaders(ORDERS)
    slow = next(each for each in (1, 2, 3) if each != leader)
    cluster.network.takes = lambda message: (
        (message.channel == "replica-fetch" and message.source == slow)
        or isinstance(message.body, LeaderAndIsrRequest)
    )
    cluster.run(3000)
    led = cluster.held(leader, ORDERS)
    assert isinstance(led.role, LeaderOf)
    assert isinstance(led.role.isr, PendingShrink)
    stuck = led.open_log.high_watermark
    assert stuck < led.open_log.end_offset
    cluster.run(1000)
    assert led.open_log.high_watermark == stuck, "it waits for whom it cannot leave out yet"


def waiting_to_join(cluster: Scene) -> tuple[int, int, Partition]:
    """A leader, a replica that has come back, and the leader's partition: it wants that one in the
    ISR, and the controller hears nothing of it."""
    admin = Administrator(cluster)
    leader, back = cluster.others
    admin.create_topic("t", {0: (leader, back)})
    cluster.run_until(lambda: cluster.leaders(of("t")) == [leader])
    cluster.crash(back)
    cluster.run_until(lambda: cluster.state(of("t")).isr == (leader,))
    cluster.run(500)
    led = cluster.held(leader, of("t"))
    cluster.network.takes = lambda message: isinstance(message.body, AlterIsrRequest)
    cluster.restart(back)
    cluster.run_until(lambda: isinstance(led.led.isr, PendingExpand))
    return leader, back, led


def test_request_that_is_held_comes_too_late_once_its_repetition_was_refused(
    cluster: Scene,
) -> None:
    leader, back, led = waiting_to_join(cluster)
    named = led.led.partition_epoch
    cluster.crash(back)
    controller = cluster.controller
    context = cluster.nodes[controller].controller.context
    assert context is not None
    cluster.run_until(lambda: back not in context.live)
    cluster.network.takes = nothing
    cluster.run_until(lambda: led.led.isr == Committed(members=(leader,)))
    assert led.led.partition_epoch > named, "a request that names the former version is refused"


def test_expansion_counts_at_once_though_no_command_confirms_it(cluster: Scene) -> None:
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


def test_partitions_that_come_into_sync_together_are_one_request(cluster: Scene) -> None:
    """One fetch shows that the follower has all of them: "the leader will send the AlterIsr for all
    of these partitions"."""
    admin = Administrator(cluster)
    controller = cluster.controller
    back, third = cluster.others
    admin.create_topic("t", dict.fromkeys(range(20), (controller, back)))
    cluster.run_until(lambda: cluster.leaders(of("t", 19)) == [controller])
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
    states = [cluster.state(of("t", number)) for number in range(20)]
    assert all(set(each.isr) == {controller, back} for each in states)
    assert third not in {each for state in states for each in state.isr}


def test_leader_that_may_not_act_for_the_cluster_keeps_its_isr(cluster: Scene) -> None:
    """CLUSTER_AUTHORIZATION_FAILED: `super.users` does not name who the brokers are."""
    admin, client = Administrator(cluster), Producer(cluster)
    controller = cluster.controller
    leader, slow = cluster.others
    admin.create_topic("t", {0: (leader, slow)})
    cluster.run_until(lambda: cluster.leaders(of("t")) == [leader])
    cluster.run(500)
    controller = cluster.controller
    admins = DoorRules(users=UserRules(super_users=frozenset({"User:admin"})))
    cluster.nodes[controller].member.door = AclDoor(admins, MetadataImage)
    refused: list[AlterIsrResponse] = []

    def note(message: Message) -> bool:
        if isinstance(message.body, AlterIsrResponse):
            refused.append(message.body)
        return message.channel == "replica-fetch" and message.source == slow

    cluster.network.takes = note
    client.send(leader, of("t"), b"waits for who cannot be left out")
    cluster.run(3000)
    assert {each.error_code for each in refused} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    state = cluster.state(of("t"))
    assert state.isr == (leader, slow)
    led = cluster.held(leader, of("t"))
    assert led.open_log.high_watermark < led.open_log.end_offset, "what it cannot shrink, it awaits"


def news_of_two_leaders(*, delay_ms: int) -> tuple[int, int]:
    """A broker comes back into the ISRs of both: the requests that tell another of it, and when the
    first of them left, in ms since the first change was written."""
    cluster = begin(ZK_KIP497, propagation_delay_ms=delay_ms)
    admin = Administrator(cluster)
    back = cluster.others[0]
    one, two = (each for each in (1, 2, 3) if each != back)
    replicas: dict[int, tuple[int, ...]] = {
        number: (one, two, back) if number % 2 else (two, one, back) for number in range(10)
    }
    admin.create_topic("t", replicas)
    cluster.run_until(lambda: cluster.leaders(of("t", 9)) == [one])
    cluster.crash(back)
    cluster.run(3000)
    sent_ms: list[int] = []

    def note(message: Message) -> bool:
        body = message.body
        if isinstance(body, UpdateMetadataRequest) and body.partitions and message.target == one:
            sent_ms.append(cluster.world.now_ms)
        return False

    def is_written() -> bool:
        states = [cluster.state(of("t", number)) for number in (0, 1)]
        return any(back in state.isr for state in states)

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


def test_leader_whose_version_was_passed_is_told_and_asks_again(cluster: Scene) -> None:
    cluster.write(partitions=1)
    admin = Administrator(cluster)
    path = state_path(ZK_KIP497, ORDERS)
    written = admin.data(path)
    assert written is not None
    admin.do(SetData(path=path, data=written))
    (leader,) = cluster.leaders(ORDERS)
    slow = next(each for each in (1, 2, 3) if each != leader)
    slow_down(cluster, slow)

    def is_out() -> bool:
        state = cluster.state(ORDERS)
        return slow not in state.isr

    cluster.run_until(is_out)


def test_broker_that_is_no_controller_refuses_alter_isr(cluster: Scene) -> None:
    other = cluster.others[0]
    assert Producer(cluster).told(
        other, AlterIsrRequest(broker_id=other, broker_epoch=1)
    ) == AlterIsrResponse(error_code=ErrorCode.NOT_CONTROLLER)


def test_fetch_of_a_metadata_log_ends_no_broker(cluster: Scene) -> None:
    """There is none of it. Found by a review: whoever reached the port could end the process."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    answer = Producer(cluster).told(1, FetchRequest(max_wait_ms=0, topics=(topic,)))
    assert isinstance(answer, FetchResponse)
    (fetched,) = answer.responses
    assert fetched.partitions[0].error_code is ErrorCode.UNKNOWN_TOPIC_ID


def test_leader_asks_again_what_a_controller_has_heard_and_not_written_before_it_died(
    cluster: Scene,
) -> None:
    admin, client = Administrator(cluster), Producer(cluster)
    controller = cluster.controller
    leader, slow = cluster.others
    admin.create_topic("t", {0: (leader, slow)})
    cluster.run_until(lambda: cluster.leaders(of("t")) == [leader])
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
    state = cluster.state(of("t"))
    assert state.isr == (leader,)


def test_controller_whose_epoch_was_passed_writes_nothing_and_resigns(
    cluster: Scene,
) -> None:
    admin = Administrator(cluster)
    dead, rest = cluster.one_and_rest()
    admin.create_topic("t", {0: (dead, *rest)})
    cluster.run_until(lambda: cluster.leaders(of("t")) == [dead])
    admin.do(SetData(path=paths.CONTROLLER_EPOCH, data=encode_epoch(7)))
    cluster.crash(dead)
    cluster.run_until(lambda: cluster.leaders(of("t")) == [rest[0]])
    state = cluster.state(of("t"))
    assert state.controller_epoch > 7, "written by a controller that was elected after it"
