"""The text of a scenario: a comment, then blocks of commands, each followed by what came of it.

    # A title.
    # What the scenario shows, and its source.

    start 3
    deliver until committed
    ----
    1 becomes prospective in epoch 0
    ...

A block is one command a line, a line `----`, and the output until an empty line. Lines that begin
with `#` are comments wherever they stand between blocks. Parsing keeps every line, so that a file
whose output is written anew changes in its output only.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["SEPARATOR", "Block", "Command", "Script", "ScriptError", "parse", "rewritten"]

SEPARATOR = "----"


class ScriptError(Exception):
    """The text is no scenario, or asks for something that cannot be."""

    def __init__(self, name: str, line: int, problem: str) -> None:
        super().__init__(f"{name}:{line}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    line: int  # in the file, counted from 1
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    before: tuple[str, ...]  # comments and empty lines
    commands: tuple[Command, ...]
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    name: str
    title: str
    blocks: tuple[Block, ...]
    after: tuple[str, ...]  # comments and empty lines behind the last block


def parse(name: str, text: str) -> Script:
    """Raises ScriptError."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("# "):
        raise ScriptError(name, 1, "a scenario begins with a comment: `# ` and its title")
    blocks: list[Block] = []
    at = 0
    while True:
        begin = at
        at = _skip(lines, at, _is_between)
        before = tuple(lines[begin:at])
        if at == len(lines):
            break
        block, at = _block(name, lines, at, before)
        blocks.append(block)
    if not blocks:
        raise ScriptError(name, len(lines), "there is no command")
    return Script(name=name, title=_title(lines[0]), blocks=tuple(blocks), after=before)


def _block(name: str, lines: list[str], at: int, before: tuple[str, ...]) -> tuple[Block, int]:
    separator = _skip(lines, at, lambda line: bool(line.strip()) and line != SEPARATOR)
    if separator == len(lines) or lines[separator] != SEPARATOR:
        raise ScriptError(name, separator, f"a line `{SEPARATOR}` belongs below the commands")
    if separator == at:
        raise ScriptError(name, at + 1, f"no command stands above `{SEPARATOR}`")
    end = _skip(lines, separator + 1, lambda line: bool(line.strip()))
    commands = tuple(
        Command(line=number + 1, text=lines[number].strip()) for number in range(at, separator)
    )
    return Block(before=before, commands=commands, output=tuple(lines[separator + 1 : end])), end


def rewritten(script: Script, outputs: Sequence[Sequence[str]]) -> str:
    """The text of the script with other output, one a block."""
    return "".join(f"{line}\n" for line in _lines(script, outputs))


def _lines(script: Script, outputs: Sequence[Sequence[str]]) -> Iterator[str]:
    for block, output in zip(script.blocks, outputs, strict=True):
        yield from block.before
        yield from (command.text for command in block.commands)
        yield SEPARATOR
        yield from output
    yield from script.after


def _skip(lines: list[str], at: int, matches: Callable[[str], bool]) -> int:
    while at < len(lines) and matches(lines[at]):
        at += 1
    return at


def _is_between(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _title(line: str) -> str:
    return line.removeprefix("# ").strip().removesuffix(".")
