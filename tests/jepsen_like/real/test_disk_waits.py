"""How long threads wait for a disk, from what is seen at each look."""

from pathlib import Path

import pytest

from jepsen_like.real.injection.filesystems import DiskWatch, Waits
from jepsen_like.real.injection.storage import is_hindered
from jepsen_like.real.processes import ProcessId, state_of


def test_wait_lasts_while_every_look_sees_the_same_thread() -> None:
    waits = Waits()
    for now, waiting in ((1.0, "a"), (1.5, "ab"), (2.0, "a"), (2.5, ""), (3.0, "a")):
        waits.look(waiting, now)
    assert waits.longest_seconds == 1.0
    assert waits.total_seconds == 1.0, "b was seen once, and a anew at the end"


def test_threads_that_wait_at_the_same_time_add_up() -> None:
    waits = Waits()
    for now in (5.0, 5.25, 5.5):
        waits.look("ab", now)
    assert (waits.longest_seconds, waits.total_seconds) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("seconds", "writes_per_second", "hindered"),
    [(0.1, 5, True), (0.09, 5, False), (0.4, 1, False), (0.5, 1, True), (0.02, 100_000, False)],
)
def test_wait_that_a_free_disk_may_ask_for_proves_nothing(
    seconds: float, writes_per_second: int, hindered: bool
) -> None:
    assert is_hindered(Waits(longest_seconds=seconds), writes_per_second) is hindered


def test_process_that_is_gone_is_watched_no_more() -> None:
    gone = ProcessId(2**22 + 1, "0")
    assert DiskWatch(gone).stop().total_seconds == 0.0


def test_state_is_found_behind_a_name_with_spaces_and_brackets(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("7 (a) R (b) D 1 7 7 0")
    assert state_of(stat) == "D"
    assert state_of(tmp_path / "none") is None
