"""A log means the same in whatever pieces it is applied, and never changes an older image."""

from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import (
    Change,
    CommittedBatch,
    decode_changes,
    encode_changes,
    record_count,
)
from controller.metadata.delta import MetadataDelta
from controller.metadata.describe import describe
from controller.metadata.image import MetadataImage
from quorum.core.types import OffsetAndEpoch
from tests.controller.clusters import config, level, registered, step
from tests.controller.test_apply import histories, split
from tests.controller.test_snapshot import others, reloaded
from wire import metadata_records as records
from wire.batch import assign

# The sections that records of a type touch; an image shares all others with the one before.
TOUCHED: dict[type, set[str]] = {
    records.TopicRecord: {"topics", "partitions"},
    records.RemoveTopicRecord: {"topics", "partitions", "configs"},
    records.PartitionRecord: {"topics", "partitions"},
    records.PartitionChangeRecord: {"topics", "partitions"},
    records.RegisterBrokerRecord: {"brokers"},
    records.BrokerRegistrationChangeRecord: {"brokers"},
    records.UnregisterBrokerRecord: {"brokers"},
    records.RegisterControllerRecord: {"controllers"},
    records.ConfigRecord: {"configs"},
    records.ClientQuotaRecord: {"client_quotas"},
    records.FeatureLevelRecord: {"features"},
    records.ProducerIdsRecord: {"next_producer_id"},
    records.AccessControlEntryRecord: {"acls"},
    records.RemoveAccessControlEntryRecord: {"acls"},
    records.UserScramCredentialRecord: {"scram_credentials"},
    records.RemoveUserScramCredentialRecord: {"scram_credentials"},
    records.DelegationTokenRecord: {"delegation_tokens"},
    records.RemoveDelegationTokenRecord: {"delegation_tokens"},
    records.NoOpRecord: set(),
}
SECTIONS = set(MetadataImage._fields) - {"at", "transaction"}
removals: st.SearchStrategy[Any] = st.sampled_from(
    [
        config("retention.ms", None),
        records.RemoveAccessControlEntryRecord(id=UUID(int=1)),
        records.RemoveUserScramCredentialRecord(name="a", mechanism=1),
        records.RemoveDelegationTokenRecord(token_id="a"),
        records.NoOpRecord(),
    ]
)


@st.composite
def logs(draw: st.DrawFn) -> list[Change]:
    """Single records of every section in an order in which they may lie in a log."""
    lanes: list[list[Change]] = [
        [record for changes in draw(histories()) for record in split(changes)],
        list(draw(st.lists(others | removals, max_size=12))),
        [
            registered(70),
            records.BrokerRegistrationChangeRecord(broker_id=70, broker_epoch=170, fenced=1),
            records.UnregisterBrokerRecord(broker_id=70, broker_epoch=170),
        ],
        [
            config("retention.ms", "1"),
            config("flush.ms", "2"),
            config("retention.ms", "3"),
            config("flush.ms", None),
        ],
        [
            records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=end)
            for end in (1000, 2000)
        ],
    ]
    log: list[Change] = [level()]
    while lanes := [lane for lane in lanes if lane]:
        log.append(draw(st.sampled_from(lanes)).pop(0))
    return log


def batch_of(image: MetadataImage, changes: list[Change]) -> CommittedBatch:
    """As it comes out of the log."""
    written = encode_changes(changes, timestamp_ms=0, metadata_version=25)
    (batch,) = decode_changes(assign(written, base_offset=image.at.offset, leader_epoch=1))
    assert batch.next_offset - image.at.offset == record_count(changes)
    return batch


def applied(parts: list[list[Change]]) -> tuple[MetadataImage, MetadataDelta]:
    image, total = MetadataImage(), MetadataDelta()
    for part in parts:
        image, delta = apply_with_delta(image, batch_of(image, part))
        total = total.then(delta)
    return image, total


def named(image: MetadataImage, delta: MetadataDelta) -> list[Any]:
    """What a delta names, without its order."""
    return [
        set(delta.partitions_changed(image.partitions)),
        set(delta.topics_created),
        {topic.id for topic in delta.topics_deleted},
        set(delta.brokers_changed),
        set(delta.controllers_changed),
        set(delta.configs_changed),
        set(delta.features_changed),
    ]


@settings(max_examples=20, deadline=None)
@given(logs(), st.data())
def test_log_means_the_same_in_whatever_pieces_it_is_applied(
    log: list[Change], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(log)))
    whole, delta = applied([log])
    pieces, in_pieces = applied([part for part in (log[:cut], log[cut:]) if part])
    singly, one_by_one = applied([[change] for change in log])
    assert describe(whole) == describe(pieces) == describe(singly) == describe(reloaded(whole))
    assert whole.brokers == pieces.brokers == singly.brokers
    assert [broker.registered_at_offset for broker in whole.brokers.values()] == [
        broker.registered_at_offset for broker in singly.brokers.values()
    ]
    assert named(whole, delta) == named(pieces, in_pieces) == named(singly, one_by_one)


@settings(max_examples=20, deadline=None)
@given(logs())
def test_record_leaves_older_images_and_other_sections_alone(log: list[Change]) -> None:
    image = MetadataImage()
    images = [(image, describe(image))]
    for change in log:
        after = step(image, change)
        for section in SECTIONS - TOUCHED[type(change)]:
            assert getattr(after, section) is getattr(image, section), (section, change)
        image = after
        images.append((image, describe(image)))
    for older, said in images:
        assert describe(older) == said


def test_transaction_that_is_open_is_the_same_with_and_without_deltas() -> None:
    begin, setting = records.BeginTransactionRecord(name="t"), config("retention.ms", "1")
    told, _ = applied([[level()], [begin, setting]])
    untold = step(step(MetadataImage(), level()), begin, setting)
    after, delta = apply_with_delta(untold, batch_of(untold, [records.EndTransactionRecord()]))
    assert delta.configs_changed == ((2, "t"),)
    assert not told.stable.configs
    assert after.at == OffsetAndEpoch(4, 1)
    assert after.configs == {(2, "t"): {"retention.ms": "1"}}
