"""The controller core on a log that commits when the test says so."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from controller.config import ControllerConfig
from controller.controller import Controller
from controller.decisions import elections, failover
from controller.metadata.changes import Change, decode_changes
from controller.metadata.describe import describe
from controller.metadata.image import MetadataImage
from controller.refusals import REFUSALS
from controller.requests import WRITES
from jepsen_like.planted.every_bug import planted
from quorum.core.config_effects import ConfigsChanged
from quorum.core.effects import Failure, RequestFailed, Token
from tests.controller.clusters import CLUSTER_ID, FEATURES, heartbeat, registration
from tests.controller.fake_log import Quorum
from wire import metadata_records as records
from wire.batch import data_batch
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    LegacyConfig,
    LegacyResource,
)
from wire.messages.metadata import DescribeClusterRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.producing import AllocateProducerIdsRequest
from wire.messages.registration import (
    ControllerRegistrationRequest,
    Feature,
    RegisteredListener,
    UnregisterBrokerRequest,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from wire.metadata_records import encode_record
from wire.primitives import ZERO_UUID

CONTROLLERS = (3000, 3001, 3002)


def config(node_id: int, **others: object) -> ControllerConfig:
    made = ControllerConfig(node_id=node_id, cluster_id=CLUSTER_ID, max_idle_interval_ms=0)
    return replace(made, **others)  # type: ignore[arg-type]  # fields by name


def quorum(**others: object) -> Quorum:
    made = Quorum()
    for node_id in CONTROLLERS:
        made.add(config(node_id, **others))
    made.elect(CONTROLLERS[0])
    made.commit()
    return made


def changes(made: Quorum) -> list[Change]:
    found: list[Change] = []
    for batch in decode_changes(b"".join(made.batches)):
        found += batch.changes
    return found


def start_broker(made: Quorum, broker_id: int) -> int:
    """Register and unfence; the broker's epoch."""
    answer: Any = made.answer(registration(broker_id))
    assert answer.error_code is ErrorCode.NONE, answer
    beat: Any = made.answer(heartbeat(broker_id, answer.broker_epoch, made.last_offset))
    assert not beat.is_fenced, beat
    return int(answer.broker_epoch)


def create(name: str, partitions: int = 1, factor: int = 1) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=5000)


# --- taking over --------------------------------------------------------------------------------


def test_first_active_controller_writes_the_bootstrap_records() -> None:
    made = quorum()
    assert changes(made) == [
        records.BeginTransactionRecord(name="Bootstrap records"),
        records.FeatureLevelRecord(name="metadata.version", feature_level=33),
        records.ZkMigrationStateRecord(zk_migration_state=0),
        records.EndTransactionRecord(),
    ]
    assert {c.image.metadata_version for c in made.controllers.values()} == {33}


def test_bootstrap_has_what_the_directory_was_formatted_with() -> None:
    credential = records.UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    levels = {"metadata.version": 20, "group.version": 1}
    made = quorum(bootstrap_features=levels, bootstrap_records=(credential,))
    image = made.active.image
    assert image.features == levels
    assert list(image.scram_credentials.values()) == [credential]


def test_bootstrap_with_eligible_leaders_settles_min_isr_for_every_broker() -> None:
    made = quorum(
        bootstrap_features={"metadata.version": 25, "eligible.leader.replicas.version": 1},
        static_configs={"min.insync.replicas": "2"},
    )
    assert changes(made)[2:4] == [
        records.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        records.ConfigRecord(
            resource_type=4, resource_name="", name="min.insync.replicas", value="2"
        ),
    ]
    assert made.active.image.has_eligible_leaders


def test_next_active_controller_does_not_bootstrap_again() -> None:
    made = quorum()
    before = changes(made)
    made.elect(CONTROLLERS[1])
    made.commit()
    assert changes(made) == before


def test_bootstrap_is_written_again_if_the_first_one_was_lost() -> None:
    made = Quorum()
    for node_id in CONTROLLERS:
        made.add(config(node_id))
    made.elect(CONTROLLERS[0])
    made.elect(CONTROLLERS[1])
    made.commit()
    assert len(changes(made)) == 4


