"""What is news in a log that was looked at before."""

from jepsen_like.scenarios.stage.story import appended_after
from jepsen_like.sim.logs.logtree import Entry


def entry(parent: Entry | None, epoch: int) -> Entry:
    base = 0 if parent is None else parent.next_offset
    return Entry(parent=parent, records=b"", base_offset=base, next_offset=base + 1, epoch=epoch)


def test_what_lies_behind_the_last_that_was_seen() -> None:
    a = entry(None, 1)
    b = entry(a, 1)
    assert appended_after(None, [a, b]) == [a, b]
    assert appended_after(a, [a, b]) == [b]
    assert appended_after(b, [a, b]) == []
    assert appended_after(b, [a]) == [], "it was truncated"


def test_what_was_truncated_and_written_anew_between_two_looks() -> None:
    a = entry(None, 1)
    old, new = entry(a, 1), entry(a, 2)
    assert appended_after(old, [a, new]) == [new], "it has the index of the old one"


def test_a_log_that_begins_anew() -> None:
    a = entry(None, 1)
    b = entry(a, 1)
    assert appended_after(a, [b]) == [b]
    assert appended_after(b, []) == []
