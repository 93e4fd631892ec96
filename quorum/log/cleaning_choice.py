"""Is a log due to be cleaned, which part of it, and which segments become one?

A log is clean up to an offset that is noted, and dirty from there on. The last segment grows, and
is never cleaned. Nor is one that reaches beyond the last stable offset: a truncation, or an abort,
could otherwise take a record away when the older ones of its key are gone. A segment whose youngest
record is younger than `min.compaction.lag.ms` ends what may be cleaned.

A log is due if the dirty bytes are more than `min.cleanable.dirty.ratio` of all, or if the oldest
dirty record is older than `max.compaction.lag.ms`.

Pure. Source: Kafka's LogCleanerManager (`cleanableOffsets`, `maxCompactionDelay`), LogToClean and
Cleaner.groupSegmentsBySize.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from quorum.core.log_settings import CleaningOrder, LogSettings
from wire.primitives import INT32_MAX

__all__ = ["Choice", "Extent", "NotDue", "choose", "grouped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A segment that does not grow any more."""

    base_offset: int
    end_offset: int  # where the next one begins
    size_bytes: int
    first_ms: int  # the largest timestamp in its first batch; -1: none
    youngest_ms: int


@dataclass(frozen=True, slots=True)
class Choice:
    """It is due: the first `count` segments are read, of which those from `dirty_offset` on give
    the map."""

    count: int
    dirty_offset: int
    dirty_ratio: float


@dataclass(frozen=True, slots=True)
class NotDue:
    """By time alone it may be at `next_ms`. None: not before it grows."""

    next_ms: int | None


def choose(
    extents: Sequence[Extent], *, dirty_offset: int, order: CleaningOrder
) -> Choice | NotDue:
    rules, now_ms = order.rules, order.now_ms
    dirty = [each for each in extents if each.end_offset > dirty_offset]
    cleanable = [each for each in dirty if each.end_offset <= order.end_offset]
    later_ms = []  # when it may be due
    for place, each in enumerate(cleanable):
        if rules.lag_min_ms and each.youngest_ms > now_ms - rules.lag_min_ms:
            later_ms.append(each.youngest_ms + rules.lag_min_ms)
            del cleanable[place:]
            break
    if not cleanable:
        return NotDue(min(later_ms, default=None))
    dirty_bytes = sum(each.size_bytes for each in cleanable)
    count = len(extents) - len(dirty) + len(cleanable)
    total_bytes = sum(each.size_bytes for each in extents[:count])
    ratio = dirty_bytes / total_bytes if total_bytes else 0.0
    overdue_ms = _overdue_ms(cleanable, rules.lag_max_ms)
    is_overdue = overdue_ms is not None and overdue_ms <= now_ms
    if dirty_bytes and (ratio > rules.dirty_ratio_min or is_overdue):
        return Choice(count, dirty_offset, ratio)
    if overdue_ms is not None and not is_overdue:
        later_ms.append(overdue_ms)
    return NotDue(min(later_ms, default=None))


def _overdue_ms(cleanable: Sequence[Extent], lag_max_ms: int | None) -> int | None:
    """From when on the first of them have to be cleaned, however little is dirty."""
    times_ms = [each.first_ms for each in cleanable if each.first_ms > 0]
    if lag_max_ms is None or not times_ms:
        return None
    return min(times_ms) + lag_max_ms + 1


def grouped(extents: Sequence[Extent], indexes: Sequence[int], settings: LogSettings) -> list[int]:
    """How many of them become one segment each time, which is no larger than segments may be.

    `indexes` are the sizes of their larger indexes.
    """
    counts: list[int] = []
    base_offset = size_bytes = index_bytes = 0
    for each, own_index_bytes in zip(extents, indexes, strict=True):
        size_bytes += each.size_bytes
        index_bytes += own_index_bytes
        fits = (
            size_bytes <= settings.segment_bytes
            and index_bytes <= settings.index_bytes_max
            and each.end_offset - 1 - base_offset <= INT32_MAX
        )
        if counts and fits:
            counts[-1] += 1
        else:
            counts.append(1)
            base_offset, size_bytes = each.base_offset, each.size_bytes
            index_bytes = own_index_bytes
    return counts