def test_bootstrap_that_was_cut_short_is_aborted_and_written_again() -> None:
    made = Quorum()
    made.add(config(3000))
    part = records.BeginTransactionRecord(name="Bootstrap records")
    level = records.FeatureLevelRecord(name="metadata.version", feature_level=33)
    made.epoch = 1
    made.append(data_batch([encode_record(part), encode_record(level)], timestamp_ms=0))
    made.commit()
    made.elect(3000)
    made.commit()
    kinds = [type(change).__name__ for change in changes(made)[2:]]
    assert kinds[:2] == ["AbortTransactionRecord", "BeginTransactionRecord"]
    assert made.active.image.metadata_version == 33


def test_new_active_controller_aborts_an_open_transaction() -> None:
    made = quorum()
    begin = encode_record(records.BeginTransactionRecord(name="half"))
    topic = encode_record(records.TopicRecord(name="half", topic_id=UUID(int=5 << 64)))
    made.append(data_batch([begin, topic], timestamp_ms=0))
    # Written by somebody else: only a controller that has not appended it takes it as delivered.
    made.leader_id = None
    made.controllers[3000].resign(made.now_ms)
    made.commit()
    assert made.controllers[3001].image.topic("half") is None
    active = made.elect(3001)
    made.commit()
    assert active.head.topic("half") is None
    assert isinstance(changes(made)[-1], records.AbortTransactionRecord)


def test_new_active_controller_gives_every_broker_a_fresh_session() -> None:
    made = quorum(session_timeout_ms=1000)
    start_broker(made, 1)
    made.pass_time(900)
    made.elect(CONTROLLERS[1])
    made.pass_time(900)
    assert not made.active.image.brokers[1].fenced
    made.pass_time(200)
    assert made.active.image.brokers[1].fenced


def test_new_active_controller_elects_what_the_former_one_did_not_get_to() -> None:
    """A broker came up, and the elections that it made possible were in a batch of their own."""
    made = quorum()
    start_broker(made, 1)
    made.answer(create("t"))
    topic = made.active.image.topic("t")
    assert topic is not None
    leaderless = records.PartitionChangeRecord(topic_id=topic.id, partition_id=0, leader=-1)
    made.leader_id = None
    made.controllers[3000].resign(made.now_ms)
    made.append(data_batch([encode_record(leaderless)], timestamp_ms=0))
    made.commit()
    made.elect(3001)
    made.commit()
    state = made.active.image.partition(topic.id, 0)
    assert state is not None
    assert (state.leader, state.isr) == (1, (1,))


def test_controlled_shutdown_that_is_finished_later_waits_for_the_later_offset() -> None:
    made = quorum()
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", factor=2))
    topic = made.active.image.topic("t")
    assert topic is not None
    made.leader_id = None
    made.controllers[3000].resign(made.now_ms)
    begun: list[records.MetadataRecord] = [
        records.PartitionChangeRecord(topic_id=topic.id, partition_id=0, leader=1),
        records.BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=epochs[1], in_controlled_shutdown=1
        ),
    ]
    made.append(data_batch([encode_record(each) for each in begun], timestamp_ms=0))
    made.commit()
    made.elect(3001)
    made.answer(heartbeat(2, epochs[2], made.last_offset))
    leave = heartbeat(1, epochs[1], made.last_offset, want_shut_down=True)
    made.answer(leave)
    early: Any = made.answer(leave)
    assert not early.should_shut_down, "broker 2 has not seen that it leads now"
    made.answer(heartbeat(2, epochs[2], made.last_offset))
    last: Any = made.answer(leave)
    assert last.should_shut_down


