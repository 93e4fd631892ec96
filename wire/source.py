"""Python source that is put together line by line, and the objects that it names.

Compiled as `dataclasses` does with its methods; `python -m wire.generated Fetch 17` prints it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from keyword import iskeyword
from typing import Any

__all__ = ["Source"]

_INDENT = "    "


class Source:
    """The lines of a function and of those that it calls, and what their global names stand for."""

    def __init__(self) -> None:
        self._finished: list[str] = []  # functions that are called
        self._lines: list[str] = []
        self._depth = 0
        self._used: set[str] = set()
        self.names: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self._lines.append(_INDENT * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Lines that are added within are indented under `header`."""
        self.line(header)
        self._depth += 1
        start = len(self._lines)
        yield
        if len(self._lines) == start:
            self.line("pass")
        self._depth -= 1

    @contextmanager
    def function(self, header: str) -> Iterator[None]:
        """Lines that are added within are a function of their own, before the present one."""
        outer, self._lines = self._lines, []
        depth, self._depth = self._depth, 0
        with self.block(header):
            yield
        self._finished += [*self._lines, "", ""]
        self._lines, self._depth = outer, depth

    def local(self, name: str) -> str:
        """A name for a variable that is like `name`, and unlike all others."""
        return self._unused(f"{name}_" if iskeyword(name) else name)

    def constant(self, name: str, value: Any) -> str:
        """A global name for an object; an object that has one keeps it."""
        for known, other in self.names.items():
            if other is value:
                return known
        chosen = self._unused(name)
        self.names[chosen] = value
        return chosen

    def literal(self, name: str, value: Any) -> str:
        """The expression for a default of the field `name`."""
        if value is None or type(value) in (bool, int, str, bytes) or value == ():
            return repr(value)
        return self.constant(f"NO_{name.upper()}", value)

    def compiled(self, name: str, place: str) -> Any:
        """The function `name`; tracebacks say that it is at `place`."""
        names = {"__name__": __name__, **self.names}  # a profile counts it for the codecs
        exec(compile(str(self), f"<{place}>", "exec"), names)  # noqa: S102  # of our own making
        return names[name]

    def _unused(self, name: str) -> str:
        chosen, number = name, 1
        while chosen in self._used or chosen in self.names:
            number += 1
            chosen = f"{name}_{number}"
        self._used.add(chosen)
        return chosen

    def __str__(self) -> str:
        return "\n".join(self._finished + self._lines) + "\n"
