"""Which records of a log are news, when one has seen its last record before."""

from collections.abc import Sequence

from jepsen_like.sim.logtree import Entry

__all__ = ["appended_after"]


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
