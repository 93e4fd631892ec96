"""The story of a partition in a log that Apache Kafka wrote."""

from pathlib import Path

import pytest

from quorumlab.inspection.stories import (
    BrokerSubject,
    ConfigSubject,
    Event,
    PartitionSubject,
    parse_subject,
    story,
)
from quorumlab.inspection.target import Target, find_target

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


def test_a_config_is_told_with_what_it_was() -> None:
    assert told("config safe") == ["min.insync.replicas = 2", "retention.ms = 86400000"]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("orders-3", PartitionSubject("orders", 3)),
        ("a-b-0", PartitionSubject("a-b", 0)),
        ("2", BrokerSubject(2)),
        ("broker 2", BrokerSubject(2)),
        ("config orders", ConfigSubject("orders")),
    ],
)
def test_subjects_are_named_as_people_name_them(text: str, subject: object) -> None:
    assert parse_subject(text) == subject


def test_what_is_no_subject_is_refused() -> None:
    with pytest.raises(ValueError, match="name a partition"):
        parse_subject("orders")
