"""Lines that fit a terminal: what is too wide goes on in the next line. A pipe gets it whole.

Paths and command lines in backticks stay whole however wide: they are there to be copied. A command
line of its own goes on behind backslashes, as a shell takes it.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import TextIO

__all__ = ["COLUMNS_ELSEWHERE", "columns", "fits", "fold", "fold_command", "folded"]

COLUMNS_ELSEWHERE = 100  # of a text that is filled for a pipe
_COMMAND = re.compile("`[^`]*`")
_GLUE = "\N{NO-BREAK SPACE}"
_ESCAPE = "\x1b"
_INDENT_MAX = 0.6  # of the width: what is left must hold some words


def columns(stream: TextIO | None = None) -> int | None:
    """The width of the terminal that the stream is (stdout), or None."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def fits(lines: Iterable[str]) -> bool:
    """Everything fits a pipe."""
    width = columns()
    return width is None or all(len(line.expandtabs()) <= width for line in lines)


def fold(line: str, indent: int | str | None = None, stream: TextIO | None = None) -> Iterator[str]:
    """`indent` is of all lines but the first; without it, two more than the first one has."""
    width = columns(stream)
    if width is None or len(line) <= width or _ESCAPE in line:  # a table has made it fit
        yield line
        return
    if indent is None:
        indent = len(line) - len(line.lstrip()) + 2
    if isinstance(indent, int):
        indent = " " * min(indent, int(width * _INDENT_MAX))
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _GLUE), line)
    for piece in textwrap.wrap(
        whole,
        width,
        subsequent_indent=indent,
        break_long_words=not {"/", _GLUE}.intersection(whole),
        break_on_hyphens=False,
    ):
        yield piece.replace(_GLUE, " ")


def fold_command(line: str) -> str:
    width = columns()
    if width is None or len(line) <= width:
        return line
    return " \\\n".join(
        textwrap.wrap(
            line,
            width - 2,
            subsequent_indent=" " * (len(line) - len(line.lstrip()) + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def folded(lines: Iterable[str], indent: int | str | None = None) -> Iterator[str]:
    for line in lines:
        yield from fold(line, indent)
