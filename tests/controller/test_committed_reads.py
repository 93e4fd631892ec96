"""Linearizable reads: from what is committed, by a controller that is sure to lead."""

from controller.committed_reads import ReadCommittedRequest, ReadCommittedResponse
from controller.config import ControllerConfig
from tests.controller.clusters import CLUSTER_ID
from tests.controller.fake_log import Quorum
from tests.controller.test_controller import start_broker
from wire.errors import ErrorCode
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SETTING = "delete.retention.ms"
READ = ReadCommittedRequest(topic="orders", config=SETTING, timeout_ms=5_000)


def quorum() -> Quorum:
    made = Quorum()
    for node_id in (1, 2, 3):
        made.add(ControllerConfig(node_id=node_id, cluster_id=CLUSTER_ID, max_idle_interval_ms=0))
    made.elect(1)
    made.commit()
    start_broker(made, 10)
    topic = CreatableTopic(
        name="orders",
        num_partitions=1,
        replication_factor=1,
        configs=(CreatableTopicConfig(name=SETTING, value="1"),),
    )
    made.answer(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000))
    return made


def write(made: Quorum, value: str) -> int:
    config = AlterableConfig(name=SETTING, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=(config,))
    return made.ask(IncrementalAlterConfigsRequest(resources=(resource,)))


def confirm(made: Quorum) -> None:
    """The majority answers all questions so far; the driver looks at the deadline."""
    made.confirmed_through = made.questions
    assert made.active.deadline_ms() == 0
    made.pass_time(0, commit=False)


def response(made: Quorum, number: int) -> ReadCommittedResponse:
    told = made.replies.pop(number)
    assert isinstance(told, ReadCommittedResponse), told
    return told


def test_read_is_answered_once_the_majority_has_confirmed_the_leader() -> None:
    made = quorum()
    number = made.ask(READ)
    made.pass_time(10)
    assert number not in made.replies
    confirm(made)
    told = response(made, number)
    assert (told.error, told.value, told.epoch) == (ErrorCode.NONE, "1", 1)
    assert told.offset == made.last_offset + 1


def test_what_is_not_committed_is_not_told() -> None:
    made = quorum()
    write(made, "2")
    before = made.ask(READ)
    confirm(made)
    assert response(made, before).value == "1"
    made.commit()
    after = made.ask(READ)
    confirm(made)
    assert response(made, after).value == "2"


def test_topic_or_config_that_nobody_set_has_no_value() -> None:
    made = quorum()
    for topic, config in (("elsewhere", SETTING), ("orders", "cleanup.policy")):
        number = made.ask(ReadCommittedRequest(topic=topic, config=config))
        confirm(made)
        assert response(made, number).value is None


def test_standby_says_who_leads() -> None:
    made = quorum()
    told = response(made, made.ask(READ, node_id=2))
    assert (told.error, told.leader_id) == (ErrorCode.NOT_CONTROLLER, 1)


def test_who_is_deposed_answers_nothing_that_waits() -> None:
    made = quorum()
    number = made.ask(READ)
    made.elect(2)
    assert response(made, number).error is ErrorCode.NOT_CONTROLLER


def test_without_a_majority_the_time_runs_out() -> None:
    made = quorum()
    number = made.ask(READ)
    made.pass_time(4_999)
    assert number not in made.replies
    made.pass_time(1)
    assert response(made, number).error is ErrorCode.REQUEST_TIMED_OUT
