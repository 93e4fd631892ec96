"""The topics that match the patterns of groups, worked out in slices.

A cluster may have a hundred thousand topics, and a client may write a pattern that costs
milliseconds a name. A broker has one event loop: so what is matched within a slice of time is
bounded, for all groups together, and what a pattern has matched is remembered. When topics come,
only their names are matched.

What a name costs is counted in steps of RE2 at their worst, the program's steps for each character.

Source: Kafka's TopicRegexResolver, which has a thread for it and matches all names again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.coordination.patterns import Pattern, compile_pattern

__all__ = ["SLICE_MS", "TopicPatterns"]

SLICE_MS = 20
_STEPS_OF_SLICE = 2_000_000  # at most 15 ms
_STEPS_OF_NAME = 400  # beside those of its characters
_STEPS_OF_COMPARING = 8  # a name that is known already
_KEPT_MS = 600_000


@dataclass(slots=True)
class _Matched:
    pattern: Pattern
    names: frozenset[str] = frozenset()  # of the topics that are looked at
    waiting: list[str] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    asked_ms: int = 0

    def follow(self, names: frozenset[str]) -> None:
        self.waiting = [name for name in self.waiting if name in names]
        self.waiting += sorted(names - self.names, reverse=True)
        self.found &= names
        self.names = names

    def match(self, steps: int) -> int:
        """Returns the steps that are left. One name is matched however few there are."""
        while self.waiting and steps > 0:
            name = self.waiting.pop()
            if self.pattern(name):
                self.found.add(name)
            steps -= _STEPS_OF_NAME + len(name) * self.pattern.steps
        return steps


class TopicPatterns:
    __slots__ = ("_by_text", "_left", "_names", "_since_ms", "_version")

    def __init__(self) -> None:
        self._by_text: dict[str, _Matched] = {}
        self._names: frozenset[str] = frozenset()
        self._version = -1
        self._since_ms = -SLICE_MS  # when the slice has begun
        self._left = 0

    def follow(self, names: Iterable[str], version: int) -> None:
        """The names of all topics, of which there may be others in another version."""
        if version != self._version:
            self._names, self._version = frozenset(names), version

    def matching(self, text: str, now_ms: int) -> tuple[str, ...] | None:
        """Sorted. None: not all names are matched yet. A pattern that we can not read matches
        nothing: a coordinator of Kafka may have taken it."""
        if not 0 <= now_ms - self._since_ms < SLICE_MS:
            self._since_ms, self._left = now_ms, _STEPS_OF_SLICE
            self._forget(now_ms)
        matched = self._by_text.pop(text, None)
        if matched is None:
            pattern = compile_pattern(text)
            if pattern is None:
                return ()
            matched = _Matched(pattern)
        matched.asked_ms = now_ms
        self._by_text[text] = matched  # the last one to be forgotten
        if matched.names is not self._names and self._left > 0:
            matched.follow(self._names)
            self._left -= len(self._names) * _STEPS_OF_COMPARING
        self._left = matched.match(self._left)
        is_whole = matched.names is self._names and not matched.waiting
        return tuple(sorted(matched.found)) if is_whole else None

    def _forget(self, now_ms: int) -> None:
        while self._by_text:
            text, matched = next(iter(self._by_text.items()))
            if now_ms - matched.asked_ms < _KEPT_MS:
                break
            del self._by_text[text]