@pytest.mark.parametrize("version", range(7, 26))
def test_every_metadata_version_can_be_written(version: int) -> None:
    made = quorum(
        bootstrap_features={"metadata.version": version},
        session_timeout_ms=1000,
        max_idle_interval_ms=500,
    )
    assert made.active.image.metadata_version == version
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", partitions=3, factor=2))
    made.answer(heartbeat(1, epochs[1], made.last_offset, want_shut_down=True))
    made.pass_time(1000)
    assert all(broker.fenced for broker in made.active.image.brokers.values())
    shown = [describe(controller.image) for controller in made.controllers.values()]
    assert all(each == shown[0] for each in shown)


# --- answers ------------------------------------------------------------------------------------


def test_answer_waits_for_commit() -> None:
    made = quorum()
    number = made.ask(registration(1))
    assert number not in made.replies
    assert made.active.head.brokers
    assert not made.active.image.brokers
    made.commit()
    assert number in made.replies
    assert made.active.image.brokers


def test_answer_without_changes_waits_for_what_it_rests_on() -> None:
    made = quorum()
    start_broker(made, 1)
    first = made.ask(create("t"))
    again = made.ask(create("t"))
    assert again not in made.replies, "it speaks of a topic that may still be lost"
    made.commit()
    assert made.replies[first].topics[0].error_code is ErrorCode.NONE  # type: ignore[attr-defined]
    second: Any = made.replies[again]
    assert second.topics[0].error_code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_requests_are_committed_one_by_one_and_answered_in_order() -> None:
    made = quorum()
    start_broker(made, 1)
    numbers = [made.ask(create(f"t{n}")) for n in range(3)]
    made.commit(1)
    assert [number in made.replies for number in numbers] == [True, False, False]
    assert made.active.image.topic("t0") is not None
    assert made.active.image.topic("t1") is None
    made.commit()
    assert all(number in made.replies for number in numbers)


def test_answer_waits_although_its_only_record_is_the_next_to_be_committed() -> None:
    made = quorum()
    first, second = made.ask(registration(1)), made.ask(registration(2))
    made.commit(1)
    assert [number in made.replies for number in (first, second)] == [True, False]


def test_standbys_follow_to_the_same_image() -> None:
    made = quorum()
    for broker_id in (1, 2, 3):
        start_broker(made, broker_id)
    made.answer(create("t", partitions=20, factor=3))
    shown = [describe(controller.image) for controller in made.controllers.values()]
    assert all(each == shown[0] for each in shown)


def test_what_was_not_committed_is_lost_with_leadership() -> None:
    made = quorum()
    start_broker(made, 1)
    number = made.ask(create("t"))
    made.elect(CONTROLLERS[1])
    answer: Any = made.replies[number]
    assert answer.topics[0].error_code is ErrorCode.NOT_CONTROLLER
    former = made.controllers[CONTROLLERS[0]]
    assert former.head.topic("t") is None
    assert made.active.head.topic("t") is None


def told_of_a_topic_that_was_lost() -> ErrorCode:
    """Another leader writes where its records were; then the controller that was asked leads again,
    and commits beyond them."""
    made = quorum()
    start_broker(made, 1)
    number = made.ask(create("lost"))
    lost_at = made.last_offset
    made.elect(CONTROLLERS[1])
    made.answer(create("another"))
    made.elect(CONTROLLERS[0])
    made.answer(create("third"))
    assert made.active.applied_offset > lost_at
    assert made.active.image.topic("lost") is None
    answer: Any = made.replies[number]
    return ErrorCode(answer.topics[0].error_code)


def test_answer_is_of_the_epoch_that_decided_it() -> None:
    assert told_of_a_topic_that_was_lost() is ErrorCode.NOT_CONTROLLER


def test_a_waiter_without_its_epoch_is_found() -> None:
    with planted("forgets_the_epoch_of_who_waits"):
        assert told_of_a_topic_that_was_lost() is ErrorCode.NONE


def test_what_the_next_leader_kept_comes_back_as_delivered() -> None:
    made = quorum()
    start_broker(made, 1)
    made.ask(create("t"))
    made.elect(CONTROLLERS[1], keep=1)
    made.commit()
    for controller in made.controllers.values():
        assert controller.head.topic("t") is not None


