"""An image as a snapshot's records and back, against logs and snapshots of a real Kafka."""

from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.metadata import snapshot
from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import Change, decode_changes, encode_changes
from controller.metadata.describe import describe
from controller.metadata.image import MetadataImage
from controller.metadata.snapshot import (
    BLOCK_RECORDS_MAX,
    RECORDS_MAX,
    SnapshotLoad,
    batches_of,
    delta_between,
)
from controller.metadata.topics_draft import UnreplayableRecord
from quorum.core.types import OffsetAndEpoch
from tests.controller.clusters import level, registered, step
from tests.controller.plain_image import plain_partitions
from tests.controller.test_apply import DIRECTORIES, TOPICS, histories, partition, topic
from tests.examples import dear
from wire import metadata_records as records
from wire.batch import headers, records_of
from wire.message import replace as replace_message
from wire.metadata_records import MetadataRecord, decode_record, record_version
from wire.partition_columns import NewPartitions

GOLDEN = Path(__file__).parent.parent / "golden"
CHECKPOINTS = sorted(GOLDEN.glob("*/*/__cluster_metadata-0/*.checkpoint"))
LOGS = sorted(GOLDEN.glob("kraft3/node-1/__cluster_metadata-0/*.log"))


def load(batches: list[bytes], end: OffsetAndEpoch) -> MetadataImage:
    taking = SnapshotLoad()
    for batch in batches:
        taking.take(batch)
    return taking.finish(end)


def reloaded(image: MetadataImage) -> MetadataImage:
    return load(list(batches_of(image, timestamp_ms=1)), image.at)


def values(batches: bytes) -> list[bytes]:
    """The framed value of every metadata record."""
    found = []
    for position, header in headers(batches):
        if not header.is_control:
            batch = memoryview(batches)[position : position + header.size_bytes]
            found += [record.value or b"" for record in records_of(batch)]
    return found


def written(image: MetadataImage) -> list[MetadataRecord]:
    return [decode_record(value) for value in values(b"".join(batches_of(image, timestamp_ms=1)))]


# --- random images --------------------------------------------------------------------------

names = st.text("abc", max_size=3)
uuids = st.integers(1, 1 << 100).map(lambda number: UUID(int=number))
entities = st.dictionaries(
    st.sampled_from(["user", "client-id", "ip"]), st.none() | names, min_size=1, max_size=2
).map(lambda found: tuple(records.QuotaEntity(entity_type=k, entity_name=found[k]) for k in found))
endpoints = st.lists(
    st.builds(
        records.BrokerEndpoint,
        name=names,
        host=names,
        port=st.integers(0, 65535),
        security_protocol=st.just(0),
    ),
    max_size=2,
).map(tuple)
features = st.dictionaries(names, st.integers(0, 9), max_size=2).map(
    lambda found: tuple(
        records.BrokerFeature(name=k, min_supported_version=0, max_supported_version=found[k])
        for k in found
    )
)
others = st.one_of(
    st.builds(
        records.RegisterBrokerRecord,
        broker_id=st.integers(0, 3),
        incarnation_id=uuids,
        broker_epoch=st.integers(0, 9),
        end_points=endpoints,
        features=features,
        rack=st.none() | names,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=st.lists(uuids, max_size=2).map(tuple),
    ),
    st.builds(
        records.RegisterControllerRecord,
        controller_id=st.integers(0, 3),
        incarnation_id=uuids,
        zk_migration_ready=st.booleans(),
        end_points=endpoints,
        features=features,
    ),
    st.builds(
        records.ConfigRecord,
        resource_type=st.sampled_from([2, 4, 16, 32]),
        resource_name=names,
        name=names,
        value=st.none() | names,
    ),
    st.builds(
        records.ClientQuotaRecord,
        entity=entities,
        key=names,
        value=st.floats(0, 1e9),
        remove=st.booleans(),
    ),
    st.builds(
        records.AccessControlEntryRecord,
        id=uuids,
        resource_type=st.just(2),
        resource_name=names,
        pattern_type=st.just(3),
        principal=names,
        host=names,
        operation=st.just(3),
        permission_type=st.just(3),
    ),
    st.builds(
        records.UserScramCredentialRecord,
        name=names,
        mechanism=st.sampled_from([1, 2]),
        salt=st.binary(max_size=3),
        stored_key=st.binary(max_size=3),
        server_key=st.binary(max_size=3),
        iterations=st.just(4096),
    ),
    st.builds(
        records.DelegationTokenRecord,
        owner=names,
        requester=names,
        renewers=st.lists(names, max_size=2).map(tuple),
        issue_timestamp=st.just(1),
        max_timestamp=st.just(2),
        expiration_timestamp=st.just(3),
        token_id=names,
    ),
    st.builds(
        records.FeatureLevelRecord,
        name=st.sampled_from(["group.version", "transaction.version"]),
        feature_level=st.integers(0, 2),
    ),
)


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    image = step(MetadataImage(), level())
    for changes in draw(histories()):
        image = step(image, *changes)
    image = step(image, *draw(st.lists(others, max_size=12)))
    if draw(st.booleans()):
        block = records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000)
        image = step(image, block)
    return image


