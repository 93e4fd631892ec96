"""From a topic's configuration to what the data path does."""

import pytest

from broker.topic_settings import TopicSettings, topic_settings
from controller.metadata.image import MetadataImage
from tests.broker.brokers import Brokers, batch_of
from wire.batch import Record, build_batch, read_header, records_of
from wire.compression import Compression
from wire.errors import ErrorCode


def configured(**static: str) -> TopicSettings:
    properties = {name.replace("_", "."): value for name, value in static.items()}
    return topic_settings(MetadataImage(), "t", broker_id=1, static=properties)


@pytest.mark.parametrize(
    ("name", "codec", "level"),
    [
        ("producer", None, 0),
        ("uncompressed", Compression.NONE, 0),
        ("gzip", Compression.GZIP, -1),
        ("snappy", Compression.SNAPPY, 0),
        ("lz4", Compression.LZ4, 9),
        ("zstd", Compression.ZSTD, 3),
    ],
)
def test_compression_has_the_level_of_its_codec(
    name: str, codec: Compression | None, level: int
) -> None:
    settings = configured(compression_type=name)
    assert (settings.compression, settings.compression_level) == (codec, level)


def test_a_level_that_a_codec_does_not_have_is_its_default() -> None:
    for value, level in (("7", 7), ("42", -1), ("fast", -1)):
        settings = configured(compression_type="gzip", compression_gzip_level=value)
        assert settings.compression_level == level, value


@pytest.mark.parametrize(
    ("policy", "is_compacted"), [("delete", False), ("compact", True), ("compact,delete", True)]
)
def test_a_topic_may_be_compacted(policy: str, is_compacted: bool) -> None:
    assert configured(log_cleanup_policy=policy).is_compacted == is_compacted


def test_produce_obeys_a_topics_compression_and_its_compaction() -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,), compression_type="gzip", cleanup_policy="compact")
    keyed = build_batch([Record(key=b"k", value=b"z" * 3000)], timestamp_ms=brokers.now_ms)

    taken = brokers.produced(brokers.produce(1, "t", 0, keyed))
    refused = brokers.produced(brokers.produce(1, "t", 0, batch_of(b"z")))

    assert (taken.error_code, taken.base_offset) == (ErrorCode.NONE, 0)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert [error.batch_index for error in refused.record_errors] == [0]
    (stored,) = brokers.disks[1].logs["t-0"].batches
    assert read_header(stored).compression is Compression.GZIP
    assert len(stored) < 150
    assert list(records_of(stored)) == list(records_of(keyed))