def test_standby_names_the_active_controller() -> None:
    made = quorum()
    number = made.ask(create("t"), CONTROLLERS[1])
    answer: Any = made.replies[number]
    assert answer.topics[0].error_code is ErrorCode.NOT_CONTROLLER
    assert "3000" in answer.topics[0].error_message


RESOURCE = AlterConfigsResource(
    resource_type=2,
    resource_name="t",
    configs=(AlterableConfig(name="retention.ms", config_operation=0, value="1"),),
)
LEGACY = LegacyResource(
    resource_type=2, resource_name="t", configs=(LegacyConfig(name="retention.ms", value="1"),)
)


@pytest.mark.parametrize(
    "request_",
    [
        create("t"),
        DeleteTopicsRequest(
            topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),), timeout_ms=1000
        ),
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="t", count=3, assignments=None),),
            timeout_ms=1000,
            validate_only=False,
        ),
        IncrementalAlterConfigsRequest(resources=(RESOURCE,), validate_only=False),
        AlterConfigsRequest(resources=(LEGACY,), validate_only=False),
        registration(1),
        heartbeat(1, 1, 1),
        AlterPartitionRequest(broker_id=1, broker_epoch=1, topics=()),
        AllocateProducerIdsRequest(broker_id=1, broker_epoch=1),
        UnregisterBrokerRequest(broker_id=1),
        ControllerRegistrationRequest(
            controller_id=3001,
            incarnation_id=UUID(int=9),
            zk_migration_ready=False,
            listeners=(),
            features=(),
        ),
    ],
    ids=lambda body: type(body).__name__,
)
def test_every_write_is_refused_by_a_standby(request_: object) -> None:
    made = quorum()
    assert made.active.serves(request_)
    number = made.ask(request_, CONTROLLERS[1])
    assert str(ErrorCode.NOT_CONTROLLER.value) in str(_codes(made.replies[number]))


def test_every_write_has_a_refusal() -> None:
    assert WRITES.keys() <= REFUSALS.keys()


def _codes(answer: object) -> list[int]:
    found: list[int] = []
    for name in ("error_code", "topics", "responses", "results"):
        value: Any = getattr(answer, name, ())
        items = value if isinstance(value, tuple) else (value,)
        found += [item.error_code if hasattr(item, "error_code") else item for item in items]
    return found


def test_answer_that_is_not_committed_in_time_says_so() -> None:
    made = quorum()
    start_broker(made, 1)
    number = made.ask(create("t"))
    deadline_ms = made.active.deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms <= made.now_ms + 5000
    made.pass_time(5000, commit=False)
    answer: Any = made.replies[number]
    assert answer.topics[0].error_code is ErrorCode.REQUEST_TIMED_OUT
    made.commit()


def test_heartbeat_that_timed_out_counts_all_the_same() -> None:
    made = quorum(session_timeout_ms=3000)
    epoch = start_broker(made, 1)
    made.pass_time(2500)
    made.ask(create("t"))
    number = made.ask(heartbeat(1, epoch, 10**6))
    made.pass_time(1500, commit=False)
    answer: Any = made.replies[number]
    assert answer.error_code is ErrorCode.REQUEST_TIMED_OUT
    assert not made.active.head.brokers[1].fenced


def test_requests_that_wait_are_bounded() -> None:
    made = quorum(waiting_requests_max=2)
    start_broker(made, 1)
    waiting = [made.ask(create(f"t{n}")) for n in range(3)]
    answer: Any = made.replies[waiting[2]]
    assert answer.topics[0].error_code is ErrorCode.REQUEST_TIMED_OUT
    assert made.active.head.topic("t2") is None


# --- periodic -----------------------------------------------------------------------------------


def test_no_op_is_written_at_every_interval() -> None:
    made = quorum(max_idle_interval_ms=500)
    count = len(changes(made))
    assert made.active.deadline_ms() == made.now_ms + 500
    for _ in range(3):
        made.pass_time(500)
    assert changes(made)[count:] == [records.NoOpRecord()] * 3


