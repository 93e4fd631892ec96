"""The entries of the log that `top` shows, and whose story each of them tells."""

from base64 import b64encode
from pathlib import Path
from uuid import UUID

import pytest

from controller.metadata.changes import Change
from quorumlab.inspection.entries import Entry, TopicNames
from quorumlab.inspection.stories import parse_subject, story
from quorumlab.inspection.stream import target_entries
from quorumlab.top.log_follower import log_entry
from tests.quorumlab.inspection.logs import TOPIC, broker, feature, write_log
from wire import metadata_records as records

CREATED = records.TopicRecord(name="orders", topic_id=TOPIC)


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        (CREATED, "orders-0"),
        (records.PartitionChangeRecord(partition_id=3, topic_id=TOPIC, leader=2), "orders-3"),
        (records.PartitionChangeRecord(partition_id=3, topic_id=UUID(int=99)), ""),
        (records.RemoveTopicRecord(topic_id=TOPIC), "orders-0"),
        (broker(2), "broker 2"),
        (records.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1), "broker 2"),
        (
            records.ConfigRecord(
                resource_type=2, resource_name="orders", name="retention.ms", value="1"
            ),
            "config orders",
        ),
        (
            records.ConfigRecord(resource_type=4, resource_name="", name="x", value="1"),
            "config (default)",
        ),
        (feature(), ""),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_each_record_has_the_story_of_what_it_is_about(
    change: Change, subject: str, tmp_path: Path
) -> None:
    names = TopicNames()
    entries = [
        each
        for each in target_entries(write_log(tmp_path, [CREATED], [change]))
        if isinstance(each, Entry)
    ]
    for entry in entries:
        names.learn(entry)
    shown = log_entry(entries[-1], names)
    assert shown.offset == 2
    assert shown.text.startswith(f"2 22:13:21 {entries[-1].type.removesuffix('_RECORD')}")
    assert shown.subject == subject
    if subject:
        assert str(parse_subject(subject)) == subject


def config(name: str, value: str, resource_type: int = 4) -> Change:
    return records.ConfigRecord(
        resource_type=resource_type, resource_name="1", name=name, value=value
    )


SCRAM = records.UserScramCredentialRecord(
    name="bob", mechanism=2, salt=b"s4lt", stored_key=b"st0red", server_key=b"serv3r", iterations=1
)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (SCRAM, "name=bob"),
        (config("ssl.key.password", "pa55word"), "name=ssl.key.password value=(hidden)"),
        (config("listener.name.in.ssl.keystore.password", "pa55word"), "value=(hidden)"),
        (config("listener.name.in.plain.sasl.jaas.config", "pa55word"), "value=(hidden)"),
        (config("of.a.plugin", "pa55word"), "value=(hidden)"),
        (config("log.retention.ms", "60000"), "value=60000"),
        (config("retention.ms", "60000", resource_type=2), "value=60000"),
    ],
)
def test_entries_and_stories_tell_no_password_and_nothing_that_checks_one(
    change: Change, told: str, tmp_path: Path
) -> None:
    target = write_log(tmp_path, [CREATED], [change])
    *_, entry = (each for each in target_entries(target) if isinstance(each, Entry))
    shown = log_entry(entry, TopicNames()).text
    assert told in shown
    story_of = "\n".join(map(str, story(target, parse_subject("config 1"))))
    for secret in (b"s4lt", b"st0red", b"serv3r"):
        assert b64encode(secret).decode() not in shown
    assert "pa55word" not in shown + story_of
    assert isinstance(change, records.UserScramCredentialRecord) or "= " in story_of
