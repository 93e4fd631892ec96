"""The data path of a broker reads a topic's configuration as these settings.

Which level of a value wins, and which values there may be, is decided in
`controller.metadata.configs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.metadata.config_keys import TOPIC_KEYS, problem
from controller.metadata.configs import topic_value
from controller.metadata.image import MetadataImage
from quorum.core.log_settings import CleaningRules, LogSettings
from wire.compression import Compression
from wire.primitives import INT64_MAX

__all__ = ["TopicSettings", "topic_settings"]


_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}  # "producer" is none of them
_LEVELS = {
    "gzip": "compression.gzip.level",
    "lz4": "compression.lz4.level",
    "zstd": "compression.zstd.level",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    min_insync_replicas: int = 1
    max_message_bytes: int = 1_048_588
    is_compacted: bool = False  # cleanup.policy holds "compact"
    compression: Compression | None = None  # None: as producers have it
    compression_level: int = 0
    is_log_append_time: bool = False
    timestamp_after_max_ms: int = 3_600_000
    timestamp_before_max_ms: int = INT64_MAX
    retention_ms: int | None = None  # None: for ever
    retention_bytes: int | None = None
    may_delete_records: bool = True  # cleanup.policy is not "compact" alone
    cleaning: CleaningRules = field(default_factory=CleaningRules)  # of a compacted topic
    log: LogSettings = field(default_factory=LogSettings)


def topic_settings(
    image: MetadataImage, topic: str, *, broker_id: int, static: Mapping[str, str]
) -> TopicSettings:
    """`static` is the broker's server.properties."""

    def value(name: str) -> str:
        return topic_value(image, topic, name, broker_id=broker_id, static=static)

    def number(name: str) -> int:
        try:
            return int(value(name))
        except ValueError:  # the metadata log holds checked values; a file may hold anything
            return int(TOPIC_KEYS[name].default or 0)

    def limit(name: str) -> int | None:
        found = number(name)
        return found if found >= 0 else None

    def level(name: str | None) -> int:
        """A codec fails at a level that it does not have, and the file may name one."""
        if name is None:
            return 0
        found, default = number(name), int(TOPIC_KEYS[name].default or 0)
        return default if problem(TOPIC_KEYS[name], str(found)) else found

    def ratio(name: str) -> float:
        found = value(name)
        return float(TOPIC_KEYS[name].default or 0 if problem(TOPIC_KEYS[name], found) else found)

    policy = value("cleanup.policy")
    is_compacted = "compact" in policy
    lag_max_ms = number("max.compaction.lag.ms")
    segment_ms = number("segment.ms")
    may_delete = "delete" in policy
    compression = value("compression.type")
    return TopicSettings(
        min_insync_replicas=number("min.insync.replicas"),
        max_message_bytes=number("max.message.bytes"),
        is_compacted=is_compacted,
        compression=_CODECS.get(compression),
        compression_level=level(_LEVELS.get(compression)),
        is_log_append_time=value("message.timestamp.type") == "LogAppendTime",
        timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        retention_ms=limit("retention.ms") if may_delete else None,
        retention_bytes=limit("retention.bytes") if may_delete else None,
        may_delete_records=may_delete or not is_compacted,
        cleaning=CleaningRules(
            dirty_ratio_min=ratio("min.cleanable.dirty.ratio"),
            lag_min_ms=max(number("min.compaction.lag.ms"), 0),
            lag_max_ms=lag_max_ms if lag_max_ms < INT64_MAX else None,
            delete_retention_ms=number("delete.retention.ms"),
        ),
        log=LogSettings(
            segment_bytes=number("segment.bytes"),
            # What has to be cleaned by then must not lie in the active segment.
            segment_ms=min(segment_ms, lag_max_ms) if is_compacted else segment_ms,
            index_interval_bytes=number("index.interval.bytes"),
            index_bytes_max=number("segment.index.bytes"),
        ),
    )
