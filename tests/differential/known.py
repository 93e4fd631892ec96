"""The differences that are known: the committed list `known.toml`, and which row explains what.

A row has globs (`*` is any text, nothing else is special) for API, field, place, both values, and
the request as it is printed: one or several of which one must fit. What it leaves out may be
anything. The first row that fits counts.
"""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.differential.comparing import Difference

__all__ = ["KNOWN", "Explained", "Row", "rows"]

_GLOBS = ("api", "field", "at", "ours", "kafka", "request")
KNOWN = Path(__file__).with_name("known.toml")


Globs = tuple[str, ...]  # one of them fits
ANYTHING: Globs = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`rare` says why the run of the fixed seed does not show it."""

    api: Globs
    field: Globs = ANYTHING
    at: Globs = ANYTHING
    ours: Globs = ANYTHING
    kafka: Globs = ANYTHING
    request: Globs = ANYTHING
    why: str
    rare: str = ""

    def explains(self, api: str, request: str, found: Difference) -> bool:
        return all(
            any(_fits(glob, text) for glob in globs)
            for globs, text in (
                (self.api, api),
                (self.field, found.field),
                (self.at, found.at),
                (self.ours, found.ours),
                (self.kafka, found.kafka),
                (self.request, request),
            )
        )

    def __str__(self) -> str:
        told = ((name, getattr(self, name)) for name in _GLOBS)
        return ", ".join(
            f"{name} {' or '.join(globs)}" for name, globs in told if globs != ANYTHING
        )


@dataclass(slots=True)
class Explained:
    """Counts, by row, what a run has shown."""

    rows: tuple[Row, ...]
    counts: dict[Row, int] = field(default_factory=dict)

    def row_of(self, api: str, request: str, found: Difference) -> Row | None:
        return next((row for row in self.rows if row.explains(api, request, found)), None)

    def count(self, row: Row) -> None:
        self.counts[row] = self.counts.get(row, 0) + 1

    def unseen(self) -> list[Row]:
        """Rows that should have been seen."""
        return [row for row in self.rows if row not in self.counts and not row.rare]


def rows(path: Path = KNOWN) -> tuple[Row, ...]:
    return tuple(_row(given) for given in tomllib.loads(path.read_text())["known"])


def _row(given: dict[str, Any]) -> Row:
    globs = {key: _globs(value) for key, value in given.items() if key in _GLOBS}
    words = {key: str(value) for key, value in given.items() if key not in _GLOBS}
    return Row(**globs, **words)  # type: ignore[arg-type]  # a key that is none is refused


def _globs(value: str | list[str]) -> Globs:
    return (value,) if isinstance(value, str) else tuple(value)


def _fits(glob: str, text: str) -> bool:
    return glob == "*" or _pattern(glob).fullmatch(text) is not None


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in glob.split("*")), re.DOTALL)
