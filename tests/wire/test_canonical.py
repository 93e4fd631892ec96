"""Every version that is served: canonical to bytes and back, and kio's bytes as the measure."""

from functools import cache
from io import BytesIO
from random import Random
from struct import calcsize, pack
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from tests.examples import dear
from wire.api_table import APIS
from wire.canonical import canonical_class, reader_for, writer_for
from wire.errors import ErrorCode
from wire.layout import FIXED_FORMATS, EntityLayout, FieldLayout
from wire.message import REQUIRED, element_type, fields_of, replace
from wire.messages.configs import ListConfigResourcesRequest
from wire.messages.features import FeatureUpdateKey, UpdateFeaturesRequest
from wire.messages.fetching import FetchRequest, FetchTopic, ReplicaState
from wire.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse, FoundCoordinator
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.messages.partitions import AlterPartitionRequest, BrokerState, IsrPartition, IsrTopic
from wire.messages.quorum_epochs import (
    EndPartition,
    EndQuorumEpochRequest,
    EndTopic,
    ReplicaInfo,
    VotePartition,
    VoteRequest,
    VoteTopic,
)
from wire.messages.topics import DeleteTopicsRequest, DeleteTopicState
from wire.primitives import ZERO_UUID
from wire.schema import load_layout
from wire.varint import Malformed, read_uvarint, uvarint
from wire.writing import CannotExpress, Sink

EVERY_VERSION = [
    (api.name, version, kind)
    for api in APIS
    for version in api.versions
    for kind in ("request", "response")
]
LIKELY_BYTES = [*range(256)] + 64 * [0, 1, 2, 3]  # half are lengths that can be
INTEGERS = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "float64": st.floats(allow_nan=False),
    "timedelta_i32": st.integers(-(2**31), 2**31 - 1),
    "timedelta_i64": st.integers(-(2**31), 2**31 - 1),
    "datetime_i64": st.integers(-1, 4_000_000_000_000),
}


def scalars(field: FieldLayout) -> st.SearchStrategy[Any]:
    return values_of(field.kind, field.nullable and not field.is_array)


@cache
def values_of(kind: str, nullable: bool) -> st.SearchStrategy[Any]:
    match kind:
        case "string":
            values: st.SearchStrategy[Any] = st.text(max_size=12)
        case "bytes" | "records":
            values = st.binary(max_size=12)
        case "bool":
            return st.booleans()
        case "uuid":
            return st.integers(0, 3).map(lambda number: UUID(int=number)) | st.uuids()
        case "error_code":
            return st.sampled_from(ErrorCode)
        case "datetime_i64" if not nullable:
            return st.integers(0, 4_000_000_000_000)  # kio reads no -1 there
        case _:
            return INTEGERS[kind]
    return st.none() | values if nullable else values


def entities(layout: EntityLayout, canonical: Any) -> st.SearchStrategy[Any]:
    """Canonical values of which this version carries everything."""
    known = fields_of(canonical)
    given_fields = {
        field.name: field_values(field, known[field.name].type)
        for field in layout.fields + layout.tagged
        if field.name in known
    }
    for name, field in known.items():
        if name not in given_fields and field.default is REQUIRED:
            given_fields[name] = st.just(())
    return st.fixed_dictionaries(given_fields).map(lambda values: canonical(**values))


def field_values(field: FieldLayout, annotation: Any) -> st.SearchStrategy[Any]:
    if field.kind == "entity":
        assert field.entity is not None
        one = entities(field.entity, element_type(annotation))
    else:
        one = scalars(field)
    if field.is_array:
        arrays = st.lists(one, max_size=3).map(tuple)
        return st.none() | arrays if field.nullable else arrays
    return st.none() | one if field.kind == "entity" and field.nullable else one


@cache
def messages(api: str, version: int, kind: str) -> st.SearchStrategy[Any]:
    return entities(load_layout(api, version, kind), canonical_class(api, kind))


def encode(message: Any, api: str, version: int, kind: str) -> bytes:
    out = Sink()
    writer_for(api, version, kind)(out, message)
    return b"".join(out.buffers())


def decode(content: bytes, api: str, version: int, kind: str) -> Any:
    return reader_for(api, version, kind)(content, 0)[0]


def is_malformed(content: bytes, api: str, version: int, kind: str) -> bool:
    try:
        decode(content, api, version, kind)
    except Malformed:
        return True
    return False


