"""Patterns of clients, held against Python's regular expressions, and what RE2 has beside them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordination.patterns import compile_pattern

ATOMS = ["a", "b", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\W", r"\.", "(a|b)", "(?:ab)", "()", "-"]
COUNTS = ["", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"]
PARTS = st.tuples(st.sampled_from(ATOMS), st.sampled_from(COUNTS)).map("".join)
PATTERNS = st.lists(st.lists(PARTS, max_size=3).map("".join), min_size=1, max_size=3).map("|".join)


@given(PATTERNS, st.text("abc1.-", max_size=6))
def test_the_whole_id_matches_as_in_python(pattern: str, text: str) -> None:
    matches = compile_pattern(pattern)
    assert matches is not None, pattern
    assert matches(text) == (not pattern or re.fullmatch(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "a)", "[a", "[b-a]", "*", "a{2,1}", "a{1001}", "\\", "(?=a)", r"\1", "[[:no:]]"],
)
def test_what_is_wrong_is_refused(pattern: str) -> None:
    assert compile_pattern(pattern) is None


def test_what_grows_without_bounds_is_refused() -> None:
    assert compile_pattern("(((a{1000}){1000}){1000})") is None
    assert compile_pattern("(" * 10_000) is None
    assert compile_pattern("(ab){1000}") is not None
    assert compile_pattern("|" * 10_001) is None


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("[[:alpha:]]+", "ab", "alph:"),
        ("[^[:digit:]]", "a", "1"),
        (r"\p{Greek}+\pL", "λb", "ab"),
        ("(?i)topic", "ToPiC", "topics"),
        (r".*\bb", "a-b", "ab"),
        (r"\Qa.b\E", "a.b", "aab"),
        ("a{", "a{", "a"),
    ],
)
def test_the_syntax_is_that_of_re2(pattern: str, matching: str, other: str) -> None:
    """RE2/J, which Kafka uses, takes them so."""
    matches = compile_pattern(pattern)
    assert matches is not None
    assert (matches(matching), matches(other)) == (True, False)


def test_a_pattern_that_python_would_try_for_years_is_soon_answered() -> None:
    matches = compile_pattern("(a|a)*(a*)*b")
    assert matches is not None
    assert not matches("a" * 1000)


@pytest.mark.parametrize(
    ("pattern", "text", "result"),
    [
        ("^a$", "a", True),
        ("a^b", "ab", False),
        ("[]a]-", "]-", True),
        ("a+", "aa", True),
        ("a{2}", "aaa", False),
        ("[^a]", "\0", True),
        ("[^b]", "a", True),
        ("[^b]", "c", True),
        ("a", "aa", False),
        ("a?", "", True),
        ("a?b", "b", True),
        ("a{1,3}b", "aab", True),
        ("a{1,3}b", "b", False),
        ("a{0,2}b", "aaab", False),
        ("[a-a]", "a", True),
        (".", "\n", False),
        (".", "\v", True),
        ("(?P<name>a)(?<other>b)", "ab", True),
        (r"\t", "\t", True),
    ],
)
def test_the_whole_id_matches(pattern: str, text: str, result: bool) -> None:
    matches = compile_pattern(pattern)
    assert matches is not None
    assert matches(text) is result
