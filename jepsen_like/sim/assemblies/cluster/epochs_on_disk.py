"""The leader epochs that a log on a disk has, for comparison with what a broker remembers."""

from bisect import bisect_right

from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry
from quorum.core.effects import EpochStart

__all__ = ["add_epochs", "within"]


def within(epochs: list[EpochStart], start_offset: int, end_offset: int) -> list[EpochStart]:
    """What is left of them in a log that starts and ends there, as brokers remember it."""
    kept = bisect_right(epochs, start_offset, key=lambda entry: entry.start_offset)
    if start_offset == end_offset:
        return []
    if kept == 0:
        return epochs
    return [EpochStart(epochs[kept - 1].epoch, start_offset), *epochs[kept:]]


def add_epochs(epochs: list[EpochStart], written: Content, before: Entry | None) -> None:
    """Those of the entries behind `before`."""
    fresh: list[Entry] = []
    entry = written.last
    while entry is not None and entry is not before:
        fresh.append(entry)
        entry = entry.parent
    for entry in reversed(fresh):
        if not epochs or epochs[-1].epoch != entry.epoch:
            epochs.append(EpochStart(entry.epoch, entry.base_offset))
