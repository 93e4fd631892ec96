"""The text of a scenario: a comment, then blocks of commands, each followed by what came of it.

    # A title.
    # What the scenario shows, and its source.
    # Finds: a_planted_bug; another

    start 3
    deliver until committed
    ----
    1 becomes prospective in epoch 0
    ...

A block is one command a line, a line `----`, and the output until an empty line. Lines that begin
with `#` are comments wherever they stand between blocks. Parsing keeps every line, so that a file
whose output is written anew changes in its output only.

A schedule (`jepsen_like.scenarios.schedules`) is such a text that need not say what comes of its
commands: where there is no output, the line `----` may be missing, too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

__all__ = [
    "Block",
    "Command",
    "Script",
    "ScriptError",
    "blocks_in",
    "names",
    "parse",
    "rewritten",
    "scenario",
]

_FINDS = "Finds: "
_SEPARATOR = "----"


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
    story: str  # all of the comments
    finds: tuple[str, ...]  # names of plants; several that belong together joined by commas
    blocks: tuple[Block, ...]
    after: tuple[str, ...]  # comments and empty lines behind the last block
    is_schedule: bool


def parse(name: str, text: str) -> Script:
    """Raises ScriptError."""
    lines = text.splitlines()
    is_schedule = _is_schedule(lines)
    if not lines or not lines[0].startswith("# "):
        what, tells = (
            ("schedule", "what happens in it") if is_schedule else ("scenario", "its title")
        )
        raise ScriptError(name, 1, f"a {what} begins with a comment: `# ` and {tells}")
    blocks, after = blocks_in(name, lines, is_schedule=is_schedule)
    if not blocks:
        raise ScriptError(name, len(lines), "there is no command")
    told = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    found = [line.removeprefix(_FINDS) for line in told if line.startswith(_FINDS)]
    return Script(
        name=name,
        title=told[0].partition(". ")[0].strip().removesuffix("."),
        story=" ".join(line for line in told if not line.startswith(_FINDS)),
        finds=tuple(plants for line in found for plants in line.split("; ")),
        blocks=blocks,
        after=after,
        is_schedule=is_schedule,
    )


def _is_schedule(lines: Sequence[str]) -> bool:
    """A scenario starts a number of nodes, a schedule what has a name."""
    commands = (line.split() for line in lines if not _is_between(line))
    words = next(commands, [])
    return len(words) > 1 and words[0] == "start" and not words[1].isdecimal()


def blocks_in(
    name: str, lines: Sequence[str], *, is_schedule: bool
) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The blocks, and the lines behind the last one. Raises ScriptError."""
    blocks: list[Block] = []
    at = 0
    while True:
        begin, at = at, _skip(lines, at, _is_between)
        before = tuple(lines[begin:at])
        if at == len(lines):
            return tuple(blocks), before
        end = _skip(lines, at, lambda line: bool(line.strip()) and line != _SEPARATOR)
        has_output = end < len(lines) and lines[end] == _SEPARATOR
        if not has_output and not is_schedule:
            raise ScriptError(name, end, f"a line `{_SEPARATOR}` belongs below the commands")
        if end == at:
            raise ScriptError(name, at + 1, f"no command stands above `{_SEPARATOR}`")
        told = (line.rstrip() for line in lines[at:end])  # lines that are repeated are indented
        commands = tuple(Command(line=line, text=text) for line, text in enumerate(told, at + 1))
        at = _skip(lines, end + 1, lambda line: bool(line.strip())) if has_output else end
        output = tuple(lines[end + 1 : at])
        blocks.append(Block(before=before, commands=commands, output=output))


def rewritten(script: Script, outputs: Sequence[Sequence[str]]) -> str:
    """The text of the script with other output, one a block."""
    return "".join(f"{line}\n" for line in _lines(script, outputs))


def _lines(script: Script, outputs: Sequence[Sequence[str]]) -> Iterator[str]:
    for block, output in zip(script.blocks, outputs, strict=True):
        yield from block.before
        yield from (command.text for command in block.commands)
        yield _SEPARATOR
        yield from output
    yield from script.after


def _skip(lines: Sequence[str], at: int, matches: Callable[[str], bool]) -> int:
    while at < len(lines) and matches(lines[at]):
        at += 1
    return at


def _is_between(line: str) -> bool:
    return not line.strip() or line.startswith("#")


# --- those that come with quorumlab, in the order in which they teach ---------------------------


def names() -> list[str]:
    """Without the suffix; each begins with its number."""
    return sorted(
        each.name.removesuffix(".txt")
        for each in files("jepsen_like.scenarios").iterdir()
        if each.name.endswith(".txt")
    )


def scenario(name: str) -> Script:
    text = files("jepsen_like.scenarios").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return parse(f"{name}.txt", text)
