"""A metadata tree as a file system with a working directory: a line comes in, lines go out.

Prompt, completion and paging are the terminal's part (`quorumlab.verbs.inspect_tree`).
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from quorumlab.inspection.tree import Node, find, leaves, matches
from quorumlab.output import one_line

__all__ = ["BrowseError", "Browser", "listing", "looked_up", "outline", "value_text"]

Load = Callable[[str], Node]  # the tree at a place: an offset, a time, or `end`

_HELP = """\
ls [PATH]        what is there: names, and values
cd [PATH]        go there (without PATH: to the top)
cat PATH         everything below, one path and value a line
tree [PATH]      everything below, indented
find TEXT        paths and values with TEXT in them, from here on
at PLACE         the state after an offset, at a time, or at the `end`
pwd              where am I?
help, exit
A path may have * ? and [] in it. Tab completes, the arrow keys go back in history."""


class BrowseError(ValueError):
    """A line that cannot be obeyed; the message says why."""


class Browser:
    """`load` may raise ValueError for a place that is none."""

    def __init__(self, tree: Node, load: Load) -> None:
        self._tree = tree
        self._load = load
        self._commands: Mapping[str, Callable[[str], Iterator[str]]] = {
            "ls": lambda path: listing(self._found(path)),
            "cd": self._cd,
            "cat": self._cat,
            "tree": self._outline,
            "find": self._find,
            "at": self._at,
            "pwd": lambda _: iter([self.path]),
            "help": lambda _: iter(_HELP.splitlines()),
        }
        self.path = "/"

    def run(self, line: str) -> Iterator[str]:
        """Yields the answer to a command. Raises BrowseError."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise BrowseError(str(error)) from error
        if not words:
            return
        command = self._commands.get(words[0])
        if command is None:
            known = ", ".join(self._commands)
            raise BrowseError(f"{words[0]}: no such command; there are {known}, exit")
        yield from command(" ".join(words[1:]))

    def completions(self, line: str, word: str) -> list[str]:
        """Returns what `word`, the last one of `line`, may become."""
        if line.lstrip() == word:
            return [name for name in (*self._commands, "exit") if name.startswith(word)]
        above, _, begun = word.rpartition("/")
        above = f"{above}/" if "/" in word else ""
        try:
            found = find(self._tree, self._absolute(above))
        except KeyError:
            return []
        if not isinstance(found, Mapping):
            return []
        return [
            f"{above}{name}{'/' * isinstance(found[name], Mapping)}"
            for name in found
            if name.startswith(begun)
        ]

    def _absolute(self, path: str) -> str:
        """Returns the path from the top, without `.` and `..`."""
        parts: list[str] = []
        for part in (path if path.startswith("/") else f"{self.path}/{path}").split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)

    def _found(self, path: str) -> list[tuple[str, Any]]:
        absolute = self._absolute(path)
        try:
            return looked_up(self._tree, absolute)
        except KeyError as error:
            raise BrowseError(f"{absolute}: there is no {error} there") from error

    def _cd(self, path: str) -> Iterator[str]:
        found = self._found(path or "/")
        if len(found) != 1 or not isinstance(found[0][1], Mapping):
            raise BrowseError(f"{path}: not one directory")
        self.path = found[0][0] or "/"
        return iter(())

    def _cat(self, path: str) -> Iterator[str]:
        for at, node in self._found(path):
            for leaf, value in leaves(node, at):
                yield f"{leaf} = {value_text(value)}"

    def _outline(self, path: str) -> Iterator[str]:
        for _, node in self._found(path):
            yield from outline(node)

    def _find(self, text: str) -> Iterator[str]:
        if not text:
            raise BrowseError("find what?")
        for at, node in self._found(""):
            for leaf, value in leaves(node, at):
                line = f"{leaf} = {value_text(value)}"
                if text in line:
                    yield line

    def _at(self, place: str) -> Iterator[str]:
        if not place:
            raise BrowseError("at which offset or time? `at end` is the newest state")
        try:
            self._tree = self._load(place)
        except ValueError as error:
            raise BrowseError(str(error)) from error
        try:
            find(self._tree, self.path)
        except KeyError:
            self.path = "/"
        yield f"after offset {self._tree['offset'] - 1}, epoch {self._tree['epoch']}"


def looked_up(tree: Node, path: str) -> list[tuple[str, Any]]:
    """Returns what lies at an absolute path, or at every path that matches. Raises KeyError."""
    if not set("*?[") & set(path):
        return [(path.rstrip("/"), find(tree, path))]
    found = list(matches(tree, path))
    if not found:
        raise KeyError(path)
    return found


def listing(found: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Lists a directory, or tells a value; where several were found, each with its path."""
    for path, node in found:
        if not isinstance(node, Mapping):
            yield value_text(node) if len(found) == 1 else f"{path} = {value_text(node)}"
            continue
        if len(found) > 1:
            yield f"{path}:"
        for name, child in node.items():
            yield f"{name}/" if isinstance(child, Mapping) else f"{name} = {value_text(child)}"


def outline(node: Any, depth: int = 0) -> Iterator[str]:
    """Tells everything below, two blanks further in for each level."""
    indent = "  " * depth
    if not isinstance(node, Mapping):
        yield f"{indent}{value_text(node)}"
        return
    for name, child in node.items():
        if isinstance(child, Mapping):
            yield f"{indent}{name}:"
            yield from outline(child, depth + 1)
        else:
            yield f"{indent}{name}: {value_text(child)}"


def value_text(value: Any) -> str:
    """Text as it is, everything else as JSON."""
    return one_line(value) if isinstance(value, str) else json.dumps(value)
