"""Pages on what a node remembers of changes: what may be asked, and what is told."""

import pytest

from quorum.log.applied_times import STEPS_MAX, AppliedTimes
from quorum.zookeeper.znode_changes import ZnodeChanges
from quorumlab.change_pages import applied_page, parse_number, parse_offsets, znode_page
from wire.zk.session import Create, Created, Delete, Deleted


def test_applied_page_tells_wall_clock_and_null_for_what_has_no_time() -> None:
    times = AppliedTimes()
    for n in range(STEPS_MAX + 2):
        times.note(n + 1, 1000 + n)
    page = applied_page(times, (2, 3, STEPS_MAX + 1, STEPS_MAX + 2), 500_000)
    assert page == {
        "next_offset": STEPS_MAX + 2,
        "oldest": 3,
        "applied_ms": {
            "2": None,
            "3": 501_003,
            str(STEPS_MAX + 1): 501_001 + STEPS_MAX,
            str(STEPS_MAX + 2): None,
        },
    }


def test_offsets_are_whole_numbers_with_commas_between() -> None:
    assert parse_offsets("12") == (12,)
    assert parse_offsets("0,15,9223372036854775807") == (0, 15, (1 << 63) - 1)
    assert len(parse_offsets(",".join(["7"] * 1000))) == 1000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"say which: \?offsets=12,15"),
        (",", "'' is no whole number"),
        ("1,-2", "'-2' is no whole number"),
        ("1, 2", "' 2' is no whole number"),
        ("²", "'²' is no whole number"),
        ("1_0", "'1_0' is no whole number"),
        ("9223372036854775808", "no whole number from 0 to 9223372036854775807"),
        ("9" * 5000, "is no whole number"),
        (",".join(["7"] * 1001), "1001 offsets are too many: ask for 1000 at most"),
    ],
)
def test_other_offsets_are_refused_in_a_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        parse_offsets(text)
    assert len(str(refused.value)) < 200


def test_znode_page_tells_what_came_after_a_number_by_the_wall_clock() -> None:
    seen = ZnodeChanges(kept_max=2)
    for now_ms, path in ((1, "/a"), (2, "/b")):
        seen.note(Create(path=path, data=b"x"), Created(path=path), now_ms)
    seen.note(Delete(path="/a"), Deleted(), 3)
    made = {"number": 2, "at_ms": 1002, "path": "/b", "version": 0, "value": "x"}
    gone = {"number": 3, "at_ms": 1003, "path": "/a", "version": None, "value": None}
    assert znode_page(seen, 0, 1000) == {"first": 2, "next": 4, "changes": [made, gone]}
    assert znode_page(seen, 2, 1000) == {"first": 2, "next": 4, "changes": [gone]}


@pytest.mark.parametrize("text", ["", "-1", "x", "1.0", "9223372036854775808"])
def test_a_number_to_begin_after_is_a_whole_one(text: str) -> None:
    with pytest.raises(ValueError, match=f"after: '{text}' is no whole number"):
        parse_number("after", text)