def kio_class(api: str, version: int, kind: str) -> Any:
    key = next(row.key for row in APIS if row.name == api)
    load = load_request_schema if kind == "request" else load_response_schema
    return load(key, version)


# Versions in which two canonical messages have the same bytes: exactly one coordinator, group,
# member or transaction each; and an empty list of topics that means all of them; features from 0
# up, which are left out.
LOSSY = {
    *(("leave_group", version, "request") for version in range(3)),
    *(
        ("offset_fetch", version, kind)
        for version in range(1, 8)
        for kind in ("request", "response")
    ),
    *(
        ("find_coordinator", version, kind)
        for version in range(4)
        for kind in ("request", "response")
    ),
    *(
        ("add_partitions_to_txn", version, kind)
        for version in range(4)
        for kind in ("request", "response")
    ),
    ("metadata", 0, "request"),
    *(("broker_registration", version, "request") for version in range(4)),
    ("api_versions", 3, "response"),
    ("list_config_resources", 0, "request"),
}


@pytest.mark.parametrize(("api", "version", "kind"), EVERY_VERSION)
@dear(13)
@given(data=st.data())
def test_every_version_has_kios_bytes_and_is_read_whole_or_not_at_all(
    api: str, version: int, kind: str, data: st.DataObject
) -> None:
    """One test for four rules: to make up a message costs more than to judge it."""
    row = (api, version, kind)
    message = data.draw(messages(*row))
    content = encode(message, *row)
    again = decode(content, *row)
    if row not in LOSSY:
        assert again == message
    assert encode(again, *row) == content
    assert rewritten_by_kio(content, *row) == content
    assert all(is_malformed(content[:end], *row) for end in range(len(content)))
    assert decode(content + b"\0\0\0", *row) == again
    if load_layout(*row).flexible:
        tagged = unknown_tags_added(content, *row)
        assert tagged != content
        assert decode(tagged, *row) == again


def rewritten_by_kio(content: bytes, api: str, version: int, kind: str) -> bytes:
    their_class = kio_class(api, version, kind)
    theirs, size = entity_reader(their_class)(content, 0)
    assert size == len(content)
    written = BytesIO()
    entity_writer(their_class)(written, theirs)
    return written.getvalue()


def test_any_bytes_are_a_message_or_malformed() -> None:
    for row in EVERY_VERSION:
        random = Random("{} {} {}".format(*row))
        for size in range(60):
            content = bytes(random.choices(LIKELY_BYTES, k=size))
            try:
                is_malformed(content, *row)
            except Exception:
                print(row, content.hex())
                raise


def unknown_tags_added(content: bytes, api: str, version: int, kind: str) -> bytes:
    """The message with two unknown tagged fields at the end of it and of each struct in it."""
    position, out = add_tags(content, 0, load_layout(api, version, kind))
    assert position == len(content)
    return out


def add_tags(content: bytes, position: int, layout: EntityLayout) -> tuple[int, bytes]:
    """A second, plain reader of the layout, that copies what it reads and adds to it."""
    out = b""
    for field in layout.fields:
        position, copied = copy_field(content, position, field)
        out += copied
    count, position = read_uvarint(content, position)
    known = b""
    for _ in range(count):
        tag, position = read_uvarint(content, position)
        size, position = read_uvarint(content, position)
        field = next(field for field in layout.tagged if field.tag == tag)
        _, copied = copy_field(content, position, field)
        known += uvarint(tag) + uvarint(len(copied)) + copied
        position += size
    unknown = b"\x63\x03abc\xe8\x07\x00"  # tags 99 and 1000
    return position, out + uvarint(count + 2) + known + unknown


def copy_field(content: bytes, position: int, field: FieldLayout) -> tuple[int, bytes]:
    if not field.is_array:
        return copy_element(content, position, field)
    length, position = read_uvarint(content, position)
    out = uvarint(length)
    for _ in range(max(length - 1, 0)):
        position, copied = copy_element(content, position, field)
        out += copied
    return position, out


def copy_element(content: bytes, position: int, field: FieldLayout) -> tuple[int, bytes]:
    start = position
    if field.entity is not None:
        if field.nullable and not field.is_array and field.tag is None:
            position += 1
            if content[start] != 1:
                return position, content[start:position]
        end, copied = add_tags(content, position, field.entity)
        return end, content[start:position] + copied
    if field.kind in FIXED_FORMATS:
        end = position + calcsize(">" + FIXED_FORMATS[field.kind])
    elif field.kind == "uuid":
        end = position + 16
    else:
        length, position = read_uvarint(content, position)
        end = position + max(length - 1, 0)
    return end, content[start:end]


