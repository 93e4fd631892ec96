"""A log of a later release: it is followed as far as it is known, and nobody leads on it."""

from uuid import UUID

import pytest

from controller.images import Images
from controller.metadata.apply import UnreplayableRecord
from controller.metadata.snapshot import SnapshotLoad
from quorum.core.effects import Trace
from quorum.core.types import OffsetAndEpoch
from tests.controller.clusters import registered
from tests.controller.test_controller import CONTROLLERS, quorum
from wire.batch import data_batch
from wire.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    encode_record,
)

UNKNOWN = bytes.fromhex("01 28 00 01 61 00")  # key 40
NEWER = bytes.fromhex("01 00 09 00000005 00")  # RegisterBroker version 9, of broker 5
FIRST = FeatureLevelRecord(name="metadata.version", feature_level=33)
TOPIC = TopicRecord(name="t", topic_id=UUID(int=7 << 64))


BEGIN, END, ABORT = (
    BeginTransactionRecord(name="b"),
    EndTransactionRecord(),
    AbortTransactionRecord(),
)


def log(*records: MetadataRecord | bytes) -> bytes:
    values = [each if isinstance(each, bytes) else encode_record(each) for each in records]
    return data_batch(values, timestamp_ms=1)


def tagged(record: MetadataRecord) -> bytes:
    """With one more tagged field, of number 99."""
    return encode_record(record)[:-1] + bytes.fromhex("01 63 01 ff")


def followed(*values: MetadataRecord | bytes) -> Images:
    images = Images()
    images.delivered_to_standby(log(*values), len(values))
    return images


@pytest.mark.parametrize(
    ("value", "lacks"),
    [
        (UNKNOWN, "at offset 1, a metadata record of unknown key 40, version 0"),
        (NEWER, "at offset 1, RegisterBrokerRecord version 9: known are 0 to 4"),
        (tagged(TOPIC), "at offset 1, a tagged field of TopicRecord that is not known"),
    ],
)
def test_what_is_not_known_is_told_and_the_rest_is_followed(value: bytes, lacks: str) -> None:
    images = followed(FIRST, value, TOPIC if value[1] != 2 else registered(1), registered(2))
    assert images.committed.lacks == lacks
    assert images.committed.topic("t") is not None
    assert 2 in images.committed.brokers
    assert images.state(1) is None, "a snapshot would lack it, too"


ACL = AccessControlEntryRecord(
    id=UUID(int=9),
    resource_type=2,
    resource_name="t",
    pattern_type=3,
    principal="User:alice",
    host="*",
    operation=3,
    permission_type=3,
)


@pytest.mark.parametrize(
    ("value", "may_lack"),
    [
        (UNKNOWN, True),
        (bytes.fromhex("01 12 09 00"), True),  # AccessControlEntry version 9
        (bytes.fromhex("01 13 09 00"), True),  # its removal
        (tagged(ACL), True),
        (NEWER, False),
        (tagged(TOPIC), False),
    ],
)
def test_who_may_lack_acls_knows_it(value: bytes, may_lack: bool) -> None:
    assert followed(FIRST, value, registered(2)).committed.lacks_acls is may_lack
    assert followed(FIRST, BEGIN, value, ABORT).committed.lacks_acls is may_lack


def test_what_may_be_lacking_is_not_found_again_by_what_follows() -> None:
    assert followed(FIRST, UNKNOWN, NEWER).committed.lacks_acls


def test_what_rests_on_what_is_lacking_is_lacking_too() -> None:
    gone = UnregisterBrokerRecord(broker_id=5, broker_epoch=1)
    images = followed(FIRST, NEWER, gone, TOPIC)
    assert images.committed.topic("t") is not None
    with pytest.raises(UnreplayableRecord):
        followed(FIRST, gone)


TAGGED_BEGIN = bytes.fromhex("01 17 00 01 63 01 ff")  # it says no name
NEWER_BEGIN, NEWER_END = bytes.fromhex("01 17 09 00"), bytes.fromhex("01 18 09 00")


@pytest.mark.parametrize(
    ("values", "has_topic"),
    [
        ((NEWER_BEGIN, TOPIC, END), True),
        ((NEWER_BEGIN, TOPIC, ABORT), True),  # it is not known what to take back
        ((BEGIN, TOPIC, NEWER_END, BEGIN, END), True),
        ((TAGGED_BEGIN, TOPIC, END), True),
        ((BEGIN, TOPIC, tagged(END)), True),
        ((TAGGED_BEGIN, TOPIC, ABORT), False),
        ((BEGIN, TOPIC, tagged(ABORT)), False),
    ],
)
def test_a_transaction_s_ends_may_be_of_a_later_release(
    values: tuple[MetadataRecord | bytes, ...], has_topic: bool
) -> None:
    image = followed(FIRST, *values, registered(2)).committed
    assert image.transaction is None
    assert image.beyond_us
    assert (image.topic("t") is not None, set(image.brokers)) == (has_topic, {2})


@pytest.mark.parametrize("values", [(END,), (ABORT,), (BEGIN, BEGIN)])
def test_a_transaction_s_ends_must_meet_where_all_is_known(
    values: tuple[MetadataRecord, ...],
) -> None:
    with pytest.raises(UnreplayableRecord):
        followed(FIRST, *values)


def test_a_snapshot_may_have_it() -> None:
    load = SnapshotLoad()
    load.take(log(FIRST, TOPIC, UNKNOWN))
    image = load.finish(OffsetAndEpoch(9, 1))
    assert image.topic("t") is not None
    assert "unknown key 40" in image.beyond_us


def test_later_metadata_version_alone_is_beyond_us() -> None:
    images = followed(FeatureLevelRecord(name="metadata.version", feature_level=34), TOPIC)
    assert images.committed.beyond_us == "metadata.version 34: known are up to 33"
    assert images.state(1) is None
    assert followed(FIRST, TOPIC).state(1) is not None


def test_nobody_leads_who_lacks_something_and_others_follow_on() -> None:
    made = quorum()
    made.append(log(UNKNOWN))
    made.commit()  # by a leader of a later release
    before = list(made.batches)
    refused = made.elect(CONTROLLERS[1])
    assert (made.leader_id, refused.is_active) == (None, False)
    assert made.batches[len(before) + 1 :] == [], "it wrote nothing but for the engine's record"
    (told,) = [each for each in made.effects if isinstance(each, Trace) and _is_refusal(each)]
    assert "unknown key 40" in str(dict(told.fields)["because"])
    made.commit()
    assert {each.applied_offset for each in made.controllers.values()} == {made.last_offset + 1}


def test_who_is_elected_again_waits_longer_before_he_gives_way() -> None:
    made = quorum()
    made.append(log(UNKNOWN))
    made.commit()
    waited = []
    for _ in range(4):
        made.elect(CONTROLLERS[1])
        since = made.now_ms
        while made.leader_id is not None:
            made.pass_time(100)
        waited.append(made.now_ms - since)
        made.controllers[CONTROLLERS[1]].resign(made.now_ms)
    assert waited == [0, 200, 400, 800]


def test_who_saw_another_lead_gives_way_at_once_again() -> None:
    made = quorum()
    for value in (UNKNOWN, FIRST):
        made.append(log(value))
        made.commit()
        made.elect(CONTROLLERS[1])
        assert made.leader_id is None
        made.controllers[CONTROLLERS[1]].resign(made.now_ms)


def _is_refusal(trace: Trace) -> bool:
    return dict(trace.fields).get("state") == "unable to lead"
