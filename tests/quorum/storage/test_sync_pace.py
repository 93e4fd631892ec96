"""When a log's syncs run in the driver's thread."""

import pytest

from quorum.log.files.sync_pace import SYNCS_TO_BEGIN, SYNCS_TO_TRUST_AGAIN, SyncPace

FAST, MIDDLING, SLOW = 0.0009, 0.0011, 0.0021


def trusted() -> SyncPace:
    pace = SyncPace(0.002)
    for _ in range(SYNCS_TO_BEGIN):
        assert not pace.is_inline
        assert not pace.took(FAST)
    return pace


def test_log_begins_in_a_thread_until_its_syncs_are_known_to_be_fast() -> None:
    assert trusted().is_inline


def test_fast_syncs_must_come_in_a_row() -> None:
    pace = SyncPace(0.002)
    for _ in range(SYNCS_TO_BEGIN - 1):
        pace.took(FAST)
    pace.took(MIDDLING)
    for _ in range(SYNCS_TO_BEGIN - 1):
        pace.took(FAST)
    assert not pace.is_inline
    pace.took(FAST)
    assert pace.is_inline


@pytest.mark.parametrize("slow_in_a_thread", [0, 1])
def test_one_slow_sync_inline_is_the_last(slow_in_a_thread: int) -> None:
    pace = trusted()
    assert not pace.took(MIDDLING), "within the bound"
    assert pace.is_inline
    assert pace.took(SLOW)
    assert not pace.is_inline
    for _ in range(slow_in_a_thread):
        assert not pace.took(SLOW), "in a thread it stops nobody"
    for _ in range(SYNCS_TO_TRUST_AGAIN):
        assert not pace.is_inline
        pace.took(FAST)
    assert pace.is_inline


def test_a_hundred_in_a_row_are_wanted_after_one_that_was_too_slow() -> None:
    assert SYNCS_TO_TRUST_AGAIN == 100


def test_without_a_bound_no_sync_is_inline() -> None:
    pace = SyncPace(0.0)
    for _ in range(2 * SYNCS_TO_BEGIN):
        pace.took(0.0)
    assert not pace.is_inline
