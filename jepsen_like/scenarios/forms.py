"""How commands look: one form each, found by its first word, with what it means in one line.

A form is a line with words in capitals for what a scenario fills in: `cut SOURCES from TARGETS`.
The kind of a word in capitals says what may stand there: a number, several nodes, a name, or the
rest of the line.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

__all__ = ["Form", "Forms", "Misused"]

Act = TypeVar("Act", bound=Callable[..., Any])

_LISTED_MAX = 20
_NUMBER = r"\d{1,6}"
_NUMBERS = rf"{_NUMBER}(?:, {_NUMBER})*"
_PATTERNS = {
    "NODE": _NUMBER,
    "OTHER": _NUMBER,
    "COUNT": _NUMBER,
    "OFFSET": _NUMBER,
    "EPOCH": _NUMBER,
    "MS": _NUMBER,
    "NODES": _NUMBERS,
    "SOURCES": _NUMBERS,
    "TARGETS": _NUMBERS,
    "PARTITION": r"[a-z]+-\d+",
    "API": r"[a-z_]+",
    "ROLE": r"(?:prospective|candidate|leader|resigned|unattached|follower)",
    "VALUE": r"\w+",
    "WHAT": r".+",
}


class Misused(Exception):
    """A command that cannot be read, or not carried out as things are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    usage: str
    meaning: str  # one line, for `--commands`
    act: Callable[..., Any]
    pattern: re.Pattern[str]

    def arguments(self, text: str) -> dict[str, Any] | None:
        """By the function's parameter; None if the text is not of this form."""
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        return {name.lower(): _read(name, said) for name, said in match.groupdict().items()}


class Forms:
    """A table of commands, or of conditions. `around`: what else may stand in their place."""

    def __init__(self, *others: "Forms", around: Iterable[str] = ()) -> None:
        self.all: list[Form] = [form for other in others for form in other.all]
        self.around = tuple(around)

    def form(self, usage: str, meaning: str) -> Callable[[Act], Act]:
        """Enter the decorated function: it is given the stage, and what stands in capitals."""

        def enter(act: Act) -> Act:
            pattern = re.compile("".join(map(_pattern_of, re.split(r"([A-Z]+)", usage))))
            self.all.append(Form(usage=usage, meaning=meaning, act=act, pattern=pattern))
            return act

        return enter

    def find(self, text: str) -> tuple[Form, dict[str, Any]]:
        """Raises Misused."""
        for form in self.all:
            arguments = form.arguments(text)
            if arguments is not None:
                return form, arguments
        raise Misused(self._why_not(text))

    def _why_not(self, text: str) -> str:
        first = text.split()[0]
        usages = [*self.usages(), *self.around]
        of_word = [usage for usage in usages if usage.split()[0] == first]
        if of_word:
            return f"`{text}` cannot be read: write {' or '.join(map(_quoted, of_word))}"
        near = get_close_matches(first, [usage.split()[0] for usage in usages], n=1)
        if near:
            return f"there is no `{first}`: did you mean `{near[0]}`?"
        if len(usages) > _LISTED_MAX:
            return f"there is no `{first}`: `quorumlab chaos scenario --commands` lists them"
        return f"there is no `{first}`: write {' or '.join(map(_quoted, usages))}"

    def usages(self) -> Iterator[str]:
        return (form.usage for form in self.all)


def _pattern_of(part: str) -> str:
    return f"(?P<{part}>{_PATTERNS[part]})" if part in _PATTERNS else re.escape(part)


def _read(name: str, said: str) -> object:
    pattern = _PATTERNS[name]
    if pattern == _NUMBER:
        return int(said)
    return [int(each) for each in said.split(", ")] if pattern == _NUMBERS else said


def _quoted(usage: str) -> str:
    return f"`{usage}`"