@dear(3)
@given(images())
def test_image_comes_back_from_its_snapshot(image: MetadataImage) -> None:
    back = reloaded(image)
    assert plain_partitions(back) == plain_partitions(image)
    assert describe(back) == describe(image)
    assert back.scram_credentials == image.scram_credentials
    assert back.delegation_tokens == image.delegation_tokens
    assert back.brokers == image.brokers
    assert delta_between(image, back).is_empty


@dear(3)
@given(histories(), st.data())
def test_snapshot_and_the_rest_of_the_log_are_the_whole_log(
    history: list[list[Change]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(history)))
    whole = step(MetadataImage(), level())
    for changes in history[:cut]:
        whole = step(whole, *changes)
    later = reloaded(whole)
    for changes in history[cut:]:
        whole, later = step(whole, *changes), step(later, *changes)
    assert describe(later) == describe(whole)


@dear(3)
@given(histories(), st.data())
def test_difference_of_two_images_is_what_their_batches_changed(
    history: list[list[Change]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(history)))
    before = step(MetadataImage(), level())
    for changes in history[:cut]:
        before = step(before, *changes)
    after = before
    for changes in history[cut:]:
        after = step(after, *changes)
    delta = delta_between(before, reloaded(after))
    was, now = plain_partitions(before), plain_partitions(after)
    changed = {
        key for key in now if key not in was or now[key].partition_epoch != was[key].partition_epoch
    }
    assert set(delta.partitions_changed(reloaded(after).partitions)) == changed
    assert set(delta.topics_created) == after.topics.by_id.keys() - before.topics.by_id.keys()
    assert {topic.id for topic in delta.topics_deleted} == (
        before.topics.by_id.keys() - after.topics.by_id.keys()
    )


def test_difference_names_brokers_configs_and_features() -> None:
    def config(name: str, value: str) -> records.ConfigRecord:
        return records.ConfigRecord(resource_type=4, resource_name=name, name="k", value=value)

    before = step(MetadataImage(), level(24), registered(1), registered(2), config("", "1"))
    after = step(before, level(25), registered(2, epoch=500), registered(3), config("1", "1"))
    delta = delta_between(before, reloaded(after))
    assert delta.brokers_changed == (2, 3)
    assert delta.configs_changed == ((4, "1"),)
    assert delta.features_changed == ("metadata.version",)


# --- batches ----------------------------------------------------------------------------------


def test_batches_are_bounded_and_topics_come_before_their_partitions() -> None:
    image = step(MetadataImage(), level(), *topic(TOPICS[0], "large", 3 * BLOCK_RECORDS_MAX))
    small = [UUID(int=n << 64 | n) for n in range(500, 500 + 2 * BLOCK_RECORDS_MAX)]
    for number, topic_id in enumerate(small):
        image = step(image, *topic(topic_id, f"small-{number}", 1))
    config = records.ConfigRecord(resource_type=2, resource_name="large", name="", value="v")
    image = step(image, *(replace_message(config, name=str(n)) for n in range(3 * RECORDS_MAX)))
    batches = list(batches_of(image, timestamp_ms=7))
    known: set[UUID] = set()
    for batch in batches:
        ((_, header),) = headers(batch)
        assert header.record_count <= BLOCK_RECORDS_MAX
        assert header.max_timestamp_ms == 7
        for value in values(batch):
            record = decode_record(value)
            if isinstance(record, records.TopicRecord):
                known.add(record.topic_id)
            if isinstance(record, records.PartitionRecord):
                assert record.topic_id in known
    assert describe(load(batches, image.at)) == describe(image)


def test_batch_ends_once_its_config_values_are_longer_than_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot, "RECORD_CHARACTERS_MAX", 10)
    config = records.ConfigRecord(resource_type=2, resource_name="t", name="", value="")
    lengths = [10, 1, 10, 1]
    image = step(MetadataImage(), level(), *topic(TOPICS[0], "t", 1))
    for number, length in enumerate(lengths):
        image = step(image, replace_message(config, name=f"key-{number}", value="v" * length))
    batches = (map(decode_record, values(batch)) for batch in batches_of(image, timestamp_ms=1))
    lengths_in = (
        sorted(len(each.value or "") for each in batch if isinstance(each, records.ConfigRecord))
        for batch in batches
    )
    found = [each for each in lengths_in if each]
    assert found == [[1, 10], [1, 10]], "ten are not too many, eleven are"


def test_partitions_beside_the_columns_are_in_the_snapshot() -> None:
    odd = [
        partition(TOPICS[0], 0, tuple(range(10))),
        partition(TOPICS[0], 1, adding_replicas=(3,)),
        partition(TOPICS[0], 2, isr=(2, 1)),
        partition(TOPICS[0], 3, leader_recovery_state=1),
        partition(TOPICS[0], 4, eligible_leader_replicas=(2,), last_known_elr=(1,)),
        partition(TOPICS[0], 9, directories=tuple(DIRECTORIES[:3])),
    ]
    name = records.TopicRecord(name="odd", topic_id=TOPICS[0])
    image = step(MetadataImage(), level(), name, *odd)
    assert plain_partitions(reloaded(image)) == plain_partitions(image)