def test_announced_lengths_are_not_believed() -> None:
    """Each of these few bytes announces two thousand million elements, or as many bytes."""
    with pytest.raises(Malformed, match="topics has 2147483647 elements, above 1000000"):
        decode(pack(">ii", 1, 2**31 - 1), "list_offsets", 1, "request")
    with pytest.raises(Malformed, match="topics has 1000000 elements, 0 bytes are left"):
        decode(pack(">ii", 1, 1_000_000), "list_offsets", 1, "request")
    with pytest.raises(Malformed, match="topics has 2147483647 elements"):
        decode(b"\0" + uvarint(2**31), "vote", 0, "request")
    with pytest.raises(Malformed, match="request_data has 2147483647 bytes, 0 are left"):
        decode(uvarint(2**31), "envelope", 0, "request")
    with pytest.raises(Malformed, match="topics has -2 elements"):
        decode(pack(">ii", 1, -2), "list_offsets", 1, "request")
    with pytest.raises(Malformed, match="cluster_id has the length -2"):
        decode(pack(">h", -2), "begin_quorum_epoch", 0, "request")


def test_no_string_is_longer_than_every_version_can_say() -> None:
    """It may have to be told to a client of an early version, or go into a record."""
    allowed = uvarint(0x7FFF + 1) + b"g" * 0x7FFF + b"\1\0"
    assert decode(allowed, "leave_group", 4, "request").group_id == "g" * 0x7FFF
    with pytest.raises(Malformed, match="group_id has 32768 bytes, above 32767"):
        decode(uvarint(0x8000 + 1) + b"g" * 0x8000 + b"\1\0", "leave_group", 4, "request")


def test_unknown_error_codes_are_unknown_server_errors() -> None:
    content = pack(">ihx", 0, 999) + b"\0"
    answer = decode(content, "unregister_broker", 0, "response")
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_pre_vote_is_not_sent_in_a_version_without_it() -> None:
    for pre_vote, version in ((False, 1), (True, 2)):
        encode(vote_request(pre_vote), "vote", version, "request")
    with pytest.raises(CannotExpress, match="no pre_vote, here True"):
        encode(vote_request(pre_vote=True), "vote", 1, "request")


def vote_request(pre_vote: bool) -> VoteRequest:
    partition = VotePartition(
        partition_index=0,
        replica_epoch=1,
        replica_id=1,
        last_offset_epoch=0,
        last_offset=0,
        pre_vote=pre_vote,
    )
    return VoteRequest(topics=(VoteTopic(topic_name="t", partitions=(partition,)),))


def across(message: Any, api: str, version: int, kind: str) -> Any:
    return decode(encode(message, api, version, kind), api, version, kind)


def test_replica_id_of_old_fetches_is_the_replica_state() -> None:
    state = ReplicaState(replica_id=3, replica_epoch=9)
    request = FetchRequest(max_wait_ms=1, topics=(), replica_state=state)
    assert across(request, "fetch", 14, "request").replica_state.replica_id == 3
    assert across(request, "fetch", 14, "request").replica_state.replica_epoch == -1
    assert across(request, "fetch", 15, "request").replica_state == state


def test_topics_are_named_below_version_13_of_fetch_and_identified_above() -> None:
    topic = FetchTopic(topic="t", topic_id=UUID(int=5), partitions=())
    request = FetchRequest(max_wait_ms=1, topics=(topic,))
    (old,) = across(request, "fetch", 12, "request").topics
    (new,) = across(request, "fetch", 13, "request").topics
    assert (old.topic, old.topic_id) == ("t", ZERO_UUID)
    assert (new.topic, new.topic_id) == ("", UUID(int=5))


def test_isr_without_epochs() -> None:
    isr = tuple(BrokerState(broker_id=id_, broker_epoch=id_) for id_ in (1, 2))
    partition = IsrPartition(
        partition_index=0, leader_epoch=1, new_isr_with_epochs=isr, partition_epoch=1
    )
    topic = IsrTopic(topic_id=UUID(int=9), partitions=(partition,))
    request = AlterPartitionRequest(broker_id=1, topics=(topic,))
    old = across(request, "alter_partition", 2, "request").topics[0].partitions[0]
    assert [(state.broker_id, state.broker_epoch) for state in old.new_isr_with_epochs] == [
        (1, -1),
        (2, -1),
    ]
    assert across(request, "alter_partition", 3, "request") == request


