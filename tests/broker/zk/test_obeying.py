"""Which commands of a controller a broker obeys, and what its replicas become."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from uuid import UUID

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.partition.partition import FollowerOf, LeaderOf, Partition
from broker.parts import BrokerParts
from broker.zk.lag_limits import Limits
from broker.zk.obeying import Obeying
from broker.zk.session_membership import ZkMembership
from broker.zk.view import View
from controller.metadata.partitions import PartitionState
from quorum.core.effects import (
    DeleteLog,
    Effect,
    FoundLog,
    Opened,
    OpenLog,
    Reply,
    Request,
    Truncate,
)
from quorum.core.log_state import LogState
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.fetching import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from wire.messages.registration import RegisteredListener
from wire.primitives import ZERO_UUID
from wire.zk.control_rpc import (
    LeaderAndIsr,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    TopicPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN, ZK_V3, Design
from wire.zk.session import Session

TOLD = LeaderAndIsr(topic="t", partition=0, leader=1, leader_epoch=0, isr=(1, 2), zk_version=0)
WHOLE = replace_message(TOLD, replicas=(1, 2))


@dataclass
class Stand:
    """Broker 1, without a ZooKeeper."""

    design: Design = ZK_V3
    logs: Mapping[str, LogState] = field(default_factory=dict)
    generation: int = -1
    found: Sequence[FoundLog] = ()

    def __post_init__(self) -> None:
        listener = RegisteredListener(name="PLAINTEXT", host="node-1", port=1, security_protocol=0)
        config = BrokerConfig(
            node_id=1,
            cluster_id="c",
            listeners=(listener,),
            log_dirs=(UUID(int=1),),
            follows_by_epoch=False,
        )
        membership = ZkMembership(
            BrokerParts.of(config, self.found),
            design=self.design,
            session=Session(),
            random=Random(1),
            controller_id=lambda: 3,
            limits=Limits(),
        )
        self.broker = Broker(membership, Random(1))
        self.broker.serves_clients = True
        membership.incarnation.registered_epoch = self.generation
        self.token = 0

    def ask(self, body: object) -> object:
        self.token += 1
        self.broker.receive(Request(token=self.token, body=body), 1000)
        effects = self.settle()
        return next((each.body for each in effects if isinstance(each, Reply)), None)

    def settle(self) -> list[Effect]:
        taken: list[Effect] = []
        while effects := self.broker.take_effects():
            taken += effects
            for each in effects:
                if isinstance(each, OpenLog):
                    state = self.logs.get(each.log, LogState(log=each.log))
                    self.broker.receive(Opened(token=each.token, state=state), 1000)
        self.last = taken
        return taken

    def replica(self, topic: str = "t") -> Partition | None:
        found = self.broker.replicas.find(topic, ZERO_UUID, 0)
        return None if isinstance(found, ErrorCode) else found


def command(*told: LeaderAndIsr, **fields: object) -> LeaderAndIsrRequest:
    request = LeaderAndIsrRequest(client_id=3, ack_timeout_ms=1, partitions=told)
    return replace_message(request, **fields)


def test_replica_that_is_not_there_is_started_and_becomes_what_the_command_says() -> None:
    stand = Stand()
    stand.ask(command(TOLD))
    led = stand.replica()
    assert led is not None
    assert isinstance(led.role, LeaderOf)
    assert (led.role.isr.members, led.role.partition_epoch) == ((1, 2), 0)
    stand.ask(command(replace_message(TOLD, leader=2, leader_epoch=1, zk_version=1)))
    assert isinstance(led.role, FollowerOf)
    assert led.role.leader_id == 2


def test_command_is_followed_only_if_its_leader_epoch_is_newer() -> None:
    stand = Stand()
    stand.ask(command(replace_message(TOLD, leader_epoch=5, zk_version=9)))
    stand.ask(command(replace_message(TOLD, leader=2, leader_epoch=5, zk_version=10)))
    stand.ask(command(replace_message(TOLD, leader=2, leader_epoch=4, zk_version=11)))
    led = stand.replica()
    assert led is not None
    assert isinstance(led.role, LeaderOf)


def test_init_takes_every_replica_that_it_does_not_name() -> None:
    stand = Stand()
    stand.ask(command(TOLD, replace_message(TOLD, topic="u")))
    stand.ask(command(TOLD, is_init=True))
    assert stand.replica("t") is not None
    assert stand.replica("u") is None
    assert [each.log for each in stand.last if isinstance(each, DeleteLog)] == ["u-0"]


def test_stopped_replica_goes_with_its_log() -> None:
    stand = Stand()
    stand.ask(command(TOLD))
    stop = StopReplicaRequest(client_id=3, ack_timeout_ms=1, partitions=(TopicPartition("t", 0),))
    stand.ask(stop)
    assert stand.replica() is None
    assert [each.log for each in stand.last if isinstance(each, DeleteLog)] == ["t-0"]


def test_stopped_replica_that_was_only_found_goes_with_its_log() -> None:
    found = [
        FoundLog(log=log, topic_id=UUID(int=7), directory_id=UUID(int=1)) for log in ("t-0", "u-0")
    ]
    stand = Stand(found=found)
    of = TopicPartition("t", 0)
    stand.ask(
        StopReplicaRequest(client_id=3, ack_timeout_ms=1, partitions=(of,), delete_partitions=True)
    )
    assert [each.log for each in stand.last if isinstance(each, DeleteLog)] == ["t-0"]


def test_follower_takes_back_all_above_its_high_watermark() -> None:
    """What the checkpoint said of it, after a restart: KAFKA-1211 begins here."""
    stand = Stand(logs={"t-0": LogState(log="t-0", end_offset=9, high_watermark=4)})
    stand.ask(command(replace_message(TOLD, leader=2)))
    assert [each.end_offset for each in stand.last if isinstance(each, Truncate)] == [4]


def test_fetch_between_high_watermark_and_log_end_is_empty_and_no_error() -> None:
    """Discussion 7: a new leader may know a lower high watermark than the old one told."""
    stand = Stand(logs={"t-0": LogState(log="t-0", end_offset=9, high_watermark=4)})
    stand.ask(command(TOLD))
    asked = FetchPartition(partition=0, fetch_offset=6, partition_max_bytes=1000)
    answer = stand.ask(
        FetchRequest(
            replica_state=ReplicaState(replica_id=-1),
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            topics=(FetchTopic(topic="t", partitions=(asked,)),),
        )
    )
    assert isinstance(answer, FetchResponse)
    (data,) = answer.responses[0].partitions
    assert (data.error_code, data.records) == (ErrorCode.NONE, b"")


def test_command_for_an_earlier_life_of_the_broker_is_refused() -> None:
    stand = Stand(ZK_REDESIGN, generation=8)
    answer = stand.ask(command(TOLD, broker_generation=7))
    assert getattr(answer, "error_code", None) is ErrorCode.STALE_BROKER_EPOCH
    assert stand.replica() is None
    stand.ask(command(TOLD, broker_generation=8))
    assert stand.replica() is not None


def test_command_of_an_earlier_controller_is_refused_where_the_design_looks() -> None:
    for checks in (True, False):
        stand = Stand(design=replace(ZK_V3, checks_controller_epoch=checks))
        stand.ask(command(TOLD, controller_epoch=2))
        answer = stand.ask(command(replace_message(TOLD, leader_epoch=1), controller_epoch=1))
        refused = getattr(answer, "error_code", None) is ErrorCode.STALE_CONTROLLER_EPOCH
        assert refused is checks


def test_what_a_command_has_deleted_is_not_begun_anew_by_what_was_read_before() -> None:
    """A controller writes the assignment last: who reads meanwhile finds itself assigned."""
    stand = Stand()
    broker = stand.broker
    view = broker.membership.metadata
    assert isinstance(view, View)
    obeying = Obeying(
        design=ZK_V3,
        node_id=1,
        outbox=broker.outbox,
        replicas=broker.replicas,
        view=view,
        incarnation=broker.membership.incarnation,
    )
    stop = StopReplicaRequest(
        client_id=3,
        ack_timeout_ms=1,
        partitions=(TopicPartition("t", 0),),
        delete_partitions=True,
    )
    read = PartitionState(replicas=(1, 2), isr=(2,), leader=2, leader_epoch=3)
    obeying.begin_reading()
    obeying.stop_replica(Request(token=1, body=stop), 1000)
    obeying.has_read({TopicPartition("t", 0): read, TopicPartition("u", 0): read}, 1000)
    stand.settle()
    assert stand.replica("t") is None
    assert stand.replica("u") is not None


def test_highest_epoch_of_a_controller_counts_not_that_which_was_heard_last() -> None:
    stand = Stand(design=replace(ZK_V3, checks_controller_epoch=True))
    for epoch, is_refused in ((3, False), (2, True), (2, True), (3, False)):
        answer = stand.ask(command(TOLD, controller_epoch=epoch))
        refused = getattr(answer, "error_code", None) is ErrorCode.STALE_CONTROLLER_EPOCH
        assert refused is is_refused


def test_newer_version_in_the_same_leader_epoch_is_news_where_the_controller_writes_isrs() -> None:
    for design, members in ((ZK_KIP497, (1,)), (ZK_V3, (1, 2))):
        stand = Stand(design=replace(design, checks_generation=False))
        stand.ask(command(TOLD))
        stand.ask(command(replace_message(TOLD, isr=(1,), zk_version=1)))
        led = stand.replica()
        assert led is not None
        assert isinstance(led.role, LeaderOf)
        assert led.role.isr.members == members


def test_replica_that_is_stopped_and_not_deleted_keeps_its_log_and_follows_nobody() -> None:
    stand = Stand()
    stand.ask(command(TOLD))
    of = TopicPartition("t", 0)
    stand.ask(
        StopReplicaRequest(client_id=3, ack_timeout_ms=1, partitions=(of,), delete_partitions=False)
    )
    stopped = stand.replica()
    assert stopped is not None
    assert isinstance(stopped.role, FollowerOf)
    assert stopped.role.leader_id == -1
    assert [each for each in stand.last if isinstance(each, DeleteLog)] == []


@pytest.mark.parametrize(
    ("generation", "error"),
    [(5, ErrorCode.INVALID_REQUEST), (4, ErrorCode.STALE_BROKER_EPOCH)],
)
def test_metadata_of_a_partition_without_replicas_is_refused(
    generation: int, error: ErrorCode
) -> None:
    """A command that must not be obeyed at all is refused for that."""
    nobody = UpdateMetadataRequest(
        client_id=3,
        ack_timeout_ms=1,
        broker_generation=generation,
        partitions=(replace_message(WHOLE, replicas=()),),
    )
    assert Stand(ZK_KIP497, generation=5).ask(nobody) == UpdateMetadataResponse(error_code=error)
