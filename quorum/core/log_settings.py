"""How a log is cut into segments and indexed, and when a compacted one is cleaned.

Names and defaults are those of Kafka's topic configuration.
"""

from dataclasses import dataclass, field

__all__ = ["CleaningOrder", "CleaningRules", "LogSettings"]

_DAY_MS = 24 * 3600 * 1000
_WEEK_MS = 7 * _DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    segment_bytes: int = 1 << 30  # segment.bytes
    segment_ms: int = _WEEK_MS  # segment.ms, in timestamps of records
    index_interval_bytes: int = 4096  # index.interval.bytes
    index_bytes_max: int = 10 << 20  # segment.index.bytes: a full index ends a segment, too
    preallocate_bytes: int = 0  # the active segment grows by zeros, in such steps; 0: not at all
    reread_bytes: int = 1 << 20  # a log that was closed in order and ends in less is read again


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRules:
    dirty_ratio_min: float = 0.5  # min.cleanable.dirty.ratio
    lag_min_ms: int = 0  # min.compaction.lag.ms
    lag_max_ms: int | None = None  # max.compaction.lag.ms; None: it may wait for ever
    delete_retention_ms: int = _DAY_MS  # delete.retention.ms: how long tombstones stay
    map_bytes_max: int = 128 << 20  # log.cleaner.dedupe.buffer.size
    bytes_per_second: float = float("inf")  # log.cleaner.io.max.bytes.per.second


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningOrder:
    """A broker's order to its storage to clean a log."""

    rules: CleaningRules
    now_ms: int
    end_offset: int  # segments that reach beyond it stay as they are
    # (producer's id, last offset) of batches that stay, if without records: sequences are in them.
    last_batches: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    # (producer's id, epoch) of those of which only markers are known: these markers stay as well.
    last_epochs: frozenset[tuple[int, int]] = field(default_factory=frozenset)
