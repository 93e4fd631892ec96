"""Which files have tests for `make extra`: by their words, so that no other one is imported."""

from functools import cache
from pathlib import Path

import pytest

__all__ = ["EXTRA_WORDS", "has_extra_tests", "refuse_unmarked_files"]

EXTRA_WORDS = ("mark.extra", "needs_kafka", "OnAnySession")  # the last: of classes marked elsewhere


@cache
def has_extra_tests(file: Path) -> bool:
    text = file.read_text()
    return any(word in text for word in EXTRA_WORDS)


def refuse_unmarked_files(items: list[pytest.Item]) -> None:
    """Raises UsageError for extra tests in a file that `make extra` would not import."""
    unmarked = {
        item.location[0]
        for item in items
        if item.get_closest_marker("extra") and not has_extra_tests(item.path)
    }
    if unmarked:
        files = ", ".join(sorted(unmarked))
        raise pytest.UsageError(f"extra tests, and none of the words {EXTRA_WORDS}: {files}")