def test_silent_brokers_are_fenced_and_their_partitions_move() -> None:
    made = quorum(session_timeout_ms=1000)
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2, 3)}
    made.answer(create("t", partitions=6, factor=3))
    made.pass_time(800)
    made.answer(heartbeat(2, epochs[2], 10**6))
    made.answer(heartbeat(3, epochs[3], 10**6))
    made.pass_time(300)
    image = made.active.image
    assert [broker.fenced for _, broker in sorted(image.brokers.items())] == [True, False, False]
    topic = image.topic("t")
    assert topic is not None
    for _, state in image.partitions_of(topic.id):
        assert state.leader in (2, 3)
        assert set(state.isr) == {2, 3}


def test_broker_leaves_many_isrs_in_several_turns_and_is_fenced_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A few partitions are decided one by one, which takes its time; the quorum must not wait."""
    monkeypatch.setattr(failover, "ONE_BY_ONE_MAX", 10)
    made = quorum(session_timeout_ms=1000)
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2, 3)}
    made.answer(create("t", partitions=25, factor=3))
    topic = made.active.image.topic("t")
    assert topic is not None
    made.pass_time(800)
    for broker_id in (2, 3):
        made.answer(heartbeat(broker_id, epochs[broker_id], 10**6))
    left = []
    for duration_ms in (300, 1, 1):
        made.pass_time(0)
        assert not made.active.image.brokers[1].fenced
        due_ms = made.active.deadline_ms()
        assert due_ms is not None
        assert due_ms <= made.now_ms + duration_ms
        assert due_ms > made.now_ms, "a turn has one time, and no end before that has passed"
        made.pass_time(duration_ms)
        states = [state for _, state in made.active.image.partitions_of(topic.id)]
        left.append(sum(1 not in state.isr for state in states))
    assert left == [10, 20, 25]
    assert made.active.image.brokers[1].fenced
    assert {state.leader for state in states} == {2, 3}


def test_many_elections_are_held_in_several_turns_and_by_the_next_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker comes up that alone may lead ten partitions, none of them from its ISR."""
    monkeypatch.setattr(failover, "ONE_BY_ONE_MAX", 3)
    monkeypatch.setattr(elections, "ELECTIONS_MAX", 2)
    made = quorum(
        session_timeout_ms=1000,
        bootstrap_features={"metadata.version": 25, "eligible.leader.replicas.version": 1},
        static_configs={"min.insync.replicas": "2"},
    )
    elr = Feature(
        name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1
    )
    for broker_id in (1, 2):
        told: Any = made.answer(registration(broker_id, features=(*FEATURES, elr)))
        made.answer(heartbeat(broker_id, told.broker_epoch, made.last_offset))
    made.answer(create("t", partitions=10, factor=2))
    topic = made.active.image.topic("t")
    assert topic is not None
    for _ in range(20):
        made.pass_time(1000)

    def led() -> int:
        return sum(state.leader > 0 for _, state in made.active.image.partitions_of(topic.id))

    assert led() == 0
    assert {state.isr for _, state in made.active.image.partitions_of(topic.id)} == {()}
    epoch = made.active.image.brokers[1].epoch
    made.answer(heartbeat(1, epoch, made.last_offset))
    found = [led()]
    made.pass_time(1)
    made.pass_time(0)
    found.append(led())
    made.elect(CONTROLLERS[1])
    made.commit()
    found.append(led())
    for _ in range(2):
        assert made.active.deadline_ms() == made.now_ms + 1
        made.pass_time(1)
        found.append(led())
    assert found == [3, 5, 7, 9, 10]


def test_broker_that_beats_is_alive_even_while_too_many_requests_wait() -> None:
    made = quorum(waiting_requests_max=1, session_timeout_ms=1000)
    epoch = start_broker(made, 1)
    made.ask(create("t"))
    for _ in range(3):
        made.pass_time(400, commit=False)
        made.ask(heartbeat(1, epoch, 10**6))
    assert not made.active.head.brokers[1].fenced