def test_topics_to_delete_by_name_only() -> None:
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=UUID(int=5)),))
    (old,) = across(request, "delete_topics", 5, "request").topics
    assert (old.name, old.topic_id) == ("t", ZERO_UUID)
    assert across(request, "delete_topics", 6, "request") == request


@pytest.mark.parametrize(("sent", "read"), [(1, 1), (2, 2), (3, 2)])
def test_first_downgrades_of_features_are_allowed_or_not(sent: int, read: int) -> None:
    update = FeatureUpdateKey(feature="f", max_version_level=1, upgrade_type=sent)
    request = UpdateFeaturesRequest(feature_updates=(update,))
    (old,) = across(request, "update_features", 0, "request").feature_updates
    assert old.upgrade_type == read
    assert across(request, "update_features", 1, "request") == request
    asking = replace(request, validate_only=True)
    with pytest.raises(CannotExpress, match="validate_only"):
        across(asking, "update_features", 0, "request")


def test_first_listing_of_configs_is_one_of_client_metrics() -> None:
    request = ListConfigResourcesRequest()
    assert across(request, "list_config_resources", 0, "request").resource_types == (16,)
    assert across(request, "list_config_resources", 1, "request") == request


def test_preferred_successors_without_directories() -> None:
    candidates = (ReplicaInfo(candidate_id=4, candidate_directory_id=UUID(int=7)),)
    partition = EndPartition(
        partition_index=0, leader_id=1, leader_epoch=2, preferred_candidates=candidates
    )
    topic = EndTopic(topic_name="t", partitions=(partition,))
    request = EndQuorumEpochRequest(topics=(topic,))
    old = across(request, "end_quorum_epoch", 0, "request").topics[0].partitions[0]
    assert old.preferred_candidates == (ReplicaInfo(candidate_id=4),)


def test_coordinator_of_old_answers_stands_alone() -> None:
    coordinator = FoundCoordinator(key="group", node_id=2, host="h", port=9092)
    response = FindCoordinatorResponse(coordinators=(coordinator,))
    (old,) = across(response, "find_coordinator", 1, "response").coordinators
    assert (old.key, old.node_id, old.host, old.port) == ("", 2, "h", 9092)
    request = FindCoordinatorRequest(coordinator_keys=("group",))
    assert across(request, "find_coordinator", 0, "request") == request


def test_empty_topics_of_the_first_metadata_request_are_all_topics() -> None:
    assert across(MetadataRequest(topics=()), "metadata", 0, "request").topics is None
    assert across(MetadataRequest(topics=()), "metadata", 1, "request").topics == ()
    assert across(MetadataRequest(), "metadata", 1, "request").topics is None


def test_null_is_empty_where_the_version_knows_no_null() -> None:
    response = MetadataResponse(topics=(MetadataResponseTopic(name=None),))
    assert across(response, "metadata", 11, "response").topics[0].name == ""
    assert across(response, "metadata", 12, "response").topics[0].name is None


@pytest.mark.parametrize("version", [0, 7, 9, 12])
def test_long_rows_of_partitions_equal_kios_bytes(version: int) -> None:
    partitions = tuple(
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            replica_nodes=tuple(range(index % 200)),
            isr_nodes=tuple(range(index % 7)),
        )
        for index in range(300)
    )
    topic = MetadataResponseTopic(name="t", partitions=partitions)
    response = MetadataResponse(topics=(topic,))
    content = encode(response, "metadata", version, "response")
    their_class = kio_class("metadata", version, "response")
    written = BytesIO()
    entity_writer(their_class)(written, entity_reader(their_class)(content, 0)[0])
    assert written.getvalue() == content


def test_tagged_fields_have_the_defaults_of_the_schema() -> None:
    """A field with its default is not sent: both sides must mean the same by that."""
    for api, version, kind in EVERY_VERSION:
        check_defaults(load_layout(api, version, kind), canonical_class(api, kind))


def check_defaults(layout: EntityLayout, canonical: Any) -> None:
    known = fields_of(canonical)
    for field in layout.fields + layout.tagged:
        if field.name not in known:
            continue
        ours = known[field.name]
        if field.entity is not None:
            check_defaults(field.entity, element_type(ours.type))
        if field.tag is not None and (field.entity is None or field.is_array):
            assert ours.default == field.default, (layout.name, field.name)
