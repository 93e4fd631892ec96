"""Linearizable reads: from what is committed, by a controller that is sure to lead."""

from dataclasses import dataclass

from controller.committed_reads import CommittedReads, ReadCommittedRequest, ReadCommittedResponse
from controller.config import ControllerConfig
from quorum.core.effects import Reply, Request
from tests.controller.clusters import CLUSTER_ID
from tests.controller.fake_log import Quorum, Seat
from tests.controller.test_controller import start_broker
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

SETTING = "delete.retention.ms"
READ = ReadCommittedRequest(topic="orders", config=SETTING, timeout_ms=5_000)


@dataclass(slots=True)
class ConfirmingSeat(Seat):
    """The test says when a majority has answered."""

    questions: int = 0
    confirmed_through: int = 0

    def confirm_leadership(self, now_ms: int) -> int:
        assert self.quorum.leader_id == self.node_id, "only the leader asks"
        self.questions += 1
        return self.questions


class Reads:
    """Those beside one controller of three."""

    def __init__(self, node_id: int = 1) -> None:
        self.quorum = made = Quorum()
        for each in (1, 2, 3):
            made.add(ControllerConfig(node_id=each, cluster_id=CLUSTER_ID, max_idle_interval_ms=0))
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
        self.seat = ConfirmingSeat(node_id, made)
        self.reads = CommittedReads(self.seat, made.controllers[node_id])
        self.replies: dict[int, ReadCommittedResponse] = {}
        self._requests = 0

    def ask(self, body: ReadCommittedRequest = READ) -> int:
        self._requests += 1
        assert self.reads.serves(body)
        self.reads.receive(Request(token=self._requests, body=body), self.quorum.now_ms)
        self._collect()
        return self._requests

    def write(self, value: str) -> None:
        config = AlterableConfig(name=SETTING, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=(config,))
        self.quorum.ask(IncrementalAlterConfigsRequest(resources=(resource,)))

    def commit(self) -> None:
        self.quorum.commit()
        self.reads.committed(b"", self.quorum.last_offset + 1, self.quorum.now_ms)
        self._collect()

    def confirm(self) -> None:
        """The majority answers all questions so far; the driver looks at the deadline."""
        self.seat.confirmed_through = self.seat.questions
        assert self.reads.deadline_ms() == 0
        self.pass_time(0)

    def pass_time(self, ms: int) -> None:
        self.quorum.now_ms += ms
        self.reads.tick(self.quorum.now_ms)
        self._collect()

    def elect(self, node_id: int) -> None:
        self.quorum.elect(node_id)
        self.reads.resign(self.quorum.now_ms)
        self._collect()

    def _collect(self) -> None:
        for effect in self.reads.take_effects():
            assert isinstance(effect, Reply), effect
            assert isinstance(effect.body, ReadCommittedResponse), effect
            assert effect.token not in self.replies, "answered twice"
            self.replies[effect.token] = effect.body


def test_read_is_answered_once_the_majority_has_confirmed_the_leader() -> None:
    made = Reads()
    number = made.ask()
    made.pass_time(10)
    assert number not in made.replies
    made.confirm()
    told = made.replies[number]
    assert (told.error, told.value, told.epoch) == (ErrorCode.NONE, "1", 1)
    assert told.offset == made.quorum.last_offset + 1


def test_what_is_not_committed_is_not_told() -> None:
    made = Reads()
    made.write("2")
    before = made.ask()
    made.confirm()
    assert made.replies[before].value == "1"
    made.commit()
    after = made.ask()
    made.confirm()
    assert made.replies[after].value == "2"


def test_topic_or_config_that_nobody_set_has_no_value() -> None:
    made = Reads()
    for topic, config in (("elsewhere", SETTING), ("orders", "cleanup.policy")):
        number = made.ask(ReadCommittedRequest(topic=topic, config=config))
        made.confirm()
        assert made.replies[number].value is None


def test_standby_says_who_leads() -> None:
    made = Reads(node_id=2)
    told = made.replies[made.ask()]
    assert (told.error, told.leader_id) == (ErrorCode.NOT_CONTROLLER, 1)


def test_who_is_deposed_answers_nothing_that_waits() -> None:
    made = Reads()
    number = made.ask()
    made.elect(2)
    assert made.replies[number].error is ErrorCode.NOT_CONTROLLER


def test_without_a_majority_the_time_runs_out() -> None:
    made = Reads()
    number = made.ask()
    made.pass_time(4_999)
    assert number not in made.replies
    made.pass_time(1)
    assert made.replies[number].error is ErrorCode.REQUEST_TIMED_OUT


def test_controller_alone_serves_no_such_read() -> None:
    assert not Reads().quorum.active.serves(READ)