def test_unclean_election_follows_the_config_at_once() -> None:
    made = quorum(session_timeout_ms=1000)
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", factor=2))
    topic = made.active.image.topic("t")
    assert topic is not None
    first, second = next(made.active.image.partitions_of(topic.id))[1].replicas
    made.pass_time(600)
    made.answer(heartbeat(first, epochs[first], 10**6))
    made.pass_time(600)  # the second goes: the first is alone in the ISR
    made.pass_time(600)  # the first goes, too
    made.answer(heartbeat(second, epochs[second], 10**6))
    state = next(made.active.image.partitions_of(topic.id))[1]
    assert (state.leader, state.isr) == (-1, (first,))
    unclean = AlterableConfig(
        name="unclean.leader.election.enable", config_operation=0, value="true"
    )
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(unclean,))
    made.answer(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    made.pass_time(0)
    state = next(made.active.image.partitions_of(topic.id))[1]
    assert (state.leader, state.isr, state.leader_recovery_state) == (second, (second,), 1)


def test_every_node_is_told_of_its_own_configs_once_they_are_committed() -> None:
    made = quorum()
    start_broker(made, 1)
    made.effects.clear()
    setting = AlterableConfig(name="x", config_operation=0, value="path")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=(setting,))
    made.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert [each for each in made.effects if isinstance(each, ConfigsChanged)] == []
    made.commit()
    told = [each.values for each in made.effects if isinstance(each, ConfigsChanged)]
    assert told == [{"x": "path"}] * len(CONTROLLERS)


def test_controlled_shutdown_waits_until_the_others_know() -> None:
    made = quorum()
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", partitions=4, factor=2))
    for broker_id, epoch in epochs.items():
        made.answer(heartbeat(broker_id, epoch, made.last_offset))
    leave = heartbeat(1, epochs[1], made.last_offset, want_shut_down=True)
    first: Any = made.answer(leave)
    assert (first.is_fenced, first.should_shut_down) == (False, False)
    assert made.active.image.brokers[1].in_controlled_shutdown
    again: Any = made.answer(leave)
    assert not again.should_shut_down, "broker 2 has not seen that it leads now"
    made.answer(heartbeat(2, epochs[2], made.last_offset))
    last: Any = made.answer(leave)
    assert (last.is_fenced, last.should_shut_down) == (True, True)
    assert made.active.image.brokers[1].fenced


def test_controlled_shutdown_goes_on_under_another_controller() -> None:
    made = quorum()
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", partitions=4, factor=2))
    leave = heartbeat(1, epochs[1], made.last_offset, want_shut_down=True)
    made.answer(leave)
    made.elect(CONTROLLERS[1])
    early: Any = made.answer(leave)
    assert not early.should_shut_down, "broker 2 has not been heard of"
    made.answer(heartbeat(2, epochs[2], made.last_offset))
    last: Any = made.answer(leave)
    assert last.should_shut_down


# --- reads and registrations --------------------------------------------------------------------


def listener(port: int) -> RegisteredListener:
    return RegisteredListener(name="CONTROLLER", host="localhost", port=port, security_protocol=0)


def with_registered_controllers() -> Quorum:
    made = Quorum()
    for node_id in CONTROLLERS:
        made.add(config(node_id, incarnation_id=UUID(int=node_id), listeners=(listener(node_id),)))
    made.elect(CONTROLLERS[0])
    made.commit()
    made.pass_time(0)
    for send in list(made.sent()):
        assert send.to.node_id == CONTROLLERS[0]
        made.answer(send.body)
    return made


def test_controllers_register_themselves() -> None:
    made = with_registered_controllers()
    assert sorted(made.active.image.controllers) == list(CONTROLLERS)
    made.effects.clear()
    made.pass_time(10_000)
    assert not made.sent()


