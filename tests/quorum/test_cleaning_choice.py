"""When a compacted log is due, as in Kafka's LogCleanerManager; which segments become one."""

from dataclasses import replace

import pytest

from quorum.core.log_settings import CleaningOrder, CleaningRules, LogSettings
from quorum.log.cleaning_choice import Choice, Extent, NotDue, choose, grouped

NOW_MS = 1_000_000


def segments(*sizes: int, first_ms: int = 100, step_ms: int = 100) -> list[Extent]:
    """Segments of ten offsets each, each younger than the one before."""
    return [
        Extent(
            base_offset=10 * place,
            end_offset=10 * place + 10,
            size_bytes=size,
            first_ms=first_ms + step_ms * place,
            youngest_ms=first_ms + step_ms * place + 50,
        )
        for place, size in enumerate(sizes)
    ]


def order(end_offset: int = 1000, **rules: float | None) -> CleaningOrder:
    return CleaningOrder(
        rules=replace(CleaningRules(), **rules),  # type: ignore[arg-type]
        now_ms=NOW_MS,
        end_offset=end_offset,
    )


@pytest.mark.parametrize(
    ("dirty_offset", "end_offset", "expected"),
    [
        (0, 1000, Choice(4, 0, 1.0)),
        (10, 1000, Choice(4, 10, 0.75)),
        (20, 1000, NotDue(None)),  # a half is not more than a half
        (15, 1000, Choice(4, 15, 0.75)),  # a segment that is dirty in part is dirty
        (10, 30, Choice(3, 10, 2 / 3)),
        (10, 29, NotDue(None)),
        (40, 1000, NotDue(None)),
        (0, 9, NotDue(None)),
    ],
)
def test_it_is_due_when_too_much_of_it_is_dirty(
    dirty_offset: int, end_offset: int, expected: Choice | NotDue
) -> None:
    found = choose(segments(5, 5, 5, 5), dirty_offset=dirty_offset, order=order(end_offset))
    assert found == expected


def test_what_is_too_young_waits() -> None:
    extents = segments(5, 5, 5, first_ms=NOW_MS - 250)  # the youngest are 200, 100 and 0 ms old
    assert choose(extents, dirty_offset=0, order=order(lag_min_ms=150)) == Choice(1, 0, 1.0)
    due_ms = NOW_MS - 200 + 201
    assert choose(extents, dirty_offset=0, order=order(lag_min_ms=201)) == NotDue(due_ms)


def test_what_is_too_old_is_due_however_little_it_is() -> None:
    extents = segments(50, 1, first_ms=NOW_MS - 1000)
    old = order(lag_max_ms=899)
    assert choose(extents, dirty_offset=10, order=old) == Choice(2, 10, 1 / 51)
    later = order(lag_max_ms=950)
    assert choose(extents, dirty_offset=10, order=later) == NotDue(NOW_MS - 900 + 951)


def test_no_ratio_is_above_one() -> None:
    assert choose(segments(5), dirty_offset=0, order=order(dirty_ratio_min=1.0)) == NotDue(None)


@pytest.mark.parametrize(
    ("sizes", "settings", "expected"),
    [
        ((4, 4, 4), LogSettings(segment_bytes=8), [2, 1]),
        ((9, 1, 1), LogSettings(segment_bytes=8), [1, 2]),
        ((1, 1, 1), LogSettings(segment_bytes=8, index_bytes_max=16), [2, 1]),
        ((), LogSettings(), []),
    ],
)
def test_segments_become_one_as_long_as_it_is_not_too_large(
    sizes: tuple[int, ...], settings: LogSettings, expected: list[int]
) -> None:
    assert grouped(segments(*sizes), [8] * len(sizes), settings) == expected


def test_a_segment_spans_no_more_offsets_than_its_index_can_name() -> None:
    first, second = segments(1, 1)
    assert grouped([first, replace(second, end_offset=2**31)], [8, 8], LogSettings()) == [2]
    assert grouped([first, replace(second, end_offset=2**31 + 1)], [8, 8], LogSettings()) == [1, 1]
