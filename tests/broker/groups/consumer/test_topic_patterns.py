"""Names are matched in slices, once each, and as many as are left when topics come and go."""

import pytest

from broker.groups.consumer import topic_patterns
from broker.groups.consumer.topic_patterns import SLICE_MS, TopicPatterns

NAMES = tuple(f"topic-{number}" for number in range(20_000))


def settled(patterns: TopicPatterns, text: str, now_ms: int) -> tuple[tuple[str, ...], int]:
    """Returns what matches in the end, and how many slices it took."""
    for slices in range(1, 100):
        found = patterns.matching(text, now_ms + slices * SLICE_MS)
        if found is not None:
            return found, slices
    raise AssertionError("it does not end")


def test_many_names_take_several_slices() -> None:
    patterns = TopicPatterns()
    patterns.follow(NAMES, 1)
    found, slices = settled(patterns, "topic-1.*9", 0)
    assert found == tuple(sorted(n for n in NAMES if n.startswith("topic-1") and n[-1] == "9"))
    assert 3 < slices < 30


def test_a_slice_is_shared_by_all_patterns() -> None:
    patterns = TopicPatterns()
    patterns.follow(NAMES, 1)
    assert patterns.matching("topic-.*", 100) is None
    assert patterns.matching("topic-7", 100 + SLICE_MS - 1) is None  # nothing is left for it
    assert settled(patterns, "topic-7", 100)[0] == ("topic-7",)


def test_names_that_are_looked_through_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_patterns, "_STEPS_OF_SLICE", 8 * len(NAMES))
    patterns = TopicPatterns()
    patterns.follow(NAMES, 1)
    for _ in range(2):
        assert patterns.matching("x", 100) is None
    assert len(patterns._by_text["x"].waiting) == len(NAMES)


def test_a_clock_that_is_set_back_begins_a_slice() -> None:
    patterns = TopicPatterns()
    patterns.follow(NAMES, 1)
    patterns.matching("topic-.*", 3_600_000)
    left = len(patterns._by_text["topic-.*"].waiting)
    patterns.matching("topic-.*", 0)
    assert len(patterns._by_text["topic-.*"].waiting) < left


def test_only_new_names_are_matched_when_topics_come() -> None:
    patterns = TopicPatterns()
    patterns.follow(NAMES, 1)
    settled(patterns, "topic-1.9", 0)
    patterns.follow((*NAMES[200:], "topic-1x9"), 2)
    assert settled(patterns, "topic-1.9", 10_000) == (("topic-1x9",), 1)


def test_topics_that_go_while_names_are_matched_are_left_out() -> None:
    patterns = TopicPatterns()
    patterns.follow(NAMES, 1)
    assert patterns.matching("topic-1999.", 100) is None
    patterns.follow(NAMES[:-1], 2)
    found, _ = settled(patterns, "topic-1999.", 200)
    assert found == tuple(f"topic-1999{digit}" for digit in range(9))


def test_a_pattern_that_can_not_be_read_matches_nothing() -> None:
    patterns = TopicPatterns()
    patterns.follow(NAMES, 1)
    assert patterns.matching("(", 0) == ()


def test_what_nobody_asks_for_is_forgotten() -> None:
    patterns = TopicPatterns()
    patterns.follow(("a",), 1)
    for number in range(3):
        patterns.matching(f"a|{number}", 400_000 * number)
    assert list(patterns._by_text) == ["a|1", "a|2"]
