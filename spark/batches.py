"""Between Spark and the checkers: batches of rows come in, verdicts go out.

Spark cuts its batches anywhere. Here they are put together until they hold enough rows, and cut
where one object ends and the next begins. Rows of an object must follow one another.
"""

import resource
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from jepsen_like.histories.history import MalformedHistory
from spark.judging import Bounds, judged
from spark.verdicts import encoded

__all__ = ["Batches", "Judging", "limit_memory", "whole_objects"]

Batches = Iterable[pa.RecordBatch]
_OBJECT = ("run", "object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Goes to the workers as it is."""

    bounds: Bounds
    rows: int  # judged in one pass, or so
    with_names: bool  # of objects that are valid

    def of(self, batches: Batches) -> Iterator[tuple[str | None, str | None]]:
        """A verdict as JSON, or why the history makes no sense."""
        limit_memory(self.bounds.mb)
        for table in whole_objects(batches, self.rows):
            try:
                yield encoded(judged(table, self.bounds), with_names=self.with_names), None
            except MalformedHistory as error:
                yield None, str(error)


def whole_objects(batches: Batches, rows: int) -> Iterator[pa.Table]:
    """Tables of whole objects, of at least `rows` rows each but the last."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    last = None
    for batch in filter(len, batches):
        border = _last_border(batch)
        is_border = border > 0 or _object_at(batch, 0) != last
        if is_border and held + border >= rows:
            yield pa.Table.from_batches([*waiting, batch.slice(0, border)])
            waiting, held, batch = [], 0, batch.slice(border)
        waiting.append(batch)
        held += len(batch)
        last = _object_at(batch, -1)
    if held:
        yield pa.Table.from_batches(waiting)


def _last_border(batch: pa.RecordBatch) -> int:
    """Where the last object begins."""
    is_last = np.ones(len(batch), dtype=bool)
    for column in _OBJECT:
        encoded = batch.column(column).dictionary_encode().indices.to_numpy()
        is_last &= encoded == encoded[-1]
    others = np.flatnonzero(~is_last)
    return int(others[-1]) + 1 if len(others) else 0


def _object_at(batch: pa.RecordBatch, row: int) -> tuple[str, ...]:
    return tuple(batch.column(column)[row].as_py() for column in _OBJECT)


def limit_memory(mb: int) -> None:
    """Limits this worker from now on: what would take more raises MemoryError at once."""
    if not sys.platform.startswith("linux"):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + (mb << 20)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
