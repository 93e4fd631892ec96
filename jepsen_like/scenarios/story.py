"""What a scenario tells: lines in the order in which things happened; and what is news."""

from collections.abc import Sequence

from jepsen_like.sim.logs.logtree import Entry

__all__ = ["Story", "appended_after", "offsets"]


class Story:
    """Collects lines until they are taken."""

    def __init__(self) -> None:
        self.failures: list[str] = []  # what a scenario expected, and did not come
        self._lines: list[str] = []

    def tell(self, line: str) -> None:
        self._lines.append(line)

    def fail(self, line: str) -> None:
        self.failures.append(line)
        self._lines.append(line)

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines


def offsets(first: int, end: int) -> str:
    """Of records: `4`, or `4-6`."""
    return str(first) if end - first == 1 else f"{first}-{end - 1}"


def appended_after(before: Entry | None, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that are not in the history of `before`, whatever was truncated meanwhile."""
    added: list[Entry] = []
    for entry in reversed(entries):
        if _is_in_history(entry, before):
            break
        added.append(entry)
    return added[::-1]


def _is_in_history(entry: Entry, last: Entry | None) -> bool:
    while last is not None and last.index > entry.index:
        last = last.parent
    return last is entry
