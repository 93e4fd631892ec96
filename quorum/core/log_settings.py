"""How a log is cut into segments and indexed.

Names and defaults are those of Kafka's topic configuration.
"""

from dataclasses import dataclass

__all__ = ["LogSettings"]

_WEEK_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    segment_bytes: int = 1 << 30  # segment.bytes
    segment_ms: int = _WEEK_MS  # segment.ms, in timestamps of records
    index_interval_bytes: int = 4096  # index.interval.bytes
    index_bytes_max: int = 10 << 20  # segment.index.bytes: a full index ends a segment, too
    preallocate_bytes: int = 0  # the active segment grows by zeros, in such steps; 0: not at all
    reread_bytes: int = 1 << 20  # a log that was closed in order and ends in less is read again
