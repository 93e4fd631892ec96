"""The story of a partition in a log that Apache Kafka wrote."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from controller.metadata.changes import Change
from quorumlab.inspection.broker_story import BrokerStory
from quorumlab.inspection.partition_story import PartitionStory
from quorumlab.inspection.stories import ConfigStory, Event, parse_subject, story
from quorumlab.inspection.target import Target, find_target
from tests.quorumlab.inspection.logs import TOPIC, change, cluster, partition, write_log
from wire import metadata_records as records
from wire.message import replace

GOLDEN = Path(__file__).parents[2] / "golden"


def told(subject: str) -> list[str]:
    target = find_target(str(GOLDEN / "kraft3/node-1"))
    assert isinstance(target, Target)
    found = list(story(target, parse_subject(subject)))
    assert all(isinstance(each, Event) for each in found)
    return [each.text for each in found if isinstance(each, Event)]


def test_a_partition_is_told_from_its_creation_on() -> None:
    assert told("safe-0")[0] == "created on [1,2,3], ISR [1,2,3], leader 1"


def test_the_cause_is_what_was_written_with_it() -> None:
    assert "broker 2 fell out of the ISR, which is [1,3] (broker 2 fenced)" in told("safe-0")[1]
    assert told("safe-0")[3].startswith("leader moved 1 → 2; broker 1 fell out of the ISR")


def test_an_unclean_election_is_called_one() -> None:
    assert any("UNCLEAN" in text for text in told("six-0"))


def test_a_reassignment_begins_and_ends() -> None:
    texts = told("six-0")
    assert any("a reassignment adds broker 2; it will remove broker 1" in text for text in texts)
    assert any("the reassignment is done: replicas [2]" in text for text in texts)


def made_up(path: Path, subject: str, *batches: Sequence[Change]) -> list[str]:
    found = story(write_log(path, cluster(), *batches), parse_subject(subject))
    return [each.text for each in found if isinstance(each, Event)]


def test_each_unclean_election_is_called_one(tmp_path: Path) -> None:
    """The second one elects from outside the ISR while the first has not been recovered from."""
    texts = made_up(
        tmp_path,
        "orders-0",
        (change(isr=(1,)),),
        (change(leader=-1, isr=(), last_known_elr=(1,)),),
        (change(leader=2, isr=(2,), leader_recovery_state=1),),
        (change(leader=-1),),
        (change(leader=3, isr=(3,), leader_recovery_state=1),),
        (change(isr=(3, 2)),),
        (change(leader_recovery_state=0),),
    )
    assert ["UNCLEAN" in text for text in texts] == [*(False,) * 3, True, False, True, False, False]
    assert texts[3].startswith("online again, led by broker 2; UNCLEAN")
    assert texts[-1].startswith("recovered from the unclean election")


def test_a_topic_made_anew_under_its_name_is_another_one(tmp_path: Path) -> None:
    other = UUID(int=8)
    again = (
        records.TopicRecord(name="orders", topic_id=other),
        replace(partition(replicas=(3,), isr=(3,), leader=3), topic_id=other),
    )
    gone = records.RemoveTopicRecord(topic_id=TOPIC)
    late = (records.TopicRecord(name="other", topic_id=TOPIC), change(isr=(1,)))
    assert made_up(tmp_path, "orders-0", (gone,), again, late) == [
        "created on [1,2,3], ISR [1,2,3], leader 1",
        "the topic was deleted",
        "created on [3], ISR [3], leader 3",
    ]


def test_a_partition_that_never_was_has_no_story(tmp_path: Path) -> None:
    assert made_up(tmp_path, "orders-9", (records.RemoveTopicRecord(topic_id=TOPIC),)) == []


def test_the_defaults_of_brokers_are_configs_too(tmp_path: Path) -> None:
    record = records.ConfigRecord(
        resource_type=4, resource_name="", name="message.max.bytes", value="9"
    )
    assert made_up(tmp_path, "config (default)", (record,)) == ["message.max.bytes = 9"]


def test_a_broker_has_its_life_told() -> None:
    texts = told("broker 2")
    assert texts[0].startswith("registered with epoch 11, fenced")
    assert texts[1:5] == [
        "broker 2 unfenced",
        "became the leader of six-1, six-5",
        "came into the ISR of six-1, six-5",
        "became the leader of safe-1",
    ]
    assert "no longer leads safe-1, six-1, six-5" in texts


def test_what_a_batch_of_many_partitions_made_of_a_broker_is_told(tmp_path: Path) -> None:
    """Records of one shape come as a block, and no single record is beside it."""
    places = range(1, 101)
    texts = made_up(
        tmp_path,
        "broker 2",
        [replace(partition(replicas=(1, 2), isr=(1, 2), leader=1), partition_id=n) for n in places],
        [replace(change(leader=2, isr=(2,)), partition_id=n) for n in places],
    )
    assert texts[-2:] == [
        "came into the ISR of 100 partitions",
        "became the leader of 100 partitions",
    ]


def test_a_config_is_told_with_what_it_was() -> None:
    assert told("config safe") == ["min.insync.replicas = 2", "retention.ms = 86400000"]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("orders-3", PartitionStory("orders", 3)),
        ("a-b-0", PartitionStory("a-b", 0)),
        ("2", BrokerStory(2)),
        ("broker 2", BrokerStory(2)),
        ("broker12", BrokerStory(12)),
        ("broker:12", BrokerStory(12)),
        ("broker-2", PartitionStory("broker", 2)),
        ("config orders", ConfigStory("orders")),
        ("config (default)", ConfigStory("")),
    ],
)
def test_subjects_are_named_as_people_name_them(text: str, subject: object) -> None:
    assert parse_subject(text) == subject


def test_what_is_no_subject_is_refused() -> None:
    with pytest.raises(ValueError, match="name a partition"):
        parse_subject("orders")
