"""Patterns of clients: regular expressions that a whole transactional id or topic name matches.

RE2 reads and matches them: its time grows with the product of the lengths of name and pattern at
most, whatever a client writes. Kafka has the same syntax from RE2/J. A pattern that needs more
memory than it may have is refused like one that is wrong: so steps, and what a name costs, are
bounded, too.

Source: KIP-848, KIP-1152; Kafka's TopicRegexResolver.
"""

from dataclasses import dataclass
from typing import Any

import re2

__all__ = ["Pattern", "compile_pattern"]

_TEXT_MAX = 10_000  # characters
_MEMORY_MAX = 128 << 10  # bytes: of a program of some 2,700 steps, and of its states


def _options() -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY_MAX
    options.log_errors = False  # on standard error
    options.never_capture = True
    return options


_OPTIONS = _options()


@dataclass(frozen=True, slots=True)
class Pattern:
    program: Any  # of RE2; the same text has the same one, while it is among the last 128

    def __call__(self, name: str) -> bool:
        return self.program.fullmatch(name.encode()) is not None

    @property
    def steps(self) -> int:
        size: int = self.program.programsize
        return size


def compile_pattern(text: str | None) -> Pattern | None:
    """None if `text` is no regular expression; all names match if there is none."""
    text = text or "(?s).*"
    if len(text) > _TEXT_MAX:
        return None
    try:
        return Pattern(re2.compile(text, _OPTIONS))
    except re2.error:
        return None