def test_brokers_of_a_snapshot_count_as_registered_at_its_end() -> None:
    image = step(MetadataImage(), level(), registered(1), *topic(TOPICS[0], "a", 3))
    assert reloaded(image).brokers[1].registered_at_offset == image.at.offset - 1


def test_transaction_in_a_snapshot_is_refused() -> None:
    image = step(MetadataImage(), level())
    (batch,) = batches_of(image, timestamp_ms=1)
    begun = [records.BeginTransactionRecord()]
    wrong = encode_changes(begun, timestamp_ms=1, metadata_version=25)
    with pytest.raises(UnreplayableRecord, match="BeginTransactionRecord in a snapshot"):
        load([batch, wrong], image.at)


# --- levels -----------------------------------------------------------------------------------


def everything() -> list[Change]:
    """One thing of each kind, all that its record can say."""
    broker = registered(1, in_controlled_shutdown=True, cordoned_log_dirs=(DIRECTORIES[0],))
    return [
        replace_message(broker, is_migrating_zk_broker=False),
        records.RegisterControllerRecord(
            controller_id=1,
            incarnation_id=TOPICS[0],
            zk_migration_ready=False,
            end_points=(),
            features=(),
        ),
        records.TopicRecord(name="t", topic_id=TOPICS[0]),
        partition(TOPICS[0], 0, directories=tuple(DIRECTORIES[:3])),
        partition(TOPICS[0], 1, eligible_leader_replicas=(2,), last_known_elr=(1,)),
        NewPartitions.from_records([partition(TOPICS[0], index) for index in range(2, 40)]),
        records.ConfigRecord(resource_type=2, resource_name="t", name="k", value="v"),
        records.ClientQuotaRecord(
            entity=(records.QuotaEntity(entity_type="user", entity_name=None),),
            key="k",
            value=1.0,
            remove=False,
        ),
        records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),
        records.AccessControlEntryRecord(
            id=TOPICS[0],
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        ),
        records.UserScramCredentialRecord(
            name="a", mechanism=1, salt=b"", stored_key=b"", server_key=b"", iterations=4096
        ),
        records.DelegationTokenRecord(
            owner="User:a",
            requester="User:a",
            renewers=(),
            issue_timestamp=1,
            max_timestamp=2,
            expiration_timestamp=3,
            token_id="t",
        ),
    ]


@pytest.mark.parametrize("metadata_version", range(1, 31))
def test_snapshot_holds_no_record_above_its_level(metadata_version: int) -> None:
    image = step(MetadataImage(), level(metadata_version), *everything())
    for value in values(b"".join(batches_of(image, timestamp_ms=1))):
        record = decode_record(value)
        assert value[2] <= record_version(type(record), metadata_version), record
    back = reloaded(image)
    assert set(plain_partitions(back)) == set(plain_partitions(image))


# --- a real Kafka's -----------------------------------------------------------------------------


def end_of(checkpoint: Path) -> OffsetAndEpoch:
    offset, epoch = checkpoint.stem.split("-")
    return OffsetAndEpoch(int(offset), int(epoch))


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda path: "/".join(path.parts[-4:]))
def test_snapshot_of_a_real_kafka_is_loaded_and_written_alike(checkpoint: Path) -> None:
    theirs = checkpoint.read_bytes()
    image = load([theirs], end_of(checkpoint))
    ours = b"".join(batches_of(image, timestamp_ms=1))
    assert Counter(values(ours)) == Counter(values(theirs))
    in_one_place = (records.PartitionRecord, records.TopicRecord)

    def kinds(content: bytes) -> list[type]:
        types = [type(decode_record(value)) for value in values(content)]
        types = [records.TopicRecord if kind in in_one_place else kind for kind in types]
        return list(dict.fromkeys(types))

    assert kinds(ours) == kinds(theirs)


def test_snapshot_of_a_real_kafka_says_what_its_log_says() -> None:
    content = b"".join(path.read_bytes() for path in LOGS)
    for checkpoint in CHECKPOINTS:
        if checkpoint.parts[-4] != "kraft3":
            continue
        end = end_of(checkpoint)
        image = MetadataImage()
        for batch in decode_changes(content):
            if batch.next_offset <= end.offset:
                image, _ = apply_with_delta(image, batch)
        loaded = load([checkpoint.read_bytes()], end)
        assert describe(image._replace(at=end)) == describe(loaded), checkpoint


def test_our_snapshot_replaces_any_prefix_of_a_real_log() -> None:
    batches = list(decode_changes(b"".join(path.read_bytes() for path in LOGS)))
    whole = MetadataImage()
    for batch in batches:
        whole, _ = apply_with_delta(whole, batch)
    image = MetadataImage()
    for number, batch in enumerate(batches):
        image, _ = apply_with_delta(image, batch)
        if image.transaction is not None or number % 8:
            continue
        later = reloaded(image)
        for rest in batches[number + 1 :]:
            later, _ = apply_with_delta(later, rest)
        assert describe(later) == describe(whole), batch.next_offset
