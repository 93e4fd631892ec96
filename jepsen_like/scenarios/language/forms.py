"""How commands look: one form each, found by its first word, with what it means in one line.

A form is a line with words in capitals for what a scenario fills in: `cut SOURCES from TARGETS`.
The kind of a word in capitals says what may stand there: a number, several nodes, a name, or the
rest of the line. A node, an offset or an epoch may also be a name that the scenario has given
before (`first = the leader`); several nodes may be `all`, or `all but` some.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import getdoc
from operator import attrgetter
from typing import Any, TypeVar

__all__ = ["Form", "Forms", "Misused", "Names", "near_or_all"]

Act = TypeVar("Act", bound=Callable[..., Any])

_LISTED_MAX = 8
_NUMBER = r"\d{1,6}"
_WORD = r"[a-z]\w*"
_VALUE = rf"(?:{_NUMBER}|{_WORD})"
_LISTED = rf"{_VALUE}(?:, {_VALUE})*"
_NODES = rf"(?:all but {_LISTED}|{_LISTED})"
_PATTERNS = {
    "NODE": _VALUE,
    "OTHER": _VALUE,
    "OFFSET": _VALUE,
    "EPOCH": _VALUE,
    "COUNT": _NUMBER,
    "MS": _NUMBER,
    "NODES": _NODES,
    "SOURCES": _NODES,
    "TARGETS": _NODES,
    "NAME": _WORD,
    "NAMES": rf"{_WORD}(?:, {_WORD})*",
    "PARTITION": r"[a-z]+-\d+",
    "API": r"[a-z_]+",
    "ROLE": r"(?:prospective|candidate|leader|resigned|unattached|follower)",
    "VALUE": r"\w+",
    "WHAT": r".+",
}


class Misused(Exception):
    """A command that cannot be read, or not carried out as things are."""


class Names:
    """What a scenario has named: nodes, and offsets and epochs. `nodes` tells all nodes."""

    def __init__(self, nodes: Callable[[], Iterable[int]] = tuple) -> None:
        self.nodes = nodes
        self.numbers: dict[str, int] = {}
        self.changing: dict[str, Callable[[], int | None]] = {}  # nodes, looked up whenever named
        self._named: dict[str, int] = {}

    def name(self, names: Iterable[str], nodes: Iterable[int]) -> None:
        self._named.update(zip(names, nodes, strict=False))

    def of(self, node: int) -> str:
        """The name of the node, or its number if it has none."""
        for name, named in self._named.items():
            if named == node:
                return name
        changing = (name for name, lookup in self.changing.items() if lookup() == node)
        return next(changing, str(node))

    def listed(self, nodes: Iterable[int]) -> str:
        return ", ".join(map(self.of, nodes))

    @property
    def unnamed(self) -> list[int]:
        """The nodes that have no name yet."""
        return [node for node in self.nodes() if node not in self._named.values()]

    def why_unknown(self, said: str, *, is_node: bool) -> str:
        if said in self.changing:
            return f"no node is the {said} now"
        if not is_node:
            numbers = ", ".join(self.numbers) or "none"
            return f"there is no number {said}: those with a name are {numbers}"
        nodes = ", ".join([*map(str, self.nodes()), *self._named, *self.changing])
        return f"there is no node {said}: the nodes are {nodes}"

    def node(self, said: str) -> int:
        """Raises KeyError."""
        if said.isdecimal() and int(said) not in self.nodes():
            raise KeyError(said)
        return self.value(said)

    def value(self, said: str) -> int:
        """Raises KeyError."""
        if said.isdecimal():
            return int(said)
        value = self.changing[said]() if said in self.changing else self._named.get(said)
        return self.numbers[said] if value is None else value

    def all_of(self, said: str) -> list[int]:
        """Raises KeyError."""
        if said == "all":
            return [*self.nodes()]
        listed = [self.node(each) for each in said.removeprefix("all but ").split(", ")]
        if not said.startswith("all but "):
            return listed
        return [node for node in self.nodes() if node not in listed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    usage: str
    meaning: str  # one line, for `--commands`
    act: Callable[..., Any]
    pattern: re.Pattern[str]
    bound: str = ""  # of a condition: the bound that is exceeded if it does not come to hold

    def arguments(self, text: str, names: Names) -> dict[str, Any] | None:
        """By the function's parameter; None if the text is not of this form."""
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        try:
            return {
                name.lower(): _read(name, said, names) for name, said in match.groupdict().items()
            }
        except KeyError:
            return None

    def unknown_name(self, text: str, names: Names) -> str:
        """A sentence, if the text is of this form but for a name; else empty."""
        match = self.pattern.fullmatch(text)
        for kind, said in {} if match is None else match.groupdict().items():
            try:
                _read(kind, said, names)
            except KeyError as error:
                return names.why_unknown(error.args[0], is_node=kind not in ("OFFSET", "EPOCH"))
        return ""


