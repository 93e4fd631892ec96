"""Records of groups of the consumer protocol: Kafka's own bytes are read, and ours are the same.

See tests/golden/ConsumerGroupRecords.java for how they came about.
"""

import json
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from uuid import UUID

import pytest

from broker.groups.consumer.consumer_values import (
    ClassicProtocol,
    ClassicSide,
    ConsumerChange,
    Current,
    CurrentChange,
    EpochChange,
    MemberState,
    PatternChange,
    Resolved,
    Subscription,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
)
from broker.groups.contents import Contents
from broker.groups.records import decode_change, encode_change
from wire.batch import Record
from wire.message import replace
from wire.varint import Malformed

GOLDEN = Path(__file__).parents[3] / "golden" / "consumer_group_records.json"
RECORDS = {
    row["what"]: Record(
        key=bytes.fromhex(row["key"]),
        value=None if row["value"] is None else bytes.fromhex(row["value"]),
    )
    for row in json.loads(GOLDEN.read_text())
}
GROUP = "gé"
TOPIC = UUID(int=1 << 64 | 2)
SAID = Subscription(
    instance_id="i",
    rack_id="r",
    client_id="client",
    client_host="/127.0.0.1",
    topic_names=("a", "b"),
    topic_pattern="a.*",
    rebalance_timeout_ms=300_000,
    assignor="range",
)
CLASSIC = ClassicSide(
    session_timeout_ms=45_000,
    protocols=(ClassicProtocol(name="range", metadata=b"\1\2\3"),),
)
CURRENT = Current(
    epoch=7,
    previous_epoch=6,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned={(TOPIC, 0): 4, (TOPIC, 2): 7},
    revoking={(TOPIC, 5): 3},
)
CHANGES: dict[str, ConsumerChange] = {
    "epoch": EpochChange(group_id=GROUP, epoch=7, metadata_hash=-5),
    "epoch without hash": EpochChange(group_id=GROUP, epoch=1),
    "no epoch": EpochChange(group_id=GROUP, epoch=None),
    "subscription": SubscriptionChange(group_id=GROUP, member_id="m", subscription=SAID),
    "classic subscription": SubscriptionChange(
        group_id=GROUP,
        member_id="m",
        subscription=replace(SAID, instance_id=None, rack_id=None, assignor=None, topic_pattern=""),
        classic=CLASSIC,
    ),
    "no subscription": SubscriptionChange(group_id=GROUP, member_id="m", subscription=None),
    "target epoch": TargetEpochChange(group_id=GROUP, epoch=7, timestamp_ms=1_700_000_000_000),
    "no target epoch": TargetEpochChange(group_id=GROUP, epoch=None),
    "target": TargetChange(group_id=GROUP, member_id="m", partitions=frozenset({(TOPIC, 3)})),
    "no target": TargetChange(group_id=GROUP, member_id="m", partitions=None),
    "current": CurrentChange(group_id=GROUP, member_id="m", current=CURRENT),
    "no current": CurrentChange(group_id=GROUP, member_id="m", current=None),
    "pattern": PatternChange(
        group_id=GROUP,
        pattern="a.*",
        resolved=Resolved(topics=("ab",), version=12, timestamp_ms=1_700_000_000_001),
    ),
    "no pattern": PatternChange(group_id=GROUP, pattern="a.*", resolved=None),
}


def test_every_record_of_kafka_is_tried() -> None:
    assert CHANGES.keys() == RECORDS.keys()


@pytest.mark.parametrize("what", RECORDS)
def test_bytes_are_those_of_kafka(what: str) -> None:
    record = encode_change(CHANGES[what])
    assert (record.key, record.value) == (RECORDS[what].key, RECORDS[what].value)


@pytest.mark.parametrize("what", RECORDS)
def test_bytes_of_kafka_are_read(what: str) -> None:
    assert decode_change(RECORDS[what]) == CHANGES[what]


def test_before_kafka_4_3_partitions_have_the_epoch_of_their_member() -> None:
    """No assignment epochs stood behind the partitions."""
    topic = TOPIC.bytes + b"\2" + bytes(4) + b"\0"
    value = b"\0\0" + b"\0\0\0\7" + b"\0\0\0\6" + b"\0" + b"\2" + topic + b"\1" + b"\0"
    change = decode_change(Record(key=RECORDS["current"].key, value=value))
    assert isinstance(change, CurrentChange)
    assert change.current is not None
    assert change.current.assigned == {(TOPIC, 0): 7}


def test_compacted_log_says_the_same_in_any_order_of_keys() -> None:
    """The epoch of the target may come first, before all else that is known of a group."""
    kept = [
        CHANGES[what] for what in ("target epoch", "epoch", "subscription", "target", "current")
    ]
    loaded = []
    for changes in permutations(kept):
        contents = Contents()
        for change in changes:
            contents.apply(change)
        loaded.append(asdict(contents.consumers[GROUP]))
    assert all(each == loaded[0] for each in loaded)
    assert loaded[0]["assignment_epoch"] == 7


def test_later_version_of_a_value_is_refused() -> None:
    with pytest.raises(Malformed, match="version 0001"):
        decode_change(Record(key=RECORDS["epoch"].key, value=b"\0\1\0\0\0\1\0"))
