"""From a topic's configuration to what the data path does."""

import re
from pathlib import Path

import pytest

from broker.partition.topic_settings import TopicSettings, topic_settings
from controller.metadata.config_keys import TOPIC_KEYS, WITHOUT_EFFECT
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


CONTROLLERS = {"unclean.leader.election.enable"}  # decided there, of no matter to a data path
OTHERS = {
    "cleanup.policy": {"cleanup.policy": "compact"},
    "compression.type": {"compression.type": "lz4"},
    "min.cleanable.dirty.ratio": {"min.cleanable.dirty.ratio": "0.3"},
    "message.timestamp.type": {"message.timestamp.type": "LogAppendTime"},
    **{
        f"compression.{codec}.level": {
            "compression.type": codec,
            f"compression.{codec}.level": "5",
        }
        for codec in ("gzip", "lz4", "zstd")
    },
}


def with_defaults(values: dict[str, str]) -> TopicSettings:
    """The settings of a topic without a configuration, under a broker that has these for all."""
    static = {TOPIC_KEYS[key].synonyms[0].name: value for key, value in values.items()}
    return topic_settings(MetadataImage(), "t", broker_id=1, static=static)


@pytest.mark.parametrize("key", sorted(TOPIC_KEYS.keys() - WITHOUT_EFFECT - CONTROLLERS))
def test_a_setting_is_obeyed_or_known_to_be_without_effect(key: str) -> None:
    wanted = OTHERS.get(key, {key: str(3 << 20)})
    before = {name: value for name, value in wanted.items() if name != key}
    assert with_defaults(wanted) != with_defaults(before)


def test_the_page_lists_every_setting_and_those_without_effect() -> None:
    page = Path(__file__).parents[2] / "docs/compatibility.md"
    section = page.read_text().partition("## Settings of topics")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    listed = {name: row[1] for row in rows for name in re.findall(r"`([a-z.]+\.[a-z.]+)`", row[0])}
    levels = {f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
    assert (listed.keys() | levels | {"preallocate"}) == TOPIC_KEYS.keys()
    ignored = {name for name, text in listed.items() if text.startswith("no:")}
    assert ignored | {"preallocate"} == WITHOUT_EFFECT


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