class Forms:
    """A table of commands, or of conditions. `around`: what else may stand in their place."""

    def __init__(self, *others: "Forms", around: Iterable[str] = ()) -> None:
        self.all: list[Form] = [form for other in others for form in other.all]
        self.around = tuple(around)

    def form(self, usage: str, meaning: str, *, bound: str = "") -> Callable[[Act], Act]:
        """Enter the decorated function: it is given what is directed, and what stands in capitals,
        in that order."""

        def enter(act: Act) -> Act:
            self._enter(usage, meaning, act, bound)
            return act

        return enter

    def add(
        self,
        usage: str,
        method: Callable[..., Any],
        meaning: str = "",
        *,
        of: str = "",
        bound: str = "",
        check: Callable[..., None] = lambda *_said: None,
    ) -> None:
        """Enter a method of what is directed, or `of` a part of it, simulated or not.

        What it means is the first line of its docstring, unless `meaning` says it. `check` raises
        Misused if it is not to be called now.
        """
        call = attrgetter(f"{of}.{method.__name__}" if of else method.__name__)

        def act(directed: Any, *said: Any) -> object:
            check(directed, *said)
            return call(directed)(*said)

        self._enter(usage, meaning or _meaning_of(method), act, bound)

    def add_name(
        self,
        usage: str,
        method: Callable[..., int],
        meaning: str = "",
        *,
        of_node: bool = False,
    ) -> None:
        """Enter the naming of what the method tells: a node, or a number."""

        def act(directed: Any, name: str, *said: object) -> None:
            told = getattr(directed, method.__name__)(*said)
            if of_node:
                directed.names.name([name], [told])
            else:
                directed.names.numbers[name] = told

        self._enter(f"NAME = {usage}", meaning or _meaning_of(method), act, "")

    def _enter(self, usage: str, meaning: str, act: Callable[..., Any], bound: str) -> None:
        pattern = re.compile("".join(map(_pattern_of, re.split(r"([A-Z]+)", usage))))
        self.all.append(Form(usage=usage, meaning=meaning, act=act, pattern=pattern, bound=bound))

    def find(self, text: str, names: Names | None = None) -> tuple[Form, dict[str, Any]]:
        """Raises Misused."""
        known = names or Names()
        for form in self.all:
            arguments = form.arguments(text, known)
            if arguments is not None:
                return form, arguments
        for unknown in filter(None, (form.unknown_name(text, known) for form in self.all)):
            raise Misused(f"`{text}` cannot be read: {unknown}")
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
        listed = " or ".join(map(_quoted, usages[:_LISTED_MAX]))
        rest = "" if len(usages) <= _LISTED_MAX else " …: see `quorumlab chaos scenario --commands`"
        return f"there is no `{first}`: write {listed}{rest}"

    def usages(self) -> Iterator[str]:
        return (form.usage for form in self.all)


def _meaning_of(method: Callable[..., Any]) -> str:
    told = (getdoc(method) or "").partition("\n")[0].removesuffix(".")
    return told[:1].lower() + told[1:]


def near_or_all(name: str, known: Collection[str]) -> str:
    """Return, for a complaint, the nearest of the known names, and all of them."""
    near = get_close_matches(name, known, n=1)
    return f"{f'did you mean {near[0]!r}? ' if near else ''}there are {', '.join(known)}"


def _pattern_of(part: str) -> str:
    return f"(?P<{part}>{_PATTERNS[part]})" if part in _PATTERNS else re.escape(part)


def _read(kind: str, said: str, names: Names) -> object:
    pattern = _PATTERNS[kind]
    if kind in ("NODE", "OTHER"):
        return names.node(said)
    if pattern in (_NUMBER, _VALUE):
        return names.value(said)
    if pattern == _NODES:
        return names.all_of(said)
    return said.split(", ") if kind == "NAMES" else said


def _quoted(usage: str) -> str:
    return f"`{usage}`"