def test_controller_registration_is_tried_again_ever_more_slowly() -> None:
    made = Quorum()
    for node_id in CONTROLLERS:
        made.add(config(node_id, incarnation_id=UUID(int=node_id)))
    made.elect(CONTROLLERS[0])
    made.commit()
    standby = made.controllers[CONTROLLERS[1]]
    waits = []
    for number in range(1, 4):
        made.pass_time(0, commit=False)
        failed = RequestFailed(token=Token("controller", number), failure=Failure.TIMED_OUT)
        standby.receive(failed, made.now_ms)
        due_ms = standby.deadline_ms()
        assert due_ms is not None
        waits.append(due_ms - made.now_ms)
        made.pass_time(waits[-1] - made.now_ms % 1)
    assert waits == [100, 200, 400]


@pytest.mark.parametrize("node_id", CONTROLLERS)
def test_any_controller_describes_the_controllers(node_id: int) -> None:
    made = with_registered_controllers()
    number = made.ask(DescribeClusterRequest(endpoint_type=2), node_id)
    answer: Any = made.replies[number]
    assert answer.controller_id == CONTROLLERS[0]
    assert [(b.broker_id, b.port) for b in answer.brokers] == [(n, n) for n in CONTROLLERS]
    assert answer.cluster_id == CLUSTER_ID


@pytest.mark.parametrize(("asked", "operations"), [(False, -(2**31)), (True, 8096)])
def test_a_controller_tells_what_may_be_done_to_the_cluster(asked: bool, operations: int) -> None:
    made = with_registered_controllers()
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=asked)
    answer: Any = made.answer(request)
    assert answer.cluster_authorized_operations == operations


@pytest.mark.parametrize("node_id", CONTROLLERS)
def test_any_controller_lists_the_reassignments_that_are_committed(node_id: int) -> None:
    made = quorum()
    for broker_id in (1, 2):
        start_broker(made, broker_id)
    made.answer(create("orders"))
    ((replica,),) = _assignments(made.active.image, "orders")
    moved = ReassignablePartition(partition_index=0, replicas=(3 - replica,))
    topic = ReassignableTopic(name="orders", partitions=(moved,))
    asked = made.ask(AlterPartitionReassignmentsRequest(topics=(topic,)))
    assert _reassigned(made, node_id) == []
    assert asked not in made.replies
    made.commit()
    assert _reassigned(made, node_id) == ["orders"]


def _assignments(image: MetadataImage, name: str) -> list[tuple[int, ...]]:
    return [state.replicas for _, state in image.partitions_of(image.topics.by_name[name].id)]


def _reassigned(made: Quorum, node_id: int) -> list[str]:
    """Told at once, without a commit."""
    answer: Any = made.replies.pop(made.ask(ListPartitionReassignmentsRequest(), node_id))
    assert answer.error_code is ErrorCode.NONE, answer
    return [topic.name for topic in answer.topics]


def test_controller_asked_for_brokers_says_whom_to_ask() -> None:
    made = with_registered_controllers()
    answer: Any = made.answer(DescribeClusterRequest(endpoint_type=1))
    assert answer.error_code is ErrorCode.MISMATCHED_ENDPOINT_TYPE
    answer = made.answer(DescribeClusterRequest(endpoint_type=3))
    assert answer.error_code is ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_controller_describes_its_own_configs() -> None:
    made = quorum(static_configs={"node.id": "3000"})
    resource = DescribeConfigsResource(
        resource_type=4, resource_name="3000", configuration_keys=("node.id",)
    )
    answer: Any = made.answer(DescribeConfigsRequest(resources=(resource,)))
    (described,) = answer.results[0].configs
    assert (described.value, described.config_source, described.read_only) == ("3000", 4, True)


# --- a broken log -------------------------------------------------------------------------------


def test_log_that_cannot_be_applied_stops_the_process() -> None:
    made = quorum()
    controller: Controller = made.controllers[CONTROLLERS[1]]
    broken = data_batch(
        [encode_record(records.RemoveTopicRecord(topic_id=UUID(int=5)))], timestamp_ms=0
    )
    controller.committed(broken, 100, made.now_ms)
    (stop,) = controller.take_effects()
    assert "cannot be applied" in str(stop)
    assert controller.deadline_ms() is None
